from __future__ import annotations

import math
from pathlib import Path

import pytest

from trimbench.papers.commands.tasks import GROUP, expected_seconds, function_name, measured, total, wall_seconds
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.execution.job import Job

from . import sample_jobs

FIRST, SECOND, THIRD = (Job.create(sample_jobs.square, {"x": x}) for x in (1.0, 2.0, 3.0))
OTHER = Job.create(sample_jobs.fail, {"kind": "no"})
JOBS = (FIRST, SECOND, THIRD, OTHER)


def test_stored_jobs_of_the_same_function_count_before_what_is_typical() -> None:
    done = {FIRST.key: 1.0, SECOND.key: 3.0, "of another experiment": 50.0}
    expected = expected_seconds(JOBS, done, {"square": 100.0, "fail": 7.0})
    assert expected == {FIRST.key: 1.0, SECOND.key: 3.0, THIRD.key: 2.0, OTHER.key: 7.0}
    assert total([THIRD.key, OTHER.key], expected) == 9.0


def test_what_is_typical_counts_where_nothing_is_stored() -> None:
    assert expected_seconds(JOBS, {}, {"square": 1.5}) == {FIRST.key: 1.5, SECOND.key: 1.5, THIRD.key: 1.5}


def test_without_a_basis_the_whole_is_unknown() -> None:
    expected = expected_seconds(JOBS, {FIRST.key: 1.0}, {})
    assert expected == {FIRST.key: 1.0, SECOND.key: 1.0, THIRD.key: 1.0}
    assert total([SECOND.key, OTHER.key], expected) is None
    assert wall_seconds([SECOND.key, OTHER.key], expected, 2) is None
    assert total([], {}) == 0.0


@pytest.mark.parametrize(("n_workers", "seconds"), [(1, 12.0), (2, 6.0), (3, 5.0), (100, 5.0)])
def test_workers_share_the_jobs_but_not_a_single_one(n_workers: int, seconds: float) -> None:
    expected = {"a": 5.0, "b": 4.0, "c": 3.0, "stored": 60.0}
    assert wall_seconds(["a", "b", "c"], expected, n_workers) == seconds
    assert wall_seconds([], expected, n_workers) == 0.0


def test_a_profile_that_was_never_measured(tmp_path: Path) -> None:
    (tmp_path / GROUP).mkdir()
    (tmp_path / GROUP / "mine.yaml").write_text("trimming/table6: {trim_network: 1}\n")
    assert measured(Catalogue((tmp_path,)), "mine") == {"trimming/table6": {"trim_network": 1.0}}
    assert measured(Catalogue((tmp_path,)), "other") == {}


def test_costs_are_of_experiments_that_exist() -> None:
    project = Catalogue((configuration_folder(),))
    for profile in project.names(GROUP):
        costs = measured(project, profile)
        assert profile in project.names("profile")
        assert set(costs) <= set(project.names("experiment")), "a new experiment was not measured yet"
        assert all(0 < seconds < math.inf for functions in costs.values() for seconds in functions.values())


def test_the_function_of_a_job_is_known_by_its_name() -> None:
    assert function_name(FIRST) == "square"
