"""``python -m weir.lab``: sweeps on a cluster from the command line. On one machine, ``weir lab`` does the same without Python."""

from __future__ import annotations

import argparse
import os
import sys

import pyarrow.parquet as pq
from pyarrow import csv

from weir.lab import Results, load, run, scenarios


def main(arguments: list[str] | None = None) -> int:
    """Does what is asked; 0 if all went well, 1 if a claim does not hold, 2 if it cannot be done, 130 if it was stopped."""
    args = _parser().parse_args(arguments)
    try:
        if args.command == "list":
            for row in scenarios().to_pylist():
                print(f"{row['id']:24} {row['runs']:6} runs  {row['title']}")
            return 0
        return _run(args)
    except KeyboardInterrupt:
        print("interrupted; what is done is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    except (ValueError, KeyError, OSError, RuntimeError) as error:
        print(f"weir.lab: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 2


def _run(args: argparse.Namespace) -> int:
    scenario = load(args.id, dict(args.set), args.seeds)
    options = {"cache": args.cache if args.cache else not args.no_cache, "dataset": args.dataset, "progress": not args.quiet}
    if args.dask:
        from distributed import Client

        with Client(args.dask) as client:  # type: ignore[no-untyped-call]
            results = run(scenario, client=client, **options)
    else:
        results = run(scenario, jobs=args.jobs, **options)
    _show(results, args)
    return 1 if args.verify and results.verdicts().red else 0


def _show(results: Results, args: argparse.Namespace) -> None:
    if args.parquet:
        pq.write_table(results.runs, args.parquet)
    if args.json:
        print(results.json())
    elif args.csv:
        csv.write_csv(results.runs, sys.stdout.buffer)
    elif args.verify:
        print(results.verdicts())
    elif not args.quiet:
        print(results)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m weir.lab", description="Runs scenarios of the laboratory, on this machine or a cluster."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="all scenarios")
    one = commands.add_parser("run", help="all runs of a scenario")
    one.add_argument("id", metavar="ID", help="a scenario's id, or its file")
    one.add_argument("--set", metavar="KEY=VALUE", type=_assignment, action="append", default=[], help="another value; as often as needed")
    one.add_argument("--seeds", type=int, help="runs of each point [default: as the file says]")
    one.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster: tcp://host:8786 [default: this machine]")
    one.add_argument("--jobs", type=int, help="runs at the same time on this machine [default: one a core]")
    one.add_argument(
        "--cache",
        metavar="URL",
        help="where results are kept; on a cluster, where all machines see it: a folder, s3://… [default: ~/.cache/weir/lab]",
    )
    one.add_argument("--no-cache", action="store_true", help="neither look for results nor keep them")
    one.add_argument("--dataset", metavar="DIR", help="write rows there as Parquet while they come")
    one.add_argument("--parquet", metavar="FILE", type=os.fspath, help="write all rows to one file at the end")
    shown = one.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print everything as JSON")
    shown.add_argument("--csv", action="store_true", help="print the rows as CSV")
    shown.add_argument("--verify", action="store_true", help="judge the scenario's claims; exit with 1 if one does not hold")
    one.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _assignment(text: str) -> tuple[str, object]:
    import tomllib

    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


if __name__ == "__main__":
    sys.exit(main())
