"""Scenarios that take milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from weir import lab


def small(**other: Any) -> dict[str, Any]:
    """A scenario of six runs, with one series."""
    keys: dict[str, Any] = {
        "id": "test/small",
        "title": "One session of one to three clients",
        "seeds": 2,
        "duration": "5s",
        "sweep": {"clients": [1, 2, 3]},
        "topology": {"dumbbell": {"bottleneck": "rate=3M,buffer=80p"}},
        "session": {"main": {"scheme": "sluice", "receivers": {"count": "{clients}", "rtt": "100ms"}}},
        "metrics": {"loss": {"measure": "steady_loss", "session": "main"}},
    }
    return keys | other


@pytest.fixture
def scenario() -> lab.Scenario:
    return lab.Scenario(small())
