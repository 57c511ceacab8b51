"""The notebooks run from top to bottom: quickly, without a warning and without downloads."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SECONDS = 20


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def test_there_is_one_for_each_family() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["conformant", "selection_bias", "trimming"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path: Path) -> None:
    cells = read(path).cells
    assert 6 <= len(cells) <= 14
    for cell in cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_draws_figures(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)  # commands of other tests set it
    notebook = read(path)
    strict = new_code_cell("import time, warnings\nwarnings.simplefilter('error')\n_start = time.process_time()")
    # The kernel itself warns when it shuts down.
    relaxed = new_code_cell("warnings.simplefilter('ignore')\nprint(time.process_time() - _start)")
    notebook.cells = [strict, *notebook.cells, relaxed]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"] == []
    assert float(outputs[-1].text) < SECONDS
    assert {file.name for file in tmp_path.iterdir()} <= {"xdg"}
