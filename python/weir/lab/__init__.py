"""The laboratory: scenarios, their runs, and what the papers claim about them.

>>> from weir import lab
>>> results = lab.run("rap/fig07", seeds=3)
>>> results.to_pandas()

A *scenario* is a network, who sends what over it, and what is measured. It is a TOML file (``docs/scenarios.md`` has every key), one of the
papers' experiments, which are built in, or a mapping of the same keys. A *point* is a scenario with a value for each swept
parameter; a point with a *seed* is a *run*. A run is a pure function of the two: the same on every machine, bit for bit, so that
a result is kept under a name made of set-up, seed and code, and never made twice.
"""

from weir.lab._results import Figure, Results, Verdict, Verdicts
from weir.lab._run import figure, run, trace, verify
from weir.lab._scenario import Point, Scenario, Setting, load, scenarios

__all__ = [
    "Figure",
    "Point",
    "Results",
    "Scenario",
    "Setting",
    "Verdict",
    "Verdicts",
    "figure",
    "load",
    "run",
    "scenarios",
    "trace",
    "verify",
]
