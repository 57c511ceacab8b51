"""The parameters in a network's files, each held against the counts of a data set that it may come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.ace_files import ParameterClause, read_blocks, read_literal_map
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.encoding import categorize
from trimbench.papers.data.network_declaration import declare_network
from trimbench.papers.data.sources import network_paths
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.inputs import dataset_of, network_of
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_CODE = ("trimbench.papers.data", "trimbench.networks", "trimbench.papers.study.inputs", __name__)
_ROUNDINGS = {"truncated": ROUND_FLOOR, "rounded": ROUND_HALF_EVEN}


@settings
class Recipe:
    """How a network may have been learned from a data set.

    Attributes
    ----------
    dataset, positive : str
        The data set, and the class that is state 0 of the network's class node. All other classes are state 1.
    cut : {"mean", "none"}
        State 1 of a number is "above the mean of its column"; "none" says that all columns are labels.
    smoothing : float
        Pseudo-count of each of two states.
    missing : {"none", "coin"}
        Whether cells are missing. With "coin" each was filled with one of the two states, so that a count lies between
        the observed one and that plus the missing cells.
    digits : {"unknown", "rounded", "truncated"}
        How a ratio of counts became the digits in the file.
    state_1 : dict from column to label
        Which label is state 1; by default the last one.
    """

    dataset: str
    positive: str
    cut: Literal["mean", "none"]
    smoothing: float
    missing: Literal["none", "coin"]
    digits: Literal["unknown", "rounded", "truncated"]
    state_1: dict[str, str]

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise ValueError(f"smoothing must be a positive number, got {self.smoothing}")


@dataclass(frozen=True)
class _Counts:
    """Rows of a class, of how many the state was observed, and of how many the cell is missing."""

    rows: int
    observed: int
    missing: int

    def nearest(self, weight: float, smoothing: float) -> tuple[float, int]:
        """Return the count that a parameter implies, and the nearest one that the data allow."""
        implied = weight * (self.rows + 2 * smoothing) - smoothing
        return implied, min(max(round(implied), self.observed), self.observed + self.missing)

    def ratio(self, count: int, smoothing: float) -> float:
        return (count + smoothing) / (self.rows + 2 * smoothing)


@job_function(code=_CODE)
def compare_parameters(
    network: Mapping[str, Json], dataset: Mapping[str, Json], recipe: Mapping[str, Json]
) -> dict[str, Json]:
    """Hold every parameter in the files of a network input against a data set, with the fields of a `Recipe`."""
    # A job's settings are plain JSON values; Recipe checked them when the experiment was configured.
    made = Recipe(**recipe)  # type: ignore[arg-type]
    problem, loaded = network_of(network), dataset_of(dataset)
    states, is_missing = _states(loaded.features, made)
    in_class = [(loaded.target == made.positive).to_numpy(), (loaded.target != made.positive).to_numpy()]
    if len(problem.features) != states.shape[1] or problem.target is None:
        raise ValueError(
            f"network {network['name']!r} must have a class and one feature for each of the {states.shape[1]} columns "
            f"of {made.dataset!r}, got {len(problem.features)} features"
        )
    blocks = _blocks(network)
    parameters: list[Json] = []
    n_rows = len(states)
    for clause in blocks[problem.target]:
        members = int(in_class[clause.place[problem.target]].sum())
        facts: dict[str, Json] = {"feature": problem.target, "column": str(loaded.target.name)}
        facts |= {"given": -1, "shared": False}
        state = clause.place[problem.target]
        parameters.append(facts | _compared(clause.weight, state, _Counts(n_rows, members, 0), made))
    for place, feature in enumerate(problem.features):
        for clause in blocks[feature]:
            given = clause.place[problem.target]
            column, gaps = states[in_class[given], place], is_missing[in_class[given], place]
            # A clause that names no state of the feature holds for both.
            for state in [clause.place[feature]] if feature in clause.place else [0, 1]:
                counts = _Counts(len(column), int((column[~gaps] == state).sum()), int(gaps.sum()))
                facts = {
                    "feature": feature,
                    "column": str(loaded.features.columns[place]),
                    "given": given,
                    "shared": feature not in clause.place,
                }
                parameters.append(facts | _compared(clause.weight, state, counts, made))
    return {"n_rows": n_rows, "n_positive": int(in_class[0].sum()), "parameters": parameters}


def _blocks(network: Mapping[str, Json]) -> dict[str, list[ParameterClause]]:
    """Return the parameters as they stand in the files; reading the network would normalise them."""
    declared = network["declared"]
    if not isinstance(declared, Mapping) or declared.get("format") != "ace":
        raise ValueError(f"network {network['name']!r} must have the format 'ace', whose files list parameters")
    paths = network_paths(declare_network(str(network["name"]), declared), Cache.from_environment(offline=True))
    return read_blocks(Path(paths["cnf"]), read_literal_map(Path(paths["lmap"])))


def _states(features: pd.DataFrame, recipe: Recipe) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the state of each cell (0 where it is missing), and which cells are missing."""
    (coded,) = categorize(features, cut="mean", gaps="keep")
    is_missing = features.isna().to_numpy()
    if recipe.missing == "none" and is_missing.any():
        raise ValueError(f"missing must be 'coin' for {recipe.dataset!r}: {is_missing.sum()} of its cells are missing")
    columns = []
    for name, column in coded.items():
        labels = column.cat.categories.tolist()
        one = recipe.state_1.get(str(name), labels[-1])
        if len(labels) != 2 or one not in labels:
            raise ValueError(
                f"state_1 must name one of two labels of column {name!r}, got {one!r} of {labels}; other columns "
                "cannot be a feature of two states"
            )
        numbers = features[name].dtype.kind in "fiu"
        if numbers and recipe.cut == "none":
            raise ValueError(f"cut must be 'mean' where a column holds numbers, as {name!r} does, got 'none'")
        columns.append((column == one).to_numpy().astype(np.int64))
    return np.stack(columns, axis=1), is_missing


def _compared(weight: float, state: int, counts: _Counts, recipe: Recipe) -> dict[str, Json]:
    implied, count = counts.nearest(weight, recipe.smoothing)
    ratio = counts.ratio(count, recipe.smoothing)
    expected = _written(ratio, weight, recipe.digits)
    # What the parameter would be if no missing cell were in state 1.
    unfilled = counts.ratio(counts.observed + (counts.missing if state == 0 else 0), recipe.smoothing)
    unfilled = _written(unfilled, weight, recipe.digits)
    return {
        "state": state,
        "file": weight,
        "rows": counts.rows,
        "observed": counts.observed,
        "missing": counts.missing,
        "implied_count": implied,
        "count": count,
        "ratio": ratio,
        "expected": expected,
        "residual": abs(weight - expected),
        "residual_unfilled": abs(weight - unfilled),
    }


def _written(ratio: float, weight: float, digits: str) -> float:
    """Return a ratio with as many digits as a parameter in the file has."""
    if digits not in _ROUNDINGS:
        return ratio
    last = Decimal(1).scaleb(int(Decimal(repr(weight)).as_tuple().exponent))
    return float(Decimal(ratio).quantize(last, rounding=_ROUNDINGS[digits]))
