"""Scenarios: by id, by file, made; what is wrong is told as the command line tells it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import small

from weir import lab


def test_the_built_in_scenarios_are_listed_with_their_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = {row["id"]: row for row in lab.scenarios().to_pylist()}
    assert rows["avmrc/fig02"]["paper"] == "avmrc"
    assert all(row["runs"] >= row["points"] > 0 for row in rows.values())


def test_a_mapping_and_a_file_of_the_same_keys_are_the_same_scenario(tmp_path: Path) -> None:
    made = lab.Scenario(small())
    file = tmp_path / "small.toml"
    file.write_text(made.text)
    read = lab.load(file)
    assert made._file.runs() == read._file.runs()
    assert [point.at for point in made.points] == [{"clients": 1.0}, {"clients": 2.0}, {"clients": 3.0}]


def test_values_set_from_outside_replace_those_of_the_file(scenario: lab.Scenario) -> None:
    narrowed = scenario.with_({"clients": [np.int64(2)], "session.main.receivers.rtt": "50ms"}, seeds=5)
    assert [(point.at, point.seeds) for point in narrowed.points] == [({"clients": 2.0}, 5)]
    assert narrowed._file.runs()[0][2] != scenario._file.runs()[2][2], "another round trip is another result"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"duratoin": "5s"}, 'unknown key "duratoin"; did you mean "duration"?'),
        ({"sweep": {"clients": [object()]}}, "numbers, strings, lists and mappings"),
        ({"metrics": {"loss": {"measure": "stedy_loss", "session": "main"}}}, "stedy_loss"),
        ({"session": {"main": {"scheme": "sluce", "receivers": {"count": 1, "rtt": "1ms"}}}}, "sluice"),
    ],
)
def test_what_is_wrong_with_a_mapping_is_told(keys: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError) as told:
        lab.run(lab.Scenario(small(**keys)), cache=False, progress=False)
    assert words in str(told.value)


def test_an_unknown_id_or_value_is_told_with_the_nearest_one(scenario: lab.Scenario) -> None:
    with pytest.raises(KeyError, match="did you mean"):
        lab.load("avmrc/fig2")
    with pytest.raises(ValueError, match="clients"):
        scenario.with_({"client": 3})
    with pytest.raises(ValueError, match="neither a number nor a string"):
        scenario.with_({"clients": None})  # type: ignore[dict-item]
    with pytest.raises(OSError, match="nowhere.toml"):
        lab.load("nowhere.toml")


def test_a_scenario_travels_to_another_process(scenario: lab.Scenario) -> None:
    again = pickle.loads(pickle.dumps(scenario.with_({"clients": [2]})))
    assert again._file.runs() == scenario.with_({"clients": [2]})._file.runs()
