"""Experiments on data of the user's own: computed again when it changes, refused when it is not what was declared."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from pathlib import Path

import pytest

from ..command_line import Command, file_of, table_of, write

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A table of numbers and labels with missing values, declared in the folder `mine`."""
    random_numbers = random.Random(5)
    rows = []
    for number in range(120):
        ill = random_numbers.random() < 0.35
        dose = f"{random_numbers.gauss(3 + 2 * ill, 1):.2f}" if number % 11 else ""
        ward = random_numbers.choice(["north", "south & east", "west|50%"]) if number % 7 else "?"
        smoker = "true" if random_numbers.random() < 0.3 + 0.4 * ill else "false"
        rows.append(f'{number % 5},{dose},"{ward}",{smoker},{"ill" if ill else "well"}')
    table = "\n".join(["age,dose,ward,smoker,state", *rows]) + "\n"
    folder = tmp_path / "mine/dataset"
    write(folder, {"clinic.csv": table, "clinic.yaml": "kind: csv\npath: clinic.csv\ntarget: state\n"})
    return folder / "clinic.csv"


OWN = (
    *("--config-dir", "mine", "experiment=trimming/breast_cancer", "datasets=[clinic]", "budgets=[1,2]", "splits=1"),
    *("evaluation_limit=10", "executor=serial", "offline=true"),
)


def test_an_experiment_on_the_users_own_data(command: Command, clinic: Path) -> None:
    words = (*OWN, "budgets=[1,2,4]")
    command(*words, code=0)
    rows = table_of("trimming/breast_cancer_rows")
    assert rows["budget"].tolist() == [1, 2, 4]
    assert rows["agreement"].is_monotonic_increasing
    assert rows["agreement"].iloc[-1] == 1.0, "nothing is removed"
    assert (rows["test_accuracy"].iloc[-1], rows["test_agreement"].iloc[-1]) == (rows["full_test_accuracy"].iloc[0], 1)
    assert {name for text in rows["features"] for name in json.loads(text)} <= {"age", "dose", "ward", "smoker"}
    about = file_of("trimming/breast_cancer.json")
    assert about.name.startswith("breast_cancer__datasets-clinic__"), "named after the data"
    assert list(json.loads(about.read_text())["data"]) == ["dataset/clinic"]
    assert ": 3 stored, 0 to run" in command(*words).err
    clinic.write_text(clinic.read_text().replace("south & east", "south"))
    assert ": 0 stored, 3 to run" in command(*words).err


def test_the_same_data_elsewhere_is_not_computed_again(
    command: Command, clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ": 0 stored, 2 to run" in command(*OWN, code=0).err
    (tmp_path / "mine").rename(tmp_path / "moved")
    assert ": 2 stored, 0 to run" in command(*OWN[:1], "moved", *OWN[2:], code=0).err
    written = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert len(written) > 3
    for path in written:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert os.fsencode(tmp_path) not in content, f"{path} names the home folder"


def test_a_bad_table_is_refused(command: Command, clinic: Path) -> None:
    clinic.write_text("age,state\n1,ill\n1,2,3,4,5\n")
    answer = command(*OWN, code=2)
    assert re.search(r"data set 'clinic': .*clinic\.csv must be a text table with a", answer.err)
    assert "Traceback" not in answer.err


def test_three_classes_fail_with_the_reason(command: Command, clinic: Path) -> None:
    clinic.write_text(clinic.read_text().replace(",well", ",unknown", 20))
    answer = command(*OWN, code=1)
    assert "must be binary, got 3 classes" in answer.out
