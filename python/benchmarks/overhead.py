"""What scheduling costs, by size of the cluster: a scheduler and workers of this machine, whose runs are replaced by sleeps of a measured
length. A sleeping worker takes no processor, so that one machine holds many.

`overhead.py [--workers 1,4,16,64] [--seconds 60] [--run 0.25]`

Columns: how busy the workers are (sleep over time and workers), and processor seconds a run of the scheduler and of the client. The busier of
the two is full at a cluster of `run / cost` workers.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from local import local_cluster
from throughput import scenario

from weir import _weir, lab
from weir.lab import cluster


def sleep(seconds: float, outcome: bytes, runs: list[cluster.Run]) -> list[cluster.Made]:
    """In a worker: as long as the runs would take, and as much to send back."""
    time.sleep(seconds * len(runs))
    return [(run.key, outcome, seconds) for run in runs]


def measured(study: lab.Scenario) -> tuple[float, bytes]:
    """How long its runs take here, in the mean of one a point, and what one gives."""
    start = time.perf_counter()
    outcomes = [study._file.run_one(point.number, 1) for point in study.points]
    return (time.perf_counter() - start) / len(outcomes), outcomes[0]


def processor_seconds(dask_scheduler: Any) -> float:
    """In the scheduler's process."""
    return time.process_time()


def one(workers: int, seconds: float, run: float, outcome: bytes) -> tuple[float, float, float, int]:
    """Busy share of the workers, processor seconds a run of scheduler and client, and how many runs."""
    runs = int(seconds / run * workers) // 10 * 10
    study = scenario(runs)
    with local_cluster(workers) as client:
        before = client.run_on_scheduler(processor_seconds)
        own = time.process_time()
        start = time.perf_counter()
        waiting = [cluster.Run(*one) for one in study._file.runs()]
        cluster.make = lambda _scenario, batch, _store, _code: sleep(run, outcome, batch)  # type: ignore[assignment]
        made = sum(1 for _ in cluster.Sweep(study, None, cluster.Scheduler(client, 60), waiting))
        elapsed = time.perf_counter() - start
        cost = client.run_on_scheduler(processor_seconds) - before, time.process_time() - own
    return made * run / (elapsed * workers), cost[0] / made, cost[1] / made, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,4,16,64")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--run", type=float, help="how long a run sleeps, in seconds [default: as long as the throughput study's take here]"
    )
    args = parser.parse_args()
    run, outcome = measured(scenario(10))
    run = args.run or run
    print(f"a run takes {run * 1e3:.1f} ms and gives {len(outcome)} bytes; weir {_weir.__version__}")
    print("workers     runs   busy   scheduler and client, ms a run   full at")
    for workers in map(int, args.workers.split(",")):
        busy, scheduler, client, runs = one(workers, args.seconds, run, outcome)
        print(f"{workers:7} {runs:8} {busy:6.1%} {(scheduler + client) * 1e3:22.2f} {run / (scheduler + client):17.0f} workers", flush=True)


if __name__ == "__main__":
    main()
