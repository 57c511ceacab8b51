"""The documentation and the README: they build, what they show runs, links lead somewhere, no part is out of date."""

from __future__ import annotations

import io
import pydoc
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

import trimbench
import trimbench.estimators
from tests.test_package import loaded_by
from trimbench.papers.methods.missing_features import METHODS
from trimbench.reproduction.commands import cli
from trimbench.reproduction.commands.arguments import CommandLine
from trimbench.reproduction.configuration import NOT_SETTINGS, Catalogue
from trimbench.reproduction.project import SHARED_CONFIGURATION

from . import pages
from .command_line import Command

DOCS = pages.ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "tours")
HOW_TO = [path for path in PAGES if path.parent.name == "howto"]
IN_THE_REPOSITORY = [pages.ROOT / "README.md", pages.ROOT / "CONTRIBUTING.md", *PAGES]


@dataclass
class Html(HTMLParser):
    """Where a built page leads, and the places in it that a link can lead to."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    formulas: list[str] = field(default_factory=list)
    _in_formula: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value for key, value in attrs if value is not None}
        self.ids.update(values[key] for key in ("id", "name") if key in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") != "canonical":
            self.loaded.append(values["href"])
        elif "src" in values:
            self.loaded.append(values["src"])
        if tag == "math":
            self._in_formula = True
            self.formulas.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_formula &= tag != "math"

    def handle_data(self, data: str) -> None:
        if self._in_formula:
            self.formulas[-1] += data


@dataclass(frozen=True)
class Built:
    """The built documentation: its pages by their path in its folder."""

    folder: Path
    pages: dict[str, Html]

    def is_dead(self, page: str, link: str) -> bool:
        """Tell whether a link of a page leads nowhere, or, if it leaves the documentation, has the wrong form."""
        parts = urlsplit(link)
        if parts.scheme == "data":
            return False
        if parts.scheme or parts.netloc:
            return parts.scheme != "https" or "." not in parts.netloc
        target = self.folder / page
        if parts.path:
            target = (target.parent / unquote(parts.path)).resolve()
        if not target.is_file():
            return True
        anchor = unquote(parts.fragment)
        return bool(anchor) and anchor not in self.pages[target.relative_to(self.folder).as_posix()].ids


def build(folder: Path) -> Built:
    """Build the documentation strictly."""
    html = folder.resolve() / "html"
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--builder", "html"]
    options = [str(DOCS), str(html)]
    ended = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Html] = {}
    for path in html.rglob("*.html"):
        found[path.relative_to(html).as_posix()] = page = Html()
        page.feed(path.read_text(encoding="utf-8"))
    return Built(html, found)


def has_every_page(built: Built) -> None:
    sources = [*PAGES, *(DOCS / "tours").glob("*.ipynb")]
    expected = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in sources}
    assert len(expected) > 20
    assert expected <= set(built.pages)
    assert {name for name in expected if name.startswith("tours/")} <= {*built.pages["index.html"].links}


def has_no_dead_link(built: Built) -> None:
    links = [(name, link) for name, page in built.pages.items() for link in page.links]
    assert [f"{name}: {link}" for name, link in links if built.is_dead(name, link)] == []
    for link in ("nowhere.html", "tutorial.html#nothing", "#nothing", "https://", "https://nowhere", "ftp://a.org"):
        assert built.is_dead("index.html", link), link


def needs_no_network(built: Built) -> None:
    for name, page in built.pages.items():
        assert page.loaded, name
        for link in page.loaded:
            assert not urlsplit(link).scheme or link.startswith("data:"), (name, link)
            assert not built.is_dead(name, link), (name, link)


def has_its_formulas_in_full(built: Built) -> None:
    formulas = [formula for page in built.pages.values() for formula in page.formulas]
    assert len(formulas) > 100
    assert [formula for formula in formulas if "\\" in formula or not formula.strip()] == []


def test_the_build(tmp_path: Path) -> None:
    built = build(tmp_path)  # in one test, because building takes long and parallel tests share nothing
    for check in (has_every_page, has_no_dead_link, needs_no_network, has_its_formulas_in_full):
        check(built)


@pytest.mark.parametrize("path", IN_THE_REPOSITORY, ids=lambda path: path.relative_to(pages.ROOT).as_posix())
def test_files_and_names_that_a_page_mentions_exist(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        parts = urlsplit(link)
        target = path.parent / parts.path
        assert parts.scheme == "https" or target.exists(), link
        assert "tours" not in target.parts, "a host of code does not follow links of the file system"
    for name in re.findall(r"`((?:conf|scripts|requirements|docs|notebooks|trimbench|tests)/[\w./]+)`", text):
        assert (pages.ROOT / name).exists(), name
    for name in re.findall(r"scripts/bench/run (\w+)", path.read_text(encoding="utf-8")):
        assert (pages.ROOT / f"scripts/bench/{name}.py").exists(), name
    for name in re.findall(r"`(trimbench(?:\.\w+)+)`", text):
        assert pydoc.locate(name) is not None, name


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("path", HOW_TO, ids=lambda path: path.stem)
def test_a_page_can_be_followed(path: Path, command: Command) -> None:
    Path("results").mkdir()
    Path("results/published").symlink_to(pages.ROOT / "results/published")
    for line, printed, said in pages.follow(path):
        assert printed == said, f"{path.name}, line {line}"
    for arguments in pages.commands(path.read_text(encoding="utf-8")):
        if "--config-dir" in arguments:
            answer = command(*shlex.split(arguments), "executor=serial", code=0)
            if "-m" in shlex.split(arguments):
                assert [*Path("results").rglob("sweep.csv")]
            elif "task=plot" in arguments:
                assert answer.files
            else:
                assert "\ncomplete" in answer.out
                assert answer.files


SHOWN = sorted({
    arguments
    for path in IN_THE_REPOSITORY
    for arguments in pages.commands(path.read_text(encoding="utf-8"))
    if not re.search(r"--config-dir|--project|(^| )features=500( |$)", arguments)
})  # fmt: skip


@pytest.mark.parametrize("arguments", SHOWN)
def test_commands_are_understood(arguments: str, command: Command, request: pytest.FixtureRequest) -> None:
    words = shlex.split(arguments)
    if not any(word.startswith("experiment=") for word in words):
        request.getfixturevalue("few")
    if "--help" in words or "--cfg" in words:
        command(*words, code=0)
    else:
        assert cli._compose(CommandLine.of(words))


def test_there_are_commands_examples_and_a_notebook_for_each_family_and_gaps_to_check() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["conformant", "gaps", "selection_bias", "trimming"]
    assert len(SHOWN) > 15
    examples = [block for path in HOW_TO for block in pages.blocks(path.read_text(encoding="utf-8"), "python")]
    assert len(examples) > 15


@pytest.mark.usefixtures("undrawn")
def test_the_tutorial_can_be_followed(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    first, settings, changed, refused, *_, report = [pages.points(line)[0] for line in pages.commands(text)]
    table, complaint = pages.blocks(text, "text")

    assert table in command(*first, "executor=serial").out
    assert re.search(r"`(1 stored, 0 to run)`", text)
    assert "1 stored, 0 to run" in command(*first, "executor=serial").err
    assert "n_features=10000" in command(*settings).out
    answer = command(*changed, "executor=serial", code=0)
    assert "The paper reports nothing for n_features=500, ks=[5,50], replicates=4, so nothing is" in " ".join(
        answer.out.split()
    )
    (folder,) = re.findall(r"`(results/\w+/selection_bias)`", text)
    for end in (".png", "_points.csv"):
        names = [path.name for path in (tmp_path / folder).iterdir() if path.name.endswith(end)]
        assert names, end
        assert all(name.startswith("simulation__n_features-500__ks-5-50__replicates-4_") for name in names)
    answer = command(*refused, code=2)
    assert complaint.strip() in answer.err
    assert "n_features" in answer.err
    (page,) = set(re.findall(r"`(results/\S+\.html)`", text))
    assert not (tmp_path / page).exists()
    answer = command(*report, "offline=true", code=0)
    assert "\n3 of 3 numbers reproduced (3 as printed), with profile=quick\n" in answer.out
    assert re.search(r"\n## selection_bias/simulation: (\d+) of \1 jobs missing", answer.out)
    assert (tmp_path / page).is_file()


def test_the_reference_names_every_setting() -> None:
    text = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    rows = {name for row in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    shared = yaml.safe_load((SHARED_CONFIGURATION / "config.yaml").read_text(encoding="utf-8"))
    wanted = set(shared) - {"defaults", "hydra"} | {"experiment", "profile", "executor"}
    for path in (SHARED_CONFIGURATION / "executor").glob("*.yaml"):
        keys = yaml.safe_load(path.read_text(encoding="utf-8"))
        wanted |= {key for key in keys if key not in ("kind", "_target_")}
    assert wanted - rows == set()


TEXT = (pages.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short_and_its_example_of_each_family_prints_what_it_says() -> None:
    assert len(TEXT.splitlines()) <= 100
    shown = [*zip(pages.blocks(TEXT, "python"), pages.blocks(TEXT, "text"), strict=True)]
    assert len(shown) == 3
    for source, said in shown:  # each by itself, as a reader copies it
        with redirect_stdout(io.StringIO()) as printed:
            exec(source, {})
        assert printed.getvalue() == said


def test_the_installation_names_every_extra() -> None:
    text = (DOCS / "installation.md").read_text(encoding="utf-8")
    extras = tomllib.loads((pages.ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"^\| `pip install '\.\[(\w+)\]'` \|", text, re.MULTILINE)) == set(extras)


def test_the_committed_pages_of_the_api_are_current_and_have_every_public_name() -> None:
    module = import_module("scripts.api")
    texts = {path: path.read_text(encoding="utf-8") for path in module.PAGES}
    assert {path.name for path, text in texts.items() if text != module.written(text)} == set(), "run scripts/docs"
    for package in (trimbench, trimbench.estimators):
        names = [f"## `{package.__name__}.{name}`\n" for name in package.__all__]
        assert [name for name in names if not any(name in text for text in texts.values())] == []


def test_the_committed_picture_is_current_and_leaves_out_what_follows_from_others() -> None:
    drawing = import_module("scripts.architecture")
    assert drawing.PICTURE.read_text(encoding="utf-8") == drawing.picture(), "run scripts/docs"
    imports = {"trimbench.a": {"trimbench.b", "trimbench.c"}, "trimbench.b": {"trimbench.c"}, "trimbench.c": set()}
    assert list(drawing.needed(imports)) == [("trimbench.a", "trimbench.b"), ("trimbench.b", "trimbench.c")]
    assert drawing.levels(imports | {"trimbench.papers.d": {"trimbench.c"}})["trimbench.papers.d"] == 0


def test_the_committed_search_is_that_of_figure_2() -> None:
    module = import_module("scripts.search_tree")
    assert module.PICTURE.read_text(encoding="utf-8") == module.picture(), "run scripts/docs"
    last = module.nodes()[-1]
    assert (last.excluded, last.bound, last.agreement, last.pruned) == ((0,), 0.95, 0.97, True)


def test_the_committed_gallery_is_current_and_has_every_published_figure() -> None:
    module = import_module("scripts.gallery")
    text = module.GALLERY.read_text(encoding="utf-8")
    assert text == module.gallery(), "run scripts/docs"
    pictures = [path.relative_to(pages.ROOT).as_posix() for path in module.PUBLISHED.glob("*/*.png")]
    assert len(pictures) > 50
    assert [path for path in pictures if f'src="../{path}"' not in text] == []
    assert text.count("([points](") == len(pictures)


def test_the_gallery_names_what_is_not_published_yet(tmp_path: Path) -> None:
    module = import_module("scripts.gallery")
    (tmp_path / "trimming").mkdir()
    for name in ("table6", "table9"):
        (tmp_path / f"trimming/{name}.yaml").write_text("runner: x\n", encoding="utf-8")
    text = module.gallery(tmp_path)
    assert text.endswith("\n## Not published yet\n\nThe published run is older than `trimming/table9`.\n")


CATALOGUE = Catalogue()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def answer(*words: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys, "argv", ["trimbench", *words])
        cli.main()
        return capsys.readouterr().out.splitlines()

    return answer


USED = "from trimbench.papers.project import PROJECT; from trimbench.reproduction.project import use; use(PROJECT)"


def test_help_fits_a_screen_names_the_commands_and_loads_no_heavy_package(said: Any) -> None:
    modules, text = loaded_by(f"{USED}; from trimbench.reproduction.commands.cli import main; main()", "--help")
    assert modules == []
    lines = said("--help", "--resolve")
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    for part in ("task=list", "task=fetch", "task=report", "processes, ray, serial, slurm", "--help experiment"):
        assert part in text


def test_an_experiment_lists_its_settings_with_values_and_meanings(said: Any) -> None:
    lines = said("--help", "experiment=trimming/rows", "splits=7", "datasets=[vote]")
    assert "  splits=7                 random splits; default: 3" in lines
    assert max(map(len, lines)) <= 80
    assert said("task=describe", "experiment=trimming/rows", "splits=7", "datasets=[vote]") == lines
    text = " ".join(" ".join(lines).split())
    assert "datasets=[vote] data sets, names in problems; choices: adult, breast_cancer, diabetes, digits_odd," in text
    assert "default: [diabetes, heart_cleveland, vote, hepatitis, breast_cancer, digits_odd] problems={liv" in text
    assert "executor.workers=null number of processes; null takes every processor" in text
    assert any("gap_rows=1000" in line for line in said("task=study", "--help"))


def literals(hint: object) -> set[str]:
    return {*get_args(hint)} if get_origin(hint) is Literal else set().union(*map(literals, get_args(hint)))


@pytest.mark.parametrize("name", CATALOGUE.names("experiment"))
def test_every_setting_of_an_experiment_is_described_with_its_choices(name: str) -> None:
    values = yaml.safe_load(CATALOGUE.path("experiment", name).read_text(encoding="utf-8"))
    module, _, kind = values["runner"].partition(":")
    comments, hints = CATALOGUE.comments("experiment", name), get_type_hints(getattr(import_module(module), kind))
    for key in {*values} - {*NOT_SETTINGS, "defaults"}:
        assert comments[key]
        assert {one for one in literals(hints[key]) if one not in comments[key]} == set()
    if "the default has all" in comments.get("methods", ""):
        assert import_module(module).METHODS.keys() == {*values["methods"]}
    listed = CATALOGUE.comments("", "study")["methods"].partition(": ")[2].split(" | ")
    assert METHODS.keys() == {one.partition(" (")[0] for one in listed}


NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SECONDS = 20


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def printed(cells: list[NotebookNode]) -> list[str]:
    """Return what each cell prints, without rounding errors, which depend on the machine; it may come in parts."""
    streams = [[one.text for one in cell.get("outputs", []) if one.output_type == "stream"] for cell in cells]
    return [re.sub(r"\de-\d+", "tiny", "".join(texts)) for texts in streams if texts]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_draws_figures(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)  # commands of other tests set it
    notebook = read(path)
    assert 6 <= len(notebook.cells) <= 14
    stored = printed(notebook.cells)
    assert stored
    strict = new_code_cell("import time, warnings\nwarnings.simplefilter('error')\n_start = time.process_time()")
    # The kernel itself warns when it shuts down.
    relaxed = new_code_cell("warnings.simplefilter('ignore')\nprint(time.process_time() - _start)")
    notebook.cells = [strict, *notebook.cells, relaxed]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"] == []
    assert float("".join(output.text for output in notebook.cells[-1]["outputs"])) < SECONDS  # it may come in parts
    assert printed(notebook.cells[1:-1]) == stored, "run scripts/docs"
    assert {file.name for file in tmp_path.iterdir()} <= {"xdg"}
