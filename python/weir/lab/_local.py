"""Sweeps on this machine."""

from __future__ import annotations

import os

from weir import _weir
from weir.lab._progress import Bar
from weir.lab._scenario import Scenario


def on_this_machine(scenario: Scenario, cache: bool | str | os.PathLike[str], jobs: int | None, progress: bool) -> _weir.Results:
    """All runs, on all cores."""
    folder = _weir.cache_folder() if cache is True else cache or None
    with Bar(scenario.id, progress) as bar:
        return scenario._file.sweep(folder, jobs, bar)
