"""Mistakes on the command line: each is explained, and nothing runs."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from trimbench.reproduction.commands import tasks
from trimbench.reproduction.commands.arguments import CommandLine, Composer, check_settings, setting
from trimbench.reproduction.commands.common_settings import SHARED_KEYS, task_names
from trimbench.reproduction.configuration import NOT_SETTINGS
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.planning import make_experiment

from ..command_line import CURVE, FEW, OTHER, PROJECT, T4, T6, Command, write

pytestmark = pytest.mark.usefixtures("few")

EXECUTORS, NETWORKS = (", ".join(PROJECT.names(group)) for group in ("executor", "network"))
EXPERIMENTS = ", ".join(FEW)
FIRST_KEY = "setting must be one of against,"
SHARED = (
    f"{FIRST_KEY} archive, cache_mode, executor, experiment, figure, minutes, offline, only, profile, project, remove, "
)
SHARED += "reported, results, roads, run, runs, seed, task, values, verify, got"
PROFILE = ", ".join(sorted(PROJECT.mapping("profile", "quick")))
TASK = (
    "task must be one of adopt, audit, check, compare, describe, fetch, list, new, plot, publish, report, run, study, "
    "verdict, got"
)
EXPERIMENT_FOLDER = project().configuration / "experiment/trimming"
IN4, IN6, IN_CURVE = (f"experiment trimming/{name}:" for name in ("table4", "table6", "breast_cancer"))
NO = "a setting must be key=value, without spaces, got"
UN = f"experiment must be one of {EXPERIMENTS}, got"
RUNNER = f"{IN6} runner must be 'module:class' of an experiment, got"

# What a user may get wrong, and the start of the answer.
NAMES = [
    ("experiment=trimming/tabel6", f"{UN} 'trimming/tabel6'; did you mean 'trimming/table6'?"),
    ("experiment=table4", f"{UN} 'table4'; did you mean 'conformant/table4' or 'trimming/table4'?\n"),
    ("experiment=null", f"{UN} 'null'"),
    ("experiment=", f"{UN} ''"),
    (f"{T4}.yaml", f"{UN} 'trimming/table4.yaml'; did you mean 'trimming/table4'?\n"),
    (f"{T4},trimming/table6", f"experiment must have one value, got {T4},trimming/table6; add -m to run with each\n"),
    ("seed=1,2", "seed must have one value, got seed=1,2; add -m to run with each\n"),
    ("-m experiment=trimming/table4,trimming/table7", f"{UN} 'trimming/table7'"),
    ("executor=proceses", f"executor must be one of {EXECUTORS}, got 'proceses'; did you mean 'processes'?"),
    ("executor=null", f"executor must be one of {EXECUTORS}, got 'null'"),
    ("~executor", f"executor must be one of {EXECUTORS}, got 'None'"),
    ("profile=papers", "profile must be one of paper, quick, got 'papers'; did you mean 'paper'?"),
    ("task=rum", f"{TASK} 'rum'; did you mean 'run'?"),
    ("data=t.csv task=studdy", f"{TASK} 'studdy'; did you mean 'study'?"),
    ("cache_mode=onyl", "configuration: cache_mode must be one of default, ignore, only, got 'onyl'"),
    ("task=study data=t.csv,u.csv", "data must have one value, got data=t.csv,u.csv; run the command once with each\n"),
    ("task=study data=t.csv target=true", "target must be a text, got True; quote it twice: 'target=\"...\"'\n"),
    ("task=study data=https://a.b/t.csv target=y", "data must be a file, got 'https://a.b/t.csv'; download it first"),
    ("task=study budgets=1,2", "budgets must be a list, got 1,2; write 'budgets=[1,2]'\n"),
    ("task=study -m data=t.csv", "task must be run or report in a sweep, got 'study'; give each setting one value, "),
    ("-m experiment=glob(trimming/*)", "a swept setting must have values separated by commas or a range, got expe"),
    ("--config-dir nowhere", "--config-dir must be an existing folder, got 'nowhere'"),
    (f"{T6} networks=[pim]", f"network must be one of {NETWORKS}, got 'pim'"),
    (f"{T6} networks=[c432]", "networks must have a `target` and a `positive` in their declarations, as anatomy, "),
]  # fmt: skip
KEYS = [
    ("sed=3", f"{SHARED} 'sed'; did you mean seed=3? Or add experiment=... for a setting of an experiment\n"),
    ("splits=3", f"{SHARED} 'splits'"),
    ("cache_mode.more=1", f"{SHARED} 'cache_mode.more'"),
    (f"{T6} threshold=0.3", f"{FIRST_KEY} archive, budget_divisor, cache_mode, "),
    (f"{CURVE} budget=1,2", f"{FIRST_KEY} archive, budgets, cache_mode, "),
    (f"-m {CURVE},trimming/table6 threshold=0.3", f"{FIRST_KEY} archive, budget_divisor, cache_mode, "),
    (f"-m {T4},trimming/table6 sed=3", f"{FIRST_KEY} archive, cache_mode, executor, experiment, figure, instances, "),
    ("executor.wrkers=2", "a setting of executor must be one of "),
    ("profile.split=2", f"a setting of profile must be one of {PROFILE}, got 'split'; did you mean profile.splits=2?"),
    (f"{T6} +foo=3", f"{IN6} each key must be one of budget_divisor, counted_threshold, engine, networks, "),
    ("+executor.foo=3", "executor: each key must be one of "),
    (f"{T4} ~foo", "Could not delete from config. 'foo' does not exist."),
]  # fmt: skip
VALUES = [
    ("seed=abc", "configuration: seed must be a whole number, got 'abc'"),
    ("seed=-3", "configuration: seed must be at least 0, got -3"),
    ("~seed", "configuration: key seed is missing; add it"),
    ("results=null", "configuration: results must be a text (in quotes), got None"),
    ("results=", "configuration: results must be a folder with a printable name, got ''"),
    *((f"roads={value}", "configuration: roads must have one or more of") for value in ("null", "[]", "[file,file]")),
    ("seed=${foo}", "seed must have a value, got: Interpolation key 'foo' not found; ${name} stands for the"),
    ("task=study data=${x}.csv", "data must have a value, got: Interpolation key 'x' not found; ${name} stands for "),
    ("seed=${seed}", "seed must have a value, got: Recursive interpolation detected; ${name} stands for the setting"),
    ("run=${foo:1}", "run must have a value, got: Unsupported interpolation type foo; ${name} stands for the setting"),
    ("run=${oc.env:HOME}", "run: a configuration may read the environment variables TRIMBENCH_CACHE and XDG_CACHE_HO"),
    ("executor.workers=0", "executor: workers must be a positive int or null, got 0; null takes"),
    (f"{T6} thresholds=[0.5,0.5]", f"{IN6} thresholds must be a list of at least one value, each"),
    (f"{T6} thresholds=[0.5", "a setting must be key=value, with a number, a word, a list [a,b] or a quoted text"),
    (f"{T6} runner=Table6", f"{RUNNER} 'Table6'"),
    (f"{T4} instances=[]", f"{IN4} instances must be a list of at least one entry, got []"),
    (f"{T4} instances=[[0.5,0.1]]", f"{IN4} instances must each be [posterior, positive mass, "),
    (f"{CURVE} budgets=[-1]", f"{IN_CURVE} budgets.0 must be 0 or more, got -1"),
    (f"{CURVE} test_fraction=1", f"{IN_CURVE} test_fraction must be "),
    (f"{CURVE} smoothing=-1", f"{IN_CURVE} smoothing must be a number >= 0, got -1"),
]  # fmt: skip
FIGURES = [
    ("figure=colum", "figure must be one of column, default, got 'colum'; did you mean 'column'?"),
    ("figure.widht=3", "a setting of figure must be one of dpi, font_size, formats, height, palette, title, width"),
    ("figure.width=0.5", "figure: width must be a number of inches from 1 to 40, got 0.5"),
    ("figure.font_size=big", "figure: font_size must be a number of points from 4 to 40, got 'big'"),
    ("figure.dpi=99999", "figure: dpi must be a whole number from 30 to 1200, got 99999"),
    ("figure.dpi=1200", "figure: dpi must give a PNG of 6.8 by 3.9 inches at most 16 million pixels, got 1200"),
    ("figure.formats=[]", "figure: formats must be a list with each of png, pdf, svg at most once, got []"),
    ("figure.formats=[png,jpg]", "figure: formats must be a list with each of png, pdf, svg at most once, got"),
    ("figure.title=7", "figure: title must be true or false, got 7"),
    ("figure.palette=gray", "figure: palette (a name, or a list of colours) must be one of grey, okabe-ito, got"),
    ("figure.palette=[C0]", "figure: palette must be a list of colours such as '#0072B2' or black, got 'C0'"),
    ("figure.palette=[]", "figure: palette must be a name or a list of at least one colour, got []"),
]  # fmt: skip
FORMS = [
    ("foo", f"{NO} 'foo'; for example experiment=trimming/table6"),
    ("trimming/table4", f"{NO} 'trimming/table4'; write {T4}\n"),
    ("trimming/tabel4", f"{NO} 'trimming/tabel4'; write {T4} or"),
    ("table6", f"{NO} 'table6'; write {T6}\n"),
    ("list", f"{NO} 'list'; write task=list\n"),
    ("task list", f"{NO} 'task'; write task=list\n"),
    ("task", f"{NO} 'task'; write task=...\n"),
    ("seed 3", f"{NO} 'seed'; write seed=3\n"),
    ("experiment trimming/table4", f"{NO} 'experiment'; write {T4}\n"),
    ("experiment= trimming/table4", f"{NO} 'trimming/table4'; write {T4}\n"),
    ("experiment =trimming/table4", f"{NO} 'experiment'; write {T4}\n"),
    ("experiment:trimming/table4", f"{NO} 'experiment:trimming/table4'; write {T4}"),
    ("experiment==trimming/table4", "a setting must be key=value, with a number, a word, "),
    ("--experiment trimming/table4", f"settings are written without dashes, got '--experiment'; write {T4}\n"),
    ("--verify experiment=trimming/table4", "settings are written without dashes, got '--verify'; write verify=true\n"),
    ("offline verify=true", f"{NO} 'offline'; write offline=true\n"),
    ("--seed task=list", "settings are written without dashes, got '--seed'; write seed=...\n"),
    ("--profile=paper", "settings are written without dashes, got '--profile=paper'; write profile=paper\n"),
    ("data=病人.csv", "a setting must be key=value, with a number, a word, "),  # hydra-ecosystem/hydra#2891
    ("results=~/x", "a setting must be key=value, with a number, a word, "),  # OPM/opm-simulators#5063
    ("--halp", "an option must be one of --allow-code, --cfg, "),
    (f"{T4} --cfg", "argument --cfg/-c: expected one argument; trimbench --help says more\n"),
]  # fmt: skip


ADVICE = ("did you mean", "; write ", "; add -m")
ADVISED = [one for one in [*NAMES, *KEYS, *FORMS] if any(mark in one[1] for mark in ADVICE) and "..." not in one[1]]


@pytest.mark.parametrize(("words", "message"), [*NAMES, *KEYS, *VALUES, *FIGURES, *FORMS])
def test_a_mistake_is_explained_and_a_command_works_once_the_advice_is_followed(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    answer = command(*words.split())
    assert answer.err.startswith(message)
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())
    if (words, message) in ADVISED:
        for task in task_names():
            monkeypatch.setitem(tasks.PERFORM, task, lambda _: 0)
        assert command(*followed(words, answer.err), code=0).err == ""


def test_blanks_around_the_sign_are_no_part_of_a_setting(command: Command) -> None:
    assert command("seed = 3", code=2).err.endswith(", got 'seed = 3'; write seed=3\n")


@pytest.mark.parametrize(
    ("word", "form"), [("drop=[height (cm)]", """'drop=["..."]'"""), ("target=sick (0/1)", """'target="..."'""")]
)
def test_a_text_is_quoted_inside_of_its_list(command: Command, word: str, form: str) -> None:
    said = f", got {word!r}; put texts in double quotes, and all in single ones: {form}\n"
    assert command("task=study", word, code=2).err.endswith(said)


def followed(words: str, said: str) -> list[str]:
    """Return a command line after what its error advises: the last word that has the key, written anew."""
    meant = re.search(r"(?:did you mean|write) (.*?)[?\n]", f"{said}\n")
    *before, last = words.split()
    if meant is None:
        return ["-m", *before, last]
    if "=" not in meant[1]:  # a name
        return [*before, f"{last.partition('=')[0]}={shlex.split(meant[1])[0]}"]
    return [*(before if before and "=" in before[-1] else []), *shlex.split(meant[1].split(" or ")[0])]


def made(line: CommandLine, composer: Composer) -> object:
    check_settings(line, composer)
    values = composer.compose(line.points[0])
    return make_experiment("own", {key: value for key, value in values.items() if key != "experiment"}, SHARED_KEYS)


@pytest.mark.parametrize("option", [[], ["-m"]])
def test_one_refusal_is_enough_where_a_list_is_wanted_or_an_s(option: list[str]) -> None:
    composer, tried = Composer(PROJECT), set[str]()
    for name in PROJECT.names("experiment"):
        values = composer.compose([setting("experiment", name)])
        own = {key: values.get(key) for key in PROJECT.keys("experiment", name) if key not in NOT_SETTINGS}
        firsts = {key: items[0] for key, items in own.items() if isinstance(items, list) and items}
        for key, item in firsts.items():
            if key in tried or not re.fullmatch(r"[\w.]+", str(item)):
                continue
            tried.add(key)
            given = f"{item},{item}x" if option else str(item)
            for written in {key, key.removesuffix("s")} - (values.keys() - {key}):
                words = [*option, f"experiment={name}", f"{written}={given}"]
                with pytest.raises(ConfigurationError) as refusal:
                    made(CommandLine.of(words), composer)
                advised = CommandLine.of([*words[:-1], *followed(words[-1], str(refusal.value))])
                (made if written.endswith("sizes") else check_settings)(advised, composer)
                assert all(isinstance(point[-1].value(), list) for point in advised.points)
                assert len(advised.points) == 1 + len(option)


@pytest.fixture
def _own_t4(tmp_path: Path) -> None:
    """The user's own experiment `mine/t4`, declared in the folder `mine`."""
    write(tmp_path / "mine", {"experiment/mine/t4.yaml": (EXPERIMENT_FOLDER / "table4.yaml").read_text()})


@pytest.mark.usefixtures("_own_t4")
def test_a_users_own_experiment_is_known(command: Command, tmp_path: Path) -> None:
    wrong_key = command("--config-dir", "mine", "experiment=mine/t4", "instnces=[]", code=2)
    assert wrong_key.err.endswith("got 'instnces'; did you mean 'instances=[]'?\n")
    wrong_name = command("--config-dir=mine", "experiment=mine/t5", code=2)
    listed = ", ".join(sorted(["mine/t4", *FEW]))
    assert wrong_name.err.startswith(f"experiment must be one of {listed}, got 'mine/t5'")
    assert "\ncomplete, beyond the papers\n" in command("-cd", "mine", "experiment=mine/t4", "executor=serial").out
    assert (tmp_path / "results/quick/mine/t4.csv").is_file()
    with (tmp_path / "mine/experiment/mine/t4.yaml").open("a") as stream:
        stream.write("seed: ${seed}\n")
    for words in (["seed=7"], []):
        told = command("--config-dir", "mine", "experiment=mine/t4", *words, code=2).err
        assert told.startswith("seed must have a value, got: Recursive interpolation detected; ${name} stands for the")


@pytest.mark.parametrize("path", ["experiment/mine/t4.yml", "Experiment/mine/t4.yaml", "experiments/mine/t4.yaml"])
def test_a_declaration_that_is_misnamed_is_told(command: Command, tmp_path: Path, path: str) -> None:
    write(tmp_path / "mine", {path: (EXPERIMENT_FOLDER / "table4.yaml").read_text()})
    told = command("--config-dir", "mine", "experiment=mine/t4", code=2).err
    right = "mine/experiment/mine/t4.yaml to be read as experiment=mine/t4; rename it"
    assert told == f"mine/{path} must be called {right}\n"


@pytest.mark.parametrize("name", ["it's", "a=b", "50% [1,2]", "a, b", '"x"'])
def test_a_folder_may_have_any_name(command: Command, tmp_path: Path, name: str) -> None:
    write(tmp_path / name, {"experiment/mine/t4.yaml": (EXPERIMENT_FOLDER / "table4.yaml").read_text()})
    (tmp_path / name / "experiment/mine/.#t4.yaml").symlink_to(
        "me@machine.1:2"
    )  # as Emacs locks a file, rust-lang/mdBook#2224
    command("--config-dir", name, "experiment=mine/t4", OTHER, "executor=serial", code=0)
    told = command("--config-dir", name, "experiment=mine/t5", code=2).err
    assert "mine/t4" in told
    assert ".#" not in told


def test_what_hydra_misreads_in_a_folder_is_refused(command: Command, tmp_path: Path) -> None:
    text = (EXPERIMENT_FOLDER / "table4.yaml").read_text()
    write(tmp_path / "mine", {"experiment/t4.yaml": f"\ufeff{text}"})
    told = command("--config-dir", "mine", "experiment=t4", code=2).err
    assert told.endswith("t4.yaml must not begin with a byte order mark; save it as UTF-8 without one\n")
    write(tmp_path / "a${b}", {"experiment/t4.yaml": text})
    told = command("--config-dir", "a${b}", "experiment=t4", code=2).err
    assert told.startswith("--config-dir must be a folder without '${' in its path, got ")


@pytest.mark.parametrize("words", ["++seed=3", "+executor.more=1", "~seed", "instances.0=[1,1,1]"])
def test_every_form_of_hydras_settings_is_allowed(command: Command, words: str) -> None:
    answer = command(T4, words, "--cfg", "job")
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"experiment/trimming/odd.yaml": "defaults: [/experiment/trimming/odd]\n"}, ["experiment=trimming/odd"]),
        (
            {
                "experiment/trimming/odd.yaml": "defaults: [/experiment/trimming/other]\n",
                "experiment/trimming/other.yaml": "defaults: [{/experiment/trimming@x: odd}]\n",
            },
            ["experiment=trimming/odd"],
        ),
        ({"profile/odd.yaml": "defaults: [odd]\n"}, [T4, "profile=odd"]),
        ({"executor/odd.yaml": "defaults: [odd]\n"}, [T4, "executor=odd", "--help"]),
    ],
    ids=["experiment", "two files", "profile", "help"],
)
def test_defaults_that_lead_back_are_named(
    command: Command, tmp_path: Path, files: dict[str, str], words: list[str]
) -> None:
    write(tmp_path / "mine", files)
    said = " ".join(command("--config-dir", "mine", *words, code=2).err.split())
    assert re.fullmatch(r"defaults of \S*odd.yaml must not lead back to it; take out the entry that does", said)


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/proc/self/environ", "long"])
def test_only_short_files_of_a_disk_are_declarations(command: Command, tmp_path: Path, kind: str) -> None:
    (folder := tmp_path / "mine/dataset").mkdir(parents=True)
    path = folder / "odd.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "long":
        path.touch()
        os.truncate(path, 3 * 2**30)
    else:
        path.symlink_to(kind)
    said = " ".join(command("--config-dir", "mine", T4, code=2).err.split())
    assert re.search("odd.yaml must (be a regular file|be a file of a disk|have at most 524,288 bytes), got", said)


def test_no_network_tells_of_this_process(command: Command, tmp_path: Path) -> None:
    (tmp_path / "environ.bif").symlink_to("/proc/self/environ")
    text = "format: bif\npath: ../../environ.bif\ntarget: x\npositive: y\n"
    write(tmp_path / "mine", {"network/odd.yaml": text})
    answer = command("--config-dir", "mine", "experiment=trimming/table6", "networks=[odd]")
    assert "must be a file of a disk, got one that the kernel makes up" in " ".join(answer.err.split())
    assert "PATH=" not in answer.out + answer.err


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x9b2J", "\u202e", "\r", "\u2066"])
def test_no_name_controls_the_terminal(command: Command, tmp_path: Path, sign: str) -> None:
    write(
        tmp_path / "mine", {f"dataset/od{sign}d.yaml": "kind: csv\n", "experiment/trimming/odd.yaml": f'a: "{sign}"\n'}
    )
    answers = [
        command(*words, code=2)
        for words in (
            ["--config-dir", "mine", T4, f"dataset=od{sign}d"],
            [f"--config-dir=mi{sign}ne", T4],
            ["--config-dir", "mine", T4, f"run=od{sign}d"],
        )
    ]
    for answer in answers:
        assert answer.err
        assert sign not in answer.out + answer.err


@pytest.mark.parametrize(("group", "word"), [("experiment", "experiment=odd"), ("reported", T4)])
def test_a_file_that_is_not_yaml_is_named(command: Command, tmp_path: Path, group: str, word: str) -> None:
    write(tmp_path / "mine", {f"{group}/odd.yaml": "a: [1\n"})
    answer = command("--config-dir", "mine", word, code=2)
    assert ("odd.yaml" in answer.err, "Traceback" in answer.err) == (True, False)
