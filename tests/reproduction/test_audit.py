"""Audits of runs and archives, and the adoption of records: what is found, what is refused, and what remains."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from trimbench.reproduction.execution import code_hash
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.reporting.audit import Audit, AuditedJob, Compared, compared, drawn
from trimbench.reproduction.reporting.certificate import audited_line
from trimbench.reproduction.reporting.runs import read_about

from .command_line import Answer, run_here, write
from .test_projects import COINS

OTHER = "experiment=tosses/heads"
CITATION = (
    "cff-version: 1.2.0\nmessage: cite\ntitle: Coins\nabstract: Coins.\nlicense: MIT\nauthors: [{name: Nobody}]\n"
)


@pytest.fixture(autouse=True)
def _no_module_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("coins", None)


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    """A project whose run has been archived, and whose records are gone."""
    folder = tmp_path / "coins"
    write(folder, {**COINS, "CITATION.cff": CITATION})
    at(folder, code=0)
    at(folder, "task=report", "archive=true", code=0)
    Path("results/archives/quick.zip").rename("quick.zip")
    shutil.copytree("results/quick", "there")
    return folder


def at(folder: Path, *words: str, code: int | None = None) -> Answer:
    return run_here("--project", str(folder), "executor=serial", *words, code=code)


def said(answer: Answer) -> str:
    return " ".join(f"{answer.out} {answer.err}".split())


def change_rows(change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    path = Path("results/quick/tosses/heads_rows.csv.gz")
    frame = change(pd.read_csv(path, dtype=str, keep_default_na=False))
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))


def other_archive(change: Callable[[list[str]], list[str]]) -> None:
    """Write the archive again with other records."""
    with zipfile.ZipFile("quick.zip") as old, zipfile.ZipFile("other.zip", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("jobs.jsonl"):
                content = "".join(f"{line}\n" for line in change(content.decode().splitlines())).encode()
            new.writestr(name, content)


def forged(line: str, **values: object) -> str:
    """Return a record with another result, under the hash that fits it."""
    content = json.loads(line)
    content["result"] |= values
    text = json.dumps({key: one for key, one in content.items() if key != "sha256"}, separators=(",", ":"))[1:]
    return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}",{text}'


def stored() -> list[Path]:
    return sorted(Path("results/jobs").glob("??/*.json"))


# --- audits


def test_a_run_that_gives_the_same_here_is_certified(coins: Path) -> None:
    answer = at(coins, "task=audit", "run=quick", "seed=0", code=0)
    assert "6 of 6 jobs drawn, 6 equal, none different: with 95 % confidence at most 39 % of" in said(answer)
    assert pytest.approx(0.393, abs=1e-3) == 1 - 0.05 ** (1 / 6)
    folder = Path("results/audits/quick")
    certificate = json.loads((folder / "certificate.json").read_text())
    assert certificate["clean"]
    assert certificate["counts"] == {"equal": 6}
    rows = Path("results/quick/tosses/heads_rows.csv.gz").read_bytes()
    assert certificate["audited"]["tosses/heads_rows.csv.gz"] == hashlib.sha256(rows).hexdigest()
    line = "audit: 6 of 6 jobs drawn, 6 equal, none different"
    assert line not in Path("results/quick/index.html").read_text()
    at(coins, "task=report", code=0)
    assert line in Path("results/quick/index.html").read_text()
    assert [*pd.read_csv(folder / "jobs.csv")["outcome"]] == ["equal"] * 6
    assert "| tosses/heads" in (folder / "audit.md").read_text()


def test_a_changed_value_is_found_and_named(coins: Path) -> None:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[2, "heads"] = str(float(rows.loc[2, "heads"]) * (1 + 1e-6))
        rows.loc[3, "heads"] = str(float(rows.loc[3, "heads"]) * (1 + 1e-12))
        rows["seconds"] = "0.123"
        return rows

    at(coins, "task=audit", "run=quick", code=0)
    change_rows(change)
    assert not audited_line(Path("results/quick"), Path("results/quick"))
    answer = at(coins, "task=audit", "run=quick", code=1)
    assert "6 of 6 jobs drawn, 4 equal, 1 to rounding, 1 different: with 95 % confidence at most 58 %" in said(answer)
    assert re.search(r"coin = penny, replication = 2 \| heads: 0\.\d+ there, 0\.\d+ here", said(answer))


def test_a_run_with_other_settings_is_audited_by_those_that_it_records(coins: Path) -> None:
    at(coins, OTHER, "tosses=10", "seed=7", code=0)
    answer = at(coins, "task=audit", "run=quick", code=0)
    assert "12 of 12 jobs drawn, 12 equal" in said(answer)


def test_an_archive_is_audited_as_data(coins: Path) -> None:
    answer = at(coins, "task=audit", "archive=quick.zip", code=0)
    assert "6 of 6 jobs drawn, 6 equal" in said(answer)
    assert (Path("results/audits/quick.zip/certificate.json")).is_file()


def test_the_runner_that_a_run_names_is_not_called(coins: Path) -> None:
    path = Path("results/quick/tosses/heads.json")
    path.write_text(path.read_text().replace("coins:Heads", "os:system"))
    assert read_about(Path("results/quick"), "tosses/heads")["configuration"]["runner"] == "os:system"
    assert "6 equal" in said(at(coins, "task=audit", "run=quick", code=0))


def test_jobs_that_cannot_be_covered_are_named(coins: Path) -> None:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[0, "seconds"] = "1000"
        rows.loc[1, "status"] = "failed"
        return pd.concat([rows, rows.iloc[[5]].assign(replication="77")])

    change_rows(change)
    answer = said(at(coins, "task=audit", "run=quick", code=0))
    assert "4 of 4 jobs drawn, 4 equal" in answer
    for why in ("it took more than 30 s there", "failed there", "no job here has its labels"):
        assert f"1 job not covered: {why}." in answer


def test_only_jobs_behind_printed_numbers_are_drawn_if_they_alone_are_asked_for(coins: Path) -> None:
    path = Path("results/quick/tosses/heads.json")
    about = json.loads(path.read_text())
    about["page"]["numbers"] = about["page"]["numbers"][:1]
    path.write_text(json.dumps(about))
    assert "3 of 3 jobs drawn" in said(at(coins, "task=audit", "run=quick", "only=printed", code=0))


def test_an_audit_that_was_stopped_goes_on(coins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trimbench.reproduction.commands import audit

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(audit, "run_jobs", stop)
        first = at(coins, "task=audit", "run=quick", code=130)
    seed = re.search(r"seed=(\d+)", first.out)
    assert seed
    assert seed[0] in at(coins, "task=audit", "run=quick", code=0).out


def test_draws_depend_on_the_seed_alone_and_take_shared_jobs_once(coins: Path) -> None:
    job = [Job.from_dict({"function": "m:f", "parameters": {"n": n}, "data": {}, "code": "c"}) for n in range(9)]
    jobs = [AuditedJob("a", "", {"x": str(n)}, 0, one) for n, one in enumerate(job)] * 2
    first = drawn(jobs, 3)
    assert len(first) == 9
    assert [one.job for one in first] == [one.job for one in drawn(jobs, 3)]
    assert [one.job for one in first] != [one.job for one in drawn(jobs, 4)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inside, max_size=3),
    )
)
def test_a_value_equals_itself_as_rows_have_it(value: object) -> None:
    text = json.dumps(value) if isinstance(value, list | dict) else "" if value is None else str(value)
    job = Job.from_dict({"function": "m:f", "parameters": {}, "data": {}, "code": "c"})
    record = Record(job, "ok", {"x": value, "y": 1}, None, 0.0, {})  # type: ignore[dict-item]
    assert compared(AuditedJob("a", "", {"x": text, "y": "1"}, 0, job), record).outcome == "equal"


@pytest.mark.parametrize(
    ("there", "here", "outcome"),
    [
        ("0.5", 0.5000001, "different"),
        ("0.5", 0.5 * (1 + 1e-11), "equal to rounding"),
        ("", 0.5, "different"),
        ("nan", 0.5, "different"),
        ("[0.1, 0.2]", [0.1, 0.3], "different"),
        ("[0.1]", [0.1, 0.3], "different"),
        ('{"fit_seconds": 3, "a": 1}', {"fit_seconds": 4, "a": 1}, "equal"),
        ("True", 1, "different"),
        ("a", "b", "different"),
    ],
)
def test_values_are_compared_by_kind(there: str, here: object, outcome: str) -> None:
    job = Job.from_dict({"function": "m:f", "parameters": {}, "data": {}, "code": "c"})
    record = Record(job, "ok", {"x": here}, None, 0.0, {})  # type: ignore[dict-item]
    assert compared(AuditedJob("a", "", {"x": there}, 0, job), record).outcome == outcome


@pytest.mark.parametrize(("n", "k"), [(1, 0), (20, 0), (412, 0), (300, 1), (300, 5)])
def test_the_bound_is_the_share_at_which_so_few_differences_have_a_probability_of_5_percent(n: int, k: int) -> None:
    found = {at: Compared("different" if at < k else "equal") for at in range(n)}
    one = AuditedJob("a", "", {}, 0)
    audit = Audit("a", [one] * n, [one] * n, found, 0, {}, (), n)
    assert stats.binom.cdf(k, n, audit.bound) == pytest.approx(0.05)


def test_jobs_that_were_not_computed_count_for_nothing_or_as_different() -> None:
    one = AuditedJob("a", "", {}, 0)
    found = {at: Compared("not computed" if at == 50 else "equal") for at in range(100)}
    clean = Audit("a", [one] * 100, [one] * 100, found, 0, {}, (), 100)
    assert clean.bound == pytest.approx(1 - 0.05 ** (1 / 50))
    bad = Audit("a", [one] * 100, [one] * 100, found | {3: Compared("different")}, 0, {}, (), 100)
    assert stats.binom.cdf(2, 100, bad.bound) == pytest.approx(0.05)


@pytest.mark.parametrize("rule", ["fixed", "until a difference", "random"])
def test_a_bound_without_differences_holds_wherever_the_audit_ends(rule: str) -> None:
    """Of 2,000 simulated audits, the bound is below the true share in at most 5 %, up to three standard errors."""
    rng, share, wrong = np.random.default_rng(5), 0.02, 0
    one = AuditedJob("a", "", {}, 0)
    for _ in range(2000):
        differs = rng.random(400) < share
        until = int(np.argmax([*differs, True]))
        n = {"fixed": 400, "until a difference": max(until, 1), "random": int(rng.integers(1, 400))}[rule]
        found = {at: Compared("different" if differs[at] else "equal") for at in range(n)}
        wrong += Audit("a", [one] * n, [one] * n, found, 0, {}, (), n).bound < share
    assert wrong / 2000 <= 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5


# --- adoption


def test_records_are_adopted_marked_and_removed(coins: Path) -> None:
    before = {path: path.read_bytes() for path in stored()}
    shutil.rmtree("results")
    answer = said(at(coins, "task=adopt", "archive=quick.zip", code=0))
    assert "6 of 6 jobs drawn, 6 equal" in answer
    assert "6 records adopted" in answer
    at(coins, "task=report", code=0)
    for name in ("tosses/heads_table.csv", "tosses/heads.csv"):
        then, now = (pd.read_csv(Path(run, name)) for run in ("there", "results/quick"))
        pd.testing.assert_frame_equal(now.drop(columns="elsewhere", errors="ignore"), then, check_exact=True)
    sha256 = hashlib.sha256(Path("quick.zip").read_bytes()).hexdigest()
    assert {*pd.read_csv("results/quick/tosses/heads_rows.csv.gz")["adopted"]} == {sha256}
    assert [*pd.read_csv("results/quick/tosses/heads.csv")["elsewhere"]] == [3, 3]
    about = json.loads(Path("results/quick/tosses/heads.json").read_text())
    assert about["computed_with"][0]["adopted"] == {"file": "quick.zip", "sha256": sha256}
    assert "of 2 numbers 2 rest on records computed elsewhere" in Path("results/quick/index.html").read_text()
    assert sha256 in Path("results/quick/tosses/heads.html").read_text()
    # What is computed here later is not marked.
    at(coins, OTHER, "tosses=10", code=0)
    assert len(stored()) == 12
    assert "6 adopted records removed" in said(at(coins, "task=adopt", f"archive={sha256[:12]}", "remove=true", code=0))
    assert len(stored()) == 6
    assert not Path("results/audits/quick.zip").exists()
    assert not {path.name for path in stored()} & {path.name for path in before}
    at(coins, "task=adopt", "archive=quick.zip", "remove=true", code=1)


def test_records_are_rebuilt_from_the_rows_of_a_run(coins: Path) -> None:
    before = {path.name: json.loads(path.read_text()) for path in stored()}
    shutil.rmtree("results")
    shutil.copytree("there", "results/theirs")
    answer = said(at(coins, "task=adopt", "run=theirs", code=0))
    assert "6 of 6 jobs drawn, 6 equal" in answer
    assert "6 records adopted" in answer
    now = {path.name: json.loads(path.read_text()) for path in stored()}
    assert now.keys() == before.keys()
    for name, record in now.items():
        adopted = record["provenance"].pop("adopted")
        assert adopted["file"] == "theirs"
        assert f"task=adopt archive={adopted['sha256'][:12]} remove=true" in answer
        assert record | {"sha256": ""} == before[name] | {"sha256": ""}
    at(coins, "task=report", code=0)
    for name in ("tosses/heads_table.csv", "tosses/heads.csv"):
        then, now_there = (pd.read_csv(Path(run, name)) for run in ("there", "results/quick"))
        pd.testing.assert_frame_equal(now_there.drop(columns="elsewhere", errors="ignore"), then, check_exact=True)
    assert "6 adopted records removed" in said(at(coins, "task=adopt", "run=theirs", "remove=true", code=0))
    assert not stored()
    assert not Path("results/audits/theirs_adopted").exists()


def test_a_row_that_is_false_or_of_other_code_is_not_adopted(coins: Path) -> None:
    change_rows(lambda rows: rows.assign(heads=[str(float(one) / 2) for one in rows["heads"]]))
    Path("results/quick").rename("results/theirs")
    shutil.rmtree("results/jobs")
    answer = said(at(coins, "task=adopt", "run=theirs", code=1))
    assert "No record was adopted: the audit must compute some of them and find none that differs." in answer
    code = coins / "coins.py"
    fresh(code, code.read_text().replace("(seed >> n) % 2", "(seed >> (n + 1)) % 2"))
    answer = said(at(coins, "task=adopt", "run=theirs", code=1))
    assert "6 records not adopted: computed by other code, from other data or with other settings." in answer
    assert not stored()


def test_what_is_not_planned_here_is_listed_by_cause(coins: Path) -> None:
    shutil.rmtree("results")
    assert "6 records not adopted: computed with other settings" in said(
        at(coins, "task=adopt", "archive=quick.zip", "seed=3", code=1)
    )
    at(coins, "task=adopt", "archive=quick.zip", code=0)
    again = said(at(coins, "task=adopt", "archive=quick.zip", code=1))
    assert "6 records not adopted: stored here already. No record was adopted." in again
    code = coins / "coins.py"
    fresh(code, code.read_text().replace("(seed >> n) % 2", "(seed >> (n + 1)) % 2"))
    assert "6 records not adopted: computed by other code" in said(at(coins, "task=adopt", "archive=quick.zip", code=1))


def test_a_false_value_under_a_right_hash_is_found_and_nothing_is_adopted(coins: Path) -> None:
    shutil.rmtree("results")
    other_archive(lambda lines: [forged(lines[0], heads=0.123), *lines[1:]])
    answer = said(at(coins, "task=adopt", "archive=other.zip", code=1))
    assert "1 different" in answer
    assert "No record was adopted: the audit must compute some of them and find none that differs." in answer
    assert not stored()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: [lines[0].replace('"heads":0', '"heads":1'), *lines[1:]], "not a sound record"),
        (lambda lines: [forged(lines[0], heads=float("nan")), *lines[1:]], "must be a finite number, got nan"),
        (lambda lines: [forged(lines[0], heads=7), *lines[1:]], "heads must be a number in 0..1"),
        (lambda lines: [forged(lines[0], more=7), *lines[1:]], "unknown ['more']"),
        (lambda lines: [lines[0][:-30], *lines[1:]], "not a sound record"),
        (lambda lines: ["{}", "[1", *lines[1:]], "not a sound record"),
        (lambda lines: [*lines, forged(lines[0], heads=0.99)], "several records of one job, with different results"),
    ],
)
def test_records_that_are_wrong_are_left_out_and_named(
    coins: Path, change: Callable[[list[str]], list[str]], why: str
) -> None:
    shutil.rmtree("results")
    other_archive(change)
    answer = said(at(coins, "task=adopt", "archive=other.zip", code=0))
    assert why in answer
    assert "5 records adopted" in answer
    assert len(stored()) == 5


def test_a_failing_disk_leaves_nothing_adopted(coins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trimbench.reproduction.execution.store import JobStore

    shutil.rmtree("results")
    put, n = JobStore.put, iter(range(100))

    def full(store: JobStore, record: Record) -> None:
        if "adopted" in record.provenance and next(n) == 3:
            raise OSError("No space left on device")
        put(store, record)

    monkeypatch.setattr(JobStore, "put", full)
    at(coins, "task=adopt", "archive=quick.zip", code=1)
    assert not stored()


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["task=adopt"], "archive or run must say whose records task=adopt takes, and only one of them"),
        (["task=adopt", "archive=quick.zip", "run=quick"], "and only one of them"),
        (["task=adopt", "run=none"], "run must be one of quick, got 'none'"),
        (["task=adopt", "archive=no.zip"], "archive must be a file, got 'no.zip'"),
        (["task=adopt", "archive=cut.zip"], "archive must be one of a run, got cut.zip"),
        (["task=adopt", "archive=no.zip", "remove=true"], "the first 12 digits of its SHA-256"),
        (["task=audit", "archive=cut.zip"], "cut.zip must be the archive of a run"),
        (["task=audit", "run=none"], "run must be one of quick, got 'none'"),
        (["task=audit", "run=quick", "minutes=0"], "minutes must be a positive number"),
        (["minutes=3"], "minutes must be a positive number, for audit and adopt alone"),
        (["only=printed"], "only=printed must come with task=audit"),
        (["archive=quick.zip"], "archive must be a file for audit and adopt alone"),
        (["remove=true"], "remove=true must come with task=adopt"),
    ],
)
def test_a_mistake_is_one_sentence(coins: Path, words: list[str], wrong: str) -> None:
    Path("cut.zip").write_bytes(Path("quick.zip").read_bytes()[:-200])
    answer = at(coins, *words, code=2)
    assert wrong in said(answer)
    assert len(answer.err) < 700


def test_a_link_in_a_run_is_not_audited(coins: Path, tmp_path: Path) -> None:
    path = Path("results/quick/tosses/heads_rows.csv.gz")
    path.rename(tmp_path / "secret.csv.gz")
    path.symlink_to(tmp_path / "secret.csv.gz")
    assert "is a symbolic link, which is not followed" in said(at(coins, "task=audit", "run=quick", code=2))


# --- why jobs run again


def again(folder: Path, *words: str) -> list[str]:
    return [line for line in at(folder, *words, code=0).out.splitlines() if " jobs again: " in line]


def test_a_list_and_a_run_say_why_jobs_run_again(coins: Path) -> None:
    assert again(coins, "task=list") == again(coins) == []
    settings = coins / "experiment/tosses/heads.yaml"
    settings.write_text(settings.read_text().replace("tosses: 40", "tosses: 30"))
    line = "tosses/heads: 6 jobs again: settings tosses"
    assert again(coins, "task=list") == [line]
    assert again(coins) == [line]
    assert again(coins) == []


def test_changed_code_is_named(coins: Path) -> None:
    code = coins / "coins.py"
    before = code.read_text().replace("(seed >> n) % 2", "side(seed, n)") + "\n\ndef side(seed, n):\n    return SIDE\n"
    fresh(code, before.replace("SIDE", "(seed >> n) % 2"))
    assert len(again(coins)) == 1
    fresh(code, before.replace("SIDE", "(seed >> (n + 1)) % 2"))
    assert again(coins, "task=list") == ["tosses/heads: 6 jobs again: code of coins:toss: coins: side"]
    shutil.rmtree("results/jobs/code")
    assert "an earlier version did not note of which functions" in again(coins, "task=list")[0]


def test_jobs_that_are_new_do_not_run_again(coins: Path) -> None:
    settings = coins / "experiment/tosses/heads.yaml"
    settings.write_text(settings.read_text().replace("[penny, dime]", "[penny, dime, euro]"))
    assert again(coins, "task=list") == []


def fresh(path: Path, text: str) -> None:
    """Write a module, and forget what is known of it: a new process would know nothing."""
    path.write_text(text)
    sys.modules.pop("coins", None)
    for name in ("code_version", "_source", "_after", "_targets", "_bound", "_file"):
        getattr(code_hash, name).cache_clear()
