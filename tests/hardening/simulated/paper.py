"""A paper whose experiments take no time: what the simulated runs run."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from tests.papers.command_line import write
from trimbench.reproduction import NUMBER, Cell, Inputs, Outcome, Table, groups, job, numbers_of, settings
from trimbench.reproduction.commands import cli
from trimbench.reproduction.commands.arguments import CommandLine, Invocation
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import remember
from trimbench.reproduction.project import Project

_REPORTED = """
paper: {title: Powers, citation: "Nobody: Powers"}
powers/squares:
  source: "Nobody, Table 1"
  table: Table 1
  rules: {value: {kind: exact}}
  numbers: {"1": {value: "1.0"}, "2": {value: "4.0"}, "3": {value: "9.5"}}
powers/halves:
  source: "Nobody, Table 2"
  table: Table 2
  rules: {value: {kind: exact}}
  numbers: {"1": {value: "0.5"}, "4": {value: "2.0"}}
"""
_EXPERIMENT = "# @package _global_\n# Powers.\nrunner: {module}:Powers\nbases: {bases}\nexponent: {exponent}\n"


@settings
class Powers:
    """Powers of numbers."""

    bases: list[int]
    exponent: float

    def cells(self, inputs: Inputs) -> list[Cell]:
        return [Cell.of({"base": base}, power, base=base, exponent=self.exponent) for base in self.bases]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        lines, numbers = [], []
        for labels, done in groups(rows, "base"):
            value = float(done["value"].iloc[0])
            lines.append({"base": labels["base"], "value": value})
            numbers += numbers_of(str(labels["base"]), {"value": value}, done)
        return Outcome((Table.of("Powers", lines, {"base": "", "value": ".1f"}),), (), numbers)


@job(value=NUMBER)
def power(base: int, exponent: float) -> dict[str, float]:
    """Return a power; half of them keep an array."""
    if base % 2:
        kept = remember("power", {"base": base, "exponent": exponent}, lambda: {"all": right(base, exponent)})
        return {"value": float(kept["all"][0])}
    print("computed", base)
    return {"value": float(right(base, exponent)[0])}


def right(base: int, exponent: float) -> np.ndarray:
    """Return what is right: the square, or half of the number."""
    return np.array([base * base if exponent == 2 else base / 2])


def jobs() -> dict[str, tuple[Job, float]]:
    """Return all jobs by key, with the right value of each."""
    asked = [(base, 2.0) for base in (1, 2, 3)] + [(base, -1.0) for base in (1, 4)]
    made = [(Job.create(power, {"base": b, "exponent": e}), float(right(b, e)[0])) for b, e in asked]
    return {one.key: (one, value) for one, value in made}


def make_project(folder: Path) -> Project:
    """Write the project into a folder, and commit it there."""
    module = __name__
    texts: Mapping[str, str] = {
        "conf/reported/powers.yaml": _REPORTED.lstrip(),
        "conf/experiment/powers/squares.yaml": _EXPERIMENT.format(module=module, bases="[1, 2, 3]", exponent=2.0),
        "conf/experiment/powers/halves.yaml": _EXPERIMENT.format(module=module, bases="[1, 4]", exponent=-1.0),
    }
    write(folder, texts)
    git = ["git", "-C", str(folder), "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Powers"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    about = {"name": "powers", "command": "powers", "title": "Powers, rerun", "citation": "Nobody"}
    return Project(
        reference="", folder=folder, configuration=folder / "conf", code=(module,), deciding=("numpy",), **about
    )


def asked(results: Path, *words: str) -> Invocation:
    """Return what a command line asks for in a folder of results."""
    line = CommandLine.of(["executor=serial", "offline=true", f"results={results}", *words])
    found = cli._compose(line)
    assert found is not None
    return dataclasses.replace(found, settings=dataclasses.replace(found.settings, results=str(results)))
