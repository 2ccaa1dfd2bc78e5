"""Scenarios: found, read, made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weir import _weir

#: What can be set: a number, a word, a list of values to sweep over, a table.
Setting = bool | int | float | str | Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """A point of a sweep."""

    #: Its number, from 0 in the order of the sweep.
    number: int
    #: Values of the swept parameters, by name.
    at: Mapping[str, float | str]
    #: How many runs it has, with the seeds 1, 2, …
    seeds: int


class Scenario:
    """What is run: a scenario's file, with assignments from outside.

    ``Scenario({...})`` makes one of a mapping with the keys of a scenario's file, checked as a file is:

    >>> Scenario({
    ...     "id": "mine/first", "title": "One client", "seeds": 3, "duration": "60s",
    ...     "sweep": {"clients": [1, 2, 4]},
    ...     "topology": {"dumbbell": {"bottleneck": "rate=3M,buffer=80p"}},
    ...     "session": {"main": {"scheme": "sluice", "receivers": {"count": "{clients}", "rtt": "100ms"}}},
    ...     "metrics": {"loss": {"measure": "steady_loss", "session": "main"}},
    ... })

    Raises :exc:`ValueError` with the place and the nearest known word where a key or a value is wrong.
    """

    def __init__(self, keys: Mapping[str, Any], /) -> None:
        name = str(keys.get("id", "scenario"))
        self._file = _weir.ScenarioFile(name, _weir.to_toml(_json(keys)), [])

    @classmethod
    def _of(cls, file: _weir.ScenarioFile) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._file = file
        return scenario

    @property
    def id(self) -> str:
        """Its id, such as ``avmrc/fig02``."""
        return self._file.id

    @property
    def title(self) -> str:
        """What it shows, in a line."""
        return self._file.title

    @property
    def paper(self) -> str:
        """The paper that it is from; empty for others."""
        return self._file.paper

    @property
    def text(self) -> str:
        """The file, without what was set from outside."""
        return self._file.text

    @property
    def points(self) -> list[Point]:
        """The points of its sweep: the first swept parameter changes slowest."""
        return [Point(number, at, seeds) for number, (at, seeds) in enumerate(self._file.points)]

    @property
    def metrics(self) -> list[str]:
        """Names of what is measured, a number a run."""
        return self._file.metrics

    def with_(self, set: Mapping[str, Setting] | None = None, seeds: int | None = None) -> Scenario:
        """The same with other values. See :func:`load`."""
        name, text, before = self._file.__getnewargs__()
        return Scenario._of(_weir.ScenarioFile(name, text, before + assignments(set, seeds)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._file.__getnewargs__()

    def __repr__(self) -> str:
        runs = sum(point.seeds for point in self.points)
        return f"<Scenario {self.id}: {self.title}; {len(self.points)} points, {runs} runs>"


def load(path_or_id: str | os.PathLike[str], set: Mapping[str, Setting] | None = None, seeds: int | None = None) -> Scenario:
    """A scenario, by its id or from its file.

    :param path_or_id: an id such as ``avmrc/fig02``, or a path that ends in ``.toml``.
    :param set: other values, by name: a parameter, a swept parameter (a list replaces the values that it is swept over), ``variant``,
        or the path of any key, such as ``session.main.settings.tau``.
    :param seeds: how many runs each point has. Default: as the file says.
    :raises KeyError: there is no such id; the nearest one is named.
    :raises ValueError: the file or a value is wrong; file, line and the nearest known word are named.
    :raises OSError: the file cannot be read.
    """
    name, wanted = os.fspath(path_or_id), assignments(set, seeds)
    if not name.endswith(".toml"):
        return Scenario._of(_weir.ScenarioFile.open(name, wanted))
    with open(name, encoding="utf-8") as file:
        return Scenario._of(_weir.ScenarioFile(name, file.read(), wanted))


def scenarios() -> pa.Table:
    """All scenarios: a table of id, title, paper, what it reproduces, points, runs and claims.

    They are those of the folder ``scenarios`` in the current folder, if there is one, or those that are built in.
    """
    rows = []
    for name in _weir.scenario_ids():
        file = _weir.ScenarioFile.open(name, [])
        seeds = [seeds for _, seeds in file.points]
        rows.append(
            {
                "id": name,
                "title": file.title,
                "paper": file.paper,
                "reproduces": file.reproduces,
                "points": len(seeds),
                "runs": sum(seeds),
                "claims": file.claims,
            }
        )
    return pa.Table.from_pylist(rows)


def assignments(set: Mapping[str, Setting] | None, seeds: int | None) -> list[tuple[str, str]]:
    """What is set, as TOML. A string is one, also if it looks like a number."""
    wanted = dict(set or {})
    if seeds is not None:
        wanted["seeds"] = seeds
    return [(key, _toml(key, value)) for key, value in wanted.items()]


def _toml(key: str, value: Any) -> str:
    """`value` as a TOML value. JSON's strings, numbers and lists are TOML's; tables are not."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(key, v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_toml(key, item) for item in value) + "]"
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if value is None or not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"{key}: {value!r} is neither a number nor a string, nor a list or a mapping of these")
    return json.dumps(value, ensure_ascii=False).replace("Infinity", "inf").replace("NaN", "nan")


def _json(keys: Mapping[str, Any]) -> str:
    try:
        return json.dumps(keys, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"a scenario is made of numbers, strings, lists and mappings: {error}") from None


def _again(name: str, text: str, set: list[tuple[str, str]]) -> Scenario:
    return Scenario._of(_weir.ScenarioFile(name, text, set))
