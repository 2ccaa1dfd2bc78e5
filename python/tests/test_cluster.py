"""Sweeps on a real cluster: a scheduler and workers in processes of their own, killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from conftest import small
from counting import Counting
from distributed import Client

from weir import lab
from weir.lab import cluster
from weir.lab.cluster import Durations
from weir.lab.store import Store


class Cluster:
    """A scheduler and two workers."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.folder = folder
        self.scheduler = self.start_scheduler()
        self.workers = [self.start("worker", self.address, "--nthreads", "1", "--no-nanny") for _ in range(2)]

    def start(self, *what: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + what[0], *what[1:]]
        # Workers look for a scheduler that is gone for a minute, as those of a real cluster would be set to.
        own = {
            "PYTHONPATH": str(Path(__file__).parent),
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
            "DASK_DISTRIBUTED__DASHBOARD__LINK": "",
        }
        with open(self.folder / f"{what[0]}-{time.monotonic_ns()}.log", "wb") as log:
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=os.environ | own)

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        return self.start("scheduler", "--host", "127.0.0.1", "--port", self.address.rsplit(":", 1)[1], "--no-dashboard")

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def made(folder: Path) -> int:
    """Results that are kept."""
    return len(list(folder.rglob("*.json")))


def wait_for(what: str, is_so: object, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"{what} within {seconds} s"
        time.sleep(0.02)


def test_a_cluster_gives_the_rows_of_one_machine_bit_for_bit(dask: Cluster, tmp_path: Path) -> None:
    scenario = lab.Scenario(small(series={"rate": {"trace": "throughput", "session": "main", "window": "1s", "step": "1s"}}))
    here = lab.run(scenario, cache=False, progress=False)
    with Client(dask.address) as client:
        there = lab.run(scenario, client=client, cache=tmp_path / "kept", dataset=tmp_path / "rows", progress=False)
        assert there.json() == here.json()
        again = lab.run(scenario, client=client, cache=tmp_path / "kept", progress=False)
    assert again.json() == here.json() and made(tmp_path / "kept") == 6
    assert ds.dataset(tmp_path / "rows/runs").to_table().equals(here.runs)
    assert ds.dataset(tmp_path / "rows/series").to_table().equals(here.series)
    assert lab.run(scenario, cache=tmp_path / "kept", progress=False).json() == here.json(), "both share a folder"


def test_a_sweep_survives_a_killed_worker_and_a_new_scheduler(dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = lab.Scenario(small(seeds=60, duration="60s"))
    monkeypatch.setattr(cluster, "BATCH_SECONDS", 0.2)
    kept = tmp_path / "kept"
    results: list[lab.Results] = []

    def sweep() -> None:
        with Client(dask.address) as client:
            results.append(lab.run(scenario, client=client, cache=Counting(kept), progress=False))

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    wait_for("a tenth of the runs is made", lambda: made(kept) > 18)
    dask.workers[0].send_signal(signal.SIGKILL)
    before = made(kept)
    wait_for("the other worker goes on", lambda: made(kept) > before + 9)
    dask.scheduler.kill()
    dask.scheduler.wait()
    killed_at = made(kept)
    assert killed_at < 170, "both struck on the way"
    dask.scheduler = dask.start_scheduler()
    dask.workers.append(dask.start("worker", dask.address, "--nthreads", "1", "--no-nanny"))
    sweeping.join(timeout=120)
    assert not sweeping.is_alive() and results
    puts = Counting(kept).puts()
    assert len(set(puts)) == made(kept) == 180
    assert len(puts) - 180 <= 2, "made twice is only what both workers had under way when the scheduler went"
    assert results[0].json() == lab.run(scenario, cache=False, progress=False).json()


def test_no_run_is_made_twice_but_those_under_way(dask: Cluster, tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    scenario = lab.Scenario(small())
    for point, seed, key in scenario._file.runs()[:4]:
        store.put(key, scenario._file.run_one(point, seed))
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").rglob("*.json")}
    with Client(dask.address) as client:
        lab.run(scenario, client=client, cache=tmp_path / "kept", progress=False)
    assert made(tmp_path / "kept") == 6
    assert all(path.stat().st_mtime_ns == then for path, then in times.items()), "what was there is as it was"


def test_a_worker_with_another_version_is_refused_in_words() -> None:
    scenario = lab.Scenario(small())._file.__getnewargs__()
    with pytest.raises(cluster.WrongCode, match="install the same wheel on all machines"):
        cluster.make(scenario, [], None, "0" * 32)


def test_batches_follow_the_measured_run_times() -> None:
    durations = Durations()
    assert durations.expected(0) is None
    durations.add(0, 1.0)
    durations.add(0, 3.0)
    assert durations.expected(0) == 2.0
    assert durations.expected(1) == 2.0, "a point that was never run is taken for the mean"


def test_a_store_in_memory_keeps_what_a_folder_does() -> None:
    store = Store("memory://results")
    store.put("abcd", b"{}")
    assert store.get("abcd") == b"{}" and store.get("abce") is None
    assert store.get_all(["abcd", "abce"]) == {"abcd": b"{}"}
