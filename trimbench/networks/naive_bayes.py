"""Naive Bayes models over categorical features."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.networks.formats.ace import read_ace
from trimbench.networks.formats.other_libraries import naive_bayes_parts
from trimbench.networks.formats.parsing import read_json, short_errors, write_json
from trimbench.networks.values import checked_distribution, checked_distributions, checked_names, encode_compactly

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.networks.bayesian_network import BayesianNetwork

FORMAT = "trimbench.NaiveBayes/1"


@dataclass(frozen=True, eq=False, init=False)
class NaiveBayes:
    """A class variable and features that are independent given the class.

    Parameters
    ----------
    prior : array_like of shape (n_classes,)
        P(c).
    likelihoods : sequence of n_features array_likes, the i-th of shape (n_classes, n_values_i)
        P(x_i = value | c): one row for each class, each row a distribution.
    feature_names : sequence of str, optional
        Default ``x0, x1, ...``.
    class_names : sequence of str, optional
        Default ``"0", "1", ...``.
    value_names : sequence of n_features sequences of str, optional
        Names of the values of each feature. Default ``"0", "1", ...``.
    class_variable : str
        Name of the class variable.

    Raises
    ------
    ValueError
        When a table is not a distribution, shapes do not match, or a name occurs twice.

    Examples
    --------
    >>> model = NaiveBayes([0.3, 0.7], [[[0.9, 0.1], [0.2, 0.8]]], class_names=["ill", "well"])
    >>> model.n_features, model.cardinalities
    (1, (2,))
    """

    prior: NDArray[np.float64]
    likelihoods: tuple[NDArray[np.float64], ...]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    value_names: tuple[tuple[str, ...], ...]
    class_variable: str

    def __init__(
        self,
        prior: ArrayLike,
        likelihoods: Sequence[ArrayLike],
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        value_names: Sequence[Sequence[str]] | None = None,
        class_variable: str = "class",
    ) -> None:
        checked_prior = checked_distribution(prior, "prior", ndim=1)
        n_classes = checked_prior.size
        if feature_names is None:
            feature_names = [f"x{i}" for i in range(len(likelihoods))]
        names = checked_names([*feature_names, class_variable], "feature_names and class_variable")[:-1]
        if len(names) != len(likelihoods):
            raise ValueError(
                f"feature_names must have one name for each of the {len(likelihoods)} likelihoods, got {len(names)}"
            )
        tables = checked_distributions(likelihoods, [f"likelihood of {name!r}" for name in names], ndim=2)
        for name, table in zip(names, tables, strict=True):
            if table.shape[0] != n_classes:
                raise ValueError(
                    f"likelihood of {name!r} must have one row for each of the {n_classes} classes, "
                    f"got shape {table.shape}; rows are classes, columns are values"
                )
        classes = _names_or_codes(class_names, n_classes, "class_names")
        named = [None] * len(tables) if value_names is None else value_names
        if len(named) != len(tables):
            raise ValueError(f"value_names must have an entry for each of the {len(tables)} features, got {len(named)}")
        values = tuple(
            _names_or_codes(own, table.shape[1], f"value_names of {name!r}")
            for name, own, table in zip(names, named, tables, strict=True)
        )
        vars(self).update(  # the class is frozen
            prior=checked_prior,
            likelihoods=tuple(tables),
            feature_names=names,
            class_names=classes,
            value_names=values,
            class_variable=class_variable,
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.likelihoods)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(table.shape[1] for table in self.likelihoods)

    def __repr__(self) -> str:
        return f"NaiveBayes({self.class_variable!r} in {list(self.class_names)}, {self.n_features} features)"

    def encode(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Translate a table of value names into value indices.

        Parameters
        ----------
        frame : DataFrame with (at least) one column for each feature
            Names of columns and values are compared as strings; 1, 1.0 and True all stand for ``"1"``.

        Returns
        -------
        ndarray of int64, shape (n_rows, n_features)

        Raises
        ------
        ValueError
            When a column is absent or occurs twice, or holds NaN or a value that the model does not know.
        """
        return encode_compactly(frame, dict(zip(self.feature_names, self.value_names, strict=True))).astype(np.int64)

    def restricted(self, features: Sequence[str]) -> NaiveBayes:
        """Return the model of the class and some of the features, in the given order.

        Raises
        ------
        KeyError
            When a feature is unknown.
        """
        place = {name: i for i, name in enumerate(self.feature_names)}
        chosen = [place[name] for name in features]
        return NaiveBayes(
            self.prior,
            [self.likelihoods[i] for i in chosen],
            feature_names=features,
            class_names=self.class_names,
            value_names=[self.value_names[i] for i in chosen],
            class_variable=self.class_variable,
        )

    def log_joint(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return log P(c, x) for each row of value indices.

        Parameters
        ----------
        codes : ndarray of int, shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes); ``-inf`` where the joint probability is zero

        Raises
        ------
        ValueError
            When `codes` has another shape or an index out of range.
        """
        if codes.ndim != 2 or codes.shape[1] != self.n_features:
            raise ValueError(f"codes must have shape (n_rows, {self.n_features}), got {codes.shape}")
        outside = (codes < 0) | (codes >= np.array(self.cardinalities, dtype=np.int64))
        if outside.any():
            column = int(np.argwhere(outside)[0, 1])
            raise ValueError(
                f"codes of {self.feature_names[column]!r} must be in 0..{self.cardinalities[column] - 1}, "
                f"got {int(codes[outside][0])}"
            )
        with np.errstate(divide="ignore"):
            total = np.tile(np.log(self.prior), (codes.shape[0], 1))
            for i, table in enumerate(self.likelihoods):
                total += np.log(table[:, codes[:, i]].T)
        return total

    def sample(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw rows from the model.

        Parameters
        ----------
        n_rows : int
        rng : numpy.random.Generator

        Returns
        -------
        DataFrame of value names, one column for the class variable and one for each feature
        """
        return self.to_network().sample(n_rows, rng)

    def to_network(self) -> BayesianNetwork:
        """Return the same distribution as a Bayesian network with the class as the only root."""
        from trimbench.networks.bayesian_network import BayesianNetwork

        root = self.class_variable
        states = {root: self.class_names, **dict(zip(self.feature_names, self.value_names, strict=True))}
        parents: dict[str, tuple[str, ...]] = {root: (), **dict.fromkeys(self.feature_names, (root,))}
        tables = {root: self.prior, **dict(zip(self.feature_names, self.likelihoods, strict=True))}
        return BayesianNetwork(states, parents, tables)

    @classmethod
    def from_network(cls, network: BayesianNetwork, target: str) -> NaiveBayes:
        """Return a Bayesian network with the structure of naive Bayes as a naive Bayes model.

        Parameters
        ----------
        network : BayesianNetwork
            `target` has no parents and is the only parent of every other node.
        target : str

        Raises
        ------
        KeyError
            When `target` is not a node.
        ValueError
            When the network has another structure.
        """
        features = [node for node in network.nodes if node != target]
        for node, expected in [(target, ()), *((node, (target,)) for node in features)]:
            if network.parents(node) != expected:
                raise ValueError(
                    f"network must be naive Bayes with root {target!r}: node {node!r} must have the parents "
                    f"{list(expected)}, got {list(network.parents(node))}"
                )
        return cls(
            network.table(target),
            [network.table(node) for node in features],
            feature_names=features,
            class_names=network.states(target),
            value_names=[network.states(node) for node in features],
            class_variable=target,
        )

    @classmethod
    def from_sklearn(cls, estimator: Any, feature_names: Sequence[str] | None = None) -> NaiveBayes:
        """Return a fitted `BernoulliNB` or `CategoricalNB` of scikit-learn as a naive Bayes model.

        Parameters
        ----------
        estimator : sklearn.naive_bayes.BernoulliNB or CategoricalNB
            Values are named by their codes: ``"0"`` and ``"1"`` (after `binarize`), or ``"0", "1", ...``.
        feature_names : sequence of str, optional
            Default: the columns that the estimator was fitted on, or ``x0, x1, ...``.

        Returns
        -------
        NaiveBayes
            Its class variable is ``"class"``, with underscores added while a feature is called so.

        Raises
        ------
        TypeError
            When the estimator is of another class.
        ValueError
            When it is not fitted, or the names are not as many as its features.
        """
        given = naive_bayes_parts(estimator, feature_names)
        return cls(**given, class_variable=free_class_variable(given["feature_names"] or ()))

    @classmethod
    def read_ace(cls, cnf_path: str | Path, lmap_path: str | Path) -> NaiveBayes:
        """Read a naive Bayes network from an ACE encoding.

        States are named by their index, ``"0", "1", ...``. Parameters in such files are rounded: each distribution is
        normalised, and the largest deviation from 1 is logged.

        Parameters
        ----------
        cnf_path, lmap_path : str or Path

        Returns
        -------
        NaiveBayes

        Raises
        ------
        ValueError
            When a file is cut short, is not UTF-8, holds a line or clause that cannot be read (named by its line), the
            network is not naive Bayes, or a distribution is off by more than rounding explains.
        """
        with short_errors():
            return cls(**read_ace(cnf_path, lmap_path))

    def to_dict(self) -> dict[str, Any]:
        """Return the model as nested lists, numbers and strings; `from_dict` reads it."""
        return {
            "class_variable": self.class_variable,
            "class_names": list(self.class_names),
            "prior": self.prior.tolist(),
            "features": [
                {"name": name, "values": list(values), "likelihood": table.tolist()}
                for name, values, table in zip(self.feature_names, self.value_names, self.likelihoods, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> NaiveBayes:
        """Return the model that `to_dict` described."""
        features = content["features"]
        return cls(
            content["prior"],
            [feature["likelihood"] for feature in features],
            feature_names=[feature["name"] for feature in features],
            class_names=content["class_names"],
            value_names=[feature["values"] for feature in features],
            class_variable=content["class_variable"],
        )

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; floats keep every digit."""
        write_json(path, {"format": FORMAT, **self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> NaiveBayes:
        """Read a model that `save` wrote; ValueError when the file does not hold one."""
        return read_json(path, FORMAT, cls.from_dict)


def free_class_variable(names: Collection[str]) -> str:
    """Return a name of the class variable that no feature has."""
    variable = "class"
    while variable in names:
        variable += "_"
    return variable


def _names_or_codes(names: Sequence[str] | None, count: int, what: str) -> tuple[str, ...]:
    if names is None:
        return tuple(str(code) for code in range(count))
    result = checked_names(names, what, of_values=True)
    if len(result) != count:
        raise ValueError(f"{what} must have {count} entries, got {len(result)}: {list(result)}")
    return result
