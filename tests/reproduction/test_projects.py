"""A project in a folder, and what a project may add: kinds of data, sources and tasks."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from trimbench.reproduction.project import use

from .command_line import Answer, Command, file_of_run, run_here, write
from .conftest import BARE

COINS = {
    "project.yaml": "name: coins\ntitle: Coins, tossed again\ncitation: Nobody (1900)\n",
    "coins.py": '''
"""Coins that are tossed, some of which get lost."""

from trimbench.reproduction import SHARE, Cell, LineFigure, Outcome, Table
from trimbench.reproduction import groups, job, mean_of, numbers_of, seed_for, settings


@settings
class Heads:
    coins: list[str]
    tosses: int
    lost: str
    seed: int

    def cells(self, inputs):
        return [
            Cell.of({"coin": coin, "replication": n}, toss, self, seed=seed_for(coin=coin, n=n, seed=self.seed))
            for coin in self.coins
            for n in range(3)
        ]

    def outcome(self, rows):
        lines, numbers = [], []
        for labels, done in groups(rows, "coin"):
            heads = mean_of(done["heads"], "prediction", limits=(0, 1))
            lines.append(labels | {"heads": heads.value})
            numbers += numbers_of(labels["coin"], {"heads": heads}, done)
        return Outcome((Table.of("Heads", lines, {"coin": "", "heads": ".2f"}),), (), numbers)


@job(heads=SHARE)
def toss(coin: str, tosses: int, lost: str, seed: int) -> dict:
    if coin == lost:
        raise LookupError(f"the {coin} rolled under the table")
    return {"heads": sum((seed >> n) % 2 for n in range(tosses)) / tosses}
''',
    "experiment/tosses/heads.yaml": "# @package _global_\nrunner: coins:Heads\n"
    "coins: [penny, dime]\ntosses: 40\nlost: nothing\n",
    "reported/tosses.yaml": """
tosses/heads:
  source: Nobody (1900), page 1
  rules: {heads: {kind: interval}}
  numbers: {penny: {heads: "0.5"}, dime: {heads: "1.2"}}
""",
}


@pytest.fixture(autouse=True)
def _no_module_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of a project are forgotten with the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name in ("coins", "means", "holte"):
            del sys.modules[name]


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    write(tmp_path / "coins", COINS)
    return tmp_path / "coins"


def at(folder: Path, *words: str, code: int | None = 0) -> Answer:
    return run_here("--project", str(folder), *words, code=code)


def test_a_new_project_runs_and_reproduces_its_numbers(command: Command) -> None:
    answer = command("task=new", "project=irises", code=0)
    assert "trimbench --project irises" in answer.out
    written = {path.relative_to("irises").as_posix() for path in Path("irises").rglob("*") if path.is_file()}
    files = ["dataset/iris.yaml", "experiment/fisher/table2.yaml", "means.py", "project.yaml", "reported/fisher.yaml"]
    assert written == {*files}
    ran = at(Path("irises"), "executor=serial")
    assert f"The code in {Path('irises').absolute()} runs: --project names it." in ran.err
    assert "8 of 8 numbers reproduced (8 as printed)\n" in ran.out
    assert "4.260" in Path("results/quick/fisher/table2.html").read_text(encoding="utf-8")
    assert "Fisher (1936): The use of" in Path("results/quick/paper_fisher.html").read_text(encoding="utf-8")
    assert "2 of 2 run in" not in at(Path("irises"), "executor=serial").err, "its jobs are stored"


def test_a_new_project_replaces_nothing(command: Command) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").touch()
    answer = command("task=new", "project=mine", code=2)
    assert answer.err.startswith("project must be a folder that is empty or new, got 'mine'; name another")
    assert [*Path("mine").iterdir()] == [Path("mine/notes.txt")]


@pytest.mark.usefixtures("undrawn")
def test_worker_processes_take_up_the_project(coins: Path) -> None:
    serial = at(coins, "executor=serial", "results=serial")
    workers = at(coins, "executor.workers=2", "results=workers")
    assert "6 of 6 run in" in workers.err
    assert [*map(table, ("serial", "workers"))] == [table("serial")] * 2
    assert "1 of 2 numbers reproduced (1 as printed), 1 differs" in serial.out


def table(results: str) -> str:
    return (Path(results) / "quick/tosses/heads_table.csv").read_text(encoding="utf-8")


def test_a_failed_job_costs_its_row_alone(coins: Path) -> None:
    answer = at(coins, "experiment=tosses/heads", "executor.workers=2", "lost=dime", code=1)
    assert "LookupError: the dime rolled under the table" in answer.err + answer.out
    text = file_of_run("tosses/heads", ".md").read_text(encoding="utf-8")
    heads = text.partition("## Heads")[2].partition("##")[0]
    assert "penny" in heads
    assert "dime" not in heads


@pytest.mark.usefixtures("undrawn")
def test_a_setting_that_repeats_its_file_changes_nothing(coins: Path) -> None:
    plain = at(coins, "experiment=tosses/heads", "executor=serial")
    again = at(coins, "experiment=tosses/heads", "executor=serial", "tosses=40", "coins=[penny,dime]", "seed=2018")
    assert again.out == plain.out
    assert "1 of 2 numbers reproduced" in again.out
    other = at(coins, "experiment=tosses/heads", "executor=serial", "tosses=40", "lost=penny", code=1)
    assert "numbers reproduced" not in other.out
    written = {path.name for path in Path("results/quick/tosses").glob("*.md")}
    assert written == {"heads.md", "heads__lost-penny.md"}


def test_a_sweep_of_a_project(coins: Path) -> None:
    answer = at(coins, "-m", "experiment=tosses/heads", "tosses=10,40", "executor=serial")
    assert "12 of 12 run in" in answer.err
    assert [*Path("results").rglob("sweeps/*/*.csv")]


def test_what_a_project_has_is_listed_and_described(coins: Path) -> None:
    assert "tosses/heads" in at(coins, "task=list").out
    described = at(coins, "experiment=tosses/heads", "--help").out
    assert "tosses=40" in described
    assert "Coins, tossed again" in at(coins, "--help").out


def test_each_project_has_a_folder_and_settings_of_its_own(coins: Path, tmp_path: Path) -> None:
    run_here("task=new", f"project={tmp_path / 'irises'}", code=0)
    at(coins, "executor=serial")
    assert "experiment must be one of fisher/table2, got 'tosses/heads'" in " ".join(
        at(tmp_path / "irises", "experiment=tosses/heads", code=2).err.split()
    )


@pytest.mark.usefixtures("undrawn")
def test_a_project_without_profiles_names_none(coins: Path) -> None:
    ran = at(coins, "executor=serial")
    texts = [path.read_text(encoding="utf-8") for path in Path("results").rglob("*.html")]
    assert texts
    assert not [text for text in (ran.out, at(coins, "--help").out, *texts) if "profile" in text]
    page = file_of_run("tosses/heads", ".html").read_text(encoding="utf-8")
    [printed] = re.findall("Run again with <code>trimbench --project coins (.*?)</code>", page)
    at(coins, *re.sub("<.*?>", "", printed).split(), "executor=serial")
    refused = at(coins, "profile=quick", "task=list", code=2).err
    assert "profile must be left out, got 'quick': this project has no profiles" in refused
    assert "one of ," not in refused


@pytest.mark.usefixtures("undrawn")
def test_the_first_page_has_the_projects_title_and_no_words_of_other_papers(coins: Path) -> None:
    assert "\n1 experiment\n" in at(coins, "executor=serial").out
    page = Path("results/quick/index.html").read_text(encoding="utf-8")
    assert "<h1>Coins, tossed again</h1>" in page
    body = page.partition("<main")[2]
    assert body
    assert not [word for word in ("NaCL", "FS-SDD", "AMLP", "faster") if word in body]


@pytest.mark.usefixtures("undrawn")
def test_a_project_with_profiles_names_them(coins: Path) -> None:
    write(coins, {"profile/quick.yaml": "name: quick\n", "profile/paper.yaml": "name: paper\n"})
    assert "1 differs (unexplained), with profile=quick" in at(coins, "executor=serial").out
    page = file_of_run("tosses/heads", ".html").read_text(encoding="utf-8")
    assert "profile=quick</code>" in page
    assert "profile=paper, quick" in at(coins, "--help").out


# What is wrong with a project is said in one sentence.

WRONG = {
    "no folder": ({"project.yaml": None}, "--project must be a folder with a file project.yaml, got"),
    "an unknown key": (
        {"project.yaml": "name: a\ntitle: b\ntitel: c\n"},
        "each key must be one of cache_variable, citation, name, packages, title, got 'titel'; did you mean 'title'?",
    ),
    "no title": ({"project.yaml": "name: a\n"}, "key title is missing"),
    "a name with a space": (
        {"project.yaml": "name: a b\ntitle: c\n"},
        "name must be a name of ASCII letters, digits and _ . -, got 'a b'",
    ),
    "a list": ({"project.yaml": "[1]\n"}, "project.yaml must hold keys and values, got list"),
    "no YAML": ({"project.yaml": "name: [\n"}, "project.yaml cannot be read: "),
    "the name of a module": ({"json.py": ""}, "has the name of a module that is installed; rename it"),
    "the name of a package": ({"pandas/__init__.py": ""}, "has the name of a module that is installed; rename it"),
    "no such class": ({"experiment/tosses/heads.yaml": "# @package _global_\nrunner: coins:Tails\n"}, "'Tails'"),
    "no such module": (
        {"experiment/tosses/heads.yaml": "# @package _global_\nrunner: pennies:Heads\n"},
        "got 'pennies:Heads', but there is no such module; those of the project are coins\n",
    ),
    "a misspelt module": (
        {"experiment/tosses/heads.yaml": "# @package _global_\nrunner: coin:Heads\n"},
        "got 'coin:Heads', which is no module of the project; did you mean 'coins:Heads'?\n",
    ),
    "a module of somebody else": (
        {"experiment/tosses/heads.yaml": "# @package _global_\nrunner: json:Heads\n"},
        "got 'json:Heads', which is code from outside coins; if you trust it, add --allow-code=json\n",
    ),
    "the line for Hydra is missing": (
        {"experiment/tosses/heads.yaml": "runner: coins:Heads\n"},
        "experiment tosses/heads: its file must begin with the line '# @package _global_'",
    ),
    "no runner": (
        {"experiment/tosses/heads.yaml": "# @package _global_\ncoins: [penny]\n"},
        "experiment tosses/heads: key runner is missing; add 'runner: module:Class' to its file\n",
    ),
    "a rule without its tolerance": (
        {"reported/tosses.yaml": "tosses/heads: {source: a, rules: {heads: {kind: within}}, numbers: {}}\n"},
        "rules.heads: tolerance must be a positive number where kind is within",
    ),
    "a package that is not installed": (
        {"project.yaml": "name: coins\ntitle: Coins\npackages: [nosuchpkg]\n"},
        "packages must be installed distributions, whose versions are recorded, got 'nosuchpkg'; install it, correct",
    ),
    "a setting of another type": (
        {"experiment/tosses/heads.yaml": "# @package _global_\nrunner: coins:Heads\ncoins: penny\ntosses: 1\n"},
        "coins must be",
    ),
    "a rule for nothing": (
        {"reported/tosses.yaml": "tosses/heads: {source: a, rules: {}, numbers: {penny: {heads: '1'}}}\n"},
        "'heads'",
    ),
    "a module that does not load": ({"coins.py": "import nothing_of_that_name\n"}, "nothing_of_that_name"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_with_a_project_is_said_in_one_sentence(coins: Path, wrong: str) -> None:
    changes, said = WRONG[wrong]
    for name, text in changes.items():
        (coins / name).unlink(missing_ok=True)
        if text is not None:
            write(coins, {name: text})
    answer = at(coins, "executor=serial", code=2)
    message = answer.err.removeprefix(f"The code in {coins} runs: --project names it.\n")
    assert said in message
    assert message.count("\n") == 1
    assert len(message) < 500


@pytest.mark.usefixtures("package", "undrawn")
def test_a_wrong_declaration_among_other_experiments_is_a_sentence(command: Command, tmp_path: Path) -> None:
    wrong = KINDS["experiment/tables/counts.yaml"].replace("dataset: die", "dataset: worn")
    write(tmp_path / "conf", {"experiment/tables/worn.yaml": wrong, "dataset/worn.yaml": "kind: dise\n"})
    answer = command("executor=serial", code=1)
    assert "## tables/worn: failed\n\ndata set 'worn': kind must be one of" in answer.out
    assert "did you mean 'dice'?" in answer.out
    assert "Traceback" not in answer.out + answer.err
    assert file_of_run("tables/counts", ".md").is_file()


def test_a_number_that_is_not_reported_fails_the_run_with_a_hint(coins: Path) -> None:
    path = coins / "reported/tosses.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("penny:", "pennny:"), encoding="utf-8")
    answer = at(coins, "executor=serial", code=1)
    assert "number penny/heads is computed, but not reported" in answer.err + answer.out
    assert "did you mean 'pennny/heads'?" in answer.err + answer.out
    assert "or add it to coins/reported/tosses.yaml;" in answer.err + answer.out


def test_a_declaration_folder_is_no_module(coins: Path) -> None:
    write(coins, {"results/__init__.py": "", "dataset/__init__.py": ""})
    assert "tosses/heads" in at(coins, "task=list").out


# What a project that is a package adds.

KINDS = {
    "experiment/tables/counts.yaml": "# @package _global_\nrunner: tests.reproduction.kinds:Counts\n"
    "deck: skat\ndataset: die\n",
    "deck/skat.yaml": "cards: [seven, eight, nine]\n",
    "dataset/die.yaml": "kind: dice\nsides: 8\nfacts: {rows: 8, features: 1}\n",
    "greet.yaml": "defaults: [config, _self_]\ntask: greet\nwhom: everybody\nnames: {}\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    """The project is one with an input, a source and a task of its own."""
    folder = tmp_path / "conf"
    write(folder, KINDS)
    use(
        dataclasses.replace(
            BARE,
            configuration=folder,
            code=("tests.reproduction",),
            inputs={"deck": "tests.reproduction.kinds:declare_deck"},
            sources={"dice": "tests.reproduction.kinds:Dice"},
            tasks={"greet": "tests.reproduction.kinds:greet"},
            open_keys={"greet": ("names",)},
        )
    )
    yield
    use(BARE)


@pytest.mark.usefixtures("package")
def test_a_project_registers_kinds_of_inputs_and_sources(command: Command) -> None:
    assert "skat" in command("task=fetch", code=0).out
    command("executor=serial", code=0)
    assert "|       3 |       8 |" in file_of_run("tables/counts", ".md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("package")
def test_a_wrong_declaration_of_a_registered_kind_is_named(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "conf", {"deck/skat.yaml": "cards: seven\n"})
    assert "deck 'skat': cards must be a list, got 'seven'" in command("executor=serial", code=1).out
    write(tmp_path / "conf", {"deck/skat.yaml": "cards: []\n", "dataset/die.yaml": "kind: cards\n"})
    assert "data set 'die': kind must be one of" in command("executor=serial", code=1).out


@pytest.mark.usefixtures("package")
def test_a_project_registers_a_task_with_keys_of_its_own(command: Command) -> None:
    assert command("task=greet", "whom=you", "names.first=Ada", code=3).out == "Good morning, you; Ada\n"
    assert "whom" in command("task=greet", "who=you", code=2).err
    assert "greet" in command("task=great", code=2).err


# The fourth paper.

HOLTE = Path(__file__).parents[2] / "examples/holte"


def test_the_fourth_paper_reruns_on_what_an_installation_has(tmp_path: Path) -> None:
    shutil.copytree(HOLTE, tmp_path / "holte")
    settings = tmp_path / "holte/experiment/holte/table3.yaml"
    text = re.sub("^datasets: .*", "datasets: {IR: iris}", settings.read_text(encoding="utf-8"), flags=re.MULTILINE)
    settings.write_text(text, encoding="utf-8")
    answer = at(
        tmp_path / "holte", "experiment=holte/table3", "replications=2", "splits=2", "executor=serial", code=None
    )
    assert "2 of 2 run in" in answer.err
    [accuracies] = re.findall(r"^\| IR +\| +([\d.]+) \| +([\d.]+) \|$", answer.out, re.MULTILINE)
    assert all(75 < float(one) < 100 for one in accuracies)


def test_the_fourth_paper_is_small_and_stands_on_the_framework_alone() -> None:
    texts = [path.read_text(encoding="utf-8") for path in HOLTE.rglob("*") if path.suffix in (".py", ".yaml")]
    assert sum(bool(line.strip()) for text in texts for line in text.splitlines()) <= 120
    code = (HOLTE / "holte.py").read_text(encoding="utf-8")
    imported = {
        line.split()[1].partition(".")[0] for line in code.splitlines() if line.startswith(("from ", "import "))
    }
    assert imported == {"bisect", "collections", "itertools", "sklearn", "trimbench"}


def test_one_rules_take_the_interval_and_the_feature_that_err_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HOLTE))
    holte = import_module("holte")
    values = [*map(float, range(20))]
    classes = ["low"] * 9 + ["high"] * 11
    assert holte.interval_ends(values, classes) == [8.5]
    assert holte.interval_ends(values, ["low"] * 5 + ["high"] * 15) == [], "five rows are too few for an interval"
    assert holte.interval_ends([1.0] * 20, classes) == [], "equal values are not told apart"
    assert holte.interval_ends(["a", "missing"] * 10, classes) == [], "texts have no intervals"
    rows = [{"colour": "red", "size": value} for value in values]
    test = [{"colour": "red", "size": 3.0}, {"colour": "blue", "size": 30.0}, {"colour": "blue", "size": "missing"}]
    assert holte.one_rule(rows, classes, test) == ["low", "high", "high"], "a value that is new has the usual class"


CITATION = """cff-version: 1.2.0
message: Cite it.
title: Coins
authors: [{name: Nobody}]
license: MIT
abstract: Two coins.
"""


def test_an_archive_needs_what_to_cite(coins: Path) -> None:
    at(coins, "executor=serial")
    wanted = f"archive=true needs a file CITATION.cff with authors, license and abstract, got none in {coins}; write"
    assert wanted in at(coins, "task=report", "archive=true", code=2).err
    write(coins, {"CITATION.cff": CITATION})
    at(coins, "task=report", "archive=true")
    [path] = Path("results").rglob("*.zip")
    with zipfile.ZipFile(path) as archive:
        [name] = [one for one in archive.namelist() if one.endswith("ro-crate-metadata.json")]
        assert "The run quick of coins" in archive.read(name).decode()
