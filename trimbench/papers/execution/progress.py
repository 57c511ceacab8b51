"""What a run says on stderr while its jobs run: how many have ended, and how long the rest will take."""

import sys
import time
from collections.abc import Mapping, Sequence

from trimbench.papers.execution.store import Record

# Without a terminal, one line in so many seconds.
_LINE_SECONDS = 30.0


class Work:
    """The jobs that are to run, and how long the rest of them will take.

    `expected` has the seconds of jobs on one processor, by key; jobs that are not in it count like the mean of the
    others. Once jobs have ended, the time that they took corrects the expectation.
    """

    def __init__(self, keys: Sequence[str], expected: Mapping[str, float], n_workers: int) -> None:
        known = [expected[key] for key in keys if key in expected]
        self._mean = sum(known) / len(known) if known else None
        self._expected = expected
        self._left = set(keys)
        self._seconds_left = sum(map(self._of, keys))
        self._seconds_ended = 0.0
        # Wall time for one expected second; from experience as soon as there is some.
        self._rate = 1 / max(1, min(n_workers, len(keys)))
        self.size = len(keys)

    def end(self, key: str, elapsed: float) -> None:
        """Take note that a job has ended, `elapsed` seconds after the start."""
        if key not in self._left:
            return
        self._left.remove(key)
        self._seconds_left -= self._of(key)
        self._seconds_ended += self._of(key)
        # One job in twenty is experience enough; the first ones also pay for the start of the workers.
        if self._seconds_ended and len(self._left) <= 0.95 * self.size:
            self._rate = elapsed / self._seconds_ended

    @property
    def seconds_left(self) -> float | None:
        """Wall time of the jobs that have not ended; None if nothing is known of them."""
        return None if self._mean is None else self._rate * max(self._seconds_left, 0.0)

    def _of(self, key: str) -> float:
        return self._expected.get(key, self._mean or 0.0)


class Report:
    """Reports the progress of jobs: by a bar on a terminal, else in lines."""

    def __init__(self, label: str, n_stored: int, work: Work, wanted: bool) -> None:
        from tqdm import tqdm

        on_terminal = sys.stderr.isatty()
        self._label, self._work, self._in_lines = label, work, wanted and not on_terminal
        self._n_done = self._n_failed = 0
        self._started = self._said = time.perf_counter()
        self._say(f"{n_stored} stored, {work.size} to run{self._time_left()}")
        shown = wanted and on_terminal and work.size
        self._bar = tqdm(
            total=work.size,
            desc=f"{label}: ",
            unit="job",
            file=sys.stderr,
            dynamic_ncols=True,
            disable=not shown,
            bar_format="{desc}{percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt} jobs, {elapsed}{postfix}",
        )
        self._bar.set_postfix_str(self._time_left().removeprefix(", "))

    def begin(self) -> None:
        """Start the clock: it is this program's turn."""
        self._started = self._said = time.perf_counter()

    def tell(self, record: Record) -> None:
        """Count a record."""
        self._n_done += not record.cached  # another program ran those
        self._n_failed += not record.ok
        now = time.perf_counter()
        self._work.end(record.job.key, now - self._started)
        failed = f"{self._n_failed} failed" if self._n_failed else ""
        self._bar.set_description(self._label, refresh=False)
        self._bar.set_postfix_str(f"{failed}{self._time_left()}".removeprefix(", "), refresh=False)
        self._bar.update()
        if now > self._said + _LINE_SECONDS:
            self._said = now
            self._say(f"{self._n_done} of {self._work.size} run, {self._n_failed} failed{self._time_left()}")

    def wait(self) -> None:
        """Say that another program has its turn."""
        self._say("waiting for another program that runs jobs for this folder of results")
        self._bar.set_description(f"{self._label} (waiting for another program)")

    def close(self) -> None:
        """End the bar, or say how the run went."""
        self._bar.close()
        if self._work.size:
            seconds = time.perf_counter() - self._started
            self._say(f"{self._n_done} of {self._work.size} run in {seconds:.1f} s, {self._n_failed} failed")

    def _time_left(self) -> str:
        seconds = self._work.seconds_left
        return "" if seconds is None or seconds < 1 else f", about {duration(seconds)} left"

    def _say(self, text: str) -> None:
        if self._in_lines:
            sys.stderr.write(f"{self._label}: {text}\n")
            sys.stderr.flush()


def duration(seconds: float | None) -> str:
    """Return a time in seconds, minutes or hours, with two digits; a dash if it is unknown."""
    if seconds is None:
        return "–"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 9.5 or not seconds else f"{seconds:.1g} s"
