"""Mixtures of naive Bayes models: features that are independent given the class and a hidden component of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.formats.parsing import read_json, write_json
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import checked_names

if TYPE_CHECKING:
    import pandas as pd


FORMAT = "trimbench.NaiveBayesMixture/1"


@dataclass(frozen=True, eq=False, init=False)
class NaiveBayesMixture:
    """A class variable, a hidden component for each class, and features that are independent given the component.

    Parameters
    ----------
    components : NaiveBayes
        Its classes are the components of all classes.
    class_of : sequence of str
        The class that each component belongs to. Classes keep the order of their first components.
    class_variable : str
        Name of the class variable; that of `components` names the hidden component.

    Raises
    ------
    ValueError
        When the lengths differ, or the name of a variable is empty or occurs twice.
    TypeError
        When `components` is not a NaiveBayes.

    Examples
    --------
    >>> parts = NaiveBayes([0.3, 0.2, 0.5], [[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]], class_variable="component")
    >>> NaiveBayesMixture(parts, ["ill", "ill", "well"]).class_names
    ('ill', 'well')
    """

    components: NaiveBayes
    class_of: tuple[str, ...]
    class_variable: str

    def __init__(self, components: NaiveBayes, class_of: Sequence[str], *, class_variable: str = "class") -> None:
        if not isinstance(components, NaiveBayes):
            raise TypeError(f"components must be a NaiveBayes, got {type(components).__name__}")
        homes = tuple(class_of) if not isinstance(class_of, str) else (class_of,)
        checked_names(list(dict.fromkeys(homes)), "class_of", of_values=True)
        if len(homes) != len(components.class_names):
            raise ValueError(
                f"class_of must name a class for each of the {len(components.class_names)} components, got {len(homes)}"
            )
        checked_names(
            [*components.feature_names, components.class_variable, class_variable],
            "feature names, the component's name and class_variable",
        )
        # The class is frozen.
        vars(self).update(components=components, class_of=homes, class_variable=class_variable)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(dict.fromkeys(self.class_of))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.components.feature_names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.components.n_features

    @property
    def prior(self) -> NDArray[np.float64]:
        """P(c), shape (n_classes,)."""
        return np.array([self.components.prior[self._rows(name)].sum() for name in self.class_names])

    def _rows(self, name: str) -> list[int]:
        return [i for i, home in enumerate(self.class_of) if home == name]

    def __repr__(self) -> str:
        sizes = [len(self._rows(name)) for name in self.class_names]
        return (
            f"NaiveBayesMixture({self.class_variable!r} in {list(self.class_names)} with {sizes} components, "
            f"{self.n_features} features)"
        )

    def to_network(self) -> BayesianNetwork:
        """Return the same distribution as a Bayesian network: class, component, features."""
        parts, classes = self.components, self.class_names
        shares = np.zeros((len(classes), len(self.class_of)))
        prior = self.prior
        for row, name in enumerate(classes):
            own = self._rows(name)
            # A class of probability 0 has components nonetheless.
            shares[row, own] = parts.prior[own] / prior[row] if prior[row] > 0 else 1.0 / len(own)
        states = {self.class_variable: classes, parts.class_variable: parts.class_names}
        states.update(zip(parts.feature_names, parts.value_names, strict=True))
        parents: dict[str, tuple[str, ...]] = {parts.class_variable: (self.class_variable,)}
        parents.update(dict.fromkeys(parts.feature_names, (parts.class_variable,)))
        tables = {self.class_variable: prior, parts.class_variable: shares}
        tables.update(zip(parts.feature_names, parts.likelihoods, strict=True))
        return BayesianNetwork(states, parents, tables)

    def sample(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw rows: one column for the class, one for the component and one for each feature."""
        return self.to_network().sample(n_rows, rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as nested lists, numbers and strings; `from_dict` reads it."""
        return {
            "class_variable": self.class_variable,
            "class_of": list(self.class_of),
            "components": self.components.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> NaiveBayesMixture:
        """Return the model that `to_dict` described."""
        components = NaiveBayes.from_dict(content["components"])
        return cls(components, content["class_of"], class_variable=content["class_variable"])

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; floats keep every digit."""
        write_json(path, {"format": FORMAT, **self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> NaiveBayesMixture:
        """Read a model that `save` wrote; ValueError when the file does not hold one."""
        return read_json(path, FORMAT, cls.from_dict)
