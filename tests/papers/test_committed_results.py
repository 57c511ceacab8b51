"""The results in the repository: the README says what is in them, and they say where they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.reporting.verdicts import VERDICTS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXPERIMENTS = Catalogue((configuration_folder(),)).names("experiment")
NAMES = {"trimming": "Robust trimming", "conformant": "NaCL", "selection_bias": "Selection bias"}


def kept(*parts: str) -> Path:
    return ROOT.joinpath("results", *parts)


def whole_run() -> bool:
    """Whether the results are those that are committed, and not of a run of one's own in this folder."""
    return kept("summary.csv").exists() and "profile paper" in kept("index.html").read_text(encoding="utf-8")


needs_results = pytest.mark.skipif(not whole_run(), reason="results/ holds another run than the committed one")


@needs_results
def test_the_readme_has_the_verdicts_of_the_committed_run() -> None:
    summary = pd.read_csv(kept("summary.csv"))
    assert summary["experiment"].tolist() == EXPERIMENTS
    families = summary.groupby(summary["experiment"].str.split("/").str[0])[list(VERDICTS)].sum()
    for family, name in NAMES.items():
        counts = [int(families.loc[family, verdict]) for verdict in VERDICTS]
        line = " | ".join([name, str(sum(counts)), *map(str, counts)])
        assert f"| {line} |" in README


@needs_results
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_its_provenance(name: str) -> None:
    about = json.loads(kept(f"{name}.json").read_text(encoding="utf-8"))
    assert about["experiment"] == name
    assert about["configuration"]["profile"]["name"] == "paper"
    assert about["configuration"]["results"] == "results", "a folder of the machine is nothing to a reader"
    for file in about["files"]:
        assert kept(name).with_name(file).is_file()
    assert re.fullmatch(r"[0-9a-f]{40}", about["written_with"]["commit"])
    assert set(about["jobs"].values()) <= {"ok", "failed", "timeout", "crashed", "missing"}
