"""What a run costs, by scenario, to plan a study: processor seconds of the first run of up to `--points` points, spread over the sweep.

`costs.py [ID ...]` writes a table in Markdown.
"""

from __future__ import annotations

import argparse
import time

from weir import lab


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--points", type=int, default=3)
    args = parser.parse_args()
    print("| scenario | runs | seconds a run, least to most | all of it, in hours of one core |\n|---|---|---|---|")
    for name in args.ids or lab.scenarios().column("id").to_pylist():
        scenario = lab.load(name)
        points = scenario.points
        chosen = {points[i * (len(points) - 1) // max(1, args.points - 1)].number for i in range(args.points)}
        costs = sorted(seconds(scenario, number) for number in chosen)
        runs = sum(point.seeds for point in points)
        whole = runs * sum(costs) / len(costs) / 3600
        print(f"| {name} | {runs} | {costs[0]:.2g} to {costs[-1]:.2g} | {whole:.2g} |", flush=True)


def seconds(scenario: lab.Scenario, number: int) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    scenario._file.run_one(number, 1)
    return time.process_time() - start


if __name__ == "__main__":
    main()
