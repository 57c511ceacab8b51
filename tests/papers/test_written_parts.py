"""The parts of the documentation that scripts write are current."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from . import pages


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, pages.ROOT / f"scripts/{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    return script("architecture")


def test_the_committed_picture_is_current(drawing: ModuleType) -> None:
    assert drawing.PICTURE.read_text(encoding="utf-8") == drawing.picture(), "run scripts/docs"


def test_the_committed_search_is_that_of_figure_2() -> None:
    module = script("search_tree")
    assert module.PICTURE.read_text(encoding="utf-8") == module.picture(), "run scripts/docs"
    last = module.nodes()[-1]
    assert (last.excluded, last.bound, last.agreement, last.pruned) == ((0,), 0.95, 0.97, True)


def test_every_room_is_a_box(drawing: ModuleType) -> None:
    root = ElementTree.fromstring(drawing.picture())
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    folders = [path.parent for path in (pages.ROOT / "trimbench").glob("**/__init__.py")]
    rooms = {path.name for path in folders if path.parent.name in ("trimbench", "papers")} - {"papers"}
    assert rooms <= texts
    assert not any(re.search("_compiling|_extras", text or "") for text in texts)


def test_an_arrow_that_follows_from_others_is_left_out(drawing: ModuleType) -> None:
    imports = {"trimbench.a": {"trimbench.b", "trimbench.c"}, "trimbench.b": {"trimbench.c"}, "trimbench.c": set()}
    assert list(drawing.needed(imports)) == [("trimbench.a", "trimbench.b"), ("trimbench.b", "trimbench.c")]
    assert drawing.levels(imports | {"trimbench.papers.d": {"trimbench.c"}})["trimbench.papers.d"] == 3


def test_the_committed_gallery_is_current_and_has_every_published_figure() -> None:
    module = script("gallery")
    text = module.GALLERY.read_text(encoding="utf-8")
    assert text == module.gallery(), "run scripts/docs"
    pictures = [path.relative_to(pages.ROOT).as_posix() for path in module.PUBLISHED.glob("*/*.png")]
    assert len(pictures) > 50
    assert [path for path in pictures if f'src="../{path}"' not in text] == []
    assert text.count("([points](") == len(pictures)


def test_the_gallery_names_what_is_not_published_yet(tmp_path: Path) -> None:
    module = script("gallery")
    (tmp_path / "trimming").mkdir()
    for name in ("table6", "table9"):
        (tmp_path / f"trimming/{name}.yaml").write_text("runner: x\n", encoding="utf-8")
    text = module.gallery(tmp_path)
    assert text.endswith("\n## Not published yet\n\nThe published run is older than `trimming/table9`.\n")
