"""Run the benchmarks that compare with something else, and write one table: `scripts/bench/run all`.

Takes about eleven minutes on an idle machine; every figure is a ratio within the run. Each benchmark runs in a process
of its own, on one core; what fails, or takes too long, is a row that says so. `scripts/bench/run all trimming rows`
runs only those two.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .measure import Row
from .table import Named, lines_of, printed, write

# Each has COMPARISONS: functions that give rows.
BENCHMARKS = (
    "trimming",
    "networks",
    "wide",
    "rows",
    "conformant",
    "expected",
    "missing_values",
    "selection_bias",
    "overhead",
    "quick_profile",
)
# What is left out unless it is named, since it takes as long as all others.
SLOW = ("quick_profile",)
TIME_LIMIT, SLOW_TIME_LIMIT = 300.0, 3600.0
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def measured(module: str, time_limit: float = TIME_LIMIT) -> Iterator[Row]:
    """Run one benchmark in a process of its own, and give its rows and what went wrong."""
    command = [sys.executable, "-m", "scripts.bench.all", "--rows-of", module]
    environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as rows, tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        # A session of its own, so that what the benchmark has started ends with it.
        child = subprocess.Popen(command, stdout=rows, stderr=log, env=environment, start_new_session=True)
        try:
            child.wait(time_limit)
            end = f"ended with exit code {child.returncode}" if child.returncode else ""
        except subprocess.TimeoutExpired:
            end = f"stopped after {time_limit:g} s"
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        rows.seek(0)
        log.seek(0)
        yield from (Row(**json.loads(line)) for line in rows if line.endswith("\n"))
        if end:
            last = log.read().strip().rpartition("\n")[2]
            yield Row("all that follows", "", status="failed", note=f"{end}: {last}" if last else end)


def print_rows(module: str) -> None:
    """Print the rows of a benchmark as lines of JSON; a comparison that fails is a row, and the next one runs."""
    # What libraries print would lie between the rows.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for comparison in importlib.import_module(module).COMPARISONS:
        try:
            for row in comparison():
                print(json.dumps(dataclasses.asdict(row)), file=out, flush=True)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is in the table
            what = comparison.__name__.replace("_", " ")
            failed = Row(what, "", status="failed", note=" ".join(f"{type(error).__name__}: {error}".split())[:300])
            print(json.dumps(dataclasses.asdict(failed)), file=out, flush=True)


def run(names: Sequence[str]) -> Iterator[Named]:
    """Run benchmarks one after the other; say on standard error where the run is."""
    for name in names:
        start = time.perf_counter()
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
        time_limit = SLOW_TIME_LIMIT if name in SLOW else TIME_LIMIT
        for row in measured(f"scripts.bench.{name}", time_limit):
            yield name, row
        print(f" {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench/run all", description=(__doc__ or "").splitlines()[0])
    default = [name for name in BENCHMARKS if name not in SLOW]
    which = f"of {', '.join(BENCHMARKS)}; default: all but {', '.join(SLOW)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=which)
    parser.add_argument("--csv", type=Path, default=Path("build/bench.csv"), help="default: %(default)s")
    parser.add_argument("--rows-of", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.rows_of:
        print_rows(chosen.rows_of)
        return 0
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(BENCHMARKS)}, got {unknown[0]}")
    rows = list(run(chosen.names or default))
    write(chosen.csv, rows)
    print("\n".join(printed(lines_of(rows))))
    print(f"{len(rows)} rows in {chosen.csv}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
