"""Trimmed estimators as JSON files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.discretize import ColumnRule, Discretizer
from trimbench.networks.json_files import read_json, write_json
from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.classifier import BayesianClassifier

FORMAT = "trimbench.TrimmedClassifier/1"
_CLASSIFIERS = {kind.__name__: kind for kind in (BayesianClassifier, ArgMaxClassifier)}


def save_trimmed(estimator: Any, path: str | Path) -> None:
    """Write a fitted `TrimmedClassifier`: its parameters, columns, classes and trimmed classifier."""
    kept = set(estimator.features_)
    write_json(
        path,
        {
            "format": FORMAT,
            "parameters": {name: _plain(value) for name, value in estimator.get_params(deep=False).items()},
            "has_column_names": hasattr(estimator, "feature_names_in_"),
            "classes": {"type": estimator.classes_.dtype.str, "labels": _texts_of(estimator.classes_)},
            # What is left out needs no rule, only its place.
            "columns": [
                _rule(rule) if rule.name in kept else {"name": rule.name} for rule in estimator.discretizer_.rules
            ],
            "classifier": {"kind": type(estimator.classifier_).__name__, **estimator.classifier_.to_dict()},
        },
    )


def load_trimmed(cls: Any, path: str | Path) -> Any:
    """Return the estimator of class `cls` that `save_trimmed` wrote.

    Raises ValueError, with the name of the file, if the file does not hold one.
    """

    def build(content: Mapping[str, Any]) -> Any:
        estimator = cls(**{name: _value(value) for name, value in content["parameters"].items()})
        kind = content["classifier"]["kind"]
        if kind not in _CLASSIFIERS:
            raise ValueError(f"kind of classifier must be one of {', '.join(_CLASSIFIERS)}, got {str(kind)[:80]!r}")
        estimator.classifier_ = _CLASSIFIERS[kind].from_dict(content["classifier"])
        estimator.features_ = estimator.classifier_.features
        estimator.discretizer_ = Discretizer(tuple(_read_rule(column) for column in content["columns"]))
        names = [rule.name for rule in estimator.discretizer_.rules]
        absent = [name for name in estimator.features_ if name not in names]
        if absent:
            raise ValueError(f"columns must have every feature of the classifier, got none called {absent[0]!r}")
        estimator.n_features_in_ = len(names)
        if content["has_column_names"]:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.classes_ = _labels(content["classes"]["type"], content["classes"]["labels"])
        estimator.trimming_ = None
        return estimator

    return read_json(path, FORMAT, build)


def _texts_of(classes: NDArray[Any]) -> Any:
    """Return labels as JSON has them: dates as ISO text, spans of time as numbers of their unit."""
    if classes.dtype.kind == "M":
        return np.datetime_as_string(classes).tolist()
    return _plain(classes.astype(np.int64) if classes.dtype.kind == "m" else classes)


def _labels(kind: str, labels: list[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.array(labels, dtype=np.dtype(kind))
    return found


def _rule(rule: ColumnRule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "categories": list(rule.categories),
        "cuts": None if rule.cuts is None else list(rule.cuts),
        "missing": rule.missing,
        "fallback": rule.fallback,
    }


def _read_rule(content: Mapping[str, Any]) -> ColumnRule:
    if "categories" not in content:
        return ColumnRule(content["name"], ("any",), missing="any", fallback="any")
    cuts = content["cuts"]
    return ColumnRule(
        content["name"],
        tuple(content["categories"]),
        None if cuts is None else tuple(float(cut) for cut in cuts),
        content["missing"],
        content["fallback"],
    )


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it; a mapping as pairs (its keys may be positions), infinity as text."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(entry)] for key, entry in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(float(value))}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _value(content: Any) -> Any:
    if isinstance(content, Mapping):
        if "number" in content:
            return float(content["number"])
        return {_value(key): _value(entry) for key, entry in content["pairs"]}
    return [_value(entry) for entry in content] if isinstance(content, list) else content
