"""What was a finding stays mended, and the search notices every kind of fault."""

from __future__ import annotations

import mmap
import random
from pathlib import Path

import numpy as np
import pytest

from .fuzz import BYTES, CHARACTERS, LARGEST, judged, mutated, ready, smaller
from .fuzz_targets import CORPUS, TARGETS, Target, Wrong

FOUND = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_sound_file_and_none_of_the_corpus_is_a_finding(tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    reader = ready(target, tmp_path / "files")
    for content in target.seeds():
        assert judged(target, reader, content, follow=False).fault == "", content[:1000]


def _planted(content: bytes) -> object:
    """A reader with a fault of each kind."""
    match content:
        case b"key":
            return {}[content]
        case b"memory":
            # Memory that other tests have freed may still belong to the process: this is none of it.
            np.frombuffer(mmap.mmap(-1, BYTES + 2**23), dtype=np.uint8)[:] = 1
            return None
        case b"message":
            raise ValueError("x" * (CHARACTERS + 1))
        case b"wrong":
            raise Wrong("a table")
    raise ValueError("not one of the words")


@pytest.mark.parametrize(
    ("content", "fault"),
    [("key", "KeyError"), ("memory", " MiB"), ("message", "a message of 501"), ("wrong", "wrong: a"), ("fine", "")],
)
def test_every_kind_of_fault_is_told(content: str, fault: str) -> None:
    planted = Target("planted", lambda: [], lambda _: _planted)
    found = judged(planted, _planted, content.encode(), follow=True)
    assert fault in found.fault
    assert bool(found.fault) == bool(fault)


def test_mutations_follow_from_the_seed_and_stay_within_a_mebibyte() -> None:
    first, again = ([mutated(random.Random(n), b"a 1 b 0.5\n" * 9, [b"other"]) for n in range(500)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 400
    assert max(map(len, first)) <= LARGEST


def test_what_matters_of_a_finding_is_left() -> None:
    assert smaller(b"some text <fault> and more", lambda content: b"<fault>" in content, 200) == b"<fault>"


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in FOUND) < 200_000
