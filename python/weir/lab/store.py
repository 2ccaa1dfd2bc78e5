"""Where results are kept: a file a run, in a folder or in an object store.

Names and contents are those of the command line's cache, so that both can share a folder.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from typing import Any

import fsspec


class Store:
    """Results by name.

    :param url: a folder, or a URL that fsspec knows: ``s3://bucket/folder``, ``gs://…``, ``memory://…``.
    :param options: what its file system needs, such as credentials.
    """

    def __init__(self, url: str | os.PathLike[str], **options: Any) -> None:
        self._made_of = os.fspath(url), options
        self._fs, self._root = fsspec.core.url_to_fs(os.fspath(url), **options)
        self._is_local = "file" in _words(self._fs.protocol)

    def get(self, key: str) -> bytes | None:
        """What the run of this name gave, if it is there."""
        try:
            return bytes(self._fs.cat_file(self._path(key)))
        except FileNotFoundError:
            return None

    def get_all(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Those of the names that are there."""
        paths = {self._path(key): key for key in keys}
        if self._is_local:
            found = ((key, self.get(key)) for key in paths.values())
            return {key: outcome for key, outcome in found if outcome is not None}
        there = self._fs.cat(list(paths), on_error="omit") if paths else {}
        return {paths[path]: bytes(outcome) for path, outcome in there.items()}

    def put(self, key: str, outcome: bytes) -> None:
        """Keeps what a run gave. A reader sees all of it or nothing, also if this is interrupted."""
        path = self._path(key)
        if not self._is_local:
            self._fs.pipe_file(path, outcome)
            return
        self._fs.makedirs(os.path.dirname(path), exist_ok=True)
        part = f"{path}.{uuid.uuid4().hex}.part"
        with open(part, "wb") as file:
            file.write(outcome)
        os.replace(part, path)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key[:2]}/{key[2:]}.json"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._made_of


def _again(url: str, options: dict[str, Any]) -> Store:
    return Store(url, **options)


def _words(protocol: str | Iterable[str]) -> tuple[str, ...]:
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
