"""Distributions that estimators can learn from categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

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


def learned(
    density: Density,
    rows: pd.DataFrame,
    classes: NDArray[np.intp],
    class_names: Sequence[str],
    smoothing: float,
    n_components: int,
) -> tuple[Model, str]:
    """Learn a distribution over categories and the class; return it and the name of the class variable."""
    import pandas as pd

    variable = "class"
    while variable in rows.columns:
        variable += "_"
    labels = pd.Categorical.from_codes(classes, categories=pd.Index(class_names, dtype=str))
    target = pd.Series(labels, name=variable)
    if density == "naive_bayes":
        return learn_naive_bayes(rows, target, smoothing=smoothing), variable
    if density == "tree_augmented":
        return learn_tree_augmented(rows, target, smoothing=smoothing), variable
    return learn_mixture(rows, target, n_components, smoothing=smoothing), variable
