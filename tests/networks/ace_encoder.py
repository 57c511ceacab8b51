"""A writer of what `NaiveBayes.read_ace` reads: one block of clauses for each node, one variable per parameter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import trimbench as tb
from trimbench.networks.formats.ace import AceProblem


class _Variables:
    """Numbers the variables and keeps the lines that the literal map has for them."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[str] = []

    def indicator(self, node: str, value: int) -> int:
        self.count += 1
        self.lines += [f"cc$C$-{self.count}$1.0$+$", f"cc$I${self.count}$1.0$+${node}${value}"]
        return self.count

    def parameter(self, weight: float) -> int:
        self.count += 1
        self.lines += [f"cc$C$-{self.count}$1.0$+$", f"cc$C${self.count}${weight!r}$+$"]
        return self.count


def _listing(indicators: Sequence[int]) -> list[str]:
    pairs = [f"-{b} -{a} 0" for i, a in enumerate(indicators) for b in indicators[i + 1 :]]
    return [" ".join(map(str, indicators)) + " 0", *pairs]


def _row(row: Sequence[float], condition: int, indicators: Sequence[int], variables: _Variables) -> list[str]:
    """Return the clauses of P(value | one class); equal values that are not zero share one parameter."""
    zeros = [f"-{own} -{condition} 0" for own, p in zip(indicators, row, strict=True) if p == 0]
    positive = {p for p in row if p > 0}
    if len(positive) == 1 and len(row) > 1:
        return [*zeros, f"-{condition} {variables.parameter(positive.pop())} 0"]
    own_clauses = [
        f"-{own} -{condition} {variables.parameter(p)} 0" for own, p in zip(indicators, row, strict=True) if p > 0
    ]
    return own_clauses + zeros


def encode_ace(model: tb.NaiveBayes) -> tuple[str, str]:
    """Return the text of the ``.cnf`` and of the ``.lmap`` file."""
    variables = _Variables()
    classes = [variables.indicator(model.class_variable, k) for k in range(model.prior.size)]
    clauses = _listing(classes)
    for own, p in zip(classes, model.prior.tolist(), strict=True):
        clauses.append(f"-{own} {variables.parameter(p)} 0" if p > 0 else f"-{own} 0")
    for name, table in zip(model.feature_names, model.likelihoods, strict=True):
        indicators = [variables.indicator(name, value) for value in range(table.shape[1])]
        clauses += _listing(indicators)
        for condition, row in zip(classes, table.tolist(), strict=True):
            clauses += _row(row, condition, indicators, variables)
    sizes = {model.class_variable: model.prior.size, **dict(zip(model.feature_names, model.cardinalities, strict=True))}
    entries = {name: n if name == model.class_variable else n * model.prior.size for name, n in sizes.items()}
    cnf = ["c cnf of a test", "c", f"p cnf {variables.count} {len(clauses)}", *clauses]
    lmap = ["c Following is the literal map:", "c", "cc$K$ALWAYS_SUM", "cc$S$NORMAL", f"cc$N${variables.count}"]
    lmap += [f"cc$v${len(sizes)}", *(f"cc$V${name}${size}" for name, size in sizes.items())]
    lmap += [f"cc$t${len(sizes)}", *(f"cc$T${name}${n}" for name, n in entries.items()), *variables.lines]
    return "\n".join(cnf) + "\n", "\n".join(lmap) + "\n"


def encode_problem(problem: AceProblem) -> str:
    """Return the text of the ``.search`` file."""
    costs = "".join(f"f {name} {cost!r}\n" for name, cost in problem.costs.items())
    return f"$ {len(problem.costs)} {problem.threshold!r} {problem.budget!r}\nd {problem.target}\n{costs}"


def write_ace(folder: Path, cnf: str, lmap: str) -> tuple[Path, Path]:
    """Write the two files of a network."""
    paths = folder / "a.cnf", folder / "a.lmap"
    for path, text in zip(paths, (cnf, lmap), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def example() -> tb.NaiveBayes:
    """Three classes; values with a parameter of their own, a shared one, a zero, and a zero beside a shared one."""
    return tb.NaiveBayes(
        [0.5, 0.3, 0.2],
        [[[0.9, 0.1], [0.5, 0.5], [0.25, 0.75]], np.array([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5], [0.0, 0.4, 0.6]])],
        feature_names=["A", "B"],
        class_variable="C",
    )


def assert_same(model: tb.NaiveBayes, expected: tb.NaiveBayes, tolerance: float = 1e-12) -> None:
    """Equal names; probabilities equal up to the tolerance."""
    assert (model.class_variable, model.feature_names) == (expected.class_variable, expected.feature_names)
    assert (model.class_names, model.value_names) == (expected.class_names, expected.value_names)
    np.testing.assert_allclose(model.prior, expected.prior, atol=tolerance)
    for table, other in zip(model.likelihoods, expected.likelihoods, strict=True):
        np.testing.assert_allclose(table, other, atol=tolerance)
