"""What runs gave: tables, verdicts, figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weir import _weir

if TYPE_CHECKING:
    from weir.lab._scenario import Scenario


class Results:
    """The runs of a scenario.

    It is an Arrow table by the PyCapsule interface, so that ``pyarrow.table(results)``, ``polars.DataFrame(results)`` and DuckDB read
    its rows without a copy.
    """

    def __init__(self, scenario: Scenario, results: _weir.Results) -> None:
        self._results = results
        #: What was run.
        self.scenario = scenario

    @property
    def runs(self) -> pa.Table:
        """One row a run: ``scenario``, the swept parameters, ``seed``, and a column of float64 for each metric, null where a run has no
        value (nobody converged). Units are those of the scenario's metrics (``docs/scenarios.md``)."""
        return pa.table(self._results.runs())

    @property
    def series(self) -> pa.Table:
        """One row a value over time: what tells the runs apart, ``series`` (its name), ``time_s`` (seconds of simulated time) and
        ``value``."""
        return pa.table(self._results.series())

    def to_pandas(self) -> Any:
        """:attr:`runs` as a pandas data frame."""
        return self.runs.to_pandas()

    def to_polars(self) -> Any:
        """:attr:`runs` as a polars data frame."""
        import polars

        return polars.from_arrow(self.runs)

    def verdicts(self) -> Verdicts:
        """What came of the scenario's claims."""
        found = json.loads(self.scenario._file.judge(self._results))
        return Verdicts(Verdict(**{name: one.get(name) for name in Verdict.__dataclass_fields__}) for one in found)

    def figure(self) -> Figure | None:
        """The scenario's figure with these results; None if it has none."""
        drawn = self.scenario._file.figure(self._results)
        return Figure(*drawn) if drawn else None

    def json(self) -> str:
        """Everything as ``weir lab run --json`` prints it."""
        return self._results.json()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._results.runs().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return f"<Results of {self.scenario.id}: {len(self)} runs, {', '.join(self.scenario.metrics)}>"

    def _repr_html_(self) -> str:
        return _html(self.runs)


@dataclass(frozen=True)
class Verdict:
    """What came of a claim."""

    #: Scenario and claim: ``avmrc/fig02/convergence``.
    id: str
    #: What the paper says.
    claim: str
    #: What was measured; None if data is missing.
    measured: float | None
    #: Half of the 95 % confidence interval around it; None unless it is of means over seeds.
    uncertainty: float | None
    #: The band in which it holds; None if the number is only reported.
    band: Any
    #: Whether a part of the confidence interval is in the band, and another is not.
    straddles: bool
    #: Whether the claim holds; None if it was only reported, or not judged.
    holds: bool | None
    #: The same in a word.
    verdict: str
    #: How it was measured, in words.
    how: str
    #: What decided, or what is missing.
    detail: str


class Verdicts(Sequence[Verdict]):
    """Verdicts, as a sequence and as a table."""

    def __init__(self, verdicts: Iterator[Verdict]) -> None:
        self._verdicts = tuple(verdicts)

    @property
    def red(self) -> Verdicts:
        """Those that do not hold."""
        return Verdicts(verdict for verdict in self if verdict.holds is False)

    @property
    def table(self) -> pa.Table:
        """One row a verdict; the band as JSON."""
        return pa.Table.from_pylist([asdict(one) | {"band": json.dumps(one.band)} for one in self], schema=_VERDICTS)

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        return self.table.to_pandas()

    def __getitem__(self, index: Any) -> Any:
        return self._verdicts[index]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        marks = {True: "holds", False: "RED", None: "reported"}
        return "\n".join(f"{marks[one.holds]:8} {one.id}  {one.measured}  {one.claim}" for one in self)

    def _repr_html_(self) -> str:
        return _html(self.table.select(["verdict", "id", "measured", "uncertainty", "band", "claim", "detail"]))


class Figure:
    """A scenario's figure. A notebook shows it."""

    def __init__(self, svg: str, png: bytes) -> None:
        #: As SVG.
        self.svg = svg
        #: As PNG.
        self.png = png

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to `path`, as SVG or PNG by its ending."""
        kind = os.path.splitext(path)[1]
        if kind not in (".svg", ".png"):
            raise ValueError(f"{os.fspath(path)}: a figure is saved as .svg or .png")
        with open(path, "wb") as file:
            file.write(self.svg.encode() if kind == ".svg" else self.png)

    def _repr_svg_(self) -> str:
        return self.svg


_VERDICTS = pa.schema(
    [
        ("id", pa.string()),
        ("claim", pa.string()),
        ("measured", pa.float64()),
        ("uncertainty", pa.float64()),
        ("band", pa.string()),
        ("straddles", pa.bool_()),
        ("holds", pa.bool_()),
        ("verdict", pa.string()),
        ("how", pa.string()),
        ("detail", pa.string()),
    ]
)


def _html(table: pa.Table) -> str:
    try:
        return str(table.to_pandas()._repr_html_())
    except ImportError:
        return f"<pre>{table}</pre>"
