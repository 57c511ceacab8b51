"""The settings of a study: the table, how it is read, costs, what is tried; the table as it is stored."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from trimbench.papers.methods.missing_features import METHODS
from trimbench.papers.own_table.folders import SAMPLED_ROWS
from trimbench.papers.own_table.table_files import read_file
from trimbench.papers.own_table.table_reading import ReadTable
from trimbench.papers.own_table.table_texts import MISSING_VALUES, TableSettings, type_setting
from trimbench.reproduction.data.cache import Cache, Label
from trimbench.reproduction.data.dataset import fingerprint
from trimbench.reproduction.data.masks import DEPENDENT, Mechanism, check_fraction, split_rows
from trimbench.reproduction.execution.job import seed_for
from trimbench.reproduction.files import read_bytes, sealed, unsealed, write_bytes
from trimbench.reproduction.messages import did_you_mean, quoted, shown, some
from trimbench.reproduction.settings import ConfigurationError, settings, unknown
from trimbench.reproduction.vocabulary.cells import Axis

if TYPE_CHECKING:
    import pandas as pd


# Seconds for the search of each trimming, where no limit is given; a search among this many features takes as long as
# it may, and a study has dozens of them.
_SECONDS, _SECONDS_IF_WIDE, _WIDE = 20.0, 1.0, 1000
# Encoded columns that chained equations fill and boosted trees see, where there are more.
MOST_COLUMNS = 250
# Numbers of features, and shares of the sum of all costs, where no budgets are given.
_COUNTS = (1, 2, 3, 5, 8, 13)
_SHARES = (0.05, 0.1, 0.2, 0.35, 0.6)


def _or_usual(missing_values: object) -> object:
    if isinstance(missing_values, list):  # after a validator, no list becomes a tuple by itself
        return tuple(missing_values)
    return MISSING_VALUES if missing_values is None else missing_values


STUDY = "study"  # profile and experiment of a study's run, which no command can choose


@settings
class StudySettings(TableSettings):
    """What a study of one's own table does, apart from the table itself: how it is read, and what is tried.

    Attributes
    ----------
    budget : float, optional
        What the features of the model to keep may cost; the default is found from the frontier.
    budgets : list of float
        The budgets of the frontier, to which one that pays for all features is added, and those to choose from. The
        default depends on the costs.
    test_share : float
        Share of the rows, chosen at random, on which everything is measured.
    sample_rows : int
        Rows that are drawn at random from a folder that has more; all steps take theirs from these.
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
    time_limit : float, optional
        Seconds for the search of each trimming; by default 20, or 1 in a table of more than 1,000 features.
    """

    missing_values: Annotated[tuple[Label, ...], BeforeValidator(_or_usual)] = MISSING_VALUES
    budget: NonNegativeFloat | None = None
    budgets: list[NonNegativeFloat] = field(default_factory=list)
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    sample_rows: PositiveInt = SAMPLED_ROWS
    rows: PositiveInt = 4000
    gap_rows: PositiveInt = 1000
    mechanisms: Axis[Mechanism] = field(default_factory=lambda: list[Mechanism](["mcar", "depends_on_value"]))
    shares: Axis[float] = field(default_factory=lambda: [0.2, 0.4, 0.6])
    splits: PositiveInt = 3
    methods: Axis[str] = field(
        default_factory=lambda: ["nacl", "mixture", "mean", "knn", "iterative", "trees", "masked_trees"]
    )
    selected: Axis[PositiveInt] = field(default_factory=lambda: [5, 10, 20])
    explained: NonNegativeInt = 2
    time_limit: PositiveFloat | None = None
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for share in self.shares:
            check_fraction(share, "shares")
        for method in self.methods:
            if method not in METHODS:
                raise unknown("methods", list(METHODS), method)
            if method == "naive_bayes":
                raise ValueError("methods must not have naive_bayes, which takes only numbers or only categories")
        if any(share > 0.9 for share in self.shares) and set(self.mechanisms) & set(DEPENDENT):
            raise ValueError(f"shares must be at most 0.9 where what goes missing depends on values, got {self.shares}")

    def seconds(self, n_features: int) -> float:
        """Return the limit of the search of each trimming."""
        return self.time_limit or (_SECONDS if n_features <= _WIDE else _SECONDS_IF_WIDE)

    def about_stopped(self, budgets: Sequence[str], n_features: int) -> list[str]:
        """Say for which budgets the search was stopped."""
        if not budgets:
            return []
        return [
            f"For the budgets {', '.join(budgets)} the search was stopped after {self.seconds(n_features):g} s: the "
            "selection is the best found by then, which depends on the speed of the machine; time_limit=... gives it "
            "more time."
        ]

    def about_width(self, n_features: int, n_columns: int) -> list[str]:
        """Say what is done otherwise in a wide table, of which missing features have so many encoded columns."""
        said = []
        if n_features > _WIDE and self.time_limit is None:
            said.append(
                f"With more than {_WIDE:,} features, the search of each trimming has {_SECONDS_IF_WIDE:g} s in place "
                f"of {_SECONDS:g}; time_limit={_SECONDS:g} gives it as much as in other tables."
            )
        if n_columns > MOST_COLUMNS and "iterative" in self.methods:
            title = METHODS["iterative"].title.capitalize()
            said.append(
                f"{title}: chained equations fill the {MOST_COLUMNS} of {n_columns:,} columns that "
                "weigh most in a logistic regression, and means the others: their time and memory grow "
                "with the square of the number of columns."
            )
        if n_columns > MOST_COLUMNS and {"trees", "masked_trees"} & {*self.methods}:
            said.append(f"Boosted trees see the {MOST_COLUMNS} of {n_columns:,} columns that weigh most, too.")
        if n_columns > MOST_COLUMNS:
            said.append(
                f"With more than {MOST_COLUMNS} columns, the probability that a decision stays is not computed: it "
                "takes minutes for each split."
            )
        return said

    def levels(self, costs: Mapping[str, float]) -> list[float]:
        """Return the budgets of the frontier in increasing order; the last pays for all features."""
        total = sum(costs.values())
        unit = set(costs.values()) == {1.0}
        usual: Sequence[float] = _COUNTS if unit else [round(share * total, 6) for share in _SHARES]
        wanted = {float(one) for one in self.budgets or usual if one < total}
        if self.budget is not None:
            wanted.add(float(min(self.budget, total)))
        return sorted({*wanted, float(total)})


def costs_by_feature(
    given: Mapping[str, float] | None, features: Sequence[str], left_out: Collection[str] = ()
) -> dict[str, float]:
    """Return the cost of each feature, 1 by default; ConfigurationError if one is unknown, missing or not allowed.

    Costs of columns that are left out are ignored: one file of costs serves studies of different columns.
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
        if not 0 <= cost <= 1e100:  # so that their sum is finite
            raise ConfigurationError(
                f"costs must be numbers from 0 to 1e100, got {cost!r} for {name}; write 0 for a feature that is free"
            )
    missing = [name for name in features if name not in given]
    if missing:
        raise ConfigurationError(
            f"costs must have a cost for each of the {len(features)} features, got none for {some(missing, 5)}; "
            "write 0 for one that is free, or leave the column out with drop=[...]"
        )
    return {name: float(given[name]) for name in features}


# The file of the costs of features.


def read_costs(path: Path) -> dict[str, float]:
    """Read a table with the columns ``feature`` and ``cost``, one line for each feature.

    Raises ConfigurationError, or DeclarationError if the file is not a table, each in one line.
    """
    if not path.is_file():
        raise ConfigurationError(
            f"costs must be a file with the columns feature and cost, got {str(path)!r}; correct the path"
        )
    table, _ = read_file("costs", path, TableSettings())
    if list(table.columns[:2]) != ["feature", "cost"]:
        found = shown([str(name) for name in table.columns], 5)
        raise ConfigurationError(f"costs must have the columns feature and cost, got {found} in {path}; rename them")
    costs: dict[str, float] = {}
    for name, text in zip(table["feature"].astype(str), table["cost"].astype(str), strict=True):
        if name in costs:
            raise ConfigurationError(f"costs must have each feature once, got {quoted(name)} again in {path}")
        try:
            costs[name] = float(text.replace(",", "."))
        except ValueError:
            raise ConfigurationError(f"costs must be numbers, got {quoted(text)} for {name} in {path}") from None
    return costs


# A text in a note on a column, before the number of rows that have it.
_TEXT = re.compile(r"""(?:'([^']+)'|"([^"]+)"|(-?\d[\d.e+-]*)) in (?:\d|rows? )""")


# The type that a note advises.
_TYPE = re.compile(r"types: (\w+)")


def _with_setting(note: str, column: str) -> str:
    return _TYPE.sub(lambda kind: type_setting(column, kind[1]), note)


def with_settings(table: ReadTable, missing_values: Sequence[str]) -> ReadTable:
    """Return a table whose notes name the settings to write: those of types, and the whole list of missing values."""
    card, repairs = [], list(table.repairs[: len(table.repairs) - sum(len(one.notes) for one in table.card)])
    counted, new = dict[str, None](), dict[str, None]()  # in order
    for one in table.card:
        notes = tuple(_with_setting(note, one.name) for note in one.notes)
        card.append(replace(one, notes=notes))
        repairs += [f"column {quoted(one.name)}: {note}" for note in notes]
        for note in notes:
            own = new if note.endswith(" to missing_values") else counted
            own.update(dict.fromkeys("".join(found) for found in _TEXT.findall(note)))
    if new:
        usual = [text for text in missing_values if text in counted or tuple(missing_values) != MISSING_VALUES]
        listed = ",".join(f'"{text}"' for text in dict.fromkeys([*usual, *new]))
        what = "missing_values replaces the usual texts; with those of this table, and all that may stand for missing"
        repairs.append(f"{what}, write 'missing_values=[{listed}]'")
    return replace(table, card=tuple(card), repairs=tuple(repairs))


# The table of a study as its jobs find it: in the user's cache, by the hash of its content.

_log = logging.getLogger(__name__)
_KIND = "table"  # in the seal of its file
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Features and classes of all rows, without the names of files."""

    features: pd.DataFrame
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [str(name) for name in self.features.columns]

    def split(self, test_share: float, seed: int, split: int = 0, *, most: int | None = None) -> tuple[Rows, Rows]:
        """Return training rows (`most` of them at most) and test rows, each class with its share in both."""
        own = seed_for(purpose="own table", split=split, seed=seed)
        train, test = split_rows(len(self.labels), test_share, own, self.labels)
        return train if most is None else some_rows(train, self.labels, most, seed), test

    def answers(self, positive: str | None) -> NDArray[np.str_]:
        """Return the class of each row as text: of one class against the rest if there are more than two."""
        found = np.array(self.classes, dtype=str)[self.labels]
        if positive is None or len(self.classes) == 2:
            return found
        rest = "other"
        while rest in self.classes:
            rest += "_"
        return np.where(found == positive, positive, rest)


def some_rows(rows: Rows, labels: NDArray[np.int64], most: int, seed: int) -> Rows:
    """Return the rows, or `most` of them at random, each class with its share."""
    if len(rows) <= most:
        return rows
    chosen = split_rows(len(rows), most / len(rows), seed_for(purpose="fewer rows", seed=seed), labels[rows])[1]
    return rows[chosen]


def keep_table(table: ReadTable, cache: Cache) -> None:
    """Write a table to the user's cache unless it is there already, and intact."""
    import pandas as pd

    if _found(table.sha256, cache) is not None:
        return
    classes = pd.Categorical.from_codes(table.labels, categories=pd.Index(table.classes, dtype=str))
    frame = table.features.reset_index(drop=True).set_axis([f"x{i}" for i in range(table.features.shape[1])], axis=1)
    frame["class"] = classes
    names = [*map(str, table.features.columns), next(one.name for one in table.card if one.read_as == "target")]
    # The names of columns may be anything, so they are kept as the categories of a column of their own.
    frame["names"] = pd.Categorical.from_codes([0] * len(frame), categories=pd.Index(names, dtype=str))
    frame.to_feather(stream := io.BytesIO())
    with cache.workspace() as folder:
        write_bytes(sealed(stream.getvalue(), _KIND, table.sha256), folder / "table")
        cache.keep(folder / "table", _path(table.sha256))


def table_file(sha256: str, cache: Cache) -> dict[str, Path]:
    """Return the file with the table of a study, by its name in a folder of the cache."""
    return {f"files/{_path(sha256)}": copy for copy in cache.copies(_path(sha256)) if copy.is_file()}


_LONGEST_TABLE = 2**32  # bytes of the numbers of a table that a study accepts


@lru_cache(maxsize=2)
def stored_table(sha256: str) -> StoredTable:
    """Return the table of a study, by the hash of its content."""
    found = _found(sha256, Cache.from_environment(offline=True))
    if found is None:
        raise FileNotFoundError(f"the table {sha256[:12]} is no longer in the cache; start the study again")
    return found


def _found(sha256: str, cache: Cache) -> StoredTable | None:
    """Return a table from its first sound copy in the cache; a warning names copies that were changed."""
    for copy in cache.copies(_path(sha256)):
        try:
            return _opened(unsealed(read_bytes(copy, _LONGEST_TABLE), _KIND, sha256), sha256)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
            _log.warning("%s is not used: %.200s", copy, error)
    return None


def _opened(content: bytes, sha256: str) -> StoredTable:
    import pandas as pd

    frame = pd.read_feather(io.BytesIO(content))
    *names, target = frame["names"].cat.categories
    features, classes = frame.drop(columns=["class", "names"]).set_axis(names, axis=1), frame["class"]
    if (got := fingerprint(features, classes.rename(target))) != sha256:
        raise ValueError(f"its values have the hash {got}")
    return StoredTable(features, np.asarray(classes.cat.codes, dtype=np.int64), tuple(classes.cat.categories))


def _path(sha256: str) -> str:
    return f"tables/{sha256}.table"  # sealed, so no plain Feather file
