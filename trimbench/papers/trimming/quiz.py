"""The quiz of section 2: the printed numbers contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import Cell, Outcome, Table
from trimbench.papers.trimming import quiz_jobs

if TYPE_CHECKING:
    import pandas as pd

_QUANTITIES = {
    "pass": "probability of passing",
    "q3": "ECA of {Q3}",
    "q1q3": "ECA of {Q1, Q3}",
    "q2q3": "ECA of {Q2, Q3}",
}
_POSTERIORS = {
    "posterior_right": "Pr(C = + | Q3 = +)",
    "posterior_wrong": "Pr(C = + | Q3 = -)",
}


@dataclass(frozen=True)
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
    posteriors: list[Any]
    thresholds: dict[str, float]
    agreements: dict[str, float]
    n_grid: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("thresholds", "agreements"):
            if set(getattr(self, name)) != set(_QUANTITIES):
                raise ValueError(f"{name} must have the keys {list(_QUANTITIES)}, got {list(getattr(self, name))}")
            for key, value in getattr(self, name).items():
                if not 0 <= value <= 1:
                    raise ValueError(f"{name}.{key} must be a probability in [0, 1], got {value}")
        for name in ("knowing", "hard"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be a probability strictly between 0 and 1, got {getattr(self, name)}")
        if self.n_grid < 2:
            raise ValueError(f"n_grid must be 2 or more, got {self.n_grid}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the two jobs."""
        shared = {"knowing": self.knowing, "hard": self.hard, "agreements": self.agreements}
        bound = Job.create(
            quiz_jobs.smallest_deviation, {**shared, "posteriors": self.posteriors, "n_grid": self.n_grid}
        )
        seed = seed_for(purpose="nearest quiz", seed=self.seed) % 2**32
        nearest = Job.create(quiz_jobs.nearest_quiz, {**shared, "thresholds": self.thresholds, "seed": seed})
        return [Cell({"question": "bound"}, bound), Cell({"question": "nearest"}, nearest)]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the contradiction, and printed beside nearest numbers."""
        import pandas as pd

        results = {row["question"]: row for row in rows.to_dict("records") if row["status"] == "ok"}
        notes: list[str] = []
        lines: list[dict[str, Any]] = []
        reproduced: dict[str, float | None] = {}
        if "bound" in results:
            bound = results["bound"]
            notes.append(
                f"How near a quiz can come to the given numbers: the two posteriors require Pr(Q3 = + | C = -) in "
                f"[{bound['guess_low']:.4f}, {bound['guess_high']:.4f}]; at each of {self.n_grid} values in that range "
                f"one of the four percentages is off by at least {100 * bound['deviation']:.1f} points, even if Q1 and "
                "Q2 may depend on each other and the trimmed classifiers may pass any answers (the least of "
                f"{bound['n_programs']:.0f} linear programs)."
            )
        if "nearest" in results:
            nearest = results["nearest"]
            for name, title in _QUANTITIES.items():
                lines.append({"quantity": title, "given": self.agreements[name], "nearest quiz": nearest[name]})
                reproduced[f"quiz/{name}"] = 100 * float(nearest[name])
            for (name, title), (low, high), posterior in zip(
                _POSTERIORS.items(), self.posteriors, self._posteriors(float(nearest["q3_given_not"])), strict=True
            ):
                lines.append({"quantity": title, "given": (low + high) / 2, "nearest quiz": posterior})
                reproduced[f"quiz/{name}"] = posterior
            parameters = ", ".join(
                f"{name} {nearest[name]:.3f}"
                for name in ("q1_given_knowing", "q1_given_not", "q2_given_knowing", "q2_given_not", "q3_given_not")
            )
            notes.append(
                "Whatever its posteriors, the nearest quiz that passes the three stated outcomes "
                f"({nearest['wrong_outcomes']:.0f} on the wrong side) is off by {100 * nearest['deviation']:.1f} "
                f"points: Pr(correct | class) of {parameters}."
            )
        table = Table(
            "",
            "The quiz of section 2",
            pd.DataFrame(lines, columns=["quantity", "given", "nearest quiz"]),
            {"given": ".2f", "nearest quiz": ".4f"},
        )
        jobs = {"quiz": [results["nearest"]["job"]]} if "nearest" in results else {}
        return Outcome((table,), (), reproduced, notes, jobs=jobs)

    def _posteriors(self, guessed: float) -> tuple[float, float]:
        """Return Pr(C = + | Q3) for a right and a wrong answer, where others answer right with this probability."""
        right, wrong = self.knowing * self.hard, self.knowing * (1 - self.hard)
        others = 1 - self.knowing
        return right / (right + others * guessed), wrong / (wrong + others * (1 - guessed))
