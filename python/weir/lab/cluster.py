"""Sweeps on a Dask cluster.

A run is a pure function of scenario, point and seed, and has a name in a :class:`~weir.lab.store.Store` that all machines see. So a sweep
needs nothing of the scheduler but its work: what a worker finished before it died is there, what was under way is made again, and a
scheduler that starts anew is given what is still missing.

Runs go out in batches that take about :data:`BATCH_SECONDS`, by the run times measured so far, the sweep's last points first: they tend
to be the largest.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weir import _weir
from weir.lab._local import on_this_machine
from weir.lab._progress import Bar
from weir.lab._results import Results
from weir.lab._scenario import Scenario
from weir.lab.store import Store

#: How long a batch should take, in seconds: long next to what handing it out costs (milliseconds), short next to a sweep.
BATCH_SECONDS = 5.0
#: How many batches a thread of a worker has: one under way, one to go on with.
BATCHES_AHEAD = 2
#: How long a sweep waits for a scheduler that is gone, in seconds.
PATIENCE = 600.0
#: How often workers are counted, in seconds.
COUNT_EVERY = 1.0
#: After how long without news of any batch the scheduler is asked whether it knows them, in seconds.
ASK_AFTER = 30.0
#: Rows of a part of a dataset.
PART_ROWS = 1000


@dataclass(frozen=True)
class Run:
    """A run that is to be made."""

    #: The point's number.
    point: int
    seed: int
    #: The name of its result.
    key: str


#: What came of a run: its name, what is kept of it, and how long it took in seconds; None if it was known.
Made = tuple[str, bytes, float | None]


class WrongCode(RuntimeError):
    """A worker has another version of weir: its results would not be those of this machine."""


def sweep(
    scenario: Scenario,
    *,
    client: Any,
    cache: bool | str | os.PathLike[str] | Store = True,
    dataset: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: bool = True,
    patience: float = PATIENCE,
) -> Results:
    """Makes all runs of `scenario` on `client`'s cluster, or on this machine without one. See :func:`weir.lab.run`.

    :param patience: how long it waits for a scheduler that is gone, in seconds.
    :raises WrongCode: a worker has another version of weir.
    :raises TimeoutError: the scheduler did not come back.
    """
    runs = [Run(*run) for run in scenario._file.runs()]
    parts = Parts(scenario, runs, dataset)
    if client is None:
        if isinstance(cache, Store):
            raise ValueError("without a client, results are kept in a folder: give its path")
        results = on_this_machine(scenario, cache, jobs, progress)
        for run, outcome in zip(runs, _outcomes(results), strict=True):
            parts.add(run.key, outcome)
        return Results(scenario, results)
    store = _store(cache)
    outcomes = store.get_all({run.key for run in runs}) if store else {}
    for key, outcome in outcomes.items():
        parts.add(key, outcome)
    missing = {run.key: run for run in runs if run.key not in outcomes}
    known = len(outcomes)
    with Bar(scenario.id, progress) as bar:
        total = known + len(missing)
        bar(known, known, total)
        for key, outcome, _ in Sweep(scenario, store, Scheduler(client, patience), list(missing.values())):
            if key not in outcomes:
                outcomes[key] = outcome
                parts.add(key, outcome)
                bar(len(outcomes), known, total)
    table = [(run.point, run.seed, outcomes[run.key]) for run in runs]
    return Results(scenario, scenario._file.collect(table))


def make(scenario: tuple[str, str, list[tuple[str, str]]], runs: list[Run], store: Store | None, code: str) -> list[Made]:
    """What a worker does: makes `runs`, those left out that another worker has kept meanwhile, and keeps each as it is done."""
    if code != _weir.CODE_VERSION:
        raise WrongCode(
            f"the worker's weir ({_weir.__version__}, code {_weir.CODE_VERSION[:12]}) is not the client's (code {code[:12]}); "
            "install the same wheel on all machines"
        )
    name, text, set = scenario
    file = _read(name, text, tuple(set))
    made: list[Made] = []
    for run in runs:
        outcome = store.get(run.key) if store else None
        if outcome is not None:
            made.append((run.key, outcome, None))
            continue
        start = time.perf_counter()
        outcome = file.run_one(run.point, run.seed)
        seconds = time.perf_counter() - start
        if store:
            store.put(run.key, outcome)
        made.append((run.key, outcome, seconds))
    return made


@functools.lru_cache(maxsize=8)
def _read(name: str, text: str, set: tuple[tuple[str, str], ...]) -> _weir.ScenarioFile:
    """A worker reads a scenario once, not once a batch."""
    return _weir.ScenarioFile(name, text, list(set))


@dataclass
class Durations:
    """How long runs take, by what has been measured."""

    #: By point: seconds, and of how many runs.
    measured: dict[int, tuple[float, int]] = field(default_factory=lambda: defaultdict(lambda: (0.0, 0)))

    def add(self, point: int, seconds: float) -> None:
        total, count = self.measured[point]
        self.measured[point] = total + seconds, count + 1

    def expected(self, point: int) -> float | None:
        """Of a run of `point`, in seconds: the mean of its runs, or else of all; None before the first."""
        if point in self.measured:
            total, count = self.measured[point]
            return total / count
        count = sum(count for _, count in self.measured.values())
        return sum(total for total, _ in self.measured.values()) / count if count else None


class Sweep:
    """Runs on their way through a cluster; iterating gives what came of each, as it comes."""

    def __init__(self, scenario: Scenario, store: Store | None, scheduler: Scheduler, runs: list[Run]) -> None:
        self._scenario = scenario._file.__getnewargs__()
        self._store = store
        self._scheduler = scheduler
        #: The next one at the end.
        self._waiting = runs
        self._points = {run.key: run.point for run in runs}
        self._under_way: dict[Any, list[Run]] = {}
        self._durations = Durations()

    def __iter__(self) -> Iterator[Made]:
        try:
            while self._waiting or self._under_way:
                self._hand_out()
                yield from self._take_in()
        finally:
            self._scheduler.cancel(list(self._under_way))

    def _hand_out(self) -> None:
        threads = self._scheduler.threads()
        while self._waiting and len(self._under_way) < threads * BATCHES_AHEAD:
            batch = self._next_batch(threads)
            future = self._scheduler.submit(make, self._scenario, batch, self._store, _weir.CODE_VERSION)
            self._under_way[future] = batch

    def _next_batch(self, threads: int) -> list[Run]:
        """One run before any has been timed; towards the end, batches small enough that all threads end together."""
        fair = max(1, len(self._waiting) // (threads * BATCHES_AHEAD))
        batch, seconds = [self._waiting.pop()], 0.0
        while self._waiting and len(batch) < fair:
            expected = self._durations.expected(batch[-1].point)
            if expected is None or (seconds := seconds + expected) >= BATCH_SECONDS:
                break
            batch.append(self._waiting.pop())
        return batch

    def _take_in(self) -> Iterator[Made]:
        """What is done by now; what a scheduler lost waits again."""
        for future in self._scheduler.done(self._under_way):
            batch = self._under_way.pop(future)
            made = self._scheduler.result(future)
            if made is None:
                self._waiting.extend(reversed(batch))
                continue
            for one in made:
                key, _, seconds = one
                if seconds is not None:
                    self._durations.add(self._points[key], seconds)
                yield one


class Scheduler:
    """A Dask scheduler that may go and come back at its address."""

    def __init__(self, client: Any, patience: float) -> None:
        self._client = client
        self._address = client.scheduler.address
        #: Given back to the caller as it came; a client made here is closed here.
        self._own: Any = None
        self._patience = patience
        #: Threads of all workers, and when they were counted.
        self._threads, self._counted = 1, -COUNT_EVERY
        #: When something was last known of a batch.
        self._heard = time.monotonic()

    def submit(self, function: Any, *arguments: Any) -> Any:
        # Purity is the store's business: a name of Dask's would keep results on the cluster.
        return self._client.submit(function, *arguments, pure=False)

    def threads(self) -> int:
        """Threads of all workers, at least one. Waits for a scheduler that is gone."""
        deadline = time.monotonic() + self._patience
        if time.monotonic() < self._counted + COUNT_EVERY and self._client.status == "running":
            return self._threads
        while True:
            try:
                self._threads = max(1, int(sum(self._client.nthreads().values())))
                self._counted = time.monotonic()
                return self._threads
            except (OSError, RuntimeError, TimeoutError, ValueError) as error:
                if time.monotonic() > deadline:
                    message = f"the scheduler at {self._address} has been gone for {self._patience:.0f} s"
                    raise TimeoutError(f"{message}; what was done is kept") from error
            self._connect_again()

    def done(self, futures: dict[Any, Any]) -> list[Any]:
        """Those of which something is known. Waits for one, for a second at the most."""
        from distributed import wait

        waiting = [future for future in futures if future.status == "pending"]
        if len(waiting) == len(futures):
            try:
                wait(waiting, timeout=1, return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call]
            except TimeoutError:
                pass
            except Exception as error:  # What was lost is told by the futures.
                if not _is_lost(error):
                    raise
        gone = self._client.status != "running"
        known = [future for future in futures if gone or future.status != "pending"]
        if known:
            self._heard = time.monotonic()
        elif time.monotonic() > self._heard + ASK_AFTER:
            self._heard = time.monotonic()
            return self._forgotten(list(futures))
        return known

    def _forgotten(self, futures: list[Any]) -> list[Any]:
        """Those that the scheduler does not know: they were handed out at the moment at which it went."""
        try:
            known = self._client.run_on_scheduler(_known, keys=[future.key for future in futures])
        except Exception as error:
            if not _is_lost(error):
                raise
            return []
        return [future for future, is_known in zip(futures, known, strict=True) if not is_known]

    def result(self, future: Any) -> Any:
        """What came of it; None if the scheduler lost it."""
        if future.status in ("pending", "cancelled", "lost"):
            return None
        try:
            return future.result(timeout=60)
        except Exception as error:
            if _is_lost(error):
                return None
            raise

    def cancel(self, futures: list[Any]) -> None:
        """They are not wanted any more."""
        if futures and self._client.status == "running":
            try:
                self._client.cancel(futures)
            except Exception as error:
                if not _is_lost(error):
                    raise
        if self._own is not None:
            self._own.close()

    def _connect_again(self) -> None:
        from distributed import Client

        time.sleep(0.5)
        try:
            client = Client(self._address, timeout=5, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError):
            return
        if self._own is not None:
            self._own.close()
        self._client = self._own = client


def _known(dask_scheduler: Any, keys: list[str]) -> list[bool]:
    """In the scheduler: whether it knows these."""
    return [key in dask_scheduler.tasks for key in keys]


def _is_lost(error: BaseException) -> bool:
    """Whether it says that the scheduler went, or forgot."""
    from asyncio import CancelledError
    from concurrent.futures import CancelledError as ThreadCancelled

    from distributed.comm.core import CommClosedError

    return isinstance(error, (CancelledError, ThreadCancelled, CommClosedError, TimeoutError))


class Parts:
    """A dataset that grows: rows in the order of the sweep, in files of :data:`PART_ROWS`, each written when all its rows are there."""

    def __init__(self, scenario: Scenario, runs: list[Run], folder: str | os.PathLike[str] | None) -> None:
        self._folder = folder
        if folder is None:
            return
        self._scenario = scenario
        self._parts = [runs[start : start + PART_ROWS] for start in range(0, len(runs), PART_ROWS)]
        self._lacks = [len({run.key for run in part}) for part in self._parts]
        self._places: dict[str, set[int]] = defaultdict(set)
        self._outcomes: list[dict[str, bytes]] = [{} for _ in self._parts]
        for number, part in enumerate(self._parts):
            for run in part:
                self._places[run.key].add(number)
        empty = scenario._file.collect([(run.point, run.seed, b'{"metrics": {}}') for run in runs])
        self._schema = pa.table(empty.runs()).schema
        for metric in scenario.metrics:
            self._schema = self._schema.append(pa.field(metric, pa.float64()))

    def add(self, key: str, outcome: bytes) -> None:
        """All rows that have this result."""
        if self._folder is None:
            return
        for number in self._places[key]:
            held = self._outcomes[number]
            held[key] = outcome
            if len(held) == self._lacks[number]:
                self._write(number)
                held.clear()

    def _write(self, number: int) -> None:
        held = self._outcomes[number]
        rows = self._scenario._file.collect([(run.point, run.seed, held[run.key]) for run in self._parts[number]])
        self._write_table("runs", number, _with_columns(pa.table(rows.runs()), self._schema))
        if self._scenario._file.has_series:
            self._write_table("series", number, pa.table(rows.series()))

    def _write_table(self, kind: str, number: int, table: pa.Table) -> None:
        folder = os.path.join(os.fspath(self._folder or ""), kind)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"part-{number:05}.parquet")
        pq.write_table(table, path + ".part")
        os.replace(path + ".part", path)


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with the columns of `schema`; those that it lacks are null."""
    columns = [
        table.column(column.name).cast(column.type) if column.name in table.column_names else pa.nulls(len(table), column.type)
        for column in schema
    ]
    return pa.table(columns, schema=schema)


def _store(cache: bool | str | os.PathLike[str] | Store) -> Store | None:
    if cache is False or isinstance(cache, Store):
        return cache or None
    folder = _weir.cache_folder() if cache is True else cache
    return Store(folder) if folder else None


def _outcomes(results: _weir.Results) -> Iterator[bytes]:
    """What a cache keeps of each row."""
    for row in json.loads(results.json())["rows"]:
        kept = {"metrics": row["metrics"], "series": row.get("series", {})}
        yield json.dumps(kept).encode()
