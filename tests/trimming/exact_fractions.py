"""Random naive Bayes models with rational parameters, and their best trimmings in exact arithmetic.

Few different parameters make zeros, ties and duplicates of features common.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import trimbench as tb
from trimbench.trimming.engines.choice import Engine, EngineName
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.engines.table import DenseEngine

# Odds closer than this are equal to the engines; a threshold in floating point is off by less.
TIE = Fraction(1, 10**12)
TOLERANCE = 1e-11
THRESHOLDS = [Fraction(0), Fraction(1, 10**9), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4)]
THRESHOLDS += [1 - Fraction(1, 10**9), Fraction(1)]
ENGINES = ("log_odds", "dense")

Table = list[list[Fraction]]


@dataclass(frozen=True)
class Case:
    """A trimming problem: the joint distribution is `prior` times one entry of each table."""

    prior: list[Fraction]
    tables: list[Table]
    threshold: Fraction
    costs: list[int]
    budget: int
    groups: dict[str, list[str]]
    required: list[str]
    forbidden: list[str]

    @property
    def names(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.tables))]

    def classifier(self) -> tb.BayesianClassifier:
        model = tb.NaiveBayes(
            [float(value) for value in self.prior],
            [[[float(value) for value in row] for row in table] for table in self.tables],
        )
        return tb.BayesianClassifier(model, positive="0", threshold=float(self.threshold))

    def trim(self, engine: str, n_jobs: int) -> tb.Trimming:
        grouped = {name for members in self.groups.values() for name in members}
        costs = {name: cost for name, cost in zip(self.names, self.costs, strict=True) if name not in grouped}
        costs |= {name: self.costs[self.names.index(members[0])] for name, members in self.groups.items()}
        return tb.trim(
            self.classifier(),
            self.budget,
            costs,
            groups=self.groups or None,
            required=self.required,
            forbidden=self.forbidden,
            engine=named_engine(engine, self.classifier()),
            n_jobs=n_jobs,
        )

    def subsets(self) -> list[tuple[int, ...]]:
        """Return all subsets that are allowed."""
        names, price = self.names, self.costs
        group_of = {name: group for group, members in self.groups.items() for name in members}
        found = []
        for size in range(len(names) + 1):
            for subset in itertools.combinations(range(len(names)), size):
                chosen = {names[i] for i in subset}
                bought = {group_of.get(names[i], names[i]): i for i in subset}
                cost = sum(price[names.index(self.groups[unit][0])] if unit in self.groups else price[i]
                           for unit, i in bought.items())  # fmt: skip
                if cost <= self.budget and set(self.required) <= chosen and not chosen & set(self.forbidden):
                    found.append(subset)
        return found

    def joint(self) -> dict[tuple[int, ...], tuple[Fraction, Fraction]]:
        """Return Pr(c, f) and Pr(not c, f) of all instances."""
        found = {}
        for values in itertools.product(*(range(len(table[0])) for table in self.tables)):
            pair = list(self.prior)
            for table, value in zip(self.tables, values, strict=True):
                pair = [mass * table[side][value] for side, mass in enumerate(pair)]
            found[values] = (pair[0], pair[1])
        return found

    def best_agreement(self) -> Fraction:
        """Return the highest potential agreement of the allowed subsets (Proposition 3: it is achieved)."""
        joint = self.joint()
        decided = {values: is_positive(pair, self.threshold) for values, pair in joint.items()}
        best = Fraction(0)
        for subset in self.subsets():
            masses: dict[tuple[int, ...], list[Fraction]] = {}
            for values, pair in joint.items():
                entry = masses.setdefault(tuple(values[i] for i in subset), [Fraction(0), Fraction(0)])
                entry[decided[values]] += sum(pair)
            best = max(best, sum((max(pair) for pair in masses.values()), Fraction(0)))
        return best

    def agreement(self, kept: Sequence[str], threshold: float) -> Fraction:
        """Return the expected agreement (Definition 2) of a trimming."""
        joint = self.joint()
        places = [self.names.index(name) for name in kept]
        part: dict[tuple[int, ...], tuple[Fraction, Fraction]] = {}
        for values, pair in joint.items():
            seen = tuple(values[i] for i in places)
            before = part.get(seen, (Fraction(0), Fraction(0)))
            part[seen] = (before[0] + pair[0], before[1] + pair[1])
        level = Fraction(threshold)
        return sum(
            (
                sum(pair, Fraction(0))
                for values, pair in joint.items()
                if is_positive(pair, self.threshold) == is_positive(part[tuple(values[i] for i in places)], level)
            ),
            Fraction(0),
        )


def is_positive(pair: tuple[Fraction, Fraction], threshold: Fraction) -> bool:
    return pair[0] * (1 - threshold) >= pair[1] * threshold * (1 - TIE)


def named_engine(name: str, classifier: tb.BayesianClassifier) -> EngineName | Engine:
    """Return one of the `ENGINES`."""
    if name == "log_odds":
        return LogOddsEngine(classifier)
    return DenseEngine.build(classifier)


def random_case(rng: np.random.Generator) -> Case:
    """Return a problem with up to 6 features of 1 to 3 values."""
    n_features = int(rng.integers(1, 7))
    levels = int(rng.choice([2, 4, 10]))
    tables: list[Table] = []
    for _ in range(n_features):
        if tables and rng.random() < 0.3:
            tables.append(tables[int(rng.integers(len(tables)))])
        else:
            size = int(rng.choice([1, 2, 2, 2, 3]))
            tables.append([_distribution(rng, size, levels) for _ in range(2)])
    names = [f"x{i}" for i in range(n_features)]
    order = [str(name) for name in rng.permutation(names)]
    groups = {"g": order[: int(rng.integers(1, n_features + 1))]} if rng.random() < 0.4 else {}
    costs = [1] * n_features if rng.random() < 0.5 else [int(cost) for cost in rng.integers(0, 4, n_features)]
    budget = int(rng.integers(0, sum(costs) + 1))
    case = Case(
        prior=_distribution(rng, 2, levels),
        tables=tables,
        threshold=THRESHOLDS[int(rng.integers(len(THRESHOLDS)))],
        costs=costs,
        budget=budget,
        groups=groups,
        required=order[-1:] if rng.random() < 0.3 else [],
        forbidden=order[:1] if n_features > 1 and rng.random() < 0.3 else [],
    )
    return case if case.subsets() else random_case(rng)


def _distribution(rng: np.random.Generator, size: int, levels: int) -> list[Fraction]:
    parts = rng.multinomial(levels, np.full(size, 1.0 / size))
    return [Fraction(int(part), levels) for part in parts]


def failures(case: Case, engine: str, n_jobs: int) -> list[str]:
    """Return what is wrong with the trimming that an engine finds."""
    found = case.trim(engine, n_jobs)
    best = float(case.best_agreement())
    wrong = []
    if not found.optimal:
        wrong.append("not proven")
    if abs(found.agreement - best) > TOLERANCE:
        wrong.append(f"agreement {found.agreement!r} instead of {best!r}")
    if tuple(case.names.index(name) for name in found.features) not in case.subsets():
        wrong.append(f"{found.features} is not allowed")
    if abs(float(case.agreement(found.features, found.threshold)) - found.agreement) > TOLERANCE:
        wrong.append(f"another agreement at the threshold {found.threshold!r}")
    return wrong
