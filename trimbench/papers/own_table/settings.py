"""The keys of a study: the table, how it is read, costs, and what is tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from trimbench.papers.conformant.gap_methods import METHODS
from trimbench.papers.data.missingness import DEPENDENT, Mechanism, Missingness
from trimbench.papers.data.table_reading import TableSettings
from trimbench.papers.data.tables.wording import did_you_mean, quoted, shown
from trimbench.papers.study.cells import check_axis
from trimbench.papers.validation import ConfigurationError, settings, unknown

ColumnType = Literal["category", "number", "boolean", "date"]
# Numbers of features, and shares of the sum of all costs, where no budgets are given.
_COUNTS = (1, 2, 3, 5, 8, 13)
_SHARES = (0.05, 0.1, 0.2, 0.35, 0.6)
_READING = ("separator", "encoding", "decimal", "drop", "features", "id", "types", "missing_values", "positive")


@settings
class StudySettings:
    """What a study of one's own table does, apart from the table itself.

    Attributes
    ----------
    separator, encoding, decimal, drop, features, id, types, missing_values, positive
        As in `TableSettings`.
    budget : float, optional
        What the features of the model to keep may cost; the default is found from the frontier.
    budgets : list of float
        Those of the frontier; the default depends on the costs.
    test_share : float
        Share of the rows, chosen at random, on which everything is measured.
    rows : int
        Training rows of the frontier, the classifiers and the explanations, at most.
    gap_rows : int
        Training rows, and test rows, of each split with missing features, at most.
    mechanisms, shares, splits, methods
        How features go missing, in which shares of them, on how many random splits, and which methods predict.
    selected : list of int
        Numbers of selected features whose confidence is judged.
    explained : int
        Rows of each class that are explained.
    time_limit : float
        Seconds for the search of each trimming.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    drop: list[str] = field(default_factory=list)
    features: list[str] | None = None
    id: list[str] | str | None = None
    types: dict[str, ColumnType] = field(default_factory=dict)
    missing_values: list[str] | None = None
    positive: str | int | float | bool | None = None
    budget: NonNegativeFloat | None = None
    budgets: list[NonNegativeFloat] = field(default_factory=list)
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    rows: PositiveInt = 4000
    gap_rows: PositiveInt = 1000
    mechanisms: list[Mechanism] = field(default_factory=lambda: list[Mechanism](["mcar", "depends_on_value"]))
    shares: list[float] = field(default_factory=lambda: [0.2, 0.4, 0.6])
    splits: PositiveInt = 3
    methods: list[str] = field(
        default_factory=lambda: ["nacl", "mixture", "mean", "knn", "iterative", "trees", "masked_trees"]
    )
    selected: list[PositiveInt] = field(default_factory=lambda: [5, 10, 20])
    explained: NonNegativeInt = 2
    time_limit: PositiveFloat = 20.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("mechanisms", "shares", "methods", "selected"):
            check_axis(name, getattr(self, name))
        for share in self.shares:
            Missingness().check_fraction(share)
        for method in self.methods:
            if method not in METHODS:
                raise unknown("methods", list(METHODS), method)
            if method == "naive_bayes":
                raise ValueError("methods must not have naive_bayes, which takes only numbers or only categories")
        if any(share > 0.9 for share in self.shares) and set(self.mechanisms) & set(DEPENDENT):
            raise ValueError(f"shares must be at most 0.9 where what goes missing depends on values, got {self.shares}")

    @property
    def reading(self) -> TableSettings:
        """How the table is read."""
        given = {name: getattr(self, name) for name in _READING}
        if given["positive"] is not None:
            given["positive"] = str(given["positive"])
        return TableSettings(**{name: value for name, value in given.items() if value is not None})

    def levels(self, costs: Mapping[str, float]) -> list[float]:
        """Return the budgets of the frontier in increasing order; the last pays for all features."""
        total = sum(costs.values())
        unit = set(costs.values()) == {1.0}
        usual: Sequence[float] = _COUNTS if unit else [round(share * total, 6) for share in _SHARES]
        wanted = {float(one) for one in self.budgets or usual if one < total}
        if self.budget is not None:
            wanted.add(float(min(self.budget, total)))
        return sorted({*wanted, float(total)})


def checked_costs(
    given: Mapping[str, float] | None, features: Sequence[str], left_out: Collection[str] = ()
) -> dict[str, float]:
    """Return the cost of each feature, 1 by default; ConfigurationError if one is unknown, missing or no cost.

    Costs of columns that are left out say nothing: one file of costs serves studies with other columns.
    """
    if given is None:
        return dict.fromkeys(features, 1.0)
    for name, cost in given.items():
        if name in left_out:
            continue
        if name not in features:
            raise ConfigurationError(
                f"costs: a feature must be one of {shown(features)}, got {quoted(str(name))}"
                f"{did_you_mean(str(name), features)}; the target has no cost"
            )
        if not 0 <= cost < float("inf"):
            raise ConfigurationError(
                f"costs must be numbers, 0 or more, got {cost!r} for {name}; write 0 for a feature that is free"
            )
    missing = [name for name in features if name not in given]
    if missing:
        raise ConfigurationError(
            f"costs must have a cost for each of the {len(features)} features, got none for {', '.join(missing[:5])}; "
            "write 0 for one that is free, or leave the column out with drop=[...]"
        )
    return {name: float(given[name]) for name in features}
