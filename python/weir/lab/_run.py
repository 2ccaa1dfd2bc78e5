"""Scenarios run: on this machine, or on a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weir import _weir
from weir.lab._local import on_this_machine
from weir.lab._results import Figure, Results, Verdict, Verdicts
from weir.lab._scenario import Point, Scenario, Setting, load

Which = str | os.PathLike[str] | Scenario


def run(
    scenario: Which,
    *,
    set: Mapping[str, Setting] | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = True,
    client: Any = None,
    dataset: str | os.PathLike[str] | None = None,
) -> Results:
    """Makes all runs of a scenario.

    Runs go on while Python does other things. Ctrl-C stops them after those that are under way; what is done is kept, and the same
    call goes on from there.

    :param scenario: an id, a path that ends in ``.toml``, or a :class:`Scenario`.
    :param set: other values; see :func:`load`.
    :param seeds: how many runs each point has.
    :param jobs: runs at the same time. Default: as many as there are cores. Without meaning on a cluster.
    :param cache: where results are kept and looked for: True for the folder that the command line uses, False for nowhere, or a folder;
        on a cluster a folder that all machines see, or a URL that fsspec knows (``s3://bucket/folder``).
    :param progress: whether a bar shows how far it is.
    :param client: a :class:`dask.distributed.Client`: the runs are made by its workers. See :mod:`weir.lab.cluster`.
    :param dataset: a folder that rows are written to as Parquet while they come, ``runs/part-00000.parquet`` and on, ``series`` likewise.
        A part appears when it is whole.
    :raises ValueError: the scenario, or a run, cannot be made.
    :raises OSError: a result cannot be kept.
    """
    what = _scenario(scenario, set, seeds)
    if client is not None or dataset is not None:
        from weir.lab.cluster import sweep

        return sweep(what, client=client, cache=cache, dataset=dataset, jobs=jobs, progress=progress)
    return Results(what, on_this_machine(what, cache, jobs, progress))


def verify(*ids: Which, **options: Any) -> Verdicts:
    """Runs scenarios and judges what they claim.

    :param ids: ids, paths or scenarios; ``avmrc`` means all that begin with ``avmrc/``.
    :param options: as :func:`run` takes them.
    """
    found: list[Verdict] = []
    for which in ids:
        for one in _named(which):
            found.extend(run(one, **options).verdicts())
    return Verdicts(iter(found))


def figure(scenario: Which, **options: Any) -> Figure | None:
    """Runs a scenario and draws its figure; None if it has none. `options` are those of :func:`run`."""
    return run(scenario, **options).figure()


def trace(
    scenario: Which,
    *,
    set: Mapping[str, Setting] | None = None,
    at: Mapping[str, float | str] | None = None,
    seed: int = 1,
    flows: str | list[str] = (),  # type: ignore[assignment]
    links: str | list[str] = (),  # type: ignore[assignment]
    kinds: str | list[str] = (),  # type: ignore[assignment]
    start: float | None = None,
    end: float | None = None,
    pcap: str | os.PathLike[str] | None = None,
) -> pa.Table:
    """Makes one run and gives its events, a row each (``docs/trace.md`` has the columns).

    :param at: values of swept parameters; the first point that has them is run. Default: the first point.
    :param seed: the run's seed.
    :param flows: only these flows, sessions and trees: ``tcp``, ``tcp.0``, ``flow.tcp.0``, ``session``.
    :param links: only what happens on these links: ``bottleneck``, or ``a-b`` from node a to node b.
    :param kinds: only these: enqueue, dequeue, drop, arrive, deliver, complete, join, leave, observe.
    :param start: from when, in seconds of simulated time.
    :param end: until when, that instant left out.
    :param pcap: a file that the bottleneck's packets are written to, for Wireshark.
    :raises ValueError: a word means nothing in this run; the nearest one is named.
    """
    what = _scenario(scenario, set, None)
    point = _point(what, at or {})
    span = tuple(None if second is None else timedelta(seconds=second) for second in (start, end))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.parquet")
        lists = {"flows": _list(flows), "links": _list(links), "kinds": _list(kinds)}
        what._file.trace(point.number, seed, path, between=span, pcap=pcap, **lists)  # type: ignore[arg-type]
        return pq.read_table(path)


def _scenario(which: Which, set: Mapping[str, Setting] | None, seeds: int | None) -> Scenario:
    if not isinstance(which, Scenario):
        return load(which, set, seeds)
    return which.with_(set, seeds) if set or seeds is not None else which


def _named(which: Which) -> list[Which]:
    if isinstance(which, Scenario) or os.fspath(which).endswith(".toml"):
        return [which]
    below = os.fspath(which).rstrip("/") + "/"
    return [one for one in _weir.scenario_ids() if one.startswith(below)] or [which]


def _point(scenario: Scenario, at: Mapping[str, float | str]) -> Point:
    for point in scenario.points:
        if all(point.at.get(name) == value for name, value in at.items()):
            return point
    known = {name: sorted({str(point.at[name]) for point in scenario.points if name in point.at}) for name in at}
    raise ValueError(f"{scenario.id} has no point with {dict(at)}; there are {known}")


def _list(words: str | list[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)
