"""Publish a run of all benchmarks: `scripts/bench/run publish build/bench.csv`.

Writes its rows to docs/reference/speed.csv, and as a table into docs/reference/speed.md. Published rows of benchmarks
that were not run again stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from .measure import Row
from .table import Key, TableError, lines_of, read, write

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/speed.md"
BEGIN, END = "<!-- scripts/bench/run publish writes what follows -->", "<!-- until here -->"


def table_of(rows: Mapping[Key, Row]) -> str:
    """Return the rows as a table in Markdown."""
    head, *lines = lines_of((key[0], row) for key, row in rows.items())
    rule = ["---"] * 3 + ["---:"] * 2 + ["---"] + ["---:"] * 2
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *escaped))


def renewed(published: Mapping[Key, Row], rows: Mapping[Key, Row]) -> dict[Key, Row]:
    """Return the rows with those published of benchmarks that they lack, in the published order of benchmarks."""
    new = {key[0] for key in rows}
    order = list(dict.fromkeys(key[0] for key in (*published, *rows)))
    both = [*rows.items(), *((key, row) for key, row in published.items() if key[0] not in new)]
    return dict(sorted(both, key=lambda item: order.index(item[0][0])))


def with_table(page: str, table: str) -> str:
    """Return a page with another table between the marks.

    Raises
    ------
    TableError
        When the page lacks the marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise TableError(f"{PAGE} must have the lines {BEGIN!r} and {END!r} around its table; write them again")
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench/run publish", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("csv", type=Path, help="what scripts/bench/run all has written")
    parser.add_argument("--fewer", action="store_true", help="leave out published rows that its benchmarks lack")
    chosen = parser.parse_args(arguments)
    target = PAGE.with_suffix(".csv")
    try:
        rows = read(chosen.csv)
        failed = [", ".join(key) for key, row in rows.items() if row.status == "failed"]
        if failed:
            raise TableError(f"{chosen.csv} has failed rows ({'; '.join(failed)}); run them again and publish that")
        published = read(target) if target.is_file() else {}
        rows = renewed(published, rows)
        lost = [", ".join(key) for key in published if key not in rows or rows[key].status != "ok"]
        if lost and not chosen.fewer:
            raise TableError(
                f"{chosen.csv} lacks {len(lost)} of the published rows, the first {lost[0]}; "
                "publish a run of whole benchmarks, or add --fewer"
            )
        page = with_table(PAGE.read_text(encoding="utf-8"), table_of(rows))
    except TableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write(target, ((key[0], row) for key, row in rows.items()))
    PAGE.write_text(page, encoding="utf-8")
    print(f"{len(rows)} rows in {target} and {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
