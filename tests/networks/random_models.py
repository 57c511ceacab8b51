"""Random models for property tests: coarse probabilities (zeros, ties) or arbitrary ones, odd names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

import trimbench as tb

# Surrogates cannot be written as UTF-8; everything else may occur in a name.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


def distributions(rng: np.random.Generator, shape: tuple[int, ...], *, coarse: bool) -> np.ndarray:
    """Return a table of the given shape, each slice along the last axis a distribution."""
    if not coarse:
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    weights = rng.integers(0, 4, size=shape).astype(float)
    weights[..., 0] += weights.sum(axis=-1) == 0
    return weights / weights.sum(axis=-1, keepdims=True)


def random_network(
    rng: np.random.Generator,
    parents: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int] | None = None,
    *,
    coarse: bool = False,
) -> tb.BayesianNetwork:
    """Return a network of a structure, with random tables; the states of each node are 0, 1, ..., two without sizes."""
    states = {name: [str(value) for value in range(sizes[name] if sizes else 2)] for name in parents}
    tables = {
        name: distributions(rng, tuple(len(states[v]) for v in (*above, name)), coarse=coarse)
        for name, above in parents.items()
    }
    return tb.BayesianNetwork(states, parents, tables)


@st.composite
def naive_bayes_models(draw: st.DrawFn, *, odd_names: bool = False) -> tb.NaiveBayes:
    """Models of 1 to 3 classes and up to 4 features of 1 to 4 values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    coarse = draw(st.booleans())
    n_classes = draw(st.integers(1, 3))
    cardinalities = draw(st.lists(st.integers(1, 4), max_size=4))
    tables = [distributions(rng, (n_classes, n_values), coarse=coarse) for n_values in cardinalities]
    prior = distributions(rng, (n_classes,), coarse=coarse)
    if not odd_names:
        return tb.NaiveBayes(prior, tables)

    def names(count: int) -> list[str]:
        return draw(st.lists(NAMES, min_size=count, max_size=count, unique=True))

    class_variable, *feature_names = names(len(tables) + 1)
    return tb.NaiveBayes(
        prior,
        tables,
        feature_names=feature_names,
        class_names=names(n_classes),
        value_names=[names(n_values) for n_values in cardinalities],
        class_variable=class_variable,
    )


@st.composite
def networks(draw: st.DrawFn, *, names: st.SearchStrategy[str] = NAMES) -> tb.BayesianNetwork:
    """Networks of up to 5 nodes in any order, each with up to 3 parents."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    coarse = draw(st.booleans())
    order = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    states = {name: draw(st.lists(names, min_size=1, max_size=3, unique=True)) for name in draw(st.permutations(order))}
    parents = {
        name: draw(st.lists(st.sampled_from(order[:i]), max_size=3, unique=True)) if i else []
        for i, name in enumerate(order)
    }
    tables = {
        name: distributions(rng, tuple(len(states[v]) for v in (*parents[name], name)), coarse=coarse) for name in order
    }
    return tb.BayesianNetwork(states, parents, tables)


def same_naive_bayes(one: tb.NaiveBayes, other: tb.NaiveBayes) -> bool:
    """Equal names, and probabilities equal bit for bit."""
    return (
        (one.feature_names, one.class_names, one.value_names, one.class_variable)
        == (other.feature_names, other.class_names, other.value_names, other.class_variable)
        and one.prior.tobytes() == other.prior.tobytes()
        and [table.shape for table in one.likelihoods] == [table.shape for table in other.likelihoods]
        and [table.tobytes() for table in one.likelihoods] == [table.tobytes() for table in other.likelihoods]
    )
