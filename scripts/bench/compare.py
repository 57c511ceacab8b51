"""Compare two runs of all benchmarks: `scripts/bench/run compare OLD.csv NEW.csv`.

Ratios are compared, not seconds, so that the runs may be of different machines. The command fails when a ratio is more
than 20 % worse, or when a ratio that was there has failed or vanished, and names these rows at the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .measure import Row
from .table import Key, TableError, as_text, printed, read

LIMIT = 0.20
Verdict = Literal["better", "same", "worse", "new", "vanished", "failed", "absent"]
FAILURES: tuple[Verdict, ...] = ("worse", "vanished", "failed")


@dataclass(frozen=True)
class Change:
    """What became of one row; `change` is that of the ratio, 0.1 if it is 10 % worse."""

    key: Key
    old: Row | None
    new: Row | None
    verdict: Verdict
    change: float | None = None

    def line(self) -> list[str]:
        ratios = [as_text(row.ratio) if row else "" for row in (self.old, self.new)]
        spreads = [as_text(row.spread) if row else "" for row in (self.old, self.new)]
        change = "" if self.change is None else f"{self.change:+.1%}"
        return [*self.key, *ratios, *spreads, change, self.verdict]


def changes(old: Mapping[Key, Row], new: Mapping[Key, Row]) -> list[Change]:
    """Compare the rows of two tables, in the order of the new one; vanished rows are last."""
    keys = [*new, *(key for key in old if key not in new)]
    return [_change(key, old.get(key), new.get(key)) for key in keys]


def _change(key: Key, old: Row | None, new: Row | None) -> Change:
    before, after = (row.ratio if row and row.status == "ok" else None for row in (old, new))
    if new is None:
        return Change(key, old, new, "vanished")
    if new.status == "failed":
        return Change(key, old, new, "failed")
    if after is None:  # what it is compared with is not installed
        return Change(key, old, new, "absent" if before is None else "vanished")
    if before is None:
        return Change(key, old, new, "new")
    change = after / before - 1.0
    verdict: Verdict = "worse" if change > LIMIT else "better" if 1.0 / (1.0 + change) - 1.0 > LIMIT else "same"
    return Change(key, old, new, verdict, change)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench/run compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path, help="CSV of a run of all benchmarks")
    parser.add_argument("new", type=Path, help="CSV of a later run")
    chosen = parser.parse_args(arguments)
    try:
        found = changes(read(chosen.old), read(chosen.new))
    except TableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    head = [*("benchmark", "quantity", "against"), *("old ratio", "new ratio", "old spread", "new spread")]
    print("\n".join(printed([[*head, "change", "verdict"], *(one.line() for one in found)])))
    wrong = [one for one in found if one.verdict in FAILURES]
    for one in wrong:
        change = "" if one.change is None else f" by {one.change:.1%}, more than {LIMIT:.0%}"
        note = f" ({one.new.note})" if one.new and one.new.status == "failed" else ""
        print(f"{one.verdict}{change}: {', '.join(one.key)}{note}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
