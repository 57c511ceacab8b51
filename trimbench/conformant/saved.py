"""The form of conformant models in a file: what the classifier and the rows say, from which all else follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.coding import Coding, ColumnPlaces, coded, jointly_normal
from trimbench.conformant.covariance import Normals
from trimbench.conformant.distribution import Component
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import Solution
from trimbench.networks.formats.forms import (
    Entries,
    Flag,
    Labels,
    Many,
    Names,
    Number,
    Numbers,
    Optional,
    check_sums,
)


def _parts(model: ConformantModel) -> dict[str, Any]:
    first = model.components[0]
    coding, layout = first.coding, first.layout
    constants = sorted(coding.constants.items())
    return {
        "column_names": model.column_names,
        "classes": model.classes,
        "weights": model.weights,
        "biases": model.biases,
        "categorical": layout.categorical,
        "real": layout.real,
        "has_covariance": model.normals is not None,
        "as_numbers": [column for column in coding.joint_columns if column not in set(layout.real)],
        "free": coding.free,
        "unseen": coding.unseen,
        "constant_columns": [column for column, _ in constants],
        "constants": [value for _, value in constants],
        "means": coding.means,
        "scales": coding.scales,
        "components": zip(model.log_weights, model.components, strict=True),
        "objectives": model.objectives,
    }


def _parts_of_component(pair: tuple[float, Component]) -> dict[str, Any]:
    log_weight, part = pair
    problem, solution, normal = part.coding.problem, part.solution, part.normal
    return {
        "log_weight": log_weight,
        "parameters": solution.parameters,
        "residual": solution.residual,
        "objective": solution.value,
        "iterations": solution.iterations,
        "means": problem.means,
        "real_moments": problem.real_moments,
        "pseudo": problem.pseudo,
        "normal_means": None if normal is None else normal.means,
        "normal_covariances": None if normal is None else normal.covariances,
    }


def _model(
    column_names: tuple[str, ...] | None,
    classes: NDArray[Any],
    weights: Matrix,
    biases: Vector,
    categorical: tuple[NDArray[np.intp], ...],
    real: NDArray[np.intp],
    has_covariance: bool,
    as_numbers: NDArray[np.intp],
    free: NDArray[np.intp],
    unseen: NDArray[np.intp],
    constant_columns: NDArray[np.intp],
    constants: NDArray[np.float64],
    means: Vector,
    scales: Vector,
    components: tuple[dict[str, Any], ...],
    objectives: tuple[float, ...],
) -> ConformantModel:
    layout = FeatureLayout(len(weights), tuple(tuple(group.tolist()) for group in categorical), tuple(real.tolist()))
    if len(as_numbers) and not has_covariance:
        raise ValueError("as_numbers must have no columns without a covariance")
    if not set(as_numbers.tolist()) <= set(range(layout.n_columns)) - set(layout.real):
        raise ValueError("as_numbers must have columns of binary and categorical features")
    if not set(constant_columns.tolist()) <= set(layout.real):
        raise ValueError("constant_columns must be among the real ones")
    if (free >= layout.n_columns).any():
        raise ValueError(f"free must have columns below {layout.n_columns}, got {int(free.max())}")
    constant = dict(zip(constant_columns.tolist(), constants.tolist(), strict=True))
    places = ColumnPlaces(free, unseen, constant)
    coding = _coding(weights, biases, layout, places, as_numbers, (means, scales), components[0])
    if has_covariance:
        coding = jointly_normal(coding, layout, layout.feature_of_column[as_numbers].tolist())
    parts = tuple(_component(classes, weights, biases, layout, coding, one) for one in components)
    log_weights = np.array([one["log_weight"] for one in components])
    check_sums(np.exp(log_weights).sum(), "log_weights of components")
    return ConformantModel(log_weights, parts, objectives, column_names)


def _coding(
    weights: Matrix,
    biases: Vector,
    layout: FeatureLayout,
    places: ColumnPlaces,
    as_numbers: NDArray[np.intp],
    moments: tuple[Vector, Vector],
    first: Mapping[str, Any],
) -> Coding:
    """Return the coding in which no feature is jointly normal: what became numbers is in the problem again."""
    owner, (means, scales) = layout.feature_of_column, moments
    varied = [column for column in layout.real_columns if column not in places.constants]
    numbers = np.concatenate([as_numbers, np.array(varied, dtype=np.intp)])
    if len(means) != len(numbers):
        raise ValueError(f"means must be those of {len(numbers)} numbers, got {len(means)}")
    of_numbers = np.empty((2, len(numbers)))
    of_numbers[:, np.argsort(owner[numbers], kind="stable")] = means, scales
    of_values, of_real = np.split(of_numbers, [len(as_numbers)], axis=1)
    if not ((of_values[0] > 0) & (of_values[0] < 1)).all():
        raise ValueError("means of as_numbers must be above 0 and below 1")
    columns, shares = np.concatenate([places.free, as_numbers]), np.concatenate([first["means"], of_values[0]])
    order = np.argsort(owner[columns], kind="stable")
    whole = replace(places, free=columns[order])
    return coded(weights, biases, layout, whole, (of_real[0], of_real[1]), shares[order], first["pseudo"])


def _component(
    classes: NDArray[Any],
    weights: Matrix,
    biases: Vector,
    layout: FeatureLayout,
    coding: Coding,
    own: Mapping[str, Any],
) -> Component:
    n_real = len(coding.real)
    if own["real_moments"].shape != (2 * n_real,) or own["parameters"].shape != (len(coding.free) + 2 * n_real,):
        raise ValueError(
            f"parameters of a component must be {len(coding.free) + 2 * n_real}, and real_moments {2 * n_real}, got "
            f"{len(own['parameters'])} and {len(own['real_moments'])}"
        )
    problem = replace(coding.problem, means=own["means"], real_moments=own["real_moments"], pseudo=own["pseudo"])
    if not problem.is_allowed(own["parameters"]):
        raise ValueError("parameters of a component must have negative ones for the squares of real-valued features")
    normal, given = None, (own["normal_means"], own["normal_covariances"])
    if coding.joint_weights is not None and given[0] is not None and given[1] is not None:
        if given[0].shape != (1, len(coding.joint)) or given[1].shape != (1, len(coding.joint), len(coding.joint)):
            raise ValueError(f"normal_means must be of {len(coding.joint)} numbers, got shape {given[0].shape}")
        normal = Normals(coding.joint_weights, *given)
        np.linalg.cholesky(normal.covariances)  # raises LinAlgError
    elif coding.joint_weights is not None or any(one is not None for one in given):
        raise ValueError("normal_means and normal_covariances must be those of a model with a covariance, or null")
    solution = Solution(own["parameters"], own["residual"], own["objective"], own["iterations"])
    return Component(classes, weights, biases, layout, solution, replace(coding, problem=problem), normal)


def _columns(axis: str) -> Numbers:
    return Numbers(axis, 0, kind=np.intp)


_COMPONENT = Entries(
    {
        "log_weight": Number(),
        "parameters": Numbers("*"),
        "residual": Number(0.0),
        "objective": Number(),
        "iterations": Number(0, whole=True),
        "means": Numbers("free", 0.0, 1.0),
        "real_moments": Numbers("*"),
        "pseudo": Number(0.0),
        "normal_means": Optional(Numbers("* joint")),
        "normal_covariances": Optional(Numbers("* joint joint")),
    },
    dict,
    _parts_of_component,
)

FORM = Entries(
    {
        "weights": Numbers("columns classes"),
        "biases": Numbers("classes"),
        "classes": Labels("classes"),
        "column_names": Optional(Names("columns")),
        "categorical": Many(_columns("*")),
        "real": _columns("*"),
        "has_covariance": Flag(),
        "as_numbers": _columns("*"),
        "free": _columns("free"),
        "unseen": _columns("*"),
        "constant_columns": _columns("constants"),
        "constants": Numbers("constants"),
        "means": Numbers("numbers"),
        "scales": Numbers("numbers", 0.0, above=True),
        "components": Many(_COMPONENT, least=1),
        "objectives": Many(Number()),
    },
    _model,
    _parts,
)
