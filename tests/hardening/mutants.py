"""Small changes of a program, each of which its tests should notice."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# What is no computation: messages, types, imports, and what decorates a function.
_SKIPPED = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)


@dataclass(frozen=True)
class Difference:
    """A line of a function before and after a change, as `ast.unparse` writes it."""

    file: str
    function: str  # with the classes and functions around it; empty outside
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file} {self.function}\n- {self.before}\n+ {self.after}"


def read_equivalents(path: Path) -> dict[Difference, str]:
    """Return the reason why each mutant of a list changes no result.

    An entry is what `Difference` prints, followed by the reason; empty lines part entries.
    """
    found = {}
    for entry in path.read_text(encoding="utf-8").split("\n\n"):
        place, before, after, *reason = entry.strip().splitlines()
        file, _, function = place.partition(" ")
        if not before.startswith("- ") or not after.startswith("+ ") or not reason:
            raise ValueError(f"an entry needs a place, a line before, a line after and a reason, got {entry!r}")
        found[Difference(file, function, before[2:], after[2:])] = " ".join(reason)
    return found


@dataclass(frozen=True)
class Mutant:
    """One change: which node of the tree of a file, in the order of `ast.walk`, and what it becomes."""

    file: Path
    line: int
    place: int
    change: str
    at_import: bool  # it is outside functions

    def code(self) -> str:
        """Return the text of the changed file."""
        tree = ast.parse(self.file.read_text(encoding="utf-8"))
        for place, node in enumerate(ast.walk(tree)):
            if place == self.place:
                _change(tree, node, self.change)
        return ast.unparse(ast.fix_missing_locations(tree))

    def difference(self) -> Difference:
        """Return what it changes, without the number of the line, which other changes of the file move."""
        nodes = _nodes(self.file.read_text(encoding="utf-8"))
        around = [
            node
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= self.line <= (node.end_lineno or 0)
        ]
        # The innermost function is enough, and much less to write than the file.
        before = ast.Module([around[-1]], []) if around else nodes[0]
        place = next(n for n, node in enumerate(ast.walk(before)) if node is nodes[self.place])
        after = copy.deepcopy(before)
        _change(after, list(ast.walk(after))[place], self.change)
        pairs = zip(ast.unparse(before).splitlines(), ast.unparse(after).splitlines(), strict=True)
        changed = ((one.strip(), other.strip()) for one, other in pairs if one != other)
        one, other = next(changed, ("", ""))  # none where 1 is added to a number without room for it
        return Difference(self.file.as_posix(), ".".join(node.name for node in around), one, other)

    def __str__(self) -> str:
        text = self.file.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()
        return f"{self.file}:{self.line}: {self.change}: {text}"


@functools.lru_cache(maxsize=4)
def _nodes(text: str) -> list[ast.AST]:
    """Return the nodes of a program; nobody changes them."""
    return list(ast.walk(ast.parse(text)))


def mutants(file: Path) -> Iterator[Mutant]:
    """Yield all changes of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = {id(node) for root in _roots(tree) for node in ast.walk(root)}
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    inside = {id(node) for function in functions for part in function.body for node in ast.walk(part)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) not in skipped and hasattr(node, "lineno"):
            for change in _changes(node):
                yield Mutant(file, node.lineno, place, change, id(node) not in inside)


def _roots(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is left alone."""
    for node in ast.walk(tree):
        if isinstance(node, _SKIPPED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
            yield node.annotation
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield node
        if isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns


def _changes(node: ast.AST) -> list[str]:
    match node:
        case (
            ast.Compare(ops=[operator]) | ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator)
        ):
            new = _OPERATORS.get(type(operator))
            return [f"{type(operator).__name__} to {new.__name__}"] if new else []
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return ["sign left out"]
        case ast.Constant(value=bool()):
            return ["other value"]
        case ast.Constant(value=int() | float()):
            return ["one more"]
        case ast.If() | ast.While() | ast.IfExp():
            return ["condition turned round"]
        case ast.Expr() | ast.AugAssign():
            return ["left out"]
        case ast.Assign(targets=[ast.Subscript()]):
            return ["left out"]
        case ast.Break() | ast.Continue():
            return ["left out"]
        case _:
            return []


def _change(tree: ast.AST, node: ast.AST, change: str) -> None:
    if change == "left out":
        _replace(tree, node, ast.Pass())
    elif change == "sign left out":
        _replace(tree, node, node.operand)  # type: ignore[attr-defined]
    elif change == "condition turned round":
        node.test = ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))  # type: ignore[attr-defined]
    elif change == "other value":
        node.value = not node.value  # type: ignore[attr-defined]
    elif change == "one more":
        node.value += 1  # type: ignore[attr-defined]
    elif isinstance(node, ast.Compare):
        node.ops = [_OPERATORS[type(node.ops[0])]()]  # type: ignore[list-item]
    else:
        node.op = _OPERATORS[type(node.op)]()  # type: ignore[attr-defined]


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(one is old for one in value):
                setattr(parent, name, [new if one is old else one for one in value])
