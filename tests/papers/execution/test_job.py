import dataclasses
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.execution.code_hash import code_version
from trimbench.papers.execution.job import Job, run_job_function

from . import sample_jobs

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


def test_function_by_name_and_by_object_make_one_job() -> None:
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
        ({"x": Path("a")}, SHA, TypeError, r"parameters\['x'\] cannot be written as JSON"),
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


def test_fields_must_be_canonical() -> None:
    for text in ('{"x": 1}', '{"b":1,"a":2}', "[1]", '{"x":NaN}', "{", ""):
        with pytest.raises(ValueError, match="parameters_json must be a JSON object in canonical form"):
            Job(f"{MODULE}:square", text, (), "code")
    with pytest.raises(ValueError, match=r"data must be sorted by name without repetition, got \['b', 'a'\]"):
        Job(f"{MODULE}:square", "{}", (("b", SHA), ("a", SHA)), "code")


def test_result_is_what_a_stored_copy_reads_back_as() -> None:
    result = run_job_function(Job.create(sample_jobs.numpy_result, {"n": 5}))
    assert result == {"n": 5, "half": 2.5, "big": True, "pair": [5, 5]}
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("list", TypeError, r"the result of .* must be a mapping, got \[1\]; return a dict"),
        ("nan", ValueError, r"result\['a'\]\['b'\] must be a finite number, got nan; use None"),
        ("object", TypeError, r"result\['path'\] cannot be written as JSON"),
        ("huge", ValueError, r"must have whole numbers of at most 64 bits, .*: got 1000"),
        ("longer", ValueError, r"must have whole numbers of at most 64 bits, .*: Exceeds the limit"),
        ("surrogate", ValueError, r"and text without halves of characters: .*surrogates not allowed"),
    ],
)
def test_unusable_results_are_refused(kind: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run_job_function(Job.create(sample_jobs.bad_result, {"kind": kind}))


def test_a_job_of_other_code_does_not_run() -> None:
    job = dataclasses.replace(Job.create(sample_jobs.square, {"x": 1.0}), code="older")
    with pytest.raises(RuntimeError, match=r"code must be 'older', got .*; start the program again"):
        run_job_function(job)
