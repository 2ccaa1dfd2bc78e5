"""A store for tests, in a module of its own that workers can import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weir.lab.store import Store


class Counting(Store):
    """Writes down what is kept, every time."""

    def put(self, key: str, outcome: bytes) -> None:
        super().put(key, outcome)
        with open(f"{self._root}/puts", "a") as file:
            file.write(f"{key}\n")

    def puts(self) -> list[str]:
        return Path(f"{self._root}/puts").read_text().split()

    def __reduce__(self) -> tuple[Any, ...]:
        return Counting, (self._root,)
