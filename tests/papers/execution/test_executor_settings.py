"""Executors from configurations, and what is wrong with those that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trimbench.papers.configuration import configuration_folder
from trimbench.papers.execution.here import ProcessExecutor
from trimbench.papers.execution.remote import RayExecutor, SlurmExecutor
from trimbench.papers.execution.workers import TARGETS, SerialExecutor, executor_of
from trimbench.papers.validation import ConfigurationError

SERIAL, PROCESSES, RAY, SLURM = TARGETS
EXECUTORS = {
    "serial": SerialExecutor(),
    "processes": ProcessExecutor(),
    "ray": RayExecutor(),
    "slurm": SlurmExecutor(folder="results/slurm"),
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_configuration_files_make_their_executor_and_name_all_options(name: str) -> None:
    path = configuration_folder() / "executor" / f"{name}.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8").replace("${results}", "results"))
    assert executor_of(values) == EXECUTORS[name]
    assert {"_target_", *vars(EXECUTORS[name])} == set(values)


def test_options_have_values() -> None:
    assert executor_of({"_target_": PROCESSES, "workers": 3, "timeout": 2}) == ProcessExecutor(workers=3, timeout=2.0)
    for address in ("auto", "first-machine:6379", "10.0.0.1:1", "[::1]:6379", None):
        assert executor_of({"_target_": RAY, "address": address}) == RayExecutor(address=address)
    assert executor_of({"_target_": SLURM, "partition": "long,gpu_2"}) == SlurmExecutor(partition="long,gpu_2")


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        ("os.system", {}, f"executor: _target_ must be one of {', '.join(sorted(TARGETS))}, got 'os.system'"),
        (SERIAL, {"workers": 2}, "workers must be None or 1 for the serial executor, got 2; use executor=processes"),
        (SERIAL, {"timeout": 5.0}, "timeout must be None for the serial .*, got 5.0; use executor=processes"),
        (PROCESSES, {"workers": 0}, "executor: workers must be a positive int or None, got 0; None takes"),
        (PROCESSES, {"workers": 1.5}, "executor: workers must be a whole number, got 1.5"),
        (PROCESSES, {"timeout": 0}, "executor: timeout must be positive seconds or None, got 0.0; None sets"),
        (PROCESSES, {"timeout": float("nan")}, "timeout must be positive seconds or None, got nan"),
        (RAY, {"workers": -1}, "workers must be a positive int or None, got -1"),
        (RAY, {"retries": -1}, "retries must be a whole number, 0 or more, got -1"),
        (SLURM, {"jobs_per_task": 0}, "jobs_per_task must be a whole number, 1 or more, got 0"),
        (SLURM, {"memory_gb": 0}, "memory_gb must be a positive number of GiB, got 0"),
        (SERIAL, {"memory": "4GB"}, "memory must be None for the serial .*, got '4GB'; use executor=processes"),
        (PROCESSES, {"memory": "4"}, "executor: memory must be a size such as 4GB, 500MB or 2GiB, or None, got '4'"),
        (PROCESSES, {"memory": 4}, "executor: memory must be a text .in quotes., got 4"),
        (SLURM, {"memory": "5GB"}, "memory must be at most the 4 GiB of a task, got '5GB'; raise memory_gb"),
        (SLURM, {"folder": ""}, "folder must be the name of a folder, .* got ''"),
        (SLURM, {"folder": "a\nrm -rf b"}, r"folder must be the name of a folder, .* got 'a\\nrm"),
        (SLURM, {"partition": "long\ncurl evil"}, "partition must be a name of ASCII letters"),
        (SLURM, {"partition": "--wrap=x"}, "partition must be a name of ASCII letters"),
        (RAY, {"address": "ray://evil:10001"}, "address must be host:port, auto or None, got 'ray://evil:10001'"),
        (RAY, {"address": "http://a@b:80"}, "address must be host:port"),
        (RAY, {"address": "evil:99999"}, "address must be host:port"),
        (RAY, {"address": "[::1"}, "address must be host:port"),
        (SLURM, {"cluster": "pbs"}, "cluster must be one of local, slurm, got 'pbs'"),
    ],
)
def test_what_cannot_be_is_reported(target: str | None, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        executor_of({"_target_": target, **options})
