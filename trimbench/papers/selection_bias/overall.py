"""The overall test of a printed table: whether the slides' one data set is like single data sets of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trimbench.papers.selection_bias.settings import size_labels
from trimbench.papers.study.draws import Draws
from trimbench.papers.study.numbers import Probability
from trimbench.papers.study.reported import Reported
from trimbench.papers.study.tables import Table

_Key = TypeVar("_Key")
_COLUMNS = {
    **dict.fromkeys(("n0", "n1", "replicates", "numbers", "outside"), ""),
    "usual": ".1f",
    "most": "",
    "probability": ".3f",
    "smallest, one number": ".3f",
    "least, one number": ".3f",
    "smallest, all numbers": ".3f",
    "least, all numbers": ".3f",
}
NOTE = (
    "The overall test holds the printed numbers against the replicates, rounded to the printed digits: 'outside' is "
    "how many printed numbers are in the outer 5 % of theirs (this needs 39 replicates), 'usual' and 'most' are how "
    "many of one replicate are, and 'probability' is that of so many or more. 'Smallest' is the smallest two-sided "
    "tail probability of a printed number, taken for itself (one number) or as the most extreme of the table (all "
    "numbers), and 'least' the smallest that so many replicates can show. If the slides' data set was drawn as ours "
    "are, the last of them is a or less with a probability of at most a, and so is that of the count."
)


class OverallTest(NamedTuple):
    """The probabilities of printed numbers by their keys, as the most extreme of all, and the line of the test."""

    probabilities: Mapping[object, Probability]
    line: Mapping[str, object]


def overall_test(
    sizes: Sequence[int], printed: Mapping[_Key, Reported], replicated: Mapping[_Key, ArrayLike]
) -> OverallTest | None:
    """Hold printed numbers against replicates of the same numbers; None if no printed number has any.

    `replicated` has the value of every replicate in the same order, NaN for one that has none.
    """
    keys = [key for key in printed if key in replicated]
    values = np.array([replicated[key] for key in keys], dtype=float).T
    if not values.size:
        return None
    chosen = [printed[key] for key in keys]
    draws = Draws([one.value for one in chosen], values, [one.decimals for one in chosen])
    together = draws.together()
    single, adjusted = (min(found, key=lambda one: one.value) for found in (draws.alone(), together))
    line: dict[str, object] = {**size_labels(sizes), "replicates": len(values), **draws.outside().columns}
    line |= {"smallest, one number": single.value, "least, one number": single.least}
    line |= {"smallest, all numbers": adjusted.value, "least, all numbers": adjusted.least}
    return OverallTest(dict(zip(keys, together, strict=True)), line)


def overall_table(tests: Sequence[OverallTest]) -> list[Table]:
    """Return the table of the tests of several class sizes, in a list that is empty without any."""
    title = "Overall test: the printed numbers among those of single data sets"
    return [Table.of(title, [test.line for test in tests], _COLUMNS, name="overall")] if tests else []
