"""What an experiment concludes: tables, figures, and the counterparts of reported numbers with their intervals."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from trimbench._current_folder import imported
from trimbench.papers.configuration import configuration_folder
from trimbench.papers.validation import ConfigurationError, must_be, settings, unknown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    It has exactly one number for each reported number of the experiment. The notes say what a reader needs to know to
    understand the tables.
    """

    tables: Sequence[Table]
    figures: Sequence[Figure] = ()
    numbers: Sequence[Number] = ()
    notes: Sequence[str] = ()


# Tables: a frame of plain values and how to print them.


@dataclass(frozen=True, eq=False)
class Table:
    """A table to be written.

    `formats` maps columns to format specifications, for example ``".4f"``. The name is part of that of its file; the
    experiment's main table has none. A table that is not `listed`, because it is long, is written as CSV only. Names of
    columns are put into words, unless they are `literal`.
    """

    title: str
    frame: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    listed: bool = True
    literal: bool = False

    @classmethod
    def of(
        cls,
        title: str,
        lines: Iterable[Mapping[Any, object] | Sequence[object]],
        formats: Mapping[str, str] | Sequence[str],
        *,
        name: str = "",
        listed: bool = True,
    ) -> Table:
        """Return a table of lines, each a mapping from columns to values or a sequence with one value for each column.

        `formats` has all columns, in order; an empty format leaves a column as it is. A line may leave out columns, but
        must not have others.
        """
        import pandas as pd

        columns = list(formats)
        content = [dict(line if isinstance(line, Mapping) else zip(columns, line, strict=True)) for line in lines]
        for line in content:
            if strange := [column for column in line if column not in columns]:
                raise ValueError(f"lines of {title!r} must have the columns {columns}, got {strange} besides")
        printed = {column: spec for column, spec in formats.items() if spec} if isinstance(formats, Mapping) else {}
        return cls(title, pd.DataFrame(content, columns=columns), printed, name, listed)

    @classmethod
    def of_groups(
        cls,
        title: str,
        groups: Iterable[tuple[Mapping[str, object], pd.DataFrame]],
        columns: Sequence[Column],
        labels: Mapping[str, str] | None = None,
        *,
        name: str = "",
        listed: bool = True,
    ) -> Table:
        """Return a table with a line for each group of rows: its labels, and then the columns.

        `labels` are the formats of labels that have one.
        """
        lines = [dict(own) | {k: v for column in columns for k, v in column.of(ours).items()} for own, ours in groups]
        formats = dict.fromkeys(lines[0] if lines else (), "") | dict(labels or {})
        for column in columns:
            formats |= dict.fromkeys(column.titles, column.format)
        return cls.of(title, lines, formats, name=name, listed=listed)


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, the format of its values, and the function from a group of rows to its value.

    With several titles, the function returns as many values; None leaves a cell empty.
    """

    title: str | tuple[str, ...]
    format: str
    value: Callable[[pd.DataFrame], Any]

    @property
    def titles(self) -> tuple[str, ...]:
        """Its titles, one or several."""
        return (self.title,) if isinstance(self.title, str) else self.title

    def of(self, rows: pd.DataFrame) -> dict[str, object]:
        """Return its values by title."""
        value = self.value(rows)
        return {self.title: value} if isinstance(self.title, str) else dict(zip(self.title, value, strict=True))


def means(columns: Mapping[str, str], specification: str) -> list[Column]:
    """Return columns with the means of results, in one format; `columns` maps titles to results."""
    return _columns(columns, specification, lambda values: values.mean())


def first(columns: Mapping[str, str], specification: str = "") -> list[Column]:
    """Return columns with the results of the first row, in one format; `columns` maps titles to results."""
    return _columns(columns, specification, lambda values: values.iloc[0])


def _columns(columns: Mapping[str, str], specification: str, value: Callable[[Any], Any]) -> list[Column]:
    def of(name: str) -> Callable[[pd.DataFrame], Any]:
        return lambda rows: value(rows[name])

    return [Column(title, specification, of(name)) for title, name in columns.items()]


def shown_name(name: str, otherwise: str = "") -> str:
    """Return what ``conf/titles.yaml`` calls a data set, network or column; else `otherwise`, or the name itself.

    >>> shown_name("fashion"), shown_name("my_data")
    ('Fashion-MNIST', 'my_data')
    """
    return _titles().get(name, otherwise or name)


@functools.cache
def _titles() -> dict[str, str]:
    return dict(yaml.safe_load((configuration_folder() / "titles.yaml").read_text(encoding="utf-8")))


# Figures: their points, and how each is to be drawn.


@dataclass(frozen=True, eq=False)
class LineFigure:
    """Lines over one axis.

    Attributes
    ----------
    points : DataFrame with the columns series, x, y and optionally low and high (an interval around y)
    levels : mapping from label to y
        Horizontal lines for comparison.
    marks : mapping from series to "line", "density", "cloud", "points", "highlight", "guide" or "reference"
        How a series is drawn: a line (the default), a line without markers, tiny grey points, small points, large
        points, a thin grey line for comparison, or a dashed line behind the others in the colour of the series before
        it.
    verticals : mapping from label to x
        Vertical lines for comparison.
    interval : what low and high are, in a few words
    methods : mapping from series to method
        Which method a series belongs to, whose colour it has in every figure; others are methods of their own.
    """

    title: str
    x_label: str
    y_label: str
    points: pd.DataFrame
    name: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    verticals: Mapping[str, float] = field(default_factory=dict)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    interval: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, title: str, labels: tuple[str, str], points: Iterable[tuple[object, ...]], **how: Any) -> LineFigure:
        """Return the figure of points (series, x, y), or (series, x, y, low, high); `labels` are those of the axes."""
        import pandas as pd

        rows = list(points)
        columns = ["series", "x", "y", "low", "high"][: max(map(len, rows), default=3)]
        table = pd.DataFrame([dict(zip(columns, row, strict=False)) for row in rows], columns=columns)
        return cls(title, *labels, table, **how)

    @classmethod
    def against_diagonal(
        cls,
        title: str,
        labels: tuple[str, str],
        points: Iterable[tuple[object, ...]],
        ends: tuple[float, float],
        *,
        mark: str = "points",
        diagonal: str = "equal",
        **how: Any,
    ) -> LineFigure:
        """Return the figure of points, with a `mark` for each series unless empty, and of x = y between its `ends`."""
        rows = list(points)
        guide = [(diagonal, end, end) for end in ends] if rows else []
        marks = dict.fromkeys((str(series) for series, *_ in rows if mark), mark) | {diagonal: "guide"}
        return cls.of(title, labels, [*rows, *guide], marks=marks, **how)


@dataclass(frozen=True, eq=False)
class ImageFigure:
    """A grid of small images.

    `points` has the columns row, column, y, x and value. Row and column of the grid are labels, in order of appearance;
    y counts pixels from the top. A value is 0 (black) to 1 (white), or missing (grey).
    """

    title: str
    points: pd.DataFrame
    name: str = ""


@dataclass(frozen=True, eq=False)
class BarFigure:
    """Horizontal bars, one below the other.

    `points` has the columns bar (its name), series (which decides its colour), y (which counts bars from the top) and x
    (its length, which may be negative). Bars of the series `highlight` are coloured, all others grey.
    """

    title: str
    x_label: str
    points: pd.DataFrame
    highlight: str
    name: str = ""


Figure = LineFigure | ImageFigure | BarFigure
"""Every kind of figure; `trimbench.papers.reporting.figures.drawing` draws these."""


def points_name(figure: Figure) -> str:
    """Return the name of the part that holds a figure's points."""
    return f"{figure.name}_points" if figure.name else "points"


# How figures are drawn: the group `figure` of the configuration.

PictureFormat: TypeAlias = Literal["png", "pdf", "svg"]
# "okabe-ito" stays distinct under the common colour-vision deficiencies. Its yellow, which is hardly visible on white,
# is replaced by a brown.
PALETTES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "okabe-ito": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#7A4B1E"),
        "grey": ("#000000", "#7f7f7f", "#4d4d4d", "#a6a6a6"),
    }
)
_Inches: TypeAlias = Annotated[float, must_be("a number of inches from 1 to 40", lambda inches: 1 <= inches <= 40)]


@settings
class FigureSettings:
    """Size, type and colours of figures.

    Attributes
    ----------
    width, height : inches
        A line figure is this wide. It grows in height where its title and its legend leave too little room for the
        axes; a grid of images is as high as its content.
    font_size : points
        Size of the labels of axes and ticks. The title is one point larger, the legend one point smaller.
    formats : list of formats, with one file written for each
    dpi : pixels per inch of a PNG, which has at most 16 million pixels
    title : whether the title is written
    palette : name of one of `PALETTES`, or a list of colours
    """

    width: _Inches = 6.8
    height: _Inches = 3.9
    font_size: Annotated[float, must_be("a number of points from 4 to 40", lambda size: 4 <= size <= 40)] = 9
    formats: Annotated[
        list[PictureFormat],
        must_be("a list with each of png, pdf, svg at most once", lambda names: 0 < len(names) == len(set(names))),
    ] = field(default_factory=lambda: ["png"])
    dpi: Annotated[int, must_be("a whole number from 30 to 1200", lambda dpi: 30 <= dpi <= 1200)] = 160
    title: bool = True
    palette: str | list[str] = "okabe-ito"

    def __post_init__(self) -> None:
        # A pixel takes some 15 bytes of memory while it is drawn.
        if "png" in self.formats and self.width * self.height * self.dpi**2 > 16e6:
            raise ConfigurationError(
                f"dpi must give a PNG of {self.width:g} by {self.height:g} inches at most 16 million pixels, got "
                f"{self.dpi}; lower it, or draw pdf or svg instead"
            )
        if isinstance(self.palette, str):
            if self.palette not in PALETTES:
                raise unknown("palette (a name, or a list of colours)", list(PALETTES), self.palette)
        elif not self.palette:
            raise ConfigurationError("palette must be a name or a list of at least one colour, got []")
        else:
            for colour in self.palette:
                _check_colour(colour)

    @property
    def colours(self) -> Sequence[str]:
        """The colours of the palette."""
        return PALETTES[self.palette] if isinstance(self.palette, str) else self.palette


def _check_colour(colour: str) -> None:
    colours = imported("matplotlib.colors", ignoring="matplotlibrc")
    # matplotlib knows others, such as C0, which depend on its own settings.
    is_code = colour.startswith("#") and len(colour) == 7 and colours.is_color_like(colour)
    if not is_code and colour not in colours.CSS4_COLORS:
        raise ConfigurationError(
            f"palette must be a list of colours such as '#0072B2' or black, got {colour!r}; quote those with a #"
        )


# The reproduced counterparts of reported numbers, and intervals that say what they mean.

IntervalKind = Literal["confidence", "prediction", "certified"]


@dataclass(frozen=True)
class Interval:
    """An interval around a number.

    A "confidence" interval says where the mean over repetitions lies, a "prediction" interval where one more run of the
    paper's size would lie, and a "certified" one has proven bounds. Verdicts use prediction intervals only.
    """

    low: float
    high: float
    kind: IntervalKind


@dataclass(frozen=True)
class Explanation:
    """The value of a number under a set-up that was inferred from printed numbers, and the keys of its jobs."""

    setup: str
    value: float
    interval: Interval | None = None
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probability:
    """The probability of a number at least as far out as the printed one, on either side, among our replications.

    `least` is the smallest probability that this number of replications can show. `overall` is the probability that
    at least as many numbers of the table are far out as in print; 1 for a number that stands alone. `setup` is that of
    the replications if it was inferred.
    """

    value: float
    least: float
    overall: float = 1.0
    setup: str = ""


@dataclass(frozen=True)
class Number:
    """The reproduced counterpart of the number that is reported under `row` and `quantity`.

    The value is None if this run could not compute it, for a `reason` if the experiment knows one. `jobs` are the keys
    of the jobs behind it.

    Three things may account for a difference from the printed number: an `explanation`; a `contradiction`, the proof in
    words that what the paper states cannot all be true; and, where the printed number is a draw, its `probability`.
    """

    row: str
    quantity: str
    value: float | None
    jobs: tuple[str, ...] = ()
    interval: Interval | None = None
    reason: str = ""
    explanation: Explanation | None = None
    contradiction: str = ""
    probability: Probability | None = None


def number_of(row: str, quantity: str, value: float | Mean | None, rows: pd.DataFrame, **causes: Any) -> Number:
    """Return a number, with the interval of a mean; `rows` are those of the jobs behind it.

    The `causes` of a difference are fields of `Number`: explanation, contradiction, probability.
    """
    interval = value.interval if isinstance(value, Mean) else None
    number = value.value if isinstance(value, Mean) else value
    return Number(row, quantity, number, tuple(rows["job"]), interval, **causes)


def numbers_of(row: str, values: Mapping[str, float | Mean | None], rows: pd.DataFrame) -> list[Number]:
    """Return the numbers of one reported row, by quantity; `rows` are those of the jobs behind all of them."""
    return [number_of(row, quantity, value, rows) for quantity, value in values.items()]


@dataclass(frozen=True)
class Mean:
    """A mean over repetitions, and an interval around it; none with fewer than two repetitions."""

    value: float
    interval: Interval | None
    n: int

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval, NaN without one."""
        return (self.interval.low, self.interval.high) if self.interval else (math.nan, math.nan)

    def holds(self, value: float) -> bool:
        """Tell whether a value is in the interval."""
        return self.interval is not None and self.interval.low <= value <= self.interval.high

    @property
    def with_ends(self) -> tuple[float, float, float]:
        """The mean and the ends of the interval."""
        return (self.value, *self.ends)


def mean_of(
    values: Iterable[float],
    kind: Literal["confidence", "prediction"] = "confidence",
    *,
    test_per_train: float = 0.0,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Mean:
    """Return a mean with Student's 95 % interval, for the mean itself or for the prediction of one more repetition.

    Random splits share rows, so that their spread alone would give too narrow an interval for the mean: its variance is
    raised from 1/n to 1/n + n_test/n_train times that of the values (Nadeau and Bengio, 2003). The interval is cut off
    at the `limits` of possible values. The mean of no values is NaN.
    """
    found = np.asarray(list(values), dtype=float)
    n = len(found)
    mean = float(np.mean(found)) if n else math.nan
    if n < 2:
        return Mean(mean, None, n)
    own = 1.0 if kind == "prediction" else test_per_train
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(found, ddof=1)) * math.sqrt(own + 1 / n)
    return Mean(mean, Interval(max(limits[0], mean - half), min(limits[1], mean + half), kind), n)


def standard_error(values: Sequence[float] | pd.Series[float]) -> float:
    """Return the standard error of a mean; NaN for fewer than two values."""
    n = len(values)
    return float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan


# Printed numbers that are one draw: how probable they are under replications, alone and together.

_OUTSIDE = 0.05
# Distances that differ by less are those of equal numbers, up to rounding.
_EQUAL = 1 - 1e-9


@dataclass(frozen=True)
class Outside:
    """How many numbers of a table lie in their outer 5 %, and how often one draw of the table has as many.

    There are `count` of `of` numbers; `usual` is the mean count over the replications, and `most` the largest.
    """

    count: int
    of: int
    usual: float
    most: int
    probability: Probability

    @property
    def columns(self) -> dict[str, object]:
        """Columns of a table: `of` as numbers, and the rest if there are enough replications for any to be outside."""
        found: dict[str, object] = {"numbers": self.of}
        if self.probability.least < 1:
            found |= {"outside": self.count, "usual": self.usual, "most": self.most}
            found |= {"probability": self.probability.value}
        return found


class Draws:
    """Numbers that one run of the paper's size yields together: as printed, and in our replications.

    Parameters
    ----------
    printed : array_like of shape (n_numbers,)
        NaN where nothing is printed, which does not count as far out.
    replications : array_like of shape (n_replications, n_numbers)
        NaN where a replication has no value, which does not count as far out either.
    decimals : array_like of int of shape (n_numbers,), optional
        The decimals to which the numbers are printed. The replications are rounded in the same way: otherwise a printed
        0.004 would be far out among values from 0.0041 to 0.0044.

    Raises
    ------
    ValueError
        If the shapes do not match, if there is no number or no replication, or if a number is infinite.
    """

    def __init__(self, printed: ArrayLike, replications: ArrayLike, decimals: ArrayLike | None = None) -> None:
        first, others = np.asarray(printed, dtype=float), np.asarray(replications, dtype=float)
        if first.ndim != 1 or others.ndim != 2 or others.shape[1] != len(first) or others.size == 0:
            raise ValueError(
                "printed must have shape (n_numbers,) and replications (n_replications, n_numbers), none of them 0, "
                f"got {first.shape} and {others.shape}"
            )
        # The first row is the printed one.
        values = np.vstack([first, others])
        if np.isinf(values).any():
            raise ValueError("printed and replications must be finite, or NaN for no value, got an infinite number")
        if decimals is not None:
            values = _rounded(values, np.asarray(decimals))
        self._places = _places_from_the_ends(values)
        self._known = (~np.isnan(values)).sum(axis=0)
        self._tails = np.minimum(1.0, 2 * self._places / np.maximum(1, self._known))
        self._distances = _distances(values)

    def alone(self) -> list[Probability]:
        """Return for each number the probability of one at least as far out, on either side.

        It is twice the share of the values, the printed one included, that are at least as far out on its side: at
        least 2 / (1 + n_replications). It holds for one number that was chosen before looking at the table.
        """
        return [
            Probability(float(tail), min(1.0, 2 / max(1, int(known))))
            for tail, known in zip(self._tails[0], self._known, strict=True)
        ]

    def together(self) -> list[Probability]:
        """Return for each number the probability that any number of the table is at least as far out.

        The probability that the smallest of the table is a or less is at most a, so that any number of the table may be
        picked. The dependence between the numbers is that of the replications, as in the single-step min-P
        probabilities of Westfall and Young (1993): a number's place from the end of its column says how far out it is.
        Among 200 replications, though, almost every second one has the largest or smallest value of one of 60 numbers.
        Among equal places, therefore, the number further from the median of its column counts as further out, in
        units of the mean distance. These probabilities are never larger than those of min-P where every number is
        known, and can be as small as 1 / (1 + n_replications).
        """
        # A distance is largest, as many units as there are values, where one value alone differs from the others.
        lone = (self._places[1:] == 1) & (self._distances[1:] >= self._known * _EQUAL)
        least = (1 + int(lone.any(axis=1).sum())) / len(self._places)
        overall = self.outside().probability.value
        found = []
        for place, distance in zip(self._places[0], self._distances[0], strict=True):
            # The share of rows, the printed one included, with any number at least as far out.
            as_far_out = (self._places < place) | ((self._places == place) & (self._distances >= distance * _EQUAL))
            found.append(Probability(float(as_far_out.any(axis=1).mean()), least, overall))
        return found

    def outside(self) -> Outside:
        """Return how many of the printed numbers are in their outer 5 %, beside the replications.

        A number is outside if its probability `alone` is 0.05 or less, which needs 39 replications. With fewer, no
        number is outside, the probability is 1, and so is the least that can be shown.
        """
        counts = (self._tails <= _OUTSIDE).sum(axis=1)
        of = self._tails.shape[1]
        # If all of the printed numbers were outside, only those with as many would be as far out.
        can_be_outside = 2 / len(counts) <= _OUTSIDE
        least = (1 + int((counts[1:] == of).sum())) / len(counts) if can_be_outside else 1.0
        probability = Probability(float((counts >= counts[0]).mean()), least)
        return Outside(int(counts[0]), of, float(counts[1:].mean()), int(counts[1:].max()), probability)


def _rounded(values: NDArray[np.float64], decimals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return values rounded column by column."""
    if decimals.shape != values.shape[1:] or decimals.dtype.kind not in "iu":
        raise ValueError(
            f"decimals must be whole numbers, one for each of {values.shape[1]} numbers, got {decimals.tolist()}"
        )
    # Each becomes the float that is nearest to its decimal form, as a printed number is.
    return np.column_stack([np.round(column, int(n)) for column, n in zip(values.T, decimals, strict=True)])


def _places_from_the_ends(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many values of the column are at least as far out on the nearer side; for NaN the number of rows."""
    from scipy.stats import rankdata

    lowest, highest = (rankdata(values, how, axis=0, nan_policy="omit") for how in ("min", "max"))
    from_above = (~np.isnan(values)).sum(axis=0) + 1 - lowest
    return np.asarray(np.nan_to_num(np.minimum(highest, from_above), nan=len(values)), dtype=np.int64)


def _distances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distances from the column's median, in units of their mean; 0 for NaN."""
    distances = np.zeros_like(values)
    for place, column in enumerate(values.T):
        known = ~np.isnan(column)
        if known.any():
            found = np.abs(column[known] - np.median(column[known]))
            # Where the mean is 0, so are all.
            distances[known, place] = found / (found.mean() or 1.0)
    return distances
