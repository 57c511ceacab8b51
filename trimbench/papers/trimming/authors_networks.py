"""The authors' networks of UCI data sets, learned again from the data and compared parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.declaration import DatasetDeclaration
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.authors_parameters import Recipe, compare_parameters
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

# Both sides are decimal numbers of few digits: what is left of their difference is rounding.
_EQUAL = 1e-12
# Parameters of eight digits imply whole counts to within this.
_WHOLE = 1e-4


@settings
class AuthorsNetworks:
    """Which data and which recipe give the parameters of the authors' networks.

    `recipes` has the set-up of each of the networks.
    """

    networks: list[str]
    recipes: dict[str, Recipe]

    def __post_init__(self) -> None:
        check_axis("networks", self.networks)
        for name in self.networks:
            if name not in self.recipes:
                raise ValueError(
                    f"networks must be among the names in recipes, {list(self.recipes)}, got {name!r}; define it with "
                    f"+recipes.{name}={{dataset: ..., positive: ..., cut: ..., smoothing: ..., missing: ..., "
                    "digits: ..., state_1: {}}"
                )

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each network; raise ValueError if the positive class is not one of the data set."""
        for name in self.networks:
            recipe = self.recipes[name]
            declaration = inputs.dataset(recipe.dataset).declaration
            classes = list(declaration.facts.classes) if isinstance(declaration, DatasetDeclaration) else []
            if classes and recipe.positive not in classes:
                raise ValueError(
                    f"recipes.{name}.positive must be a class of {recipe.dataset}, {classes}, got {recipe.positive!r}"
                )
        return [
            Cell.of(
                {"network": name},
                compare_parameters,
                network=inputs.network(name),
                dataset=inputs.dataset(self.recipes[name].dataset),
                recipe=self.recipes[name],
            )
            for name in self.networks
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return how near each network comes, what became of missing cells, and every parameter."""
        import pandas as pd

        lines: list[dict[str, Any]] = []
        filled: list[dict[str, object]] = []
        whole: list[dict[str, object]] = []
        for name in self.networks:
            for result in successes(rows, network=name).to_dict("records"):
                recipe, found = self.recipes[name], pd.DataFrame(result["parameters"])
                lines.append({"network": name, **_recipe_columns(recipe, result), **_agreement(found)})
                if found["missing"].any():
                    filled.append({"network": name, **_filling(found)})
                whole += [{"network": name, **parameter} for parameter in result["parameters"]]
        tables = (
            Table.of(_TITLE, lines, _COLUMNS),
            Table.of(_FILLING_TITLE, filled, _FILLING, name="missing_cells"),
            Table.of(_PARAMETERS_TITLE, whole, _PARAMETERS, name="parameters", listed=False),
        )
        return Outcome(tables, notes=(*_NOTES, *_exact(lines)))


def _recipe_columns(recipe: Recipe, result: Mapping[Any, Any]) -> dict[str, object]:
    return {
        "data set": recipe.dataset,
        "rows": result["n_rows"],
        "state 0": f"{recipe.positive} ({result['n_positive']})",
        "cut": recipe.cut,
        "pseudo-count": recipe.smoothing,
        "digits": recipe.digits,
    }


def _agreement(found: pd.DataFrame) -> dict[str, object]:
    """Return how far parameters are from ratios of counts, at most."""
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
    """Return which networks are certain: their counts, or one parameter of each distribution digit for digit."""
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
_NOTES = (
    "Parameters are compared as they stand in the files, before they are normalised. The expected parameter is (k + a) "
    "/ (n + 2 a) for pseudo-count a, class size n and count k, in the digits of the file where their rule is known. A "
    "parameter that holds for both states of a feature (bupa's BP6 given state 0) is compared for each of them.",
    "Where cells are missing, k is the count nearest to what the parameter implies, between the observed count and "
    "that plus the missing cells; the column for none filled counts no missing cell in state 1. Where none is missing, "
    "k is counted and nothing is fitted.",
    "The two states of a distribution have one free number, so that one of two parameters that do not sum to 1 must be "
    "wrong: hence the columns for the better state, of which the largest is shown.",
    "A parameter that is a smoothed count of one cut of one column shows which data, which cut and which positive "
    "class the authors used; a pseudo-count of 0.5 is an approximation where counts are off by a fraction. That a coin "
    "filled missing cells is the simplest explanation of the share in state 1.",
)
