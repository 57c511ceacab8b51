"""Check that the archive of a run can be part of a release: others can audit it and adopt its records, and it is small.

    .venv-test/bin/python scripts/release_archive.py results/archives/paper.zip

Compares it with a run in a folder, by default the published one: every job of each experiment must have its record. It
must take at most 15 MB. Exits with 1 if it cannot be released, with a line for each reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from trimbench.reproduction.execution.store import Record  # noqa: E402
from trimbench.reproduction.reporting.archive import MOST_BYTES, records_in  # noqa: E402
from trimbench.reproduction.settings import ConfigurationError  # noqa: E402


def faults(archive: Path, run: Path) -> Iterator[str]:
    """Yield what keeps an archive from being released with a run."""
    try:
        lines = list(records_in(archive))
    except ConfigurationError as error:
        yield str(error)
        return
    size = archive.stat().st_size
    if size > MOST_BYTES:
        yield f"{archive} must take at most {MOST_BYTES / 1e6:g} MB, got {size / 1e6:.1f} MB; shorten tables of rows"
    keys: list[str] = []
    unsound = 0
    for line in lines:
        try:
            keys.append(Record.from_json(line).job.key)
        except (ValueError, TypeError):
            unsound += 1
    if unsound:
        yield f"{unsound:,} of {len(lines):,} records are not sound"
    jobs_of = {path: _jobs(path) for path in sorted(run.rglob("*.json"))}
    lengths = {len(key) for jobs in jobs_of.values() for key in jobs}  # of what a run shows of a key
    known = {key[:length] for key in keys for length in lengths}
    for path, jobs in jobs_of.items():
        if lacking := sum(key not in known for key in jobs):
            yield f"{path.relative_to(run).with_suffix('')}: {lacking:,} of {len(jobs):,} jobs have no record"


def _jobs(path: Path) -> dict[str, Any]:
    """Return what the description of an experiment says of each job, by the first characters of its key."""
    about = json.loads(path.read_text(encoding="utf-8"))
    return about.get("jobs", {}) if isinstance(about, dict) else {}


def main(words: Sequence[str] | None = None) -> int:
    """Print what is wrong with an archive; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--run", type=Path, default=ROOT / "results/published", help="the folder of the run")
    options = parser.parse_args(words)
    found = list(faults(options.archive, options.run))
    size = options.archive.stat().st_size / 1e6 if options.archive.is_file() else 0
    print("\n".join(found) or f"{options.archive} can be released: {size:.1f} MB, with a record for every job")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
