"""The 16 % of section 6.2: in how many instances the trimming agrees more often than what FS-SDD selects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from trimbench.papers.study.numbers import Explanation
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd

# Agreements that differ by less are equal: both are exact up to rounding.
_STRICTLY = 1e-9
# Three ways to judge FS-SDD's features, with the entry of a job's result that each compares.
READINGS = {
    "threshold kept": "agreement",
    "best threshold, smallest tie": "agreement_at_best_threshold",
    "best threshold, most favourable tie": "agreement_of_best_tie",
}
# The reading of the claim's wording, and the one that favours FS-SDD most.
KEPT, FAVOURABLE = "threshold kept", "best threshold, most favourable tie"
_EVERY = "all"


def strictly_better(done: pd.DataFrame) -> pd.DataFrame:
    """Return whether the trimming is strictly better, for each network, threshold and reading of the claim.

    `done` has the rows of successful jobs of both methods; an instance counts if both succeeded.
    """
    import pandas as pd

    columns = ["network", "threshold", "reading", "better"]
    if done.empty or not {"eca_trim", "fs_sdd"} <= set(done["method"]):
        return pd.DataFrame(columns=columns)
    selected = done[done["method"] == "fs_sdd"].drop(columns=["method"])
    trimmed = done.loc[done["method"] == "eca_trim", ["network", "threshold", "agreement"]]
    both = selected.merge(trimmed.rename(columns={"agreement": "trimmed"}), on=["network", "threshold"])
    return pd.concat(
        [
            both.assign(reading=reading, better=both["trimmed"] - both[entry] > _STRICTLY)[columns]
            for reading, entry in READINGS.items()
        ],
        ignore_index=True,
    )


def share(found: pd.DataFrame, reading: str) -> float | None:
    """Return the percentage of strictly better instances by one reading; None without any instance."""
    better = found.loc[found["reading"] == reading, "better"]
    return 100.0 * float(better.mean()) if len(better) else None


def explanation(found: pd.DataFrame) -> Explanation | None:
    """Return the share if FS-SDD's features get their best threshold, and of equal subsets the best is taken."""
    percent = share(found, FAVOURABLE)
    n_instances = int((found["reading"] == FAVOURABLE).sum())
    setup = f"FS-SDD's features at their best threshold, most favourable tie, all {n_instances} instances"
    return None if percent is None else Explanation(setup, percent)


def counts(found: pd.DataFrame, networks: Sequence[str], timed_out: Collection[str]) -> Table:
    """Return the strictly better instances by network and reading, with the networks that timed out and without."""
    sets = {_EVERY: [name for name in networks if name in set(found["network"])]}
    rest = [name for name in sets[_EVERY] if name not in timed_out]
    if len(rest) < len(sets[_EVERY]):
        sets[f"without {', '.join(sorted(set(sets[_EVERY]) - set(rest)))}"] = rest
    lines: list[Mapping[str, object]] = []
    for which, chosen in sets.items():
        for reading in READINGS if chosen else ():
            own = found[(found["reading"] == reading) & found["network"].isin(chosen)]
            by_network = {name: int(own.loc[own["network"] == name, "better"].sum()) for name in chosen}
            total, better = len(own), int(own["better"].sum())
            line = {"networks": which, "FS-SDD's features": reading}
            lines.append(line | by_network | {"better": better, "of": total, "percent": 100 * better / total})
    columns = dict.fromkeys(("networks", "FS-SDD's features"), "") | dict.fromkeys(sets[_EVERY], ".0f")
    columns |= {"better": "", "of": "", "percent": ".1f"}
    return Table.of(_TITLE, lines, columns, name="strictly_better")


_TITLE = "Thresholds at which the trimming agrees strictly more often than FS-SDD's features, by network"
