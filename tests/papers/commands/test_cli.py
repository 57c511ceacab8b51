"""The command line: what it shows, how it ends, and what the Tab key completes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trimbench.reproduction.commands import tasks
from trimbench.reproduction.commands.arguments import hydra_text
from trimbench.reproduction.commands.cli import answer, completions
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import PROJECT, T4, T6, Command, write

ROOT = Path(__file__).parents[3]


def test_options_may_stand_before_or_after_settings(command: Command) -> None:
    assert "thresholds:\n- 0.2\n" in command(T6, "thresholds=[0.2]", "--cfg=job", code=0).out
    assert "seed: 7\n" in command(T6, "--cfg", "job", "seed=7", code=0).out
    assert "folder: ${results}/slurm\n" in command("-c", "job", T4, "executor=slurm", code=0).out
    assert "folder: results/slurm\n" in command(T4, "executor=slurm", "--cfg=job", "--resolve", code=0).out


def test_the_version_is_the_projects(command: Command) -> None:
    assert re.fullmatch(r"trimbench \d+\.\d+\.\d+\S*\n", command("--version").out)


@pytest.mark.usefixtures("few")
def test_an_executor_that_cannot_run_here_ends_the_run(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    answer = command("executor=slurm", "offline=true", code=1)
    last = answer.err.splitlines()[-1]
    assert last.startswith("executor=slurm: the tasks could not be given to 'slurm': ")
    assert last.endswith("; run where sbatch is, or use executor=processes")
    assert "Traceback" not in answer.out + answer.err


# See Sherin-SEF-AI/CanLab#24 and Backblaze/B2_Command_Line_Tool#1071.
@pytest.mark.parametrize(("words", "reader"), [("--help", "true"), (f"task=list {T4}", "head -n 1")])
def test_a_closed_pipe_gives_no_message(words: str, reader: str) -> None:
    _, said = outside(sys.executable, "-m", "trimbench", *words.split(), shell=f'"$@" | {reader}', PYTHONUNBUFFERED="1")
    assert len(said.splitlines()) == (reader != "true")


def test_advice_names_the_script_that_ran_the_command() -> None:
    words = (sys.executable, "-m", "trimbench", "--help")
    _, plain = outside(*words)
    _, said = outside(*words, TRIMBENCH_COMMAND="scripts/reproduce")
    assert "\ntrimbench task=report" in plain
    assert "\nscripts/reproduce task=report" in said
    assert "\ntrimbench " not in said
    assert 'export TRIMBENCH_COMMAND=scripts/reproduce\nexec "$root' in (ROOT / "scripts/reproduce").read_text()


T4_HERE = [sys.executable, "-m", "trimbench", T4, "executor=serial"]


def outside(*words: str, shell: str = '"$@"', **environment: str | None) -> tuple[int, str]:
    """Run a command in a process of its own, with these variables (None takes one away); return code and output."""
    changed = os.environ | {name: str(value) for name, value in environment.items()}
    kept = {name: value for name, value in changed.items() if environment.get(name, "") is not None}
    ended = subprocess.run(["sh", "-c", shell, "sh", *words], env=kept, capture_output=True, check=False)
    return ended.returncode, (ended.stdout + ended.stderr).decode("latin-1")


def test_a_reader_that_leaves_misses_no_files() -> None:
    assert outside(*T4_HERE, "run=whole")[0] == 0
    _, said = outside(*T4_HERE, "run=left", shell='{ "$@"; echo "code $?" >&2; } | head -n 1 >/dev/null')
    assert "code 0" in said
    assert "Traceback" not in said
    written = [sorted(path.name for path in Path(f"results/{run}").rglob("*")) for run in ("whole", "left")]
    assert written[0] == written[1] != []


@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ('"$@" 2>&- && { "$@" seed=ä 2>&-; [ $? = 2 ]; }', {"PYTHONIOENCODING": "ascii"}),
        ('"$@" <&- >&- 2>&-', {"PYTHONIOENCODING": "latin-1"}),
        ('"$@" 2>/dev/full && { "$@" run=again >/dev/full; [ $? = 1 ]; } && cmp results/*/trimming/table4.csv', {}),
        # See conchoecia/odp#82, snakemake/snakemake#2429 and jmonlong/sveval#20.
        ('"$@" >&-', {"MPLBACKEND": "module://a_notebook_that_is_not_here", "DISPLAY": None}),
        (
            '"$@"',
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": "/dev/null", "XDG_CACHE_HOME": None},
        ),
    ],
)
def test_odd_streams_and_displays_harm_nothing(tmp_path: Path, shell: str, environment: dict[str, str | None]) -> None:
    code, said = outside(*T4_HERE, shell=shell, **environment)
    assert (code, "Traceback" in said) == (0, False), said
    assert (tmp_path / "results/quick/trimming/table4.csv").read_text(encoding="utf-8").startswith("source,")


@pytest.mark.parametrize(
    ("shell", "end"),
    [
        ('"$@" task=list > /dev/full', "No space left on device\nStored results are intact. Fix this, then run"),
        ('mkdir gone; cd gone; rmdir ../gone; "$@"', "the current folder cannot be used: No such file or directory; "),
    ],
)
def test_surroundings_of_no_use_are_named(shell: str, end: str) -> None:
    code, said = outside(*T4_HERE, shell=shell)
    assert (code, "Traceback" in said) == (1, False)
    assert end in said


def test_a_user_without_a_home(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And without an entry among the users: matplotlib/matplotlib#17707."""

    def nobody(_: object = None) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(Path, "home", nobody)
    answer = command(T4, "executor=serial", code=0)
    assert answer.err.startswith("There is no home folder, so nothing is kept there; set HOME to keep what is downl")
    assert Path(os.environ["HOME"]).is_dir()
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ("s3://lab/runs", "results must be a folder of this machine, got 's3://lab/runs'; write its path, and copy"),
        ('"~nobody-has-this-name/x"', "results must be a folder that exists, got '~nobody-has-this-name/x'; write its"),
        ('"a\nb"', "results must be a folder with a printable name, got 'a\\nb'; write results=."),
        ('"r\udce9s"', "results must be a text in UTF-8, got 'r\\udce9s'; write it anew"),  # treeverse/dvc#5083
        ("dangling", "results must be a folder that can be written, got 'dangling'; "),
        ("taken", "results must be a folder that can be written, got 'taken'; "),
        ("taken/inside", "results must be a folder that can be written, got 'taken/inside'; "),
    ],
)
def test_results_that_are_no_folder_are_refused(command: Command, tmp_path: Path, results: str, message: str) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "taken").write_text("a file")
    assert message in command(T4, "executor=serial", f"results={results}", code=2).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "taken"]


# Of the last three, see hydra-ecosystem/hydra#2891, #2705 and #1577.
@pytest.mark.parametrize("name", ["it's", "a$b", "a, b", 'x"y', "50%", r"a\${b}", "李明", "a#b", "epoch=9-step=8.x"])
def test_results_may_have_any_name(command: Command, tmp_path: Path, name: str) -> None:
    command(T4, "executor=serial", f"results={hydra_text(name)}", code=0)
    assert (tmp_path / name.replace("\\", "") / "quick/trimming/table4.md").is_file()


@pytest.mark.parametrize("results", ["~/link", "~/link/", "~//real"])  # domainaware/parsedmarc#485
def test_results_begin_at_home(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/real").mkdir()
    (tmp_path / "home/link").symlink_to("real")
    command(T4, "executor=serial", f'results="{results}"', code=0)
    assert (tmp_path / "home/real/quick/trimming/table4.md").is_file()
    assert not (tmp_path / "~").exists()


def test_an_unknown_commit_is_said(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "no_commit", lambda: "git says: fatal: detected dubious ownership")
    assert "so results do not name it; git says: fatal: detected dubious" in command(T4, "executor=serial", code=0).err


# What the Tab key completes.


# Asks bash for the completions of a line as the Tab key does, with or without "=" among the characters that end words.
ASK = """
eval "$($PYTHON -m trimbench --shell-completion install=bash)"
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDBREAKS=$BREAKS
_trimbench
printf '%s\\n' "${COMPREPLY[@]}"
"""


TABLES = [f"experiment={name}" for name in PROJECT.names("experiment") if name.startswith("trimming/ta")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trimbench ta", ["task="]),
        ("trimbench task=p", ["task=plot", "task=publish"]),
        ("trimbench experiment=trimming/ta", TABLES),
        ("trimbench -m experiment=trimming/quiz,trimming/s", ["experiment=trimming/quiz,trimming/scaling"]),
        ("trimbench experiment=trimming/table4 ins", ["instances="]),
        ("trimbench experiment=selection_bias/simulation al", ["alpha="]),
        ("trimbench archive=t", ["archive=true"]),
        ("trimbench th", []),
        (
            "trimbench experiment=conformant/digits datasets=[mnist,f",
            ["datasets=[mnist,fashion", "datasets=[mnist,fashion_mnist"],
        ),
        ("trimbench experiment=trimming/table6 networks=[c", []),  # those of circuits have no class
        ("trimbench cache_mode=i", ["cache_mode=ignore"]),
        ("trimbench roads=[file,p", ["roads=[file,package"]),
        ("trimbench threshold=0.", []),
        ("trimbench nonsense=", []),
        ("trimbench task=study ta", ["target=", "task="]),
    ],
)
def test_words_are_completed(line: str, expected: list[str]) -> None:
    assert completions(line) == expected


def test_own_folders_and_runs_are_completed(tmp_path: Path) -> None:
    write(tmp_path, {"mine/experiment/own/one.yaml": "size: 1\n", "results/first/run.json": "{}"})
    line = f"trimbench --config-dir {tmp_path / 'mine'} results={tmp_path / 'results'} experiment=own/one "
    assert completions(f"{line.rstrip()[:-2]}") == ["experiment=own/one"]
    assert completions(f"{line}si") == ["size="]
    assert completions(f"{line}runs=[f") == ["runs=[first"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("breaks", "start"), [(" =:", ""), (" ", "experiment=")])
def test_bash_completes_what_follows_the_sign(breaks: str, start: str) -> None:
    settings = {"PYTHON": sys.executable, "LINE": "trimbench experiment=trimming/ta", "BREAKS": breaks}
    command, told = ["bash", "--norc", "-c", ASK], os.environ | settings
    ended = subprocess.run(command, env=told, capture_output=True, text=True, check=True, timeout=300)
    assert ended.stdout.split() == [f"{start}{name.partition('=')[2]}" for name in TABLES]


@pytest.mark.parametrize("words", [[], ["install=tcsh"], ["uninstall=bash"]])
def test_other_shells_are_an_error(words: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="must be followed by install=bash, install=zsh or install=fish, got"):
        answer(words)
