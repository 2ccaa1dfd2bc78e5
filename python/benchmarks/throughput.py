"""The same sweep by the command line and on a Dask cluster of this machine, in turn: runs a second, and their ratio.

`throughput.py --weir target/release/weir [--runs 2000] [--workers 2] [--repeat 3]`
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from local import local_cluster

from weir import lab


def scenario(runs: int) -> lab.Scenario:
    """A session next to a CUBIC on ten sizes of buffer, a minute of simulated time."""
    return lab.Scenario(
        {
            "id": "bench/throughput",
            "title": "A session next to a CUBIC, by buffer",
            "seeds": runs // 10,
            "duration": "60s",
            "sweep": {"buffer": [10, 15, 20, 30, 40, 60, 80, 120, 160, 240]},
            "topology": {"dumbbell": {"bottleneck": "rate=5M,buffer={buffer}p", "access": "rate=1G,buffer=10000p"}},
            "session": {
                "main": {
                    "scheme": "sluice",
                    "ladder": {"low": "256k", "high": "1G"},
                    "leave_latency": "2s",
                    "receivers": {"join": "uniform(0s, 1s)", "rtt": "40ms"},
                }
            },
            "flow": {"tcp": {"rtt": "40ms", "start": "uniform(0s, 1s)", "traffic": {"ftp": {"flavour": "cubic", "overhead": "2ms"}}}},
            "metrics": {
                "session": {"measure": "goodput", "session": "main", "from": "20s"},
                "tcp": {"measure": "goodput", "flow": "tcp", "from": "20s"},
            },
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True, help="the command line's program")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    study = scenario(args.runs)
    ratios = []
    for _ in range(args.repeat):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "study.toml").write_text(study.text)
            command = [
                args.weir,
                "lab",
                "run",
                str(folder / "study.toml"),
                "--jobs",
                str(args.workers),
                "--cache",
                str(folder / "one"),
                "--json",
            ]
            start = time.perf_counter()
            line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            alone = time.perf_counter() - start
            with local_cluster(args.workers) as client:
                start = time.perf_counter()
                results = lab.run(study, client=client, cache=folder / "other", progress=False)
                spread = time.perf_counter() - start
            assert json.loads(results.json()) == json.loads(line), "the same rows"
        ratios.append(alone / spread)
        runs = len(results)
        print(f"command line {runs / alone:.1f} runs/s, cluster {runs / spread:.1f} runs/s: {ratios[-1]:.3f}", flush=True)
    print(f"cluster / command line: {statistics.median(ratios):.3f} [{min(ratios):.3f}-{max(ratios):.3f}]")


if __name__ == "__main__":
    main()
