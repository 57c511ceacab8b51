"""The forms of the estimators in a file: their parameters and columns, and the models in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from trimbench.conformant.conform import linear_scores
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.saved import FORM
from trimbench.estimators.columns import Column, ColumnEncoder
from trimbench.estimators.conformant import NaiveConformantClassifier
from trimbench.estimators.densities.choice import DensityScore
from trimbench.estimators.densities.products import ProductMixture
from trimbench.estimators.densities.saved import CODING, DENSITY
from trimbench.estimators.expected import ExpectedClassifier
from trimbench.estimators.fitted_pipeline import EncodedColumn, FittedPipeline
from trimbench.estimators.pipeline_steps import split_pipeline, unwrapped
from trimbench.estimators.raw_values import RawValues
from trimbench.estimators.selection_corrected import SelectionCorrectedNB
from trimbench.estimators.trees import Forest
from trimbench.estimators.trimmed import read_rule
from trimbench.networks.discretize import ColumnRule
from trimbench.networks.formats.forms import (
    Entries,
    Flag,
    Labels,
    Many,
    Names,
    Number,
    Numbers,
    Optional,
    Parameters,
    Scalars,
    Sizes,
    Text,
)
from trimbench.networks.values import names_text
from trimbench.selection_bias.model import SelectionCorrectedModel
from trimbench.selection_bias.saved import MODEL


@dataclass(frozen=True)
class WithoutEstimator:
    """What a file has of an estimator that was given another one."""

    complete: Callable[[Any], Any]


# What estimators have in common: their columns, and their classes.


class _ColumnNames:
    """How many columns there were in the fit, and what they were called."""

    _form = Entries(
        {
            "n_columns": Number(1, whole=True),
            "names": Optional(Names()),
            "labels": Optional(Scalars()),
        },
        dict,
    )

    def written(self, value: Any) -> Any:
        """Return the number of columns, their names in a data frame, and the labels that parameters may use."""
        names, labels = (getattr(value, name, None) for name in ("feature_names_in_", "_column_labels"))
        parts = {"n_columns": value.n_features_in_, "names": names, "labels": labels}
        return {name: form.written(parts[name]) for name, form in self._form.forms.items()}

    def read(self, content: Any, where: str, sizes: Sizes) -> Mapping[str, Any]:
        """Return the attributes of an estimator."""
        found = self._form.read(content, where, sizes)
        n_columns, names, labels = found["n_columns"], found["names"], found["labels"]
        if any(some is not None and len(some) != n_columns for some in (names, labels)):
            raise ValueError(f"{where} must have {n_columns} names, if any")
        attributes = {"n_features_in_": n_columns}
        if names is not None:
            attributes["feature_names_in_"] = np.array(names, dtype=object)
        return attributes if labels is None else {**attributes, "_column_labels": labels}


def _check_names(columns: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise ValueError unless an estimator has columns of these names."""
    known = [columns[key] for key in ("feature_names_in_", "_column_labels") if key in columns]
    if columns["n_features_in_"] != len(names) or any(list(map(str, given)) != list(names) for given in known):
        raise ValueError(
            f"columns must be {names_text(names)}, got {names_text([*known, [columns['n_features_in_']]][0])}"
        )


def _check_classes(given: Any, classes: NDArray[Any]) -> None:
    """Raise ValueError unless a given classifier has the classes of the file."""
    found = np.asarray(getattr(given, "classes_", []))
    if found.shape != classes.shape or not (found == classes).all():
        raise ValueError(
            f"estimator must have the classes {names_text(classes.tolist())}, got {names_text(found.tolist())}; give "
            "the classifier that was there when the file was saved"
        )


# `SelectionCorrectedNB`.


def _parts_of_selection(estimator: Any) -> Mapping[str, Any]:
    check_is_fitted(estimator, "model_")
    return {
        "parameters": estimator,
        "columns": estimator,
        "classes": estimator.classes_,
        "binary": estimator._binary,
        "model": estimator.model_,
    }


def _selection_corrected(
    parameters: Any,
    columns: Mapping[str, Any],
    classes: NDArray[Any],
    binary: NDArray[np.intp],
    model: SelectionCorrectedModel,
) -> Any:
    estimator: Any = parameters
    n_features = len(model.selection.strengths)
    if columns["n_features_in_"] != n_features:
        raise ValueError(f"columns must be {n_features}, as features of the model, got {columns['n_features_in_']}")
    if not (binary < n_features).all():
        raise ValueError(f"binary must have places below {n_features}, got {binary.max()}")
    vars(estimator).update(columns, classes_=classes, _binary=binary)
    estimator._keep(model)
    return estimator


# `NaiveConformantClassifier`.


class _Rule:
    """How a column becomes a category."""

    def written(self, value: ColumnRule) -> Any:
        """Return the entries of the rule."""
        return asdict(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> ColumnRule:
        """Return the rule."""
        names = {field.name for field in fields(ColumnRule)}
        if not isinstance(content, dict) or content.keys() != names or not isinstance(content["name"], str):
            raise ValueError(f"{where} must have the entries {names_text(sorted(names))}")
        return read_rule(content)


def _column(name: str, kind: Any, categories: tuple[str, ...], **numbers: float) -> Column:
    if (kind == "categorical") != bool(categories):
        raise ValueError(f"categories of column {name!r} must be there if it is categorical, and only then")
    return Column(name, kind, categories, **numbers)


_COLUMN = Entries(
    {
        "name": Text(),
        "kind": Text(("binary", "scaled", "cut", "categorical", "identifier")),
        "categories": Names(),
        "mean": Number(),
        "scale": Number(0.0, above=True, also=("inf",)),
        "limit": Number(),
    },
    _column,
)


def _parts_of_pipeline(encoding: FittedPipeline) -> Mapping[str, Any]:
    values = encoding.values
    return {
        "takes_frames": encoding.takes_frames,
        "known": list(encoding.known.values()),
        "kinds": values.kinds,
        "rules": values.rules,
        "examples": values.examples,
        "sources": values.sources,
        "columns": encoding.columns,
        "constants": encoding.constants,
    }


def _encoded_column(source: int, kind: Any, places: NDArray[np.intp], of_values: Any, examples: Any) -> EncodedColumn:
    if len(examples) != len(of_values) or of_values.shape[1:] != places.shape or not of_values.size:
        raise ValueError(f"of_values must have a row for each of {len(examples)} examples, and a column for each place")
    return EncodedColumn(source, kind, places, of_values, examples)


_KINDS = ("unused", "categories", "cut", "binary", "number")
_PIPELINE = Entries(
    {
        "takes_frames": Flag(),
        "known": Scalars("raw"),
        "kinds": Many(Text(_KINDS), "raw"),
        "rules": Many(_Rule(), "raw"),
        "examples": Many(Scalars(), "raw"),
        "sources": Numbers("made", -1, kind=np.intp),
        "columns": Many(
            Entries(
                {
                    "source": Number(0, whole=True),
                    "kind": Text(_KINDS),
                    "places": Numbers("*", 0, kind=np.intp),
                    "of_values": Numbers("* *"),
                    "examples": Numbers("*", 0, kind=np.intp),
                },
                _encoded_column,
            ),
            least=1,
        ),
        "constants": Numbers("made"),
    },
    dict,
    _parts_of_pipeline,
)


def _pipeline(entries: Mapping[str, Any], names: tuple[str, ...], given: Any) -> FittedPipeline:
    """Return how a given pipeline makes columns; ValueError if it is not that of the file."""
    steps, classifier = split_pipeline(given)
    values = RawValues(entries["kinds"], entries["rules"], entries["examples"], entries["sources"])
    columns, n_made, n_raw = entries["columns"], len(entries["constants"]), len(entries["kinds"])
    for column in columns:
        inside = column.source < n_raw and (column.places < n_made).all()
        if not inside or not (column.examples < len(values.rules[column.source].categories)).all():
            raise ValueError("columns must have sources, places and examples that there are")
    if classifier.coef_.shape[-1] != n_made:
        raise ValueError(f"estimator must have {n_made} columns at its last step, got {classifier.coef_.shape[-1]}")
    known = dict(zip(names, entries["known"], strict=True))
    return FittedPipeline(classifier, steps, entries["takes_frames"], known, values, columns, entries["constants"])


def _regression_parts(regression: Any) -> Mapping[str, Any]:
    parts = {name: getattr(regression, name) for name in ("C", "tol", "max_iter")}
    return {
        **parts,
        "coefficients": regression.coef_,
        "intercepts": regression.intercept_,
        "n_iter": regression.n_iter_,
        "gradient_norm": getattr(regression, "gradient_norm_", None),
    }


def _regression(**entries: Any) -> Any:
    regression = LogisticRegression(
        C=entries["C"], solver="newton-cg", tol=entries["tol"], max_iter=entries["max_iter"]
    )
    regression.coef_, regression.intercept_ = entries["coefficients"], entries["intercepts"]
    regression.n_iter_, regression.n_features_in_ = entries["n_iter"], entries["coefficients"].shape[1]
    if entries["gradient_norm"] is not None:
        regression.gradient_norm_ = entries["gradient_norm"]
    return regression


_REGRESSION = Entries(
    {
        "C": Number(0.0, above=True),
        "tol": Number(0.0, above=True),
        "max_iter": Number(1, whole=True),
        "coefficients": Numbers("scores columns"),
        "intercepts": Numbers("scores"),
        "n_iter": Numbers("*", 0, kind=np.int32),
        "gradient_norm": Optional(Number(0.0)),
    },
    _regression,
    _regression_parts,
)


def _parts_of_conformant(estimator: Any) -> Mapping[str, Any]:
    check_is_fitted(estimator, "model_")
    encoding = estimator._encoding
    own = isinstance(encoding, ColumnEncoder)
    return {
        "parameters": estimator,
        "columns": estimator,
        "names": estimator._names,
        "classes": estimator.classes_,
        "encoder": encoding.columns if own else None,
        "pipeline": None if own else encoding,
        "one_hot_groups": estimator._one_hot_groups,
        "logistic_regression": estimator.logistic_regression_ if own else None,
        "model": estimator.model_,
    }


def _conformant(
    parameters: Any,
    columns: Mapping[str, Any],
    names: tuple[str, ...],
    classes: NDArray[Any],
    encoder: tuple[Column, ...] | None,
    pipeline: Mapping[str, Any] | None,
    one_hot_groups: tuple[NDArray[np.intp], ...],
    logistic_regression: Any,
    model: ConformantModel,
) -> Any:
    _check_names(columns, names)
    known = [label for label in classes.tolist() if label in model.classes.tolist()]
    if known != model.classes.tolist():
        raise ValueError(f"classes must have those of the model, {names_text(model.classes.tolist())}, in this order")
    if not all((group < model.layout.n_columns).all() for group in one_hot_groups):
        raise ValueError(f"one_hot_groups must have columns below {model.layout.n_columns}")
    if len({encoder is None, pipeline is not None, logistic_regression is None}) > 1:
        raise ValueError("encoder and logistic_regression must be there without a pipeline, and null with one")
    attributes = {**columns, "_names": list(names), "classes_": classes, "model_": model}
    attributes["_one_hot_groups"] = list(one_hot_groups)

    def completed(encoding: ColumnEncoder | FittedPipeline, regression: Any, given: Any) -> Any:
        if encoding.layout != model.layout:
            raise ValueError(
                f"the model must have the features of the columns, got {model.layout} for {encoding.layout}"
            )
        scores = encoding.weights if isinstance(encoding, FittedPipeline) else regression
        weights, biases, _ = linear_scores(scores)
        if not (np.allclose(weights, model.weights) and np.allclose(biases, model.biases)):
            what = "logistic_regression" if given is None else "estimator"
            raise ValueError(f"{what} must be the one that the model agrees with, got other weights")
        estimator: Any = parameters
        estimator.estimator = given
        n_iter = getattr(regression, "n_iter_", np.array([1]))
        vars(estimator).update(attributes, _encoding=encoding, logistic_regression_=regression, n_iter_=n_iter)
        return estimator

    def with_pipeline(given: Any) -> Any:
        encoding = _pipeline(pipeline or {}, names, given)
        _check_classes(encoding.classifier, classes)
        return completed(encoding, encoding.classifier, given)

    if encoder is None:
        if len((pipeline or {})["kinds"]) != len(names):
            raise ValueError(f"pipeline must have {len(names)} columns, as names")
        return WithoutEstimator(with_pipeline)
    if [column.name for column in encoder] != list(names):
        raise ValueError(f"encoder must have a column for each of the names {names_text(names)}, in this order")
    logistic_regression.classes_ = model.classes
    return completed(ColumnEncoder(encoder), logistic_regression, None)


# `ExpectedClassifier`.


def _parts_of_expected(estimator: Any) -> Mapping[str, Any]:
    check_is_fitted(estimator, "density_")
    return {
        "parameters": estimator,
        "columns": estimator,
        "classes": estimator.classes_,
        "seed": estimator._seed,
        "gaps_seen": estimator._gaps_seen,
        "has_probabilities": estimator._has_probabilities,
        "decides_by_largest": estimator._decides_by_largest,
        "coding": estimator._coding,
        "density": estimator.density_,
        "density_scores": estimator.density_scores_,
        "n_rows_of_density": estimator.n_rows_of_density_,
    }


def _expected(columns: Mapping[str, Any], coding: Any, density: Any, **entries: Any) -> WithoutEstimator:
    margins = density.margins
    _check_names(columns, coding.names)
    if coding.template is not None and list(map(str, coding.template.columns)) != list(coding.names):
        raise ValueError(f"template must have the columns {names_text(coding.names)}")
    for place, (name, values) in enumerate(zip(coding.names, coding.categories, strict=True)):
        # The places of categories are numbers of the density.
        donors = getattr(density, "donors", margins.quantiles.T)
        places = np.concatenate([margins.quantiles[place], donors[:, place]])
        if margins.categorical[place] != (values is not None) or (
            values is not None and not np.isin(places, np.arange(max(len(values), 1))).all()
        ):
            raise ValueError(f"density must have the categories of column {name!r}, got others")

    def complete(given: Any) -> Any:
        _check_classes(given, entries["classes"])
        n_columns = getattr(given, "n_features_in_", len(coding.names))
        if n_columns != len(coding.names) or (entries["has_probabilities"] and not hasattr(given, "predict_proba")):
            raise ValueError(
                f"estimator must have {len(coding.names)} columns, and predict_proba if it had, got a "
                f"{type(given).__name__} of {n_columns} columns"
            )
        frozen = given if isinstance(given, FrozenEstimator) else FrozenEstimator(given)
        estimator: Any = entries["parameters"]
        estimator.estimator = frozen
        estimator._check_parameters()
        forest = Forest.of(unwrapped(frozen)) if isinstance(density, ProductMixture) else None
        vars(estimator).update(
            columns,
            estimator_=frozen,
            density_=density,
            density_scores_=entries["density_scores"],
            n_rows_of_density_=entries["n_rows_of_density"],
            is_exact_=forest is not None,
            _coding=coding,
            _forest=forest,
            **{f"_{name}": entries[name] for name in ("seed", "gaps_seen", "has_probabilities", "decides_by_largest")},
        )
        return estimator

    return WithoutEstimator(complete)


# All of them.

ESTIMATORS: Mapping[Any, Entries] = {
    NaiveConformantClassifier: Entries(
        {
            "parameters": Parameters(NaiveConformantClassifier, left_out=("estimator",)),
            "columns": _ColumnNames(),
            "names": Names(),
            "classes": Labels("labels"),
            "encoder": Optional(Many(_COLUMN, least=1)),
            "pipeline": Optional(_PIPELINE),
            "model": FORM,
            "one_hot_groups": Many(Numbers("*", 0, kind=np.intp)),
            "logistic_regression": Optional(_REGRESSION),
        },
        _conformant,
        _parts_of_conformant,
    ),
    SelectionCorrectedNB: Entries(
        {
            "parameters": Parameters(SelectionCorrectedNB),
            "columns": _ColumnNames(),
            "classes": Labels("classes"),
            "binary": Numbers("*", 0, kind=np.intp),
            "model": MODEL,
        },
        _selection_corrected,
        _parts_of_selection,
    ),
    ExpectedClassifier: Entries(
        {
            "parameters": Parameters(ExpectedClassifier, left_out=("estimator",)),
            "columns": _ColumnNames(),
            "classes": Labels("classes"),
            "seed": Number(0, whole=True),
            "coding": CODING,
            "gaps_seen": Numbers("features", kind=bool),
            "has_probabilities": Flag(),
            "decides_by_largest": Flag(),
            "density": DENSITY,
            "density_scores": Many(
                Entries(
                    {
                        "name": Text(),
                        "loss": Number(also=("inf",)),
                        "excess": Number(also=("inf",)),
                        "standard_error": Number(0.0, also=("inf",)),
                    },
                    DensityScore,
                )
            ),
            "n_rows_of_density": Number(1, whole=True),
        },
        _expected,
        _parts_of_expected,
    ),
}
