"""Which data is here, and what stands in the way of data that is there and cannot be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import Declaration, declare_dataset, declare_network, is_here, obstacle
from trimbench.papers.validation import DataUnavailable
from trimbench.papers.vocabulary.planning import fetch

PROJECT = Catalogue((configuration_folder(),))
OPENML = "openml/org/openml/www/datasets/1590"
NEEDS: dict[str, tuple[Declaration, list[str]]] = {
    "openml": (
        declare_dataset("adult", PROJECT.dataset_mapping("adult")),
        [f"{OPENML}/dataset_1590.pq", f"{OPENML}/description.xml", f"{OPENML}/features.xml"],
    ),
    "r": (declare_dataset("colon", PROJECT.dataset_mapping("colon")), ["files/colon/colon.csv.gz"]),
    "network": (
        declare_network("cpcs54", PROJECT.network_mapping("cpcs54")),
        ["files/uai2008/PE/uai-2006/BN_78.erg.gz", "files/uai2008_evidence/PE/uai-2006/BN_78.erg.evid.gz"],
    ),
}


@pytest.mark.parametrize("kind", NEEDS)
def test_a_file_that_cannot_be_read_is_an_obstacle_unless_there_is_a_good_copy(kind: str, tmp_path: Path) -> None:
    need, paths = NEEDS[kind]
    first, second = tmp_path / "first", tmp_path / "second"
    cache = Cache((first,), first, offline=True)
    assert (is_here(need, cache), obstacle(need, cache)) == (False, "")
    for path in paths[1:]:
        (first / path).parent.mkdir(parents=True, exist_ok=True)
        (first / path).touch()
    (first / paths[0]).mkdir(parents=True)
    assert not is_here(need, cache)
    assert obstacle(need, cache) == (
        f"{first / paths[0]} cannot be read (Is a directory); make it readable, or remove it and run "
        "trimbench task=fetch"
    )
    (second / paths[0]).parent.mkdir(parents=True)
    (second / paths[0]).touch()
    both = replace(cache, folders=(first, second))
    assert (is_here(need, both), obstacle(need, both)) == (True, "")


def test_a_link_to_nothing_is_an_obstacle(tmp_path: Path) -> None:
    path = tmp_path / NEEDS["r"][1][0]
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "nowhere")
    cache = Cache((tmp_path,), tmp_path)
    assert obstacle(NEEDS["r"][0], cache).startswith(f"{path} is a link to a file that does not exist; make it")


def test_a_folder_that_cannot_be_searched_is_missing_data(monkeypatch: pytest.MonkeyPatch) -> None:
    need, _ = NEEDS["network"]

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    cache = Cache((Path("closed"),), Path("closed"), offline=True)
    assert not is_here(need, cache)
    with pytest.raises(DataUnavailable, match=r"Permission denied: 'closed/files/.*/BN_78\.erg\.gz'"):
        fetch(need, cache)
