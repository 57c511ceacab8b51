"""The quiz of section 2: the printed numbers contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import numbers_of
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.checks import check_shares
from trimbench.papers.trimming.quiz_consistency import PARAMETERS, nearest_quiz, smallest_deviation
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_QUANTITIES = {
    "pass": "probability of passing",
    "q3": "ECA of {Q3}",
    "q1q3": "ECA of {Q1, Q3}",
    "q2q3": "ECA of {Q2, Q3}",
}
# Percentages are printed without decimals.
_HALF_A_PERCENT = 0.005
_POSTERIORS = {
    "posterior_right": "Pr(C = + | Q3 = +)",
    "posterior_wrong": "Pr(C = + | Q3 = -)",
}


@settings
class Quiz:
    """Whether any quiz has the numbers of section 2, and the quiz that comes nearest.

    Attributes
    ----------
    knowing, hard : float
        Pr(C = +) and Pr(Q3 = + | C = +), as printed.
    posteriors : list of [low, high]
        Ranges of Pr(C = + | Q3 = +) and Pr(C = + | Q3 = -) that round to the printed digits.
    thresholds, agreements : dict
        For ``pass``, ``q3``, ``q1q3`` and ``q2q3``: threshold and printed probability.
    n_grid : int
        Number of values of Pr(Q3 = + | C = -) for which the contradiction is shown.
    seed : int
    """

    knowing: float
    hard: float
    posteriors: list[list[float]]
    thresholds: dict[str, float]
    agreements: dict[str, float]
    n_grid: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, values in (("thresholds", self.thresholds), ("agreements", self.agreements)):
            if set(values) != set(_QUANTITIES):
                raise ValueError(f"{name} must have the keys {list(_QUANTITIES)}, got {list(values)}")
            for key, value in values.items():
                if not 0 <= value <= 1:
                    raise ValueError(f"{name}.{key} must be a probability in [0, 1], got {value}")
        if [len(ends) for ends in self.posteriors] != [2, 2]:
            raise ValueError(f"posteriors must be two ranges [low, high], got {self.posteriors}")
        check_shares(knowing=self.knowing, hard=self.hard)
        if self.n_grid < 2:
            raise ValueError(f"n_grid must be 2 or more, got {self.n_grid}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the two jobs."""
        printed = {"knowing": self.knowing, "hard": self.hard, "agreements": self.agreements}
        seed = seed_for(purpose="nearest quiz", seed=self.seed) % 2**32
        bound = {"posteriors": self.posteriors, "n_grid": self.n_grid}
        nearest = {"thresholds": self.thresholds, "seed": seed}
        return [
            Cell.of({"question": "bound"}, smallest_deviation, **printed, **bound),
            Cell.of({"question": "nearest"}, nearest_quiz, **printed, **nearest),
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the contradiction, and the printed numbers beside those of the nearest quiz."""
        bounds = successes(rows, question="bound")
        notes = [self._bound_note(bound) for bound in bounds.to_dict("records")]
        proofs = [self._contradiction(bound) for bound in bounds.to_dict("records")]
        done = successes(rows, question="nearest")
        lines, numbers = [], []
        for nearest in done.to_dict("records"):
            posteriors = dict(zip(_POSTERIORS, self._posteriors(nearest["q3_given_not"]), strict=True))
            lines += [
                {"quantity": title, "given": self.agreements[name], "nearest quiz": nearest[name]}
                for name, title in _QUANTITIES.items()
            ]
            lines += [
                {"quantity": _POSTERIORS[name], "given": (low + high) / 2, "nearest quiz": posterior}
                for (name, posterior), (low, high) in zip(posteriors.items(), self.posteriors, strict=True)
            ]
            percentages = {name: 100 * float(nearest[name]) for name in _QUANTITIES}
            found = numbers_of("quiz", {**percentages, **posteriors}, done)
            jobs = (*done["job"], *bounds["job"])
            numbers += [replace(one, contradiction=proof, jobs=jobs) for proof in proofs or [""] for one in found]
            notes.append(_nearest_note(nearest))
        table = Table.of("The quiz of section 2", lines, {"quantity": "", "given": ".2f", "nearest quiz": ".4f"})
        return Outcome((table,), (), numbers, notes)

    def _posteriors(self, guessed: float) -> tuple[float, float]:
        """Return Pr(C = + | Q3) for a right and a wrong answer, where others answer right with this probability."""
        right, wrong = self.knowing * self.hard, self.knowing * (1 - self.hard)
        others = 1 - self.knowing
        return right / (right + others * guessed), wrong / (wrong + others * (1 - guessed))

    def _contradiction(self, bound: Mapping[Any, Any]) -> str:
        """Return the proof that no quiz has the six printed numbers; empty if the bound does not show it."""
        # Between two values of the grid no percentage changes faster than Pr(C = -) times Pr(Q3 = + | C = -).
        half_step = (bound["guess_high"] - bound["guess_low"]) / (self.n_grid - 1) / 2
        least = float(bound["deviation"]) - (1 - self.knowing) * half_step
        if least <= _HALF_A_PERCENT:
            return ""
        return (
            f"The two posteriors, with Pr(C = +) = {self.knowing:g} and Pr(Q3 = + | C = +) = {self.hard:g}, require "
            f"Pr(Q3 = + | C = -) in [{bound['guess_low']:.4f}, {bound['guess_high']:.4f}]; in all of that range one of "
            f"the four percentages is then off by at least {100 * least:.2f} points, more than rounding, if the three "
            "stated outcomes and no others pass, whatever the other parameters are "
            f"({bound['n_programs']:.0f} linear programs). So the six printed numbers cannot all be true."
        )

    def _bound_note(self, bound: Mapping[Any, Any]) -> str:
        return (
            "How near a quiz can come to the given numbers: the two posteriors require Pr(Q3 = + | C = -) in "
            f"[{bound['guess_low']:.4f}, {bound['guess_high']:.4f}]; at each of {self.n_grid} values in that range "
            f"one of the four percentages is off by at least {100 * bound['deviation']:.1f} points, even if Q1 and "
            "Q2 may depend on each other and the trimmed classifiers may pass any answers (the least of "
            f"{bound['n_programs']:.0f} linear programs)."
        )


def _nearest_note(nearest: Mapping[Any, Any]) -> str:
    parameters = ", ".join(f"{name} {nearest[name]:.3f}" for name in PARAMETERS)
    return (
        "Whatever its posteriors, the nearest quiz that passes the three stated outcomes "
        f"({nearest['wrong_outcomes']:.0f} on the wrong side) is off by {100 * nearest['deviation']:.1f} points: "
        f"Pr(correct | class) of {parameters}."
    )
