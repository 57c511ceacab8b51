"""The archive of a run: programs for RO-Crates read it, nothing is missing from it, and it names no user."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from scripts import release_archive
from tests.reproduction import stored_runs
from tests.reproduction.reporting.builders import record
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.reporting import archive as archive_module
from trimbench.reproduction.reporting.archive import write_archive
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import OTHER, PROJECT, T4, Command

QUICKLY = (T4, "executor=serial")
ENVIRONMENT = {"trimbench": "1.2", "python": "3.11", "packages": {"numpy": "2.0"}, "commit": "c" * 40, "dirty": False}
RAN: dict[str, Any] = {
    "jobs": {},
    "computed_with": [ENVIRONMENT | {"time": f"2026-01-0{day}T00:00:00+00:00"} for day in (3, 2)],
    "written_with": ENVIRONMENT | {"time": "2026-01-04T00:00:00+00:00"},
}


def archived(folder: Path, catalogue: Catalogue = PROJECT) -> Path:
    path = folder.parent / "run.zip"
    write_archive(folder, JobStore(folder.parent / "jobs"), catalogue, path, ("results",))
    return path


def entities(path: Path) -> dict[str, dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        return {one["@id"]: one for one in json.loads(archive.read("ro-crate-metadata.json"))["@graph"]}


def of_kind(kind: str, path: Path) -> list[dict[str, Any]]:
    return [one for one in entities(path).values() if one["@type"] == kind]


def references(value: object) -> Iterator[str]:
    """Give every identifier that the properties of entities refer to."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(one, dict) and set(one) == {"@id"}:
            yield one["@id"]
        yield from references(one)


def contents(path: Path) -> dict[str, bytes]:
    """Return what is in an archive, unpacked."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    return {name: gzip.decompress(one) if name.endswith(".gz") else one for name, one in found.items()}


def test_a_command_archives_a_run_with_all_of_its_files(command: Command, tmp_path: Path) -> None:
    command(*QUICKLY, code=0)
    command("-m", *QUICKLY, f"{OTHER},[[0.6,1,0]]", code=0)
    answer = command("task=report", *QUICKLY, "archive=true", code=0)
    path = Path("results/archives/quick.zip")
    assert f"  {path}\n" in answer.out
    run = tmp_path / "results/quick"
    written = {one.relative_to(run).as_posix() for one in run.rglob("*") if one.is_file()} - {".gitignore"}
    added = {f"provenance/{name}" for name in ("CITATION.cff", "jobs.jsonl", "packages.txt", "run.lock")}
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == written | added | {"ro-crate-metadata.json"}
        for name in archive.namelist():
            assert name.endswith((".json", ".jsonl")) or archive.read(name), name
        jobs = [json.loads(line) for line in archive.read("provenance/jobs.jsonl").splitlines()]
    assert {job["key"] for job in jobs} == {one.stem for one in Path("results/jobs").rglob("*.json")}
    assert len(jobs) == 3
    one, two = sorted(one["name"] for one in of_kind("CreateAction", path))
    assert (one.startswith("Run of sweeps/trimming_table4__"), two) == (True, "Run of trimming/table4")


def test_an_archive_for_a_release_has_every_record_and_can_be_audited_and_adopted(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(*QUICKLY, code=0)
    command("task=report", *QUICKLY, "archive=true", code=0)
    path, run = tmp_path / "results/archives/quick.zip", tmp_path / "results/quick"
    words = [str(path), "--run", str(run)]
    assert release_archive.main(words) == 0
    assert "with a record for every job" in capsys.readouterr().out
    command("task=audit", T4, f"archive={path}", "minutes=1", "executor=serial", "results=theirs", code=0)
    answer = command("task=adopt", T4, f"archive={path}", "executor=serial", "results=theirs", code=0)
    assert "1 record adopted" in answer.out

    monkeypatch.setattr(release_archive, "MOST_BYTES", 100)
    assert release_archive.main(words) == 1
    assert "must take at most 0.0001 MB" in capsys.readouterr().out
    monkeypatch.undo()
    for record_of_a_job in Path("results/jobs").rglob("*.json"):
        record_of_a_job.unlink()
    write_archive(run, JobStore(Path("results/jobs")), PROJECT, path, ("results",))
    assert release_archive.main(words) == 1
    assert "trimming/table4: 1 of 1 jobs have no record" in capsys.readouterr().out
    path.write_bytes(b"PK")
    assert release_archive.main(words) == 1
    assert "archive must be one of a run" in capsys.readouterr().out


def test_a_large_archive_leaves_out_pictures_and_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stored_runs.run(tmp_path / "a run", data={"network/heart": "1" * 64}, **RAN)
    (folder / "family").mkdir(exist_ok=True)
    (folder / "family/one.png").write_bytes(os.urandom(1000))
    (folder / "family/one.html").write_text("<img src=one.png>", encoding="utf-8")
    with zipfile.ZipFile(archived(folder)) as archive:
        every = set(archive.namelist())
    monkeypatch.setattr(archive_module, "MOST_BYTES", 100)
    with zipfile.ZipFile(archived(folder)) as archive:
        assert every - set(archive.namelist()) == {"family/one.png", "family/one.html"}
        assert len(archive.namelist()) == len(set(archive.namelist()))


def test_sizes_and_hashes_are_those_of_the_files_and_every_reference_leads_somewhere(tmp_path: Path) -> None:
    path = archived(stored_runs.run(tmp_path / "a run", data={"network/heart": "1" * 64}, **RAN))
    found = entities(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name != "ro-crate-metadata.json"}
    described = {unquote(key): one for key, one in found.items() if one["@type"] == "File" and "://" not in key}
    assert described.keys() == members.keys()
    for name, content in members.items():
        assert described[name]["contentSize"] == str(len(content))
        assert described[name]["sha256"] == hashlib.sha256(content).hexdigest()
    targets = set(references(list(found.values())))
    assert targets - found.keys() == {"https://w3id.org/ro/crate/1.1"}
    parts = {one["@id"] for one in found["./"]["hasPart"]}
    assert {key for key, one in found.items() if one["@type"] == "File"} <= parts


def test_an_action_says_what_an_experiment_took_and_gave_when_and_with_what(tmp_path: Path) -> None:
    path = archived(stored_runs.run(tmp_path / "run", **RAN))
    found = entities(path)
    (action,) = of_kind("CreateAction", path)
    assert action["startTime"] == "2026-01-02T00:00:00+00:00"
    assert action["endTime"] == "2026-01-04T00:00:00+00:00"
    assert action["actionStatus"] == "http://schema.org/CompletedActionStatus"
    taken = {found[one["@id"]]["name"]: found[one["@id"]].get("value") for one in action["object"]}
    assert taken == {"a": None, "seed": "1", "prior": '{"rate": 2.0}', "task": "run"}
    assert {"@id": "family/one_table.csv"} in action["result"]
    program = found[action["instrument"]["@id"]]
    assert program["softwareVersion"] == "1.2"
    assert "c" * 40 in program["description"]
    assert {found[one["@id"]]["name"] for one in program["softwareRequirements"]} == {"Python", "numpy"}
    assert found["./"]["license"] == {"@id": "https://spdx.org/licenses/MIT"}


def test_an_experiment_ends_when_its_last_job_is_stored(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs")
    store.put(record(1))
    (job,) = store.folder.rglob("*.json")
    ran = RAN | {"jobs": {job.stem[:12]: "failed"}, "missing": {"dataset/b": "no network"}}
    (action,) = of_kind("CreateAction", archived(stored_runs.run(tmp_path / "run", **ran)))
    assert action["endTime"] > "2026-01-05"
    assert action["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert action["error"].startswith("2 of its jobs or data sets")


def test_data_sets_have_addresses_and_hashes(tmp_path: Path) -> None:
    data = {"dataset/adult": "1" * 64, "network/heart": "2" * 64, "dataset/mine": "3" * 64}
    found = entities(archived(stored_runs.run(tmp_path / "run", data=data, **RAN)))
    adult, heart, mine = (found[key] for key in ("https://www.openml.org/d/1590", "#network/heart", "#dataset/mine"))
    assert [one["@type"] for one in (adult, heart, mine)] == ["Dataset", "Collection", "CreativeWork"]
    assert [found[one["identifier"]["@id"]]["value"] for one in (adult, heart, mine)] == list(data.values())
    assert "census" in adult["description"]
    declared = PROJECT.mapping("network", "heart")["files"]
    mentioned = {found[one["@id"]]["@type"] for one in found["./"]["mentions"]}
    assert mentioned == {"CreateAction", "Collection"}
    files = {found[one["@id"]]["@id"]: found[one["@id"]]["sha256"] for one in heart["hasPart"]}
    assert files == {one["url"]: one["sha256"] for one in declared.values()}


def test_the_papers_of_the_experiments_are_cited(tmp_path: Path) -> None:
    run = stored_runs.run(tmp_path / "été", stem="trimming/one", experiment="trimming/one", **RAN)
    path = archived(run)
    (paper,) = of_kind("ScholarlyArticle", path)
    assert paper["name"] == "On Robust Trimming of Bayesian Network Classifiers"
    assert (
        entities(path)["./"]["citation"] == {"@id": paper["@id"]} == {"@id": "https://doi.org/10.24963/ijcai.2018/694"}
    )
    assert {one["familyName"] for one in of_kind("Person", path)} == {"Choi", "Van den Broeck"}
    assert "The run été".encode() in contents(path)["ro-crate-metadata.json"]


def test_no_home_and_no_user_is_named(tmp_path: Path) -> None:
    home = "/home/adé/data"
    JobStore(tmp_path / "jobs").put(one := record(1, "failed", f"no {home}"))
    configuration = {"results": f"{home}/r", "seed": 1, "folder": home}
    texts = {"family/one_table.csv": f"a\n{home}/t.csv\n", "family/more.md": f"see {home}"}
    ran = RAN | {"jobs": {one.job.key: "failed"}, "configuration": configuration}
    run = stored_runs.run(tmp_path / "run", texts, **ran)
    (run / "family/one_rows.csv.gz").write_bytes(gzip.compress(f"error\n{home}\n".encode()))
    (run / "family/linked.csv").symlink_to("/etc/hostname")
    found = contents(archived(run))
    assert "family/linked.csv" not in found
    for name, content in found.items():
        assert b"ad\xc3\xa9" not in content, name
        assert b"/home" not in content, name
        assert b"\\u00e9" not in content, name
    assert found["family/one_table.csv"] == b"a\n~/data/t.csv\n"
    assert json.loads(found["provenance/jobs.jsonl"])["error"] == "no ~/data"


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = stored_runs.run(tmp_path / "run", **RAN)
    before = archived(run).read_bytes()
    (run / "family/one.csv").touch()
    assert archived(run).read_bytes() == before


def test_rocrate_reads_an_archive(tmp_path: Path) -> None:
    rocrate = pytest.importorskip("rocrate.rocrate")
    path = archived(stored_runs.run(tmp_path / "run", data={"network/heart": "1" * 64}, **RAN))
    crate = rocrate.ROCrate(path)
    (action,) = crate.get_by_type("CreateAction")
    assert action["instrument"]["name"] == "trimbench"
    assert {one.id for one in action["result"]} >= {"family/one.csv", "family/one_points.csv"}
    assert crate.root_dataset["conformsTo"].id == "https://w3id.org/ro/wfrun/process/0.5"


def test_an_archive_is_of_a_run_that_is_there(command: Command) -> None:
    refused = command(*QUICKLY, "archive=true", code=2)
    assert "archive=true must come with task=report, got task=run" in refused.err
    absent = command("task=report", *QUICKLY, "archive=true", code=2)
    assert "run must have results to archive, got none in 'results/quick'" in absent.err
    command(*QUICKLY, code=0)
    Path("results/quick/trimming/broken.json").write_text("{")
    broken = command("task=report", *QUICKLY, "archive=true", code=2)
    assert "results/quick/trimming/broken.json cannot be read: " in broken.err
    assert not Path("results/archives").exists()
    Path("results/quick/trimming/broken.json").unlink()
    Path("results/jobs").rename("results/elsewhere")
    bare = command("task=report", *QUICKLY, "archive=true", code=1)
    assert "The archive of the run quick, an RO-Crate, but no job is stored in results/jobs:" in bare.out


def test_jobs_of_an_archive_are_keys(tmp_path: Path) -> None:
    (tmp_path / "jobs/aa").mkdir(parents=True)
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/x.json").write_text(json.dumps({**RAN, "experiment": "x", "jobs": {"../../secret": "ok"}}))
    with pytest.raises(ConfigurationError, match=r"jobs of a run must be named by their keys, got '\.\./\.\./secret'"):
        archived(tmp_path / "run")


def test_only_sound_records_are_archived(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs")
    paths = []
    for value in range(4):
        store.put(one := record(value))
        paths.append(store.path(one.job))
    paths[1].write_bytes(paths[0].read_bytes())
    paths[2].write_bytes(b"\xff" + paths[2].read_bytes()[:100])
    paths[3].unlink()
    os.mkfifo(paths[3])
    run = stored_runs.run(tmp_path / "run", **{**RAN, "jobs": {path.stem: "ok" for path in paths}})
    jobs = contents(archived(run))["provenance/jobs.jsonl"].splitlines()
    assert [json.loads(line)["key"] for line in jobs] == [paths[0].stem]
    (run / "family/one.json").write_text(json.dumps({"experiment": "family/one", "jobs": {}}))
    with pytest.raises(ConfigurationError, match=r"family/one\.json of the run must say computed_with"):
        archived(run)
