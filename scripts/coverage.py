"""Hold the coverage of the tests, lines and branches together, against the least that each part must have."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

LEAST = {"library": 95.0, "reproduction": 90.0, "papers": 90.0}  # percent


def main(report: Path) -> int:
    """Print the coverage of the parts and of the files that fall short of it; return 1 if a part has too little."""
    totals = {part: Counter[str]() for part in LEAST}
    for name, file in sorted(json.loads(report.read_text(encoding="utf-8"))["files"].items()):
        part = next((one for one in LEAST if name.startswith(f"trimbench/{one}/")), "library")
        totals[part].update({key: n for key, n in file["summary"].items() if isinstance(n, int)})
        if file["summary"]["percent_covered"] < LEAST[part]:
            print(f"{file['summary']['percent_covered']:6.1f} %  {name}: lines {_ranges(file['missing_lines'])}")
    short = False
    for part, counts in totals.items():
        lines, branches = (_percent(counts, *kinds) for kinds in (("lines",), ("branches",)))
        both = _percent(counts, "lines", "branches")
        short |= both < LEAST[part]
        print(f"{part}: {both:.1f} % covered (lines {lines:.1f} %, branches {branches:.1f} %), least {LEAST[part]} %")
    return int(short)


def _percent(counts: Counter[str], *kinds: str) -> float:
    covered = sum(counts[f"covered_{kind}"] for kind in kinds)
    return 100.0 * covered / max(1, covered + sum(counts[f"missing_{kind}"] for kind in kinds))


def _ranges(lines: list[int]) -> str:
    """Return ascending line numbers as text, those that follow one another as a range."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], line]
        else:
            runs.append([line])
    return ", ".join("-".join(map(str, run)) for run in runs)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
