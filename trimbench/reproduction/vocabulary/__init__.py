"""The words of every experiment: inputs, cells, numbers, tables and figures."""

from trimbench.reproduction.settings import ConfigurationError, Json, settings, unknown, validated
from trimbench.reproduction.vocabulary.cells import (
    Axis,
    Cell,
    Count,
    Input,
    Inputs,
    Label,
    Method,
    Natural,
    NotNegative,
    Positive,
    Share,
    Threshold,
    at_least,
    check_axis,
    check_names,
    dataset_of,
    grid,
    groups,
    must,
    one_of,
    stacked,
    successes,
    unlisted,
    unpacked,
)
from trimbench.reproduction.vocabulary.draws import Draws
from trimbench.reproduction.vocabulary.figures import BarFigure, Figure, ImageFigure, LineFigure
from trimbench.reproduction.vocabulary.numbers import (
    Explanation,
    Interval,
    Mean,
    Number,
    Outcome,
    Probability,
    mean_of,
    number_of,
    numbers_of,
    standard_error,
)
from trimbench.reproduction.vocabulary.reported import (
    Held,
    Reported,
    held_against,
    interpolated,
    printed_numbers,
)
from trimbench.reproduction.vocabulary.tables import Table, shown_name
