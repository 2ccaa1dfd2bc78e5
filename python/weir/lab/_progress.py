"""How far a sweep is: a bar on a terminal, on standard error, or in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from typing_extensions import Self


class Bar:
    """A bar, or nothing."""

    def __init__(self, label: str, wanted: bool) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self._progress = Progress(*columns, TextColumn("{task.fields[known]}"), console=Console(stderr=True), disable=not wanted)
        self._task = self._progress.add_task(label, total=None, known="")

    def __call__(self, done: int, known: int, total: int) -> None:
        """`done` of `total` runs are there, of which `known` were before."""
        words = f"{known} known from before" if known else ""
        self._progress.update(self._task, completed=done, total=total, known=words)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
