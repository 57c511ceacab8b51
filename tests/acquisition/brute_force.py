"""The value of questions from the table of all rows: the slow twin of `trimbench.acquisition`."""

import itertools
from functools import cache
from typing import Any

import numpy as np

from trimbench import BayesianClassifier


def joint_table(classifier: Any) -> Any:
    """Return P(class, features), shape (n_classes, *cardinalities)."""
    table = classifier.joint(range(classifier.n_features))
    table = table.reshape(classifier.n_classes, *classifier.cardinalities)
    return table / table.sum()


def given(table: Any, codes: Any) -> Any:
    """Return P(class, unknown features | known ones) with the known axes kept at length 1; codes of -1 are unknown."""
    index = (slice(None), *(slice(None) if code < 0 else slice(code, code + 1) for code in codes))
    part = table[index]
    return part / part.sum()


def entropy(chances: Any) -> Any:
    """Return the entropy of a distribution in nats."""
    positive = chances[chances > 0]
    return float(-(positive * np.log(positive)).sum())


def uncertainty(part: Any) -> Any:
    """Return H(class)."""
    return entropy(part.reshape(len(part), -1).sum(axis=1))


def outcomes(table: Any, codes: Any, members: Any) -> Any:
    """Yield the probability of each joint answer and the codes after it."""
    part = given(table, codes)
    for values in itertools.product(*(range(table.shape[1 + j]) for j in members)):
        after = list(codes)
        index = [slice(None)] * part.ndim
        for j, value in zip(members, values, strict=True):
            after[j], index[1 + j] = value, value
        yield float(part[tuple(index)].sum()), tuple(after)


def gain(table: Any, codes: Any, members: Any) -> Any:
    """Return H(class | known) - E H(class | known, answers)."""
    expected = 0.0
    for chance, after in outcomes(table, codes, members):
        if chance > 0:
            expected += chance * uncertainty(given(table, after))
    return uncertainty(given(table, codes)) - expected


def two_steps(table: Any, codes: Any, feature: Any) -> Any:
    """Return the gain of a feature and of the best one after each of its answers."""
    total = gain(table, codes, [feature])
    for chance, after in outcomes(table, codes, [feature]):
        left = [j for j, code in enumerate(after) if code < 0]
        if chance > 0 and left:
            total += chance * max(gain(table, after, [j]) for j in left)
    return total


def best_accuracy(table: Any, costs: Any, budget: Any, price: Any) -> Any:
    """Return the highest expected accuracy minus price, by recursion over partial rows."""

    @cache
    def value(codes: Any, left: Any) -> Any:
        part = given(table, codes)
        best = float(part.reshape(len(part), -1).sum(axis=1).max())
        for j, code in enumerate(codes):
            if code < 0 and costs[j] <= left + 1e-9:
                found = -price * costs[j]
                for chance, after in outcomes(table, codes, [j]):
                    if chance > 0:
                        found += chance * value(after, left - costs[j])
                best = max(best, found)
        return best

    return value((-1,) * (table.ndim - 1), budget)


def all_rows(classifier: Any) -> Any:
    """Return the value indices of all complete rows."""
    return np.array(list(itertools.product(*map(range, classifier.cardinalities))))


def frame_of(classifier: BayesianClassifier, codes: Any) -> Any:
    """Return a data frame of value names, None for codes of -1."""
    import pandas as pd

    columns = {
        name: [None if code < 0 else values[code] for code in codes[:, j]]
        for j, (name, values) in enumerate(zip(classifier.features, classifier.value_names, strict=True))
    }
    return pd.DataFrame(columns, dtype=object)
