"""The signed measure d(f') of a feature subset, as searches see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from trimbench.trimming.limits import Limits


class SignedMeasure(Protocol):
    """What a search needs from a feature subset."""

    @property
    def features(self) -> tuple[int, ...]:
        """Which features are left."""

    def without(self, *features: int) -> Self:
        """Return the measure with some features removed."""

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement."""

    def potential_agreements_without(
        self, groups: Sequence[tuple[int, ...]], limits: Limits, level: float | None = None
    ) -> list[float]:
        """Return the maximum potential agreement after removing each group of features.

        Returns fewer values, those of the first groups, when the time is over; but one in any case. With a `level`, a
        value may be an upper bound, if that is certain to be on the same side of it (at most the level, or above).
        """
