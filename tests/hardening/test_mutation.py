"""Mutants are what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .mutation import EQUIVALENTS, PACKAGES, mutants, read_equivalents

PROGRAM = '''"""Nothing here is changed."""

def largest(values: list[int], floor: int = 0) -> int:
    best = floor
    for value in values:
        if value > best and not value == 7:
            best = value
    if best < -1:
        raise ValueError(f"{best + 1}")
    return best
'''


def test_each_mutant_changes_one_thing(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    found = list(mutants(file))
    assert {one.change for one in found} == {
        *("Gt to GtE", "And to Or", "sign left out", "Eq to NotEq", "one more", "condition turned round", "Lt to LtE")
    }
    assert len({one.code() for one in found}) == len(found)
    assert all('raise ValueError(f"{best + 1}")' in one.code().replace("'", '"') for one in found)
    assert [one.line for one in found if one.at_import] == [3]
    assert str(found[0]).startswith(f"{file}:")


def test_the_list_of_equivalent_mutants_has_none_that_is_not_there() -> None:
    listed = read_equivalents(EQUIVALENTS)
    root = Path(__file__).parents[2]
    files = {path for folder, pattern in PACKAGES.values() for path in (root / folder).glob(pattern)}
    for file in {one.file for one in listed}:
        assert root / file in files
        wanted = {(one.function, one.before, one.after) for one in listed if one.file == file}
        names = {function.rpartition(".")[2] for function, _, _ in wanted}
        defined = ast.walk(ast.parse((root / file).read_text(encoding="utf-8")))
        lines = {
            line
            for node in defined
            if isinstance(node, ast.FunctionDef) and node.name in names
            for line in range(node.lineno, (node.end_lineno or 0) + 1)
        }
        differences = [one.difference() for one in mutants(root / file) if one.line in lines]
        there = {(one.function, one.before, one.after) for one in differences}
        assert wanted <= there, wanted - there
    assert all(len(reason) > 20 for reason in listed.values())


def test_an_equivalent_mutant_needs_a_reason(tmp_path: Path) -> None:
    file, program = tmp_path / "list.txt", tmp_path / "program.py"
    program.write_text(PROGRAM)
    (found,) = [one for one in mutants(program) if one.change == "Gt to GtE"]
    assert str(found.difference()).splitlines() == [
        f"{program} largest", "- if value > best and (not value == 7):", "+ if value >= best and (not value == 7):",
    ]  # fmt: skip
    file.write_text(f"{found.difference()}\nIt is the best already.\n")
    assert read_equivalents(file) == {found.difference(): "It is the best already."}
    file.write_text(f"{found.difference()}\n")
    with pytest.raises(ValueError, match="an entry needs a place"):
        read_equivalents(file)
