"""The words of every experiment: inputs, cells, numbers, tables and figures."""

from trimbench.papers.validation import ConfigurationError, Json, settings, unknown, validated
from trimbench.papers.vocabulary.cells import (
    Axis,
    Cell,
    Count,
    Label,
    Method,
    Natural,
    NotNegative,
    Outcome,
    Positive,
    Share,
    Threshold,
    at_least,
    check_axis,
    check_names,
    grid,
    groups,
    must,
    one_of,
    stacked,
    successes,
    unlisted,
    unpacked,
)
from trimbench.papers.vocabulary.figures import BarFigure, Figure, ImageFigure, LineFigure
from trimbench.papers.vocabulary.inputs import Input, Inputs, dataset_of, network_of
from trimbench.papers.vocabulary.numbers import (
    Draws,
    Explanation,
    Interval,
    Mean,
    Number,
    Probability,
    mean_of,
    number_of,
    numbers_of,
    standard_error,
)
from trimbench.papers.vocabulary.reported import (
    Held,
    Reported,
    held_against,
    interpolated,
    printed_numbers,
    stored_curves,
)
from trimbench.papers.vocabulary.tables import Column, Table, first, means, shown_name
