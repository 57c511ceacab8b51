"""The printed numbers of Figure 5 against single splits of ours, and against the test rows that the paper states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trimbench.papers.study.draws import Draws
from trimbench.papers.study.numbers import Number, Probability
from trimbench.papers.study.reported import Reported
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.printed_shares import (
    contradiction,
    interval_text,
    is_share,
    possible_sizes,
    stated_sizes,
)
from trimbench.papers.trimming.split_averages import TESTED, Averages

_Place = tuple[str, str]


class Print:
    """What is printed of each data set, held against several set-ups.

    Parameters
    ----------
    printed : mapping from (row, quantity) to Reported
    test_fraction : float
        The stated share of test rows.
    """

    def __init__(self, printed: Mapping[_Place, Reported], test_fraction: float) -> None:
        self._printed = printed
        self._test_fraction = test_fraction
        self._probabilities: dict[tuple[str, str], dict[_Place, Probability]] = {}
        self._rows: dict[str, dict[str, int]] = {}
        self._shares: dict[str, list[Reported]] = {}
        self._overall: list[Mapping[str, object]] = []
        self._tails: list[Mapping[str, object]] = []

    def hold(self, name: str, by_setup: Mapping[str, Averages]) -> None:
        """Hold what is printed of one data set against the splits of each set-up."""
        for setup, averages in by_setup.items():
            places = [place for place in averages.draws if place in self._printed]
            if places:
                self._test(name, setup, places, averages)
        self._shares[name] = [
            one for (row, quantity), one in self._printed.items() if row.startswith(f"{name} ") and quantity in TESTED
        ]
        # By data set, so that one that both set-ups use counts once.
        self._rows[name] = {
            str(averages.rows["dataset"].iloc[0]): int(averages.rows["n_rows"].iloc[0])
            for averages in by_setup.values()
        }

    def _test(self, name: str, setup: str, places: Sequence[_Place], averages: Averages) -> None:
        printed = [self._printed[place] for place in places]
        values = np.array([averages.draws[place] for place in places], dtype=float).T
        draws = Draws([one.value for one in printed], values, [one.decimals for one in printed])
        alone, together = draws.alone(), draws.together()
        self._probabilities[name, setup] = dict(zip(places, together, strict=True))
        line: dict[str, object] = {"data": name, "set-up": setup, "splits": len(values), **draws.outside().columns}
        self._overall.append(line | {"smallest, any": min(one.value for one in together)})
        self._tails += [
            {
                "data": name,
                "set-up": setup,
                "number": one.label,
                "printed": one.value,
                "mean": float(column.mean()),
                "probability": single.value,
                "probability, any": adjusted.value,
            }
            for one, column, single, adjusted in zip(printed, values.T, alone, together, strict=True)
        ]

    def on(self, name: str, numbers: Sequence[Number], setup: str) -> list[Number]:
        """Return numbers with their probabilities in a set-up, and with the proof where they are no possible share."""
        probabilities = self._probabilities.get((name, setup), {})
        found = []
        for number in numbers:
            place = number.row, number.quantity
            proof = ""
            if place in self._printed and self._printed[place] in self._shares[name]:
                proof = contradiction(self._printed[place], self._shares[name], self._rows[name], self._test_fraction)
            found.append(replace(number, probability=probabilities.get(place), contradiction=proof))
        return found

    def tables(self) -> list[Table]:
        """Return the overall tests, those of single numbers, and the possible sizes of the test part."""
        sizes = [
            self._sizes(name, data, n_rows, shares)
            for name, shares in self._shares.items()
            for data, n_rows in self._rows[name].items()
            if shares
        ]
        return [
            Table.of(_OVERALL_TITLE, self._overall, _OVERALL, name="overall"),
            Table.of(_TAILS_TITLE, self._tails, _TAILS, name="tails"),
            Table.of(_SIZES_TITLE, sizes, _SIZES, name="test_sizes"),
        ]

    def _sizes(self, name: str, data: str, n_rows: int, shares: Sequence[Reported]) -> dict[str, object]:
        stated = stated_sizes(n_rows, self._test_fraction)
        line: dict[str, object] = {
            "data": name,
            "printed": ", ".join(one.printed for one in shares),
            "data set": data,
            "rows": n_rows,
            "stated test rows": interval_text(stated),
            "shares of these": sum(any(is_share(one, size) for size in stated) for one in shares),
        }
        if possible := possible_sizes(shares, n_rows):
            nearest = min(possible, key=lambda size: abs(size - n_rows * self._test_fraction))
            line |= {"possible": ", ".join(map(str, possible)), "nearest": nearest, "percent": 100 * nearest / n_rows}
        return line


_OVERALL_TITLE = "Overall test: the numbers printed of a data set among those of single splits"
_OVERALL = {
    **dict.fromkeys(("data", "set-up", "splits", "numbers", "outside"), ""),
    **{"usual": ".1f", "most": "", "probability": ".3f", "smallest, any": ".3f"},
}
_TAILS_TITLE = "Printed numbers among those of single splits"
_TAILS = {
    **dict.fromkeys(("data", "set-up", "number", "printed"), ""),
    **{"mean": ".4f", "probability": ".3f", "probability, any": ".3f"},
}
_SIZES_TITLE = "Numbers of test rows of which all printed agreements and accuracies are shares"
_SIZES = dict.fromkeys(("data", "printed", "data set", "rows", "stated test rows", "shares of these", "possible"), "")
_SIZES |= {"nearest": ".0f", "percent": ".1f"}
