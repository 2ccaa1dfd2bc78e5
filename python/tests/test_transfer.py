"""Files sent and received over this machine's loopback interface."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import weir


def options(folder: Path, port: int) -> dict[str, object]:
    return {"to": f"239.255.78.1:{port}", "iface": "127.0.0.1", "session": folder / "session.sdp", "rates": "1M..50M", "for_": "60s"}


def test_a_file_is_sent_and_received_in_one_process_and_every_event_is_told(tmp_path: Path) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(os.urandom(200_000))
    session = tmp_path / "session.sdp"
    with weir.send_file(file, receipts=1, **options(tmp_path, 50880)) as sending:
        wait_for(session)
        receiving = weir.receive(session, iface="127.0.0.1", out=tmp_path / "out", for_="60s")
        received = list(receiving)
        sent = list(sending)
    assert receiving.exit == sending.exit == 0
    assert (tmp_path / "out/data.bin").read_bytes() == file.read_bytes()
    assert [event["name"] for event in received if event["event"] == "file"] == ["data.bin"]
    assert received[-1]["event"] == sent[-1]["event"] == "end"
    assert any(event["event"] == "receipt" for event in sent)


def test_a_wrong_option_and_a_missing_file_are_told_as_the_command_line_tells_them(tmp_path: Path) -> None:
    with pytest.raises(weir.TransferError, match="--tll") as told:
        weir.send_file("x", to="239.255.78.1:50881", tll=3)
    assert told.value.exit == 2
    with pytest.raises(weir.TransferError, match="nothing-here") as told:
        weir.send_file(tmp_path / "nothing-here", **options(tmp_path, 50882)).wait()
    assert told.value.exit == 7


def test_who_leaves_the_block_stops_the_sender(tmp_path: Path) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(os.urandom(200_000))
    with weir.send_file(file, **options(tmp_path, 50883)) as sending:
        assert next(iter(sending))["event"] in ("hashing", "start")
    assert sending.exit == 130


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} within 30 s"
        time.sleep(0.01)
