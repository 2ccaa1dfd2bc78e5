"""A Dask cluster of this machine whose scheduler has a process of its own, as on real clusters."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

#: What a worker does besides its work: little on a machine of its own, much where sixty-four share two cores.
CALM = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
}


@contextmanager
def local_cluster(workers: int) -> Iterator[Client]:
    """A client of a scheduler with `workers` processes of one thread each."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "scheduler.json"
        module = [sys.executable, "-m"]
        quiet = {"cwd": folder, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "env": os.environ | CALM}
        where = ["--scheduler-file", str(told)]
        scheduler = subprocess.Popen([*module, "distributed.cli.dask_scheduler", *where, "--port", "0", "--no-dashboard"], **quiet)
        options = ["--nworkers", str(workers), "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        started = subprocess.Popen([*module, "distributed.cli.dask_worker", *where, *options], **quiet)
        try:
            with Client(scheduler_file=str(told)) as client:
                client.wait_for_workers(workers)
                yield client
        finally:
            for process in (started, scheduler):
                process.terminate()
                process.wait()
