"""Mutants are what they say."""

from __future__ import annotations

from pathlib import Path

from .mutants import mutants

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
        *("Gt to GtE", "And to Or", "sign left out", "Eq to NotEq", "one more", "condition turned round", "Lt to LtE"),
    }
    assert len({one.code() for one in found}) == len(found)
    assert all('raise ValueError(f"{best + 1}")' in one.code().replace("'", '"') for one in found)
    assert [one.line for one in found if one.at_import] == [3]
    assert str(found[0]).startswith(f"{file}:")
