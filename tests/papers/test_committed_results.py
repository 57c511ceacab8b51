"""The results in the repository: the README says what is in them, and they say where they come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.reporting.verdicts import COLUMNS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PUBLISHED = pd.read_csv(ROOT / "results/published/summary.csv")["experiment"].tolist()
# What the README counts, in the words of the page.
SHOWN = {
    "as printed": ("exact", "identities exact", "holds"),
    "close": ("within", "identities within", "curves within"),
    "better": ("trend",),
    **{"explained": ("explained",), "contradicted": ("contradicts itself",), "chance": ("chance",)},
    "open": ("unexplained",),
}
NAMES = {"trimming": "Robust trimming", "conformant": "NaCL", "selection_bias": "Selection bias"}


def kept(*parts: str) -> Path:
    return ROOT.joinpath("results/published", *parts)


def test_it_takes_at_most_15_megabytes() -> None:
    assert sum(path.stat().st_size for path in kept().rglob("*") if path.is_file()) <= 15e6


def test_it_is_one_run_of_the_profile_paper() -> None:
    assert json.loads(kept("run.json").read_text()) == {"profile": "paper"}


def test_the_readme_has_the_verdicts_of_the_committed_run() -> None:
    summary = pd.read_csv(kept("summary.csv"))
    # A new experiment is published with the next run; until then the gallery says that it is not.
    assert set(PUBLISHED) <= set(Catalogue((configuration_folder(),)).names("experiment"))
    families = summary.groupby(summary["experiment"].str.split("/").str[0])[list(COLUMNS)].sum()
    for family, name in NAMES.items():
        line = " | ".join([name, *(str(families.loc[family, [*columns]].sum()) for columns in SHOWN.values())])
        assert f"| {line} |" in README
    assert f"| paper | {' | '.join(SHOWN)} |" in README


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_experiment_has_its_provenance(name: str) -> None:
    about = json.loads(kept(f"{name}.json").read_text(encoding="utf-8"))
    assert about["experiment"] == name
    assert about["configuration"]["profile"]["name"] == "paper"
    assert about["configuration"]["results"] == "results", "a folder of the machine is nothing to a reader"
    for file in about["files"]:
        assert kept(name).with_name(file).is_file()
    for figure in about["figures"]:
        assert {figure["points"], *figure["pictures"]} <= set(about["files"])
    assert re.fullmatch(r"[0-9a-f]{40}", about["written_with"]["commit"])
    assert set(about["jobs"].values()) <= {"ok", "failed", "timeout", "memory", "crashed", "missing"}
