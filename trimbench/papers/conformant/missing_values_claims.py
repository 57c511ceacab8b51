"""What is claimed of the mixture where features are missing, and whether the run bears it out."""

from __future__ import annotations

from collections.abc import Sequence

from trimbench.papers.conformant.gap_groups import Group

_DATASETS = ("adult", "covtype", "fashion", "mnist", "mnist_5v3", "splice")
_HALF = [("mcar", 0.5)]
_PATTERNS = [*(("mcar", share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)), ("block", 0.5), ("depends_on_value", 0.5)]
# The method that the mixture is compared with, the patterns of missing features, and in how many cells it must win.
_CLAIMS = (
    ("Half missing at random: log loss below that of NaCL on all six sets", "nacl", _HALF, 6),
    ("Half missing at random: log loss below that of mean imputation on all six sets", "mean", _HALF, 6),
    (
        "Six sets, at random 10 30 50 70 90 %, in blocks 50 %, depending on the value 50 %: log loss below that of "
        "NaCL in at least 40 of 42 cells",
        "nacl",
        _PATTERNS,
        40,
    ),
)
FORMATS = ("claim", "needed", "cells", "below", "certainly below", "certainly above", "verdict")


def claim_lines(groups: Sequence[Group]) -> list[dict[str, object]]:
    """Return a line for each claim. It is open while cells are missing that could decide it."""
    return [_line(groups, *claim) for claim in _CLAIMS]


def _line(
    groups: Sequence[Group], claim: str, other: str, patterns: Sequence[tuple[str, float]], needed: int
) -> dict[str, object]:
    total = len(_DATASETS) * len(patterns)
    cells = [
        group.lead("mixture", other, "log_loss")
        for group in groups
        if group.dataset in _DATASETS and any(group.is_one(*pattern) for pattern in patterns)
    ]
    cells = [cell for cell in cells if cell.n]
    below = sum(cell.mean > 0 for cell in cells)
    return {
        "claim": claim,
        "needed": needed,
        "cells": f"{len(cells)} of {total}",
        "below": below,
        "certainly below": sum(cell.low > 0 for cell in cells),
        "certainly above": sum(cell.high < 0 for cell in cells),
        "verdict": _verdict(below, needed, total - len(cells)),
    }


def _verdict(below: int, needed: int, to_come: int) -> str:
    if below >= needed:
        return "holds"
    return "open" if below + to_come >= needed else "does not hold"
