"""Classifiers as JSON files, with only what they need of their models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.json_files import read_json, write_json
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture
from trimbench.networks.row_inference import relevant_nodes
from trimbench.trimming.model_input import Model

_READERS: Mapping[str, Callable[[Mapping[str, Any]], Model]] = {
    "NaiveBayes": NaiveBayes.from_dict,
    "NaiveBayesMixture": NaiveBayesMixture.from_dict,
    "BayesianNetwork": BayesianNetwork.from_dict,
}


def model_to_dict(model: Model, target: str, names: Iterable[str]) -> dict[str, Any]:
    """Return what gives the joint distribution of the class and some variables as lists, numbers and strings.

    Parameters
    ----------
    model : NaiveBayes, NaiveBayesMixture or BayesianNetwork
    target : str
        The class.
    names : iterable of str
        Features and evidence. Other features of a naive Bayes model or a mixture are left out, and so are nodes of a
        network that are not ancestors of these variables.
    """
    wanted = set(names)
    part: Model
    if isinstance(model, BayesianNetwork):
        nodes = relevant_nodes(model, [target, *wanted])
        part = BayesianNetwork(
            {node: model.states(node) for node in nodes},
            {node: model.parents(node) for node in nodes},
            {node: model.table(node) for node in nodes},
        )
    elif isinstance(model, NaiveBayesMixture):
        kept = model.components.restricted([name for name in model.feature_names if name in wanted])
        part = NaiveBayesMixture(kept, model.class_of, class_variable=model.class_variable)
    else:
        part = model.restricted([name for name in model.feature_names if name in wanted])
    return {"kind": type(part).__name__, **part.to_dict()}


def model_from_dict(content: Mapping[str, Any]) -> Model:
    """Return the model that `model_to_dict` described.

    Raises ValueError, KeyError or TypeError if there is no such model.
    """
    kind = content["kind"]
    if kind not in _READERS:
        raise ValueError(f"kind of model must be one of {', '.join(_READERS)}, got {str(kind)[:80]!r}")
    return _READERS[kind](content)


class SavedClassifier:
    """What classifiers have in common that can be written to a file and read again."""

    # Name and version of the file format; the arguments that a class has besides the common ones, and where they are.
    _format: ClassVar[str]
    _saved: ClassVar[Mapping[str, str]] = {}

    model: Model
    target: str
    features: tuple[str, ...]
    evidence: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the classifier as nested lists, numbers and strings, without what it does not need of its model."""
        own = {argument: getattr(self, name) for argument, name in self._saved.items()}
        return {
            "target": self.target,
            "features": list(self.features),
            "evidence": dict(self.evidence),
            **{argument: list(value) if isinstance(value, tuple) else value for argument, value in own.items()},
            "model": model_to_dict(self.model, self.target, [*self.features, *self.evidence]),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the classifier that `to_dict` described."""
        own = {argument: content[argument] for argument in ("features", "evidence", *cls._saved)}
        return cast("Self", cast("Any", cls)(model_from_dict(content["model"]), content["target"], **own))

    def save(self, path: str | Path) -> None:
        """Write the classifier as JSON, with every digit, and without what it does not need of its model.

        Raises
        ------
        OSError
            When the file cannot be written; an older one is then untouched.
        """
        write_json(path, {"format": self._format, **self.to_dict()})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a classifier that `save` wrote; ValueError, with the name of the file, when it does not hold one."""
        return read_json(path, cls._format, cls.from_dict)
