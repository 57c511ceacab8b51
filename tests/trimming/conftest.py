"""What the tests of trimming share."""

from __future__ import annotations

import pytest


@pytest.fixture
def coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certified bounds are as certain on a coarser grid, where they take a tenth of the time, and wider."""
    monkeypatch.setattr("trimbench.trimming.by_model._POINTS", 2**16)
