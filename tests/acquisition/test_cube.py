"""CUBE-NM, on which asking for what tells most at once is bad: a context says which features tell anything."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import trimbench as tb

CONTEXTS, BLOCK, LABELS = 5, 10, 8
# The three binary digits of a label.
CODES = (np.arange(LABELS)[:, None] >> np.arange(3)) & 1
EDGES = np.array([0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0])


def moments() -> tuple[Any, Any, Any]:
    """Return the label of each state, and means and deviations of its features, shape (n_states, n_features).

    A state is a context and a label y. The columns of the context are near 1 for it and 0 for others; in the block of
    ten features of the context, those from y to y + 2 are near the digits of y; all else is noise ("AFABench: a
    generic framework for benchmarking active feature acquisition", arXiv 2508.14734).
    """
    contexts, labels = np.divmod(np.arange(CONTEXTS * LABELS), LABELS)
    means, deviations = np.full((2, len(labels), CONTEXTS * (1 + BLOCK)), [[[0.5]], [[0.3]]])
    for state, (context, label) in enumerate(zip(contexts, labels, strict=True)):
        means[state, :CONTEXTS], deviations[state, :CONTEXTS] = np.arange(CONTEXTS) == context, 0.1
        first = CONTEXTS + BLOCK * context + label
        means[state, first : first + 3], deviations[state, first : first + 3] = CODES[label], 0.1
    return labels, means, deviations


@pytest.fixture(scope="module")
def cube() -> Any:
    labels, means, deviations = moments()
    below = ndtr((EDGES[:, None, None] - means) / deviations)
    ends = np.concatenate([np.zeros((1, *means.shape)), below, np.ones((1, *means.shape))])
    chances = np.diff(ends, axis=0)  # of the bins between the edges
    tables = [chances[:, :, feature].T for feature in range(means.shape[1])]
    parts = tb.NaiveBayes(np.full(len(labels), 1 / len(labels)), tables, class_variable="state")
    classifier = tb.BayesianClassifier(tb.NaiveBayesMixture(parts, [f"y{label}" for label in labels]))
    rng = np.random.default_rng(0)
    states = rng.integers(0, len(labels), 200)
    rows = np.searchsorted(EDGES, means[states] + deviations[states] * rng.normal(size=(200, means.shape[1])))
    answers = pd.DataFrame(rows.astype(str), columns=list(classifier.features))
    return classifier, answers, np.char.add("y", labels[states].astype(str))


def test_two_steps_beat_greedy_questions(cube: Any) -> None:
    classifier, answers, labels = cube
    nothing = pd.DataFrame(None, index=answers.index, columns=answers.columns, dtype=object)
    groups = {"context": list(classifier.features[:CONTEXTS])}
    right = {}
    for look_ahead in (1, 2):
        found = classifier.acquire(nothing, answers, budget=4, groups=groups, look_ahead=look_ahead)
        right[look_ahead] = (found.predictions == labels).mean()
        first = {asked[0] for asked in found.asked}
        assert (first == {"context"}) == (look_ahead == 2)
    assert right[2] > right[1] + 0.15
