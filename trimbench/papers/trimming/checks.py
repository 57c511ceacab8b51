"""Checks of settings that several experiments share."""

from __future__ import annotations

from collections.abc import Sequence

from trimbench.papers.study.cells import check_axis
from trimbench.trimming.classifier import checked_threshold


def check_counts(**counts: int | None) -> None:
    """Raise ValueError if a count is below 1; None stands for no limit."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} must be 1 or more, got {count}")


def check_shares(**shares: float) -> None:
    """Raise ValueError unless all shares are strictly between 0 and 1."""
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ValueError(f"{name} must be strictly between 0 and 1, got {share}")


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise ValueError unless there is a threshold, each is a probability, and none appears twice."""
    check_axis("thresholds", thresholds)
    for threshold in thresholds:
        checked_threshold(threshold)
