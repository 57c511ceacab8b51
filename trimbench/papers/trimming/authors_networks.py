"""The authors' networks of UCI data sets, learned again from the data and compared parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.networks.formats.ace import ParameterClause, read_blocks, read_literal_map
from trimbench.papers.networks import Figures, declare_network, network_input, network_of
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.declarations import DatasetDeclaration
from trimbench.reproduction.data.encodings import categorize
from trimbench.reproduction.execution.job import COUNT, FLAG, NUMBER, SHARE, TEXT, fields, job, list_of, number

# Both sides are decimal numbers of few digits: a smaller difference is rounding.
_EQUAL = 1e-12
# Parameters of eight digits imply whole counts to within this.
_WHOLE = 1e-4


@vocab.settings
class AuthorsNetworks:
    """Which data and which recipe give the parameters of the authors' networks.

    `recipes` holds the set-up of each network.
    """

    networks: vocab.Axis[str]
    recipes: dict[str, Recipe]

    def __post_init__(self) -> None:
        entries = "dataset: ..., positive: ..., cut: ..., smoothing: ..., missing: ..., digits: ..., state_1: {}"
        vocab.check_names("networks", self.networks, self.recipes, "recipes", entries)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each network; raise ValueError if the positive class is not one of the data set."""
        cells = []
        for name in self.networks:
            recipe, network = self.recipes[name], network_input(inputs, name)
            dataset = inputs.dataset(recipe.dataset)
            declaration = dataset.declaration
            classes = list(declaration.facts.classes) if isinstance(declaration, DatasetDeclaration) else []
            if classes and recipe.positive not in classes:
                raise ValueError(
                    f"recipes.{name}.positive must be a class of {recipe.dataset}, {classes}, got {recipe.positive!r}"
                )
            given = {"network": network, "dataset": dataset, "recipe": recipe}
            cells.append(vocab.Cell.of({"network": name}, compare_parameters, **given))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return how close each network comes, how missing cells were filled, and every parameter."""
        every = vocab.unpacked(rows, "parameters")
        by_network = [(labels["network"], ours) for labels, ours in vocab.groups(every, "network")]
        lines = [{"network": name, **self._recipe(name, ours.iloc[0]), **_agreement(ours)} for name, ours in by_network]
        filled = [{"network": name, **_filling(ours)} for name, ours in by_network if ours["missing"].any()]
        whole = every.reindex(columns=list(_PARAMETERS)).to_dict("records")
        tables = (
            vocab.Table.of(_TITLE, lines, _COLUMNS),
            vocab.Table.of(_FILLING_TITLE, filled, _FILLING, name="missing_cells"),
            vocab.Table.of(_PARAMETERS_TITLE, whole, _PARAMETERS, name="parameters", listed=False),
        )
        return vocab.Outcome(tables, notes=_exact(lines))

    def _recipe(self, name: str, first: pd.Series[Any]) -> dict[str, object]:
        recipe = self.recipes[name]
        return {
            **{"data set": recipe.dataset, "rows": first["n_rows"]},
            "state 0": f"{recipe.positive} ({first['n_positive']})",
            **{"cut": recipe.cut, "pseudo-count": recipe.smoothing, "digits": recipe.digits},
        }


def _agreement(found: pd.DataFrame) -> dict[str, object]:
    """Return the largest differences between parameters and ratios of counts."""
    worst = found.iloc[int(found["residual"].to_numpy().argmax())]
    place = f"{worst['feature']} = {worst['state']}"
    # Two states have one free number: where the file's two do not sum to 1, one of them must be wrong.
    better = found.groupby(["feature", "given"]).agg({"residual": "min", "residual_unfilled": "min"})
    off = (found["implied_count"] - found["count"]).abs()
    return {
        "parameters": len(found),
        "equal": int((found["residual"] < _EQUAL).sum()),
        "within 1e-5": int((found["residual"] < 1e-5 + _EQUAL).sum()),
        "largest residual": worst["residual"],
        "at": place if worst["given"] < 0 else f"{place} given {worst['given']}",
        "of the better state": better["residual"].max(),
        "of the better state, none filled": better["residual_unfilled"].max(),
        "counts off": off.max(),
        "counts off, nothing missing": off.loc[found["missing"] == 0].max(),
    }


def _filling(found: pd.DataFrame) -> dict[str, object]:
    """Return how many missing cells the parameters put into state 1, and how well a fair coin fits."""
    from scipy.stats import binomtest, chi2

    ones = found[(found["state"] == 1) & (found["missing"] > 0)]
    columns = ones.assign(filled=ones["count"] - ones["observed"]).groupby("feature")[["filled", "missing"]].sum()
    total = columns.sum()
    spread = float(((columns["filled"] - columns["missing"] / 2) ** 2 / (columns["missing"] / 4)).sum())
    return {
        "columns": len(columns),
        "missing cells": int(total["missing"]),
        "in state 1": int(total["filled"]),
        "share": total["filled"] / total["missing"],
        "probability of the total": binomtest(int(total["filled"]), int(total["missing"])).pvalue,
        "probability of the spread over columns": float(chi2.sf(spread, len(columns))),
    }


def _exact(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return notes on which networks are certain: their counts, or one parameter of each distribution, to the digit."""
    certain = {
        "one parameter of each distribution is equal digit for digit": [
            line["network"] for line in lines if line["of the better state"] < _EQUAL
        ],
        "every count that a parameter implies is a whole number between the observed one and that plus missing cells": [
            line["network"] for line in lines if line["counts off"] < _WHOLE
        ],
    }
    return [f"Of {' and '.join(names)}, {what}." for what, names in certain.items() if names]


_TITLE = "Parameters in the authors' files against smoothed ratios of counts of the data"
_COLUMNS = {
    **dict.fromkeys(("network", "data set", "rows", "state 0", "cut", "pseudo-count", "digits"), ""),
    **dict.fromkeys(("parameters", "equal", "within 1e-5"), ""),
    **{"largest residual": ".2g", "at": ""},
    **dict.fromkeys(("of the better state", "of the better state, none filled"), ".2g"),
    **dict.fromkeys(("counts off", "counts off, nothing missing"), ".2g"),
}
_FILLING_TITLE = "Missing cells that the parameters count in state 1, against a fair coin"
_FILLING = {
    **dict.fromkeys(("network", "columns", "missing cells", "in state 1"), ""),
    **dict.fromkeys(("share", "probability of the total", "probability of the spread over columns"), ".3f"),
}
_PARAMETERS_TITLE = "Every parameter: P(feature = state | class = given), and P(class = state) where given is -1"
_PARAMETERS = {
    **dict.fromkeys(("network", "feature", "column", "state", "given", "shared", "file"), ""),
    **dict.fromkeys(("rows", "observed", "missing"), ""),
    **{"implied_count": ".3f", "count": "", "ratio": ".6f", "expected": ""},
    **{"residual": ".2g", "residual_unfilled": ".2g"},
}


# The parameters in a network's files, each compared with the counts of a data set that it may come from.

_ROUNDINGS = {"truncated": ROUND_FLOOR, "rounded": ROUND_HALF_EVEN}


@vocab.settings
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
    smoothing: vocab.Positive
    missing: Literal["none", "coin"]
    digits: Literal["unknown", "rounded", "truncated"]
    state_1: dict[str, str]


@dataclass(frozen=True)
class _Counts:
    """How many rows a class has, in how many of them the state was observed, and in how many the cell is missing."""

    rows: int
    observed: int
    missing: int

    def nearest(self, weight: float, smoothing: float) -> tuple[float, int]:
        """Return the count that a parameter implies, and the nearest one that the data allow."""
        implied = weight * (self.rows + 2 * smoothing) - smoothing
        return implied, min(max(round(implied), self.observed), self.observed + self.missing)

    def ratio(self, count: int, smoothing: float) -> float:
        return (count + smoothing) / (self.rows + 2 * smoothing)


# Residuals are differences of probabilities.
_DIFFERENCE = number(-1 - 1e-9, 1 + 1e-9)
_PARAMETER = fields(
    **{"feature": TEXT, "column": TEXT, "given": number(-1, 1), "shared": FLAG, "state": COUNT},
    **{"file": SHARE, "rows": COUNT, "observed": COUNT, "missing": COUNT, "implied_count": NUMBER},
    **{"count": COUNT, "ratio": SHARE, "expected": SHARE, "residual": _DIFFERENCE, "residual_unfilled": _DIFFERENCE},
)


@job(n_rows=COUNT, n_positive=COUNT, parameters=list_of(_PARAMETER))
def compare_parameters(network: vocab.Input, dataset: vocab.Input, recipe: Recipe) -> dict[str, vocab.Json]:
    """Compare every parameter in the files of a network input with the counts of a data set."""
    problem, loaded = network_of(network), vocab.dataset_of(dataset)
    states, is_missing = _states(loaded.features, recipe)
    in_class = [(loaded.target == recipe.positive).to_numpy(), (loaded.target != recipe.positive).to_numpy()]
    if len(problem.features) != states.shape[1] or problem.target is None:
        raise ValueError(
            f"network {network.name!r} must have a class and one feature for each of the {states.shape[1]} columns "
            f"of {recipe.dataset!r}, got {len(problem.features)} features"
        )
    blocks, target = _blocks(network), problem.target
    parameters: list[vocab.Json] = []
    for clause in blocks[target]:
        state = clause.place[target]
        place: dict[str, vocab.Json] = {"feature": target, "column": str(loaded.target.name), "given": -1}
        counts = _Counts(len(states), int(in_class[state].sum()), 0)
        parameters.append({**place, "shared": False, **_compared(clause.weight, state, counts, recipe)})
    for index, feature in enumerate(problem.features):
        for clause in blocks[feature]:
            given = clause.place[target]
            column, gaps = states[in_class[given], index], is_missing[in_class[given], index]
            place = {"feature": feature, "column": str(loaded.features.columns[index]), "given": given}
            # A clause that names no state of the feature holds for both.
            for state in [clause.place[feature]] if feature in clause.place else [0, 1]:
                counts = _Counts(len(column), int((column[~gaps] == state).sum()), int(gaps.sum()))
                shared = feature not in clause.place
                parameters.append({**place, "shared": shared, **_compared(clause.weight, state, counts, recipe)})
    return {"n_rows": len(states), "n_positive": int(in_class[0].sum()), "parameters": parameters}


def _blocks(network: vocab.Input) -> dict[str, list[ParameterClause]]:
    """Return the parameters as they were published; reading the network would normalise them."""
    declared = network.declared
    if not isinstance(declared, Mapping) or declared.get("format") not in ("ace", "tables"):
        raise ValueError(f"network {network.name!r} must have the format 'tables' or 'ace', which list parameters")
    declaration = declare_network(network.name, declared)
    if isinstance(declaration.source, Figures):
        return _clauses(declaration.source)
    paths = declaration.paths(Cache.from_environment(offline=True))
    return read_blocks(paths["cnf"], read_literal_map(paths["lmap"]))


def _clauses(figures: Figures) -> dict[str, list[ParameterClause]]:
    """Return figures as the clauses of ACE files; one that names only the class holds for all states of the feature."""
    target = figures.target
    blocks = {target: [ParameterClause(0, {target: state}, one) for state, one in enumerate(figures.prior)]}
    for name, rows in figures.likelihoods.items():
        blocks[name] = [
            ParameterClause(0, {target: given, **({name: state} if isinstance(row, list) else {})}, one)
            for given, row in enumerate(rows)
            for state, one in enumerate(row if isinstance(row, list) else [row])
        ]
    return blocks


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


def _compared(weight: float, state: int, counts: _Counts, recipe: Recipe) -> dict[str, vocab.Json]:
    implied, count = counts.nearest(weight, recipe.smoothing)
    ratio = counts.ratio(count, recipe.smoothing)
    expected = _written(ratio, weight, recipe.digits)
    # The parameter if no missing cell were in state 1.
    unfilled = counts.ratio(counts.observed + (counts.missing if state == 0 else 0), recipe.smoothing)
    unfilled = _written(unfilled, weight, recipe.digits)
    found = {"state": state, "file": weight, **asdict(counts), "implied_count": implied, "count": count, "ratio": ratio}
    residuals = {"residual": abs(weight - expected), "residual_unfilled": abs(weight - unfilled)}
    return {**found, "expected": expected, **residuals}


def _written(ratio: float, weight: float, digits: str) -> float:
    """Return a ratio with the digits that the parameter in the file has."""
    if digits not in _ROUNDINGS:
        return ratio
    last = Decimal(1).scaleb(int(Decimal(repr(weight)).as_tuple().exponent))
    return float(Decimal(ratio).quantize(last, rounding=_ROUNDINGS[digits]))
