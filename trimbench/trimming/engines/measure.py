"""The signed measure d(f') of a feature subset, as searches see it."""

from __future__ import annotations

from typing import Protocol, Self


class SignedMeasure(Protocol):
    """What a search needs from a feature subset."""

    @property
    def features(self) -> tuple[int, ...]:
        """Which features are left."""

    def without(self, feature: int) -> Self:
        """Return the measure with one feature removed."""

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement."""

    def potential_agreement_without(self, feature: int) -> float:
        """Return the maximum potential agreement after removing one feature."""
