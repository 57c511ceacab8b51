"""Give every reader files that were changed at random, and keep those that show it something new."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .fuzz_child import Child, Outcome, examine
from .fuzz_targets import TARGETS
from .mutations import mutated, smaller

_TURN, _TURN_SECONDS = 200, 20.0  # inputs and seconds of one target, until the next has its turn
_TRIES = 200  # to make a finding smaller


@dataclass
class Search:
    """What was found about one reader: inputs that run new lines, and findings by what tells them apart."""

    name: str
    seed: int
    inputs: int = 0
    corpus: list[bytes] = field(default_factory=list)
    edges: set[tuple[str, int, int]] = field(default_factory=set)
    findings: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.seed}/{self.name}")

    def turn(self, child: Child, folder: Path, end: float) -> None:
        """Try some inputs; the first turn begins with the corpus."""
        if not self.corpus:
            for content in TARGETS[self.name].seeds():
                self._try(child, content, folder, keep=True)
        until = min(end, time.monotonic() + _TURN_SECONDS)
        for _ in range(_TURN):
            if time.monotonic() > until:
                return
            # New inputs come last, and are more likely to lead further.
            place = max(self._random.randrange(len(self.corpus)), self._random.randrange(len(self.corpus)))
            self._try(child, mutated(self._random, self.corpus[place], self.corpus), folder)

    def _try(self, child: Child, content: bytes, folder: Path, *, keep: bool = False) -> None:
        self.inputs += 1
        outcome = examine(child, self.name, content)
        if keep or not outcome.edges <= self.edges:
            self.corpus.append(content)
            self.edges |= outcome.edges
        if outcome.fault and signature(outcome) not in self.findings:
            self.findings[signature(outcome)] = self._save(child, content, outcome, folder)

    def _save(self, child: Child, content: bytes, outcome: Outcome, folder: Path) -> Path:
        def is_same(shorter: bytes) -> bool:
            return signature(examine(child, self.name, shorter)) == signature(outcome)

        # Those that cost much take seconds for each attempt.
        small = smaller(content, is_same, _TRIES if outcome.seconds < 1 else 10)
        path = folder / self.name / hashlib.sha256(small).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(small)
        about = {"seed": self.seed, "input": self.inputs, "fault": outcome.fault, "place": outcome.place}
        path.with_suffix(".about").write_text(json.dumps(about | {"seconds": outcome.seconds}) + "\n")
        print(f"{time.strftime('%H:%M:%S')} FINDING {path}: {outcome.fault} {outcome.place}", flush=True)
        return path


def signature(outcome: Outcome) -> str:
    """Return what tells findings apart: the kind of fault, and where it shows."""
    kind = re.sub(r"\d+", "#", outcome.fault.partition(":")[0])
    return f"{kind} {outcome.place}" if kind else ""


def main(arguments: list[str] | None = None) -> int:
    """Search until the time is over, in turns; the exit code is 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="how long (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="decides all inputs (default: 0)")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="only these; may be repeated")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="folder (default: build/fuzz)")
    chosen = parser.parse_args(arguments)
    searches = [Search(name, chosen.seed) for name in chosen.target or TARGETS]
    end = time.monotonic() + 60 * chosen.minutes
    rounds = 0
    with Child() as child:
        while time.monotonic() < end:
            for search in searches:
                if time.monotonic() < end:
                    search.turn(child, chosen.findings, end)
            rounds += 1
            inputs, findings = sum(one.inputs for one in searches), sum(len(one.findings) for one in searches)
            print(f"{time.strftime('%H:%M:%S')} round {rounds}: {inputs} inputs, {findings} findings", flush=True)
    for search in searches:
        print(
            f"{search.name:18} {search.inputs:8} inputs, {len(search.corpus):5} kept, "
            f"{len(search.edges):6} pairs of lines, {len(search.findings)} findings"
        )
    return int(any(search.findings for search in searches))


if __name__ == "__main__":
    sys.exit(main())
