"""Settings from configuration values: what is accepted, and how every kind of mistake is explained."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from trimbench.papers.validation import ConfigurationError, must_be, settings, unknown, validated


@settings
class Line:
    shape: Literal["line"] = "line"
    length: Annotated[float, must_be("a number above 0", lambda length: length > 0)]


@settings
class Box:
    shape: Literal["box", "frame"]
    sides: list[int]
    labels: dict[str, Line] = field(default_factory=dict)


Drawing = Annotated[Line | Box, Field(discriminator="shape")]


@settings
class Sample:
    names: list[str]
    rate: float
    count: int = 3
    label: str | None = None
    quick: bool = False
    rounding: Literal["up", "down"] = "up"
    k: int | Literal["auto"] = "auto"
    size: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    rows: Annotated[list[int], Field(min_length=1, max_length=2)] = field(default_factory=lambda: [1])
    code: Annotated[str, Field(pattern="^[a-z]$")] = "a"
    pair: tuple[int, str] = (1, "a")
    words: tuple[str, ...] | None = None
    main: Drawing | None = None
    others: list[Drawing] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count must be 0 or more, got {self.count}")


samples = st.builds(
    Sample,
    names=st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=4),
    rate=st.floats(allow_nan=False),
    count=st.integers(0, 2**70),
    label=st.none() | st.sampled_from(["a", "b c", "1", "null", "true"]),
    quick=st.booleans(),
    main=st.none() | st.builds(Line, length=st.floats(0.1, 9)),
    others=st.lists(st.builds(Box, shape=st.sampled_from(["box", "frame"]), sides=st.lists(st.integers())), max_size=2),
)


@given(samples)
def test_settings_come_back_as_they_were(sample: Sample) -> None:
    assert validated(Sample, asdict(sample), "sample") == sample


def test_defaults_fill_what_is_left_out_and_whole_numbers_become_floats() -> None:
    sample = validated(Sample, {"names": [], "rate": 1}, "sample")
    assert sample == Sample(names=[], rate=1.0)
    assert type(sample.rate) is float


BOX = {"shape": "box", "sides": [1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cuont": 1}, "a key must be one of code, count, k, label, main, names, others, pair, quick, rate, rounding, "
         "rows, share, size, words, got 'cuont'; did you mean 'count'?"),
        ({"rate": "fast"}, "rate must be a number, got 'fast'"),
        ({"rate": True}, "rate must be a number, got True"),
        ({"count": 1.5}, "count must be a whole number, got 1.5"),
        ({"count": -1}, "count must be 0 or more, got -1"),
        ({"label": 3}, "label must be a text (in quotes), got 3"),
        ({"quick": "maybe"}, "quick must be true or false, got 'maybe'"),
        ({"names": "a"}, "names must be a list, got 'a'; write 'names=[a]'"),
        ({"names": ["a", 2]}, "names.1 must be a text (in quotes), got 2"),
        ({"rounding": "dwon"}, "rounding must be one of down, up, got 'dwon'; did you mean 'down'?"),
        ({"k": 0.5}, "k must be a whole number or 'auto', got 0.5"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": 10}, "size must be at most 9, got 10"),
        ({"share": 0}, "share must be more than 0.0, got 0"),
        ({"rows": []}, "rows must be a list of at least 1 value(s), got []"),
        ({"code": "A"}, "code must be a text that matches ^[a-z]$, got 'A'"),
        ({"pair": [1, 2]}, "pair.1 must be a text (in quotes), got 2"),
        ({"main": 3}, "main must be keys and values, got 3"),
        ({"main": {}}, "key main.shape is missing; add it"),
        ({"main": {"shape": "bos"}}, "main.shape must be one of box, frame, line, got 'bos'; did you mean 'box'?"),
        ({"main": {"shape": "line"}}, "key main.length is missing; add it"),
        ({"main": {"shape": "line", "length": -1}}, "main.length must be a number above 0, got -1"),
        ({"others": [BOX, {"shape": "line"}]}, "key others.1.length is missing; add it"),
        ({"others": [BOX | {"side": 3}]}, "a key of others.0 must be one of labels, shape, sides, got 'side'; "
         "did you mean 'sides'?"),
        ({"others": [BOX | {"labels": {"top": {"length": -1}}}]}, "others.0.labels.top.length must be a number "
         "above 0, got -1"),
        ({3: 1}, "a key must be a text (put it in quotes), got 3"),
        ({"others": [{True: 1}]}, "a key of others.0 must be a text (put it in quotes), got True"),
    ],
)  # fmt: skip
def test_wrong_settings_are_explained(change: dict[object, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        validated(Sample, {"names": ["a"], "rate": 0.5, **change}, "sample")
    assert str(raised.value) == f"sample: {message}"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"names": []}, ": key rate is missing; add it"),
        ({"nmaes": [], "rate": 1}, ": a key must be one of .*, got 'nmaes'; did you mean 'names'"),
        (None, " must be keys and values, got None"),
        ([1], r" must be keys and values, got \[1\]"),
    ],
)
def test_missing_keys_and_no_keys_are_explained(values: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^sample{message}"):
        validated(Sample, values, "sample")


def test_unknown_suggests_only_what_is_close() -> None:
    expected = "task must be one of list, run, got "
    assert str(unknown("task", ["run", "list"], "lst")) == f"{expected}'lst'; did you mean 'list'?"
    assert str(unknown("task", ["run", "list"], "zzz")) == f"{expected}'zzz'"
    assert str(unknown("x", ["a/t", "b/t"], "t")) == "x must be one of a/t, b/t, got 't'; did you mean 'a/t' or 'b/t'?"
