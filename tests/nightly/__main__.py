"""The command: run comparisons for some minutes, print what was compared and the seed of every difference."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.nightly import conformant, selection_bias, trimming  # noqa: F401 - they list their comparisons
from tests.nightly.cases import COMPARISONS, Case

# One that fails every time says no more after this.
_MOST_FAILURES = 20
_LONGEST_REASON = 300


@dataclass
class Tally:
    """What one comparison has done."""

    name: str
    models: int = 0
    compared: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def run(self, seed: int) -> None:
        """Compare one more model."""
        case, started = Case(seed), time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                COMPARISONS[self.name](case)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is what is looked for
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
            again = f"scripts/nightly --only {self.name} --models 1 --seed {seed}"
            self.failures.append(f"{self.name} differs with seed {seed}: {reason}\n  again: {again}")
            _say(self.failures[-1])
        self.models += 1
        self.compared += case.n_compared
        self.seconds += time.perf_counter() - started


def compare(names: Sequence[str], seed: int, seconds: float, models: int | None = None) -> list[Tally]:
    """Run comparisons for some seconds, each for the same share, with at most so many models each."""
    tallies = [Tally(name) for name in names]
    limit = time.perf_counter() + seconds
    while time.perf_counter() < limit:
        going = [t for t in tallies if t.models != models and len(t.failures) < _MOST_FAILURES]
        if not going:
            break
        # All begin with the first seed, so that a short run has a model of each.
        least = min(going, key=lambda t: (t.models > 0, t.seconds))
        least.run(seed + least.models)
    return tallies


def summary(tallies: Sequence[Tally]) -> str:
    """Return a table of what was compared, followed by the differences."""
    width = max(len(tally.name) for tally in tallies)
    lines = [f"{'comparison':{width}}  {'models':>7}  {'values':>8}  {'differ':>6}  {'seconds':>7}"]
    total = Tally("all")
    for tally in tallies:
        total.models, total.compared = total.models + tally.models, total.compared + tally.compared
        total.seconds, total.failures = total.seconds + tally.seconds, total.failures + tally.failures
    for tally in (*tallies, total):
        counts = f"{tally.models:>7,}  {tally.compared:>8,}  {len(tally.failures):>6}  {tally.seconds:>7.0f}"
        lines.append(f"{tally.name:{width}}  {counts}")
    return "\n".join([*lines, *total.failures])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(words: Sequence[str]) -> int:
    """Run the command; its exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(
        "scripts/nightly",
        description="Compare engines, solvers and variants of the methods on random models; exit with 1 if any differ.",
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="how long (default 20)")
    today = int(datetime.now(UTC).strftime("%Y%m%d")) * 10**6
    parser.add_argument("--seed", type=int, default=today, help="of the first models (default: the date)")
    parser.add_argument("--models", type=int, help="at most so many models for each comparison")
    parser.add_argument("--only", choices=sorted(COMPARISONS), metavar="NAME", help=", ".join(sorted(COMPARISONS)))
    options = parser.parse_args(words)
    if options.minutes <= 0 or options.seed < 0:
        parser.error("--minutes must be positive and --seed 0 or more")
    names = [options.only] if options.only else sorted(COMPARISONS)
    _say(f"{len(names)} comparisons with the seeds from {options.seed}, for {options.minutes:g} minutes")
    tallies = compare(names, options.seed, 60 * options.minutes, options.models)
    _say(summary(tallies))
    return 1 if any(tally.failures for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
