"""The worked examples of the paper: the quiz of section 2, whose printed numbers contradict each other, and Table 4."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench._typing import Vector
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, NUMBER, POSITIVE, SHARE, job, seed_for
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut, Instances, best_cut, is_positive
from trimbench.trimming.trim import expected_agreement

# The quiz of section 2: the printed numbers contradict each other.

_QUANTITIES = {
    "pass": "probability of passing",
    "q3": "ECA of {Q3}",
    "q1q3": "ECA of {Q1, Q3}",
    "q2q3": "ECA of {Q2, Q3}",
}
# Percentages are printed without decimals.
_HALF_A_PERCENT = 0.005
_POSTERIORS = {"posterior_right": "Pr(C = + | Q3 = +)", "posterior_wrong": "Pr(C = + | Q3 = -)"}


@vocab.settings
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

    knowing: vocab.Share
    hard: vocab.Share
    posteriors: list[list[float]]
    thresholds: dict[str, vocab.Threshold]
    agreements: dict[str, vocab.Threshold]
    n_grid: Annotated[int, vocab.at_least(2)] = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, values in (("thresholds", self.thresholds), ("agreements", self.agreements)):
            if set(values) != set(_QUANTITIES):
                raise ValueError(f"{name} must have the keys {list(_QUANTITIES)}, got {list(values)}")
        if [len(ends) for ends in self.posteriors] != [2, 2]:
            raise ValueError(f"posteriors must be two ranges [low, high], got {self.posteriors}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the two jobs."""
        seed = seed_for(purpose="nearest quiz", seed=self.seed) % 2**32
        return [
            vocab.Cell.of({"question": "bound"}, smallest_deviation, self),
            vocab.Cell.of({"question": "nearest"}, nearest_quiz, self, seed=seed),
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the contradiction, and the printed numbers beside those of the nearest quiz."""
        bounds, done = (vocab.successes(rows, question=question) for question in ("bound", "nearest"))
        notes = [self._bound_note(bound) for bound in bounds.to_dict("records")]
        proof = "".join(self._contradiction(bound) for bound in bounds.to_dict("records"))
        lines: list[tuple[str, float, float]] = []
        numbers: list[vocab.Number] = []
        for nearest in done.to_dict("records"):
            posteriors = dict(zip(_POSTERIORS, self._posteriors(nearest["q3_given_not"]), strict=True))
            lines += [(title, self.agreements[name], nearest[name]) for name, title in _QUANTITIES.items()]
            lines += [
                (_POSTERIORS[name], (low + high) / 2, posterior)
                for (name, posterior), (low, high) in zip(posteriors.items(), self.posteriors, strict=True)
            ]
            values = {**{name: 100 * float(nearest[name]) for name in _QUANTITIES}, **posteriors}
            values |= self._with_q3_alone(nearest)
            both = pd.concat([done, bounds])
            numbers += [
                vocab.number_of("quiz", name, value, both, contradiction=proof) for name, value in values.items()
            ]
            notes.append(_nearest_note(nearest))
        formats = {"quantity": "", "given": ".2f", "nearest quiz": ".4f"}
        return vocab.Outcome((vocab.Table.of("The quiz of section 2", lines, formats),), (), numbers, notes)

    def _posteriors(self, guessed: float) -> tuple[float, float]:
        """Return Pr(C = + | Q3) for a right and a wrong answer, where others answer right with this probability."""
        right, wrong = self.knowing * self.hard, self.knowing * (1 - self.hard)
        others = 1 - self.knowing
        return right / (right + others * guessed), wrong / (wrong + others * (1 - guessed))

    def _with_q3_alone(self, nearest: Mapping[Any, Any]) -> dict[str, float]:
        """Return the percentage that passes by Q3 at the old threshold, and how many outcomes Q3 decides alike."""
        answers = np.array([nearest[name] for name in PARAMETERS])
        quiz = _quiz(self.knowing, self.hard, answers, self.thresholds["pass"])
        alike = np.tile(_passes(quiz, [2], self.thresholds["q3"]), 4) == _passes(quiz, range(3), quiz.threshold)
        share = np.sum(quiz.joint([2]), axis=0)[_passes(quiz, [2], quiz.threshold)].sum()
        return {"pass_q3": 100 * float(share), "same_outcomes": float(alike.sum())}

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


# Whether the printed numbers of the quiz of section 2 fit together, and which parameters come nearest.

PARAMETERS = ("q1_given_knowing", "q1_given_not", "q2_given_knowing", "q2_given_not", "q3_given_not")
# Outcomes (Q1, Q2, Q3) that pass, as section 2.1 lists them; 1 is a correct answer.
_PASSING = frozenset({(1, 1, 1), (1, 1, 0), (1, 0, 1)})
_PAIRS = tuple(itertools.product((1, 0), repeat=2))
_Answers = tuple[int, int, int]
_Pairs = frozenset[tuple[int, ...]]


@job(guess_low=SHARE, guess_high=SHARE, deviation=POSITIVE, n_programs=COUNT)
def smallest_deviation(
    knowing: float, hard: float, posteriors: list[list[float]], agreements: dict[str, float], n_grid: int
) -> dict[str, vocab.Json]:
    """Bound from below how far the printed agreements are from those of any quiz.

    The parameters are settings of `Quiz`; `n_grid` values of Pr(Q3 = + | C = -) span what the posteriors allow.
    """
    low, high = _guess_range(knowing, hard, posteriors)
    patterns = [frozenset(cells) for size in range(5) for cells in itertools.combinations(_PAIRS, size)]
    deviations = [
        _relaxed_deviation(knowing, hard, float(guess), agreements, first, second)
        for guess in np.linspace(low, high, n_grid)
        for first in patterns
        for second in patterns
    ]
    return {"guess_low": low, "guess_high": high, "deviation": min(deviations), "n_programs": len(deviations)}


@job({"deviation": POSITIVE, "wrong_outcomes": COUNT, "*": SHARE})
def nearest_quiz(
    knowing: float, hard: float, thresholds: dict[str, float], agreements: dict[str, float], seed: int
) -> dict[str, vocab.Json]:
    """Find the quiz that passes the stated outcomes and whose agreements deviate least from the printed ones.

    The parameters are settings of `Quiz`.
    """
    from scipy.optimize import Bounds, differential_evolution

    def deviation(parameters: Vector) -> float:
        found = _numbers(_quiz(knowing, hard, parameters, thresholds["pass"]), thresholds)
        # One unit for each outcome on the wrong side of the threshold, so that those are corrected first.
        return float(found["wrong"]) + max(abs(found[name] - value) for name, value in agreements.items())

    bounds = Bounds(np.full(5, 0.01), np.full(5, 0.99))
    result = differential_evolution(deviation, bounds, seed=seed, maxiter=80, popsize=12, tol=1e-8, polish=False)
    found = _numbers(_quiz(knowing, hard, result.x, thresholds["pass"]), thresholds)
    return {
        "deviation": float(max(abs(found[name] - value) for name, value in agreements.items())),
        "wrong_outcomes": int(found["wrong"]),
        **{name: found[name] for name in agreements},
        **{name: float(value) for name, value in zip(PARAMETERS, result.x, strict=True)},
    }


def _guess_range(knowing: float, hard: float, posteriors: list[list[float]]) -> tuple[float, float]:
    """Return the range of Pr(Q3 = + | C = -) that gives both posteriors, by Bayes' rule."""
    (correct_low, correct_high), (wrong_low, wrong_high) = posteriors
    odds = knowing / (1 - knowing)
    correct = sorted(odds * hard * (1 / p - 1) for p in (correct_low, correct_high))
    wrong = sorted(1 - odds * (1 - hard) * (1 / p - 1) for p in (wrong_low, wrong_high))
    low, high = max(correct[0], wrong[0]), min(correct[1], wrong[1])
    if low > high:
        raise ValueError(f"posteriors must leave a value for Pr(Q3 = + | C = -), got {posteriors}")
    return low, high


def _relaxed_deviation(
    knowing: float, hard: float, guess: float, agreements: dict[str, float], first: _Pairs, second: _Pairs
) -> float:
    """Return the least maximum deviation over all joint distributions of (Q1, Q2) given the class.

    `first` and `second` are the answers to (Q1, Q3) and (Q2, Q3) that the two trimmed classifiers pass.
    """
    from scipy.optimize import linprog

    statements: list[tuple[str, Callable[[_Answers], bool]]] = [
        ("pass", lambda q: q in _PASSING),
        ("q3", lambda q: (q in _PASSING) == (q[2] == 1)),
        ("q1q3", lambda q: (q in _PASSING) == ((q[0], q[2]) in first)),
        ("q2q3", lambda q: (q in _PASSING) == ((q[1], q[2]) in second)),
    ]
    rows, limits = [], []
    for name, holds in statements:
        row = _probability_row(knowing, hard, guess, holds)
        for sign in (1.0, -1.0):
            rows.append(np.append(sign * row, -1.0))
            limits.append(sign * agreements[name])
    sums = np.zeros((2, 9))
    sums[0, :4] = sums[1, 4:8] = 1.0
    bounds = [(0, 1)] * 8 + [(0, None)]
    result = linprog(np.append(np.zeros(8), 1.0), np.array(rows), np.array(limits), sums, np.ones(2), bounds)
    if result.fun is None:
        raise RuntimeError(f"the linear program must have a solution, got: {result.message}")
    return float(result.fun)


def _probability_row(knowing: float, hard: float, guess: float, holds: Callable[[_Answers], bool]) -> Vector:
    """Return the coefficients of Pr(statement) in Pr(Q1, Q2 | +) and Pr(Q1, Q2 | -), shape (8,)."""
    row = np.zeros(8)
    for place, (q1, q2) in enumerate(_PAIRS):
        for q3 in (1, 0):
            if holds((q1, q2, q3)):
                row[place] += knowing * (hard if q3 else 1 - hard)
                row[4 + place] += (1 - knowing) * (guess if q3 else 1 - guess)
    return row


def _quiz(knowing: float, hard: float, parameters: Vector, threshold: float) -> BayesianClassifier:
    q1, q1_not, q2, q2_not, q3_not = parameters.tolist()
    tables = [[[1 - a, a], [1 - b, b]] for a, b in ((q1, q1_not), (q2, q2_not), (hard, q3_not))]
    model = NaiveBayes(
        [knowing, 1 - knowing], tables, feature_names=["Q1", "Q2", "Q3"], class_names=["+", "-"], class_variable="C"
    )
    return BayesianClassifier(model, positive="+", threshold=threshold)


def _passes(quiz: BayesianClassifier, kept: Sequence[int], threshold: float) -> NDArray[np.bool_]:
    """Tell which outcomes of some of the questions pass at a threshold; wrong answers come first."""
    positive, negative = quiz.joint(kept)
    passes: NDArray[np.bool_] = positive * (1 - threshold) >= negative * threshold
    return passes


def _numbers(quiz: BayesianClassifier, thresholds: dict[str, float]) -> dict[str, float]:
    """Return the four printed quantities of a quiz, and the number of outcomes on the wrong side."""
    positive, negative = quiz.joint(range(3))
    passes = _passes(quiz, range(3), quiz.threshold)
    stated = [answers in _PASSING for answers in itertools.product((0, 1), repeat=3)]
    return {
        "wrong": float((passes != stated).sum()),
        "pass": float(sum((positive + negative)[passes].tolist())),
        "q3": expected_agreement(quiz, ["Q3"], thresholds["q3"]),
        "q1q3": expected_agreement(quiz, ["Q1", "Q3"], thresholds["q1q3"]),
        "q2q3": expected_agreement(quiz, ["Q2", "Q3"], thresholds["q2q3"]),
    }


# Table 4: the worked example of the maximum achievable agreement.

_EXAMPLE = "F1, F2"
_TITLE = "Table 4: maximum achievable agreement of {F1, F2}, reached for low < T' <= high"
_TITLE_AT = "Table 4: agreement of {{F1, F2}} at T' = {:g}, the same for low < T' <= high"
_RESULTS = ("agreement", "threshold_low", "threshold_high")


@vocab.settings
class Table4:
    """The worked example of the maximum achievable agreement (Table 4).

    Attributes
    ----------
    instances : list of [posterior, positive mass, negative mass]
        The masses that the original classifier calls positive and negative, which stand in for its threshold.
    threshold : float or None
        Threshold T' of the trimmed classifier, whose agreement is computed; None takes the best.
    """

    instances: Annotated[list[list[float]], vocab.must("a list of at least one entry", bool)]
    threshold: vocab.Threshold | None = None

    def __post_init__(self) -> None:
        for instance in self.instances:
            if len(instance) != 3 or not all(0 <= value <= 1 for value in instance):
                raise ValueError(
                    "instances must each be [posterior, positive mass, negative mass], probabilities in [0, 1], "
                    f"got {instance}"
                )
        total = sum(positive + negative for _, positive, negative in self.instances)
        if abs(total - 1.0) > 0.01:
            raise ValueError(f"instances must have masses that add up to 1 (within 0.01), got {total:g}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the single job."""
        labels = {"example": _EXAMPLE}
        return [vocab.Cell.of(labels, best_threshold, instances=self.instances, threshold=self.threshold)]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the agreement and the interval of best thresholds."""
        title = _TITLE if self.threshold is None else _TITLE_AT.format(self.threshold)
        lines = vocab.successes(rows).reindex(columns=["example", *_RESULTS]).to_dict("records")
        table = vocab.Table.of(title, lines, {"example": "", **dict.fromkeys(_RESULTS, ".2f")})
        found = [
            number
            for line in table.frame.to_dict("records")
            for number in vocab.numbers_of(_EXAMPLE, {q: line[q] for q in _RESULTS}, rows)
        ]
        return vocab.Outcome((table,), (), found)


@job(agreement=SHARE, threshold_low=NUMBER, threshold_high=NUMBER)
def best_threshold(instances: list[list[float]], threshold: float | None = None) -> dict[str, vocab.Json]:
    """Compute the maximum achievable agreement of a table of instances, and the thresholds that reach it.

    An instance f' is given by Pr(c | f') and its joint probabilities with the original classifications, positive and
    negative. Of several best intervals of thresholds, the lowest is returned. With a `threshold`, the result is the
    agreement at this one, and the interval of thresholds that classify all instances in the same way.
    """
    posterior, positive, negative = np.array(instances, dtype=float).T
    mass = positive + negative
    table = Instances(posterior * mass, (1.0 - posterior) * mass, positive - negative)
    cut = best_cut(table, preferred=0.0) if threshold is None else _cut_at(table, threshold)
    return {"agreement": cut.agreement, "threshold_low": cut.low, "threshold_high": cut.high}


def _cut_at(table: Instances, threshold: float) -> Cut:
    """Return the agreement of a threshold, and the interval of those that classify all instances as it does."""
    mass = table.positive + table.negative
    posterior = table.positive[mass > 0] / mass[mass > 0]
    accepted = is_positive(table.positive, table.negative, threshold)[mass > 0]
    low = np.max(posterior[~accepted], initial=0.0)
    high = np.min(posterior[accepted], initial=1.0)
    return Cut(table.agreement(threshold), float(low), float(high))
