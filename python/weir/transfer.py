"""Files sent and received, by the code of the command line. Linux only.

>>> with weir.send_file("image.iso", to="239.255.1.1:5000", session="image.sdp", receipts=2) as sending:
...     for event in sending:
...         print(event["event"])

>>> for event in weir.receive("image.sdp", out="incoming"):
...     if event["event"] == "file":
...         print(event["name"], event["blake3"])

Options are those of ``weir send file`` and ``weir recv`` with ``_`` for ``-``: ``rates="10M..1G"`` is ``--rates 10M..1G``, ``overwrite=True`` is
``--overwrite``, a list gives an option several times, and what is None or False is left out. ``for_="30s"`` is ``--for 30s``. Events are those of
``--json`` (``docs/events.md``), as dictionaries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from weir import _weir

if TYPE_CHECKING:
    from typing_extensions import Self

Path = str | os.PathLike[str]


class TransferError(RuntimeError):
    """A transfer that could not do what it was asked."""

    def __init__(self, exit: int, message: str) -> None:
        super().__init__(message)
        #: The exit code that the command line would have ended with (``weir recv --help`` lists them).
        self.exit = exit


class Transfer:
    """A transfer under way: an iterator of its events. It runs in a thread of its own, whether or not its events are taken."""

    def __init__(self, transfer: _weir.Transfer) -> None:
        self._transfer = transfer
        #: The exit code, once it has ended without an error: 0 if all is done, 5 if the time was up before, 130 if it was stopped.
        self.exit: int | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (event := self._transfer.next_event()) is not None:
            yield json.loads(event)
        self.wait()

    def stop(self) -> None:
        """Ends it in good order. What a receiver has is kept for the next try."""
        self._transfer.stop()

    def wait(self) -> int | None:
        """Waits for the end, events unseen, and gives the exit code.

        :raises TransferError: it could not do what it was asked.
        """
        while self._transfer.next_event() is not None:
            pass
        ended = _told(self._transfer.finish)
        self.exit = self.exit if ended is None else ended
        return self.exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        if error is None:
            self.wait()


def send_file(*paths: Path, to: str, **options: Any) -> Transfer:
    """Sends files and folders.

    :param paths: what to send.
    :param to: the multicast group and port of the base layer, ``239.255.1.1:5000``.
    :param options: as ``weir send file --help`` lists them.
    :raises TransferError: an option is wrong; the message is the command line's.
    """
    words = _words({"to": to} | options) + ["--"] + [os.fspath(path) for path in paths]
    return Transfer(_told(lambda: _weir.Transfer.send(words)))


def receive(session: Path, **options: Any) -> Transfer:
    """Receives a session of files.

    :param session: its description: a file, or an http(s) address.
    :param options: as ``weir recv --help`` lists them.
    :raises TransferError: an option is wrong; the message is the command line's.
    """
    words = _words(options) + ["--", os.fspath(session)]
    return Transfer(_told(lambda: _weir.Transfer.receive(words)))


def _words(options: dict[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words


def _told(what: Any) -> Any:
    try:
        return what()
    except _weir.Failed as failed:
        raise TransferError(*failed.args) from None
