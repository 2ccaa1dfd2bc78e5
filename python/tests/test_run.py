"""Runs on this machine: the command line's rows, stopped and gone on with, traced, judged, drawn."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from conftest import small

from weir import lab
from weir.lab import _local


def test_results_are_one_row_a_run_whatever_reads_them(scenario: lab.Scenario) -> None:
    results = lab.run(scenario, cache=False, progress=False)
    runs = results.runs
    assert runs.column_names == ["scenario", "clients", "seed", "loss"]
    assert [str(column.type) for column in runs.columns] == ["string", "double", "int64", "double"]
    assert runs.column("clients").to_pylist() == [1, 1, 2, 2, 3, 3]
    assert runs.equals(pa.table(results))
    assert polars.DataFrame(results).equals(results.to_polars())
    assert results.to_pandas()["loss"].tolist() == runs.column("loss").to_pylist()
    assert results.scenario is scenario and len(results) == 6


def test_an_arrow_table_outlives_the_results_that_it_came_from(scenario: lab.Scenario) -> None:
    column = lab.run(scenario, cache=False, progress=False).runs.column("loss")
    again = lab.run(scenario, cache=False, progress=False).runs.column("loss")
    assert column.equals(again), "same seeds, same results, and the memory is still there"


def test_what_is_in_the_cache_is_not_made_again(scenario: lab.Scenario, tmp_path: Path) -> None:
    first = lab.run(scenario, cache=tmp_path, progress=False)
    kept = sorted(tmp_path.rglob("*.json"))
    assert len(kept) == 6
    kept[0].write_text('{"metrics": {"loss": 7.0}}')
    second = lab.run(scenario, cache=tmp_path, progress=False).runs.column("loss").to_pylist()
    assert second.count(7.0) == 1, "what the cache says is believed"
    assert sum(a != b for a, b in zip(second, first.runs.column("loss").to_pylist(), strict=True)) == 1


def test_ctrl_c_stops_a_sweep_and_what_is_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = lab.Scenario(small(seeds=100, duration="20s"))
    shown: list[int] = []

    def interrupt(done: int, known: int, total: int) -> None:
        if not shown and done:
            threading.Thread(target=_thread.interrupt_main).start()
        shown.append(done)

    monkeypatch.setattr(_local.Bar, "__call__", lambda _, *how_far: interrupt(*how_far))
    with pytest.raises(KeyboardInterrupt):
        lab.run(scenario, cache=tmp_path, progress=False)
    kept = len(list(tmp_path.rglob("*.json")))
    assert 0 < kept < 300, "it was stopped on the way"
    monkeypatch.undo()
    again: list[tuple[int, int]] = []
    monkeypatch.setattr(_local.Bar, "__call__", lambda _, done, known, total: again.append((done, known)))
    lab.run(scenario, cache=tmp_path, progress=False)
    assert again[-1] == (300, kept), "it goes on from what is kept"


def test_other_threads_run_while_a_sweep_does(scenario: lab.Scenario) -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    lab.run(scenario.with_({"duration": "60s"}), cache=False, progress=False)
    done.set()
    ticker.join()
    assert ticks > 1, "the interpreter's lock is free during runs"


def test_a_trace_has_the_events_that_were_asked_for(scenario: lab.Scenario, tmp_path: Path) -> None:
    capture = tmp_path / "bottleneck.pcapng"
    events = lab.trace(scenario, at={"clients": 2}, links="bottleneck", kinds=["enqueue", "drop"], end=1.0, pcap=capture)
    assert set(events.column("kind").to_pylist()) <= {"enqueue", "drop"} and len(events) > 0
    assert capture.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    with pytest.raises(ValueError, match="there is no link"):
        lab.trace(scenario, links="bottlenek")
    with pytest.raises(ValueError, match="no point"):
        lab.trace(scenario, at={"clients": 9})


def test_a_paper_s_claims_are_judged_and_its_figure_is_drawn(tmp_path: Path) -> None:
    results = lab.run("avmrc/fig01", set={"session.main.settings.confirm_steps": "half"}, cache=False, progress=False)
    verdicts = results.verdicts()
    assert len(verdicts) > 0 and not verdicts.red
    assert lab.verify("avmrc/fig01", cache=False, progress=False).red, "as deployed, one of them does not hold"
    assert {verdict.id.rsplit("/", 1)[0] for verdict in verdicts} == {"avmrc/fig01"}
    assert verdicts.table.num_rows == len(verdicts)
    figure = results.figure()
    assert figure is not None and figure.svg.lstrip().startswith("<svg")
    figure.save(tmp_path / "fig01.png")
    assert (tmp_path / "fig01.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(ValueError, match="svg or"):
        figure.save(tmp_path / "fig01.jpg")


def test_on_the_command_line_rows_go_to_standard_output_and_progress_does_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weir.lab", "run", "rap/fig09", "--seeds", "2", "--csv", "--cache", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    header, *rows = done.stdout.splitlines()
    assert header.startswith('"scenario","max_p","seed"') and len(rows) == 2
    wrong = subprocess.run([*command[:4], "rap/fig99"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "") and "rap/fig0" in wrong.stderr


def test_a_dataset_on_disk_has_the_rows_of_the_results(scenario: lab.Scenario, tmp_path: Path) -> None:
    results = lab.run(scenario, cache=False, progress=False, dataset=tmp_path / "rows")
    import pyarrow.dataset as ds

    assert ds.dataset(tmp_path / "rows/runs").to_table().equals(results.runs)
