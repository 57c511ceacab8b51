"""Jobs: their keys, canonical JSON, seeds, and what their results may be."""

import dataclasses
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reproduction.execution import sample_jobs
from trimbench.reproduction.execution.code_hash import code_version
from trimbench.reproduction.execution.job import (
    COUNT,
    PERCENT,
    SHARE,
    TEXT,
    Job,
    canonical_json,
    check_result,
    check_size,
    declare_result,
    declared_results,
    generator_for,
    run_job_function,
    seed_for,
    to_plain,
)

from .test_code_hash import JOBS

MODULE = sample_jobs.__name__
SHA = "0123456789abcdef" * 4


def test_key_is_the_hash_of_the_four_fields() -> None:
    job = Job.create(sample_jobs.square, {"x": 0.5}, {"b": SHA, "a": SHA[::-1]})
    text = json.dumps(
        {
            "function": f"{MODULE}:square",
            "parameters": {"x": 0.5},
            "data": {"a": SHA[::-1], "b": SHA},
            "code": code_version(f"{MODULE}:square"),
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    assert job.key == hashlib.sha256(text.encode()).hexdigest()
    assert job.data == (("a", SHA[::-1]), ("b", SHA))
    assert job.parameters == {"x": 0.5}
    with pytest.raises(ValueError, match="of a top-level function, got 'square'"):
        dataclasses.replace(job, function="square")
    assert Job.create(sample_jobs.square, {"x": 2}) == Job.create(f"{MODULE}:square", {"x": np.int64(2)})


@given(st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_a_job_survives_dict_and_pickle(values: dict[str, Any]) -> None:
    job = Job.create(sample_jobs.square, {"x": values}, {"ünï": SHA})
    for copy in (Job.from_dict(json.loads(json.dumps(job.to_dict()))), pickle.loads(pickle.dumps(job))):
        assert copy == job
        assert copy.key == job.key
        assert copy.parameters == {"x": values}


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        ("square", ValueError, "function must be 'package.module:name' of a top-level function, got 'square'"),
        (f"{MODULE}:a.b", ValueError, "must be 'package.module:name'"),
        ("__main__:square", ValueError, "must live in a module that workers can import.*move it out"),
        ("no_such_package.x:f", ValueError, "cannot be imported: No module named 'no_such_package'"),
        (f"{MODULE}:nothing", ValueError, "does not exist: module .* has no 'nothing'"),
        (f"{MODULE}:unmarked", TypeError, "must be marked as a job function.*decorate it with @job_function"),
        (lambda x: {"x": x}, ValueError, "must be 'package.module:name' of a top-level function"),
        (sample_jobs.unmarked, TypeError, "must be marked as a job function"),
    ],
)
def test_unusable_functions_are_refused(function: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Job.create(function, {"x": 1.0})


def test_a_function_that_is_not_what_its_name_says_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sample_jobs.square
    monkeypatch.setattr(sample_jobs, "square", sample_jobs.draw)
    with pytest.raises(ValueError, match=r"must be what its name says, but .*:square' is another object"):
        Job.create(original, {"x": 1.0})


@pytest.mark.parametrize(
    ("parameters", "sha256", "error", "text"),
    [
        ({"x": float("nan")}, SHA, ValueError, r"parameters\['x'\] must be a finite number, got nan"),
        ({}, SHA, TypeError, r"parameters must fit .*:square\(x: float\).*missing a required argument: 'x'"),
        ({"x": 1, "z": 2}, SHA, TypeError, r"got \['x', 'z'\]: got an unexpected keyword argument 'z'"),
        *(
            ({"x": 1}, sha256, ValueError, r"data\['vote'\] must be a SHA-256 .*, got .*; pass hashlib")
            for sha256 in ("", "abc", SHA.upper(), SHA + "0", None)
        ),
    ],
)
def test_unusable_parameters_and_hashes_are_refused(
    parameters: Any, sha256: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Job.create(sample_jobs.square, parameters, {"vote": sha256})


def test_data_must_be_sorted() -> None:
    with pytest.raises(ValueError, match=r"data must be sorted by name without repetition, got \['b', 'a'\]"):
        Job(f"{MODULE}:square", "{}", (("b", SHA), ("a", SHA)), "code")


def test_result_is_what_a_stored_copy_reads_back_as() -> None:
    result = run_job_function(Job.create(sample_jobs.numpy_result, {"n": 5}))
    assert result == {"n": 5, "half": 2.5, "big": True, "pair": [5, 5]}
    assert json.loads(json.dumps(result)) == result
    check_size("f", {"n": [-(2**63), 2**63 - 1]})


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("list", TypeError, r"the result of .* must be a mapping, got \[1\]; return a dict"),
        ("nan", ValueError, r"result\['a'\]\['b'\] must be a finite number, got nan; use None"),
        ("huge", ValueError, r"must have whole numbers of at most 64 bits, .*: got 9223372036854775808;"),
        ("low", ValueError, r"must have whole numbers of at most 64 bits, .*: got -9223372036854775809;"),
        ("longer", ValueError, r"must have whole numbers of at most 64 bits, .*: Exceeds the limit"),
        ("surrogate", ValueError, r"and text without lone surrogates: .*surrogates not allowed"),
    ],
)
def test_unusable_results_are_refused(kind: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run_job_function(Job.create(sample_jobs.bad_result, {"kind": kind}))


def test_a_job_of_other_code_does_not_run() -> None:
    job = dataclasses.replace(Job.create(sample_jobs.square, {"x": 1.0}), code="older")
    with pytest.raises(ImportError, match=r"code must be 'older', got .*; start the program again"):
        run_job_function(job)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


def shuffled(value: Any) -> Any:
    """The same value with every mapping in the opposite order and tuples for lists."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return tuple(map(shuffled, value)) if isinstance(value, list) else value


@given(json_values)
def test_text_reads_back_as_the_value_and_is_stable(value: Any) -> None:
    text = canonical_json(value, "value")
    assert json.loads(text) == value
    assert canonical_json(json.loads(text), "value") == text
    assert canonical_json(shuffled(value), "value") == text
    assert text.isascii()


def test_the_copy_shares_nothing() -> None:
    original = {"rows": [[1, 2]]}
    copy = to_plain(original, "x")
    copy["rows"][0][0] = 9
    assert original == {"rows": [[1, 2]]}


NOT_FINITE = [float("nan"), float("inf"), np.float32("-inf"), np.float64("nan")]
OTHER_TYPES = [
    *(Path("data"), pd.DataFrame({"a": [1]}), np.zeros(3), {1, 2}, b"x", 1j, object(), np.datetime64("2020-01-01")),
    frozenset(range(10_000)),
]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        *((value, ValueError, r"\['x'\]\[1\] must be a finite number, got .*; use None") for value in NOT_FINITE),
        *((value, TypeError, r"\['x'\]\[1\] cannot be written as JSON: allowed are None, .*") for value in OTHER_TYPES),
        ({1: 2}, TypeError, r"keys of p\['x'\]\[1\] must be str, got 1; write it as text"),
    ],
)
def test_what_has_no_json_form_is_refused_by_its_place(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        canonical_json({"x": [0.0, value]}, "p")
    assert len(str(caught.value)) < 400


def test_seed_is_the_first_63_bits_of_the_hash() -> None:
    text = b'{"dataset":"vote","level":0.5,"repetition":3,"use":null}'
    expected = int(hashlib.sha256(text).hexdigest()[:16], 16) // 2
    assert seed_for(repetition=3, use=None, level=0.5, dataset="vote") == expected
    assert expected == 5430632520036098291
    twin = np.random.Generator(np.random.PCG64(seed_for(dataset="vote")))
    np.testing.assert_array_equal(generator_for(dataset="vote").random(5), twin.random(5))


def test_types_and_names_matter_and_numpy_numbers_count_as_numbers() -> None:
    assert seed_for(a=np.int64(3), b=np.float64(0.1)) == seed_for(a=3, b=0.1)
    axes = [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {"b": 1}, {"a": 1, "b": 1}]
    assert len({seed_for(**values) for values in axes}) == 6


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({}, TypeError, "seed_for needs at least one named axis, got none; name what"),
        ({"a": (1,)}, TypeError, "axis 'a' must be str, int, float, bool or None, got .*; use one axis"),
        ({"a": {"b": 1}}, TypeError, "axis 'a' must be str, int, float, bool or None, got .*; use one axis"),
        ({"a": float("nan")}, ValueError, r"axes\['a'\] must be a finite number, got nan"),
    ],
)
def test_wrong_axes_are_refused(axes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        seed_for(**axes)


# Every job function declares what it returns, and published results are like that.

FUNCTIONS = [name for name in JOBS if not name.startswith("trimbench.papers.own_table.")]  # whose tables vary


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_job_function_declares_its_result(function: str) -> None:
    declared = declared_results(function)
    assert declared
    assert all(declared)
    with pytest.raises(ValueError, match="is not what it declares"):
        check_result(function, {"agreement": 7.5})


def test_a_pattern_stands_for_the_other_names() -> None:
    declare_result(f"{MODULE}:square", {"*_share": SHARE, "*_percent": PERCENT, "whole_share": COUNT, "title": TEXT})
    try:
        check_result(f"{MODULE}:square", {"a_share": 0.5, "whole_share": 3, "title": "x"})
        check_result(f"{MODULE}:square", {"whole_share": 3, "title": "x"})
        for wrong in ({"a_share": 1.01}, {"a_percent": 100.5}, {"whole_share": 0.5}, {"other": 1}):
            with pytest.raises(ValueError, match="is not what it declares"):
                check_result(f"{MODULE}:square", {"whole_share": 3, "title": "x", **wrong})
        with pytest.raises(ValueError, match=r"missing are .'title'., unknown .'other'"):
            check_result(f"{MODULE}:square", {"whole_share": 3, "other": 1})
    finally:
        declare_result(f"{MODULE}:square")


def _values(line: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a published row as they were in the record."""
    values = {}
    for name, text in line.items():
        if text == "" or name in ("status", "error", "seconds", "job"):
            continue
        try:
            value = json.loads({"True": "true", "False": "false"}.get(text, text))
            # A column with missing values shows whole numbers as others.
            values[name] = int(value) if isinstance(value, float) and value.is_integer() else value
        except ValueError:
            values[name] = text
    return values


# What jobs return since the results were published.
LATER = {"most_values": 0, "most_valued": ""}
PUBLISHED = sorted((Path(__file__).parents[3] / "results/published").rglob("*_rows.csv.gz"))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)
def test_published_results_are_what_is_declared(path: Path) -> None:
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    declared = [kinds for name in FUNCTIONS for kinds in declared_results(name)]
    for line in rows[rows["status"] == "ok"].head(300).to_dict("records"):
        values = LATER | _values({str(name): text for name, text in line.items()})
        assert any(_fits(values, kinds) for kinds in declared), values


def _fits(values: dict[str, Any], kinds: Any) -> bool:
    """Tell whether the declared values of a row, which has labels besides, are of their kinds."""
    named = [name for name in kinds if "*" not in name]
    return all(name in values or kinds[name].holds(None) or kinds[name].holds("") for name in named) and all(
        kinds[name].holds(values[name]) for name in named if name in values
    )
