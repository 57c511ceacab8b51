"""Distributions that estimators can learn from categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.learning import learn_naive_bayes
from trimbench.networks.mixture_learning import learn_mixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture
from trimbench.networks.tree_augmented import learn_tree_augmented

if TYPE_CHECKING:
    import pandas as pd

Density = Literal["naive_bayes", "tree_augmented", "mixture"]
Model = NaiveBayes | NaiveBayesMixture | BayesianNetwork


def check_density(density: str) -> None:
    """Raise ValueError unless there is such a density."""
    if density not in get_args(Density):
        raise ValueError(f"density must be one of {', '.join(get_args(Density))}, got {str(density)[:80]!r}")


def learned(density: Density, rows: pd.DataFrame, target: pd.Series, smoothing: float, n_components: int) -> Model:
    """Learn a distribution over categories and the class."""
    if density == "naive_bayes":
        return learn_naive_bayes(rows, target, smoothing=smoothing)
    if density == "tree_augmented":
        return learn_tree_augmented(rows, target, smoothing=smoothing)
    return learn_mixture(rows, target, n_components, smoothing=smoothing)
