"""The version of a job's code: it changes with whatever the job can reach, and with nothing else."""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import pkgutil
import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trimbench.papers
from trimbench.papers.project import PROJECT
from trimbench.reproduction.execution import code_hash
from trimbench.reproduction.execution.code_hash import code_version, is_job_function, resolve

FAMILIES = ("trimming", "conformant", "selection_bias", "beyond", "methods", "own_table")
CACHES = ("_after", "_targets", "_file", "_source", "_bound", "code_version")


def job_functions() -> list[str]:
    """Return the names of all job functions of the package."""
    found = []
    for family in FAMILIES:
        for module in pkgutil.iter_modules([str(Path(trimbench.papers.__file__).parent / family)]):
            name = f"trimbench.papers.{family}.{module.name}"
            members = vars(importlib.import_module(name))
            found += [
                f"{name}:{key}" for key, one in members.items() if is_job_function(one) and one.__module__ == name
            ]
    return sorted(found)


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is remembered from before, neither in this process nor in the user's cache folder."""
    monkeypatch.setattr(code_hash, "user_cache", lambda: tmp_path / "cache")
    forget()
    yield
    forget()


def forget() -> None:
    for name in CACHES:
        getattr(code_hash, name).cache_clear()


FILES = {
    "method_xyz/__init__.py": "from . import late\nfrom .deep import kernel\nfrom .other import spare as spare\n",
    "method_xyz/deep/kernel.py": "ONE = 1\nUNUSED = 2\ndef work(x):\n    '''Text.'''\n    return x + ONE  # why\n",
    "method_xyz/other.py": "def spare():\n    return 1\n",
    "method_xyz/loop.py": "from math import ceil, floor as whole, pi\nS = [1]\ndone = S.append(2)\nS.append(3)\n"
    "def also(f): return S.append(f) or f\n@also\ndef last(): return 9\n"
    "if __name__ != '__main__':\n    T = 4\n"
    "def total(S):\n    for k in S:\n        k += T\n        k *= 2\n    return whole(k) + sum(S for S in (S + [pi]))\n"
    "def least(x):\n    return min(S for S in S)\n",
    "lazy_xyz/__init__.py": "def __getattr__(name):\n    from . import far\n    return vars(far)[name]\n",
    "lazy_xyz/__init__.pyi": "from .far import go as go, stay as stay\n",
    "lazy_xyz/far.py": "def go():\n    return 5\ndef stay():\n    return 6\n",
    "method_xyz/late.py": "LIMITS = {'a': 1}\nLIMITS['b'] = 2\nclass Rule:\n    size: int = 3\n"
    "    def f(self): return self.size\n",
    "method_xyz/child.py": "print(7)\n",
    "helper_xyz.py": "TWO = 2\nTABLE = {'f': lambda x: x}\n",
    "tables_xyz.py": "from __future__ import annotations\nimport helper_xyz\nfrom method_xyz import kernel\n"
    "from trimbench.reproduction.execution.job import NUMBER, job\nimport lazy_xyz as lazy\n"
    "from method_xyz.loop import least, total\n"
    "class Size:\n    rows = 5\n\n\n"
    "KNOWN = 5\n\n\n@job(x=NUMBER)\ndef cell(x: float, TWO=3, size: Size = None):\n"
    "    from method_xyz.late import LIMITS as _limits\n    from method_xyz import late as its\n"
    "    used = [TWO for KNOWN in range(3)]\n    run = ['-m', 'method_xyz.child', total(x), least(x), lazy.go()]\n"
    "    return {'x': kernel.work(x) + helper_xyz.TABLE['f'](x) + _limits['a'] + its.Rule().f(), 'y': run}\n\n\n"
    "def table():\n    return 1\n",
}
# Each edit, and whether it counts.
EDITS = [
    ("tables_xyz.py", "return 1\n", "return 22\n", False),
    ("tables_xyz.py", "KNOWN = 5", "KNOWN = 6", False),
    ("tables_xyz.py", "x=NUMBER", "x=NUMBER | NUMBER", False),
    ("tables_xyz.py", "rows = 5", "rows = 6", True),
    ("tables_xyz.py", "range(3)", "range(4)", True),
    ("tables_xyz.py", "TWO=3", "TWO=4", True),
    ("method_xyz/deep/kernel.py", "ONE = 1", "ONE = 11", True),
    ("method_xyz/deep/kernel.py", "x + ONE", "2 * x + ONE", True),  # joblib/joblib#1287
    ("method_xyz/deep/kernel.py", "UNUSED = 2", "UNUSED = 3", False),
    ("method_xyz/deep/kernel.py", "'''Text.'''", "'''Other\n    text.'''", False),
    ("method_xyz/deep/kernel.py", "  # why", "", False),
    ("method_xyz/deep/kernel.py", "x + ONE", "(x +\n            ONE)", False),
    ("method_xyz/deep/kernel.py", "x + ONE", "x - ONE", True),
    ("method_xyz/other.py", "return 1", "return 2", False),
    ("method_xyz/loop.py", "        k *= 2", "    k *= 2", True),
    ("method_xyz/loop.py", "floor as whole", "sqrt as whole", True),
    ("method_xyz/loop.py", "import ceil, floor", "import exp, floor", False),
    ("method_xyz/loop.py", "S.append(2)\nS.append(3)", "S.append(3)\nS.append(2)", True),
    ("method_xyz/loop.py", "S.append(2)", "S.append(1)", True),
    ("method_xyz/loop.py", "return 9", "return 8", True),
    ("method_xyz/loop.py", "T = 4", "T = 5", True),
    ("method_xyz/loop.py", "S = [1]", "S = [0]", True),
    ("lazy_xyz/far.py", "return 5", "return 7", True),
    ("lazy_xyz/far.py", "return 6", "return 7", False),
    ("method_xyz/late.py", "'a': 1", "'a': 2", True),
    ("method_xyz/late.py", "['b'] = 2", "['b'] = 3", True),
    ("method_xyz/late.py", "int = 3", "float = 3", True),
    ("method_xyz/child.py", "7", "8", True),
    ("helper_xyz.py", "TWO = 2", "TWO = 22", False),
    ("helper_xyz.py", "lambda x: x", "lambda x: -x", True),
]


class TestSmallProject:
    """Versions of a small project that is edited on disk."""

    @pytest.fixture
    def project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for name, text in FILES.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        for name in [name for name in sys.modules if name.partition(".")[0].endswith("_xyz")]:
            monkeypatch.delitem(sys.modules, name)  # of another test, in another folder
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        return tmp_path

    def test_it_follows_what_counts_and_nothing_else(self, project: Path) -> None:
        first = code_version("tables_xyz:cell")
        for name, old, new, counts in EDITS:
            text = (project / name).read_text()
            assert text.count(old) == 1, old
            (project / name).write_text(text.replace(old, new))
            assert code_version("tables_xyz:cell") == first, "the imported code does not change"
            forget()
            assert (code_version("tables_xyz:cell") != first) == counts, (name, old, new)
            (project / name).write_text(text)
            forget()
            assert code_version("tables_xyz:cell") == first

    def test_an_installed_package_is_followed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "site-packages"
        (folder / "own_xyz").mkdir(parents=True)
        (folder / "other_xyz.py").write_text("ELSE = 1\n")
        (folder / "own_xyz/__init__.py").write_text("LEVEL = 1\n")
        text = "import other_xyz\nfrom own_xyz import LEVEL\n"
        text += "from trimbench.reproduction.execution.job import NUMBER, job\n\n\n"
        (folder / "own_xyz/cells.py").write_text(
            f"{text}@job(x=NUMBER)\ndef cell():\n    return LEVEL + other_xyz.ELSE\n"
        )
        monkeypatch.syspath_prepend(str(folder))
        first = code_version("own_xyz.cells:cell")
        for name, counts in (("other_xyz.py", False), ("own_xyz/__init__.py", True)):
            (folder / name).write_text((folder / name).read_text().replace("1", "2"))
            forget()
            assert (code_version("own_xyz.cells:cell") != first) == counts

    def test_what_is_kept_is_taken_only_whole(self, project: Path, tmp_path: Path) -> None:
        first = code_version("tables_xyz:cell")
        kept = sorted((tmp_path / "cache/derived").glob("code-*.json"))
        assert len(kept) >= 5
        for damage in (b"", b"[]", b"\xff" * 40):
            for path in kept:
                path.write_bytes(damage)
            forget()
            assert code_version("tables_xyz:cell") == first
        contents = [path.read_bytes() for path in kept]
        for path, other in zip(kept, [*contents[1:], contents[0]], strict=True):
            path.write_bytes(other)
        forget()
        assert code_version("tables_xyz:cell") == first, "statements of one file are not those of another"
        shutil.rmtree(tmp_path / "cache")
        (tmp_path / "cache").write_text("no folder")
        forget()
        assert code_version("tables_xyz:cell") == first

    def test_an_edited_file_is_not_what_it_was_by_the_answer_of_the_old_one(
        self, project: Path, tmp_path: Path
    ) -> None:
        first = code_version("tables_xyz:cell")
        before = {path: path.read_bytes() for path in (tmp_path / "cache/derived").glob("code-*.json")}
        place = project / "method_xyz/deep/kernel.py"
        place.write_text(place.read_text().replace("ONE = 1", "ONE = 3"))
        forget()
        edited = code_version("tables_xyz:cell")
        assert edited != first
        (new,) = set((tmp_path / "cache/derived").glob("code-*.json")) - before.keys()
        for old in before.values():
            new.write_bytes(old)
            forget()
            assert code_version("tables_xyz:cell") == edited


# Held against what the objects of the running program refer to.


@functools.cache
def steps(code: types.CodeType) -> list[tuple[str, str]]:
    """Return what a function loads from its module and what it imports, in order; many jobs share most functions."""
    kinds = ("LOAD_GLOBAL", "IMPORT_NAME", "IMPORT_FROM")
    return [(step.opname, step.argval) for step in dis.get_instructions(code) if step.opname in kinds]


class Live:
    """Follows functions and classes from object to object."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit(self, value: Any) -> None:
        value = inspect.unwrap(value) if callable(value) else value
        value = getattr(value, "py_func", value)  # numba
        if isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.visit(part)
        elif isinstance(value, dict | list | tuple | set | frozenset) and len(value) < 200:
            for part in value.values() if isinstance(value, dict) else value:
                self.visit(part)
        elif inspect.isclass(value) or inspect.isfunction(value):
            module = str(value.__module__)
            if not module.startswith("trimbench.") or module.startswith((*code_hash._OUTSIDE, *PROJECT.skipped)):
                return
            known_as = value.__qualname__ if inspect.isclass(value) else value.__code__.co_qualname
            name = f"{module}:{known_as.partition('.')[0]}"
            if inspect.isclass(value):
                if name in self.found:
                    return
                self.found.add(name)
                for part in (*value.__bases__, *vars(value).values()):
                    part = getattr(part, "fget", None) or getattr(part, "func", None) or getattr(part, "__func__", part)
                    if callable(part):
                        self.visit(part)
            elif not value.__code__.co_filename.startswith("<") and (name, value.__qualname__) not in self.found:  # type: ignore[comparison-overlap]
                self.found |= {name, (name, value.__qualname__)}  # type: ignore[arg-type]
                self.code(value.__code__, value.__globals__)

    def code(self, code: types.CodeType, names: dict[str, Any]) -> None:
        imported = ""
        for step, name in steps(code):
            if step == "LOAD_GLOBAL" and name in names:
                value = names[name]
                self.visit(value)
                if inspect.ismodule(value) and value.__name__.startswith("trimbench."):
                    for one in set(code.co_names) & set(vars(value)):
                        self.visit(vars(value)[one])
            elif step == "IMPORT_NAME":
                imported = name
            elif step == "IMPORT_FROM" and imported.startswith("trimbench."):
                self.visit(getattr(importlib.import_module(imported), name, None))
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                self.code(part, names)


def reached(function: str) -> set[str]:
    """Return the statements that a function reaches, as ``module:name``."""
    folder = Path(trimbench.__file__).parents[1]
    module, _, name = function.partition(":")
    waiting = list(code_hash._targets(folder, module, (name,)))
    found = set(waiting)
    while waiting:
        new = code_hash._after(folder, waiting.pop()) - found
        found |= new
        waiting += new
    return {
        f"{place.module}:{bound}"
        for place in found
        for bound in code_hash._source(place.file, place.module)[place.at].binds
    }


JOBS = job_functions()


def test_whatever_a_job_calls_is_part_of_its_version() -> None:
    assert len(JOBS) >= 41
    missing = {}
    for job in JOBS:
        live = Live()
        live.visit(resolve(job))
        functions = {one for one in live.found if isinstance(one, str) and not one.endswith("<lambda>")}
        missing[job] = sorted(functions - reached(job))
    assert not {job: names for job, names in missing.items() if names}


def test_no_name_hides_what_it_leads_to() -> None:
    """What versions cannot follow is not in the package: names by a star, and the package at the top, which is lazy."""
    package = Path(trimbench.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^from \S+ import \*", text, re.MULTILINE), path
        if "papers" in path.relative_to(package).parts:
            assert not re.search(r"^\s*(import trimbench|from trimbench import ?!_)", text, re.MULTILINE), path
