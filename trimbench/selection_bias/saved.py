"""The forms of selection-corrected models and of posteriors of mixtures in a file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.formats.forms import (
    Either,
    Entries,
    Many,
    Names,
    Number,
    Numbers,
    Optional,
    Share,
    Text,
    check_sums,
)
from trimbench.selection_bias.calibration import Recalibration
from trimbench.selection_bias.categorical import MAX_CATEGORIES, Categories
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.gaussian import GaussianFeatures, GaussianMoments
from trimbench.selection_bias.mixture import MixturePosterior
from trimbench.selection_bias.model import DiscreteFeatures, SelectionCorrectedModel
from trimbench.selection_bias.prior import RULES, Prior
from trimbench.selection_bias.selection import DiscardedGroup, Selection


def _check_columns(columns: NDArray[np.int64], n_features: int, where: str) -> None:
    if len(set(columns.tolist())) != len(columns) or not (columns < n_features).all():
        raise ValueError(f"{where} must be distinct numbers below {n_features}, got {columns.tolist()[:8]}")


def _selection(
    features: NDArray[np.int64], strengths: NDArray[np.float64], cut: Any, groups: tuple[DiscardedGroup, ...]
) -> Selection:
    _check_columns(features, len(strengths), "features of a selection")
    return Selection(features, strengths, cut, groups)


def _group(sizes: NDArray[np.int64], **numbers: int) -> DiscardedGroup:
    return DiscardedGroup(tuple(sizes.tolist()), **numbers)


def _discrete(**entries: Any) -> DiscreteFeatures:
    found = DiscreteFeatures(**entries)
    coding, (n_alpha, n_places) = found.coding, found.theta.shape
    if isinstance(coding, Categories):
        n_features, n_values = len(coding.numbers), coding.numbers
    else:
        n_features = getattr(coding, "n_features", 0)
        n_values = np.full(n_features, 2)
    _check_columns(found.columns, n_features, "columns of features")
    if not (found.n_values == n_values[found.columns]).all() or not (found.starts + found.n_values <= n_places).all():
        raise ValueError(f"starts and n_values must name values of each feature among the {n_places} of theta")
    if (found.counts > found.sizes).any():
        raise ValueError("counts must be at most sizes")
    totals = np.concatenate([np.zeros((n_alpha, 1)), np.cumsum(found.theta, axis=1)], axis=1)
    check_sums(totals[:, found.starts + found.n_values] - totals[:, found.starts], "theta")
    return found


def _binariser(n_features: int, cuts: NDArray[np.float64] | None) -> Binariser:
    if cuts is not None and len(cuts) != n_features:
        raise ValueError(f"cuts must be one for each of the {n_features} features, got {len(cuts)}")
    return Binariser(n_features, cuts)


def _gaussian(**entries: Any) -> GaussianFeatures:
    found = GaussianFeatures(**entries)
    _check_columns(found.columns, found.n_features, "columns of features")
    return found


def _model(**entries: Any) -> SelectionCorrectedModel:
    found = SelectionCorrectedModel(**entries)
    coding: Any = getattr(found.features, "coding", found.features)
    n_features = len(coding.numbers) if isinstance(coding, Categories) else coding.n_features
    if n_features != len(found.selection.strengths):
        raise ValueError(f"features must be {len(found.selection.strengths)}, as strengths, got {n_features}")
    found.prior.pseudo_counts(len(found.class_sizes))  # raises ValueError
    if not np.isfinite(found.log_adjustment).any() or len(found.class_sizes) < 2:
        raise ValueError("log_adjustment must be finite for some alpha, and class_sizes be of two classes or more")
    return found


def _posterior(**entries: Any) -> MixturePosterior:
    found = MixturePosterior(**entries)
    if found.binariser.n_features != len(found.selection.strengths):
        raise ValueError(f"binariser must be of {len(found.selection.strengths)} features, as strengths")
    n_chains, n_draws, n_columns = found.theta.shape
    if (n_columns, found.sizes.shape[2]) != (len(found.selected) + 1, 2) or not n_chains * n_draws:
        raise ValueError(f"theta must be of {len(found.selected)} features and the response, and sizes of two groups")
    if (found.ones > found.sizes[:, :, :, None]).any():
        raise ValueError("ones must be at most sizes")
    return found


def _counts(axes: str) -> Numbers:
    return Numbers(axes, 0, kind=np.int64)


_POSITIVE = Number(0.0, above=True)
_WHOLE = Number(1, whole=True)

_PRIOR = Entries(
    {
        **dict.fromkeys(("shape", "rate", "f0", "f1"), _POSITIVE),
        "theta0": Number(0.0),
        **dict.fromkeys(("n_alpha", "n_theta", "n_theta_adjust"), _WHOLE),
        "rule": Text(RULES),
    },
    Prior,
)
assert _PRIOR.forms.keys() == {field.name for field in fields(Prior)}

_SELECTION = Entries(
    {
        "features": _counts("selected"),
        "strengths": Numbers("features", 0.0, 1.0 + 1e-9),
        "cut": Share(),
        "groups": Many(
            Entries(
                {
                    "sizes": Numbers("*", 1, kind=np.int64),
                    "n_discarded": Number(0, whole=True),
                    "n_tied": Number(0, whole=True),
                    "n_categories": Number(2, whole=True),
                },
                _group,
            )
        ),
    },
    _selection,
)

_BINARISER = Entries({"n_features": _WHOLE, "cuts": Optional(Numbers("features"))}, _binariser)
_CODING = Either(
    {
        "binary": (Binariser, _BINARISER),
        "categories": (
            Categories,
            Entries({"numbers": Numbers("features", 2, MAX_CATEGORIES, kind=np.int64)}, Categories),
        ),
    }
)
_MOMENTS = Entries(
    {
        "sizes": _counts("classes varying"),
        "means": Numbers("classes varying"),
        "within": Numbers("varying", 0.0),
        "between": Numbers("varying", 0.0),
        "centres": Numbers("varying"),
        "scales": Numbers("varying", 0.0),
    },
    GaussianMoments,
)
_FEATURES = Either(
    {
        "discrete": (
            DiscreteFeatures,
            Entries(
                {
                    "coding": _CODING,
                    "columns": _counts("chosen"),
                    "alphas": Numbers("alphas", 0.0, above=True),
                    "counts": _counts("classes values"),
                    "sizes": _counts("classes values"),
                    "theta": Numbers("alphas values", 0.0, 1.0 + 1e-9),
                    "starts": _counts("chosen"),
                    "n_values": _counts("chosen"),
                },
                _discrete,
            ),
        ),
        "gaussian": (
            GaussianFeatures,
            Entries(
                {
                    "alphas": Numbers("alphas", 0.0, above=True),
                    "n_features": _WHOLE,
                    "columns": _counts("varying"),
                    "moments": _MOMENTS,
                },
                _gaussian,
            ),
        ),
    }
)

MODEL = Entries(
    {
        "prior": _PRIOR,
        "class_sizes": _counts("classes"),
        "alpha_grid": Numbers("alphas", 0.0, above=True),
        "log_adjustment": Numbers("alphas", also=("-inf",)),
        "log_adjustment_error": Numbers("alphas", 0.0, also=("inf",)),
        "log_likelihood": Numbers("alphas"),
        "selection": _SELECTION,
        "features": _FEATURES,
        "column_names": Optional(Names("features")),
        "calibration": Optional(
            Entries({"scale": Number(0.0), "offsets": Numbers("classes"), "gain": Number()}, Recalibration)
        ),
    },
    _model,
)

POSTERIOR = Entries(
    {
        "selection": _SELECTION,
        "binariser": _BINARISER,
        "f1": _POSITIVE,
        "f0": _POSITIVE,
        **dict.fromkeys(("log_alpha", "log_alpha0", "log_joint"), Numbers("chains draws")),
        "theta": Numbers("chains draws columns", 0.0, 1.0),
        "ones": _counts("chains draws groups columns"),
        "sizes": _counts("chains draws groups"),
        "labels": Numbers("chains draws cases", 0, 1, kind=np.int8),
        "acceptance": Number(0.0),
        "column_names": Optional(Names("features")),
    },
    _posterior,
)
