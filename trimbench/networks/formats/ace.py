"""Reader for naive Bayes networks in the encoding of the ACE compiler.

A network is a CNF file (``.cnf``) whose weights are in a literal map (``.lmap``); a third file (``.search``)
states the feature selection problem. The CNF has one block of clauses for each node: first the clause that lists
the node's indicator variables, then "at most one of them", then one clause for each parameter:

=============================  ===================================================
clause                         meaning of the parameter
=============================  ===================================================
not class k, parameter         in the class's block: P(k); in a feature's block:
                               P(v | k), the same for every value v but those
                               whose probability is stated to be zero
not class k, not value v, p.   P(v | k)
=============================  ===================================================

A parameter of zero is left out: such a clause ends after its indicators. The reader rejects anything else, and anything
stated twice, so that a damaged file, or files of two networks, never turn into another model.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.formats.parsing import MAX_UNSTATED, checked_shape, read_text, short_errors
from trimbench.networks.values import normalised


@dataclass(frozen=True)
class AceProblem:
    """A feature selection problem, as stated in a ``.search`` file.

    Attributes
    ----------
    target : str
        Class node.
    threshold : float
    budget : float
    costs : mapping from feature name to cost
    """

    target: str
    threshold: float
    budget: float
    costs: Mapping[str, float]


def read_ace(cnf_path: str | Path, lmap_path: str | Path) -> dict[str, Any]:
    """Return the arguments of `NaiveBayes` for an ACE encoding; ValueError, with the line, if it cannot be read."""
    literals = read_literal_map(Path(lmap_path))
    blocks = read_blocks(Path(cnf_path), literals)
    target = _class_node(blocks, cnf_path)
    features = [name for name in blocks if name != target]
    prior = _table((target,), blocks[target], literals, cnf_path)
    tables = [_table((target, name), blocks[name], literals, cnf_path) for name in features]
    return normalised(f"{cnf_path} and {lmap_path}", target, prior, dict(zip(features, tables, strict=True)))


@short_errors()
def read_problem(search_path: str | Path) -> AceProblem:
    """Read the feature selection problem in a ``.search`` file.

    Parameters
    ----------
    search_path : str or Path

    Returns
    -------
    AceProblem
        The threshold is in 0..1; the budget and the costs are finite and not negative.

    Raises
    ------
    ValueError
        When the file is cut short, is not UTF-8, or a line cannot be read or repeats an earlier one.
    """
    path = Path(search_path)
    header: dict[str, tuple[int, float, float]] = {}
    targets: dict[str, str] = {}
    costs: dict[str, float] = {}
    for number, line in numbered_lines(path):
        try:
            match line.split():
                case ["$", count, level, limit]:
                    define(header, "$", (int(count), checked_number(level, highest=1.0), checked_number(limit)))
                case ["d", name]:
                    define(targets, "d", name)
                case ["f", name, cost]:
                    define(costs, name, checked_number(cost))
                case _:
                    raise ValueError("unknown kind of line")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: cannot read {line!r} ({error})") from error
    if not header or not targets:
        raise ValueError(
            f"{path} must have a line '$ features threshold budget' and a line 'd class'; is it cut short?"
        )
    (n_features, threshold, budget), target = header["$"], targets["d"]
    if n_features < 1 or len(costs) != n_features or target in costs:
        raise ValueError(
            f"{path} must state the costs of {n_features} features, at least one, other than the class {target!r}, "
            f"got {list(costs)}; is it cut short?"
        )
    return AceProblem(target, threshold, budget, costs)


def _class_node(blocks: Mapping[str, list[ParameterClause]], path: str | Path) -> str:
    roots = [name for name, clauses in blocks.items() if all(set(clause.place) == {name} for clause in clauses)]
    if len(roots) != 1:
        raise ValueError(f"{path} must hold a naive Bayes network with one class node, got the roots {roots}")
    return roots[0]


def _table(
    axes: tuple[str, ...], clauses: list[ParameterClause], literals: LiteralMap, path: str | Path
) -> NDArray[np.float64]:
    """Return P(last axis | the axes before) as the clauses of one block state it; ``axes[0]`` is the class."""
    shape = [literals.cardinalities[axis] for axis in axes]
    checked_shape(f"{path}: the table of {axes[-1]!r}", shape, MAX_UNSTATED)
    table = np.full(shape, np.nan)
    # Clauses that name every axis come first: one for the class alone applies to the remaining values.
    for clause in sorted(clauses, key=lambda clause: -len(clause.place)):
        place, where = clause.place, f"{path}, line {clause.line}"
        if not {axes[0]} <= set(place) <= set(axes):
            raise ValueError(
                f"{where}: a parameter of {axes[-1]!r} must name a value of {axes[0]!r} and of nothing "
                f"else but itself, got {place}"
            )
        cells = table[(*(place.get(axis, slice(None)) for axis in axes), ...)]
        free = np.isnan(cells)
        # A shared parameter beside a value's own would mean the product of the two: the compiler writes no such row.
        if not free.any() or (cells > 0).any():
            raise ValueError(f"{where}: the parameter for {place} is stated twice")
        np.copyto(cells, clause.weight, where=free)
    if np.isnan(table).any():
        cell = dict(zip(axes, np.argwhere(np.isnan(table))[0].tolist(), strict=True))
        raise ValueError(f"{path}: no parameter of {axes[-1]!r} for {cell}")
    return table


# The lines and clauses of ACE files; damaged, contradictory or repeated ones are rejected.

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class LiteralMap:
    """What the variables of a CNF file mean.

    Attributes
    ----------
    n_variables : int
        The variables are 1..n_variables.
    """

    n_variables: int
    cardinalities: dict[str, int]
    indicators: dict[int, tuple[str, int]]
    weights: dict[int, float]


@dataclass(frozen=True)
class ParameterClause:
    """A clause that states a parameter.

    Attributes
    ----------
    place : dict from node name to value
        Where the parameter holds.
    """

    line: int
    place: dict[str, int]
    weight: float


def numbered_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that are not blank, each with its number; raise ValueError if it is not UTF-8."""
    return [(number, line.strip()) for number, line in enumerate(read_text(path).splitlines(), 1) if line.strip()]


def define(mapping: dict[Key, Value], key: Key, value: Value) -> None:
    """Set ``mapping[key]``, or raise ValueError when it was set before."""
    if key in mapping:
        raise ValueError(f"{key!r} is stated twice")
    mapping[key] = value


def checked_number(text: str, *, highest: float = sys.float_info.max) -> float:
    """Return the number in `text`, or raise ValueError if it is outside 0..highest."""
    value = float(text)
    if not 0 <= value <= highest:
        raise ValueError(f"a number must be in 0..{highest:g}")
    return value


def read_literal_map(path: Path) -> LiteralMap:
    """Read a ``.lmap`` file.

    Raises ValueError if a line cannot be read or repeats an earlier one, or a variable or node is not described.
    """
    totals: dict[str, int] = {}
    cardinalities: dict[str, int] = {}
    indicators: dict[int, tuple[str, int]] = {}
    weights: dict[int, float] = {}
    for number, line in numbered_lines(path):
        if line.split()[0] == "c":
            continue
        try:
            match line.split("$"):
                case ["cc", "N" | "v" as what, count]:
                    define(totals, what, int(count))
                case ["cc", "V", name, count] if name:
                    define(cardinalities, name, int(count))
                case ["cc", "I", variable, weight, "+", name, value] if float(weight) == 1:
                    define(indicators, int(variable), (name, int(value)))
                case ["cc", "C", literal, weight, "+", ""] if int(literal) > 0:
                    define(weights, int(literal), checked_number(weight, highest=1.0))
                case ["cc", "C", literal, weight, "+", ""] if int(literal) < 0 and float(weight) == 1:
                    continue
                case ["cc", "K" | "S" | "t" | "T", *_]:
                    continue  # options of the compiler, and sizes that the clauses repeat
                case _:
                    raise ValueError("unknown kind of line")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: cannot read {line!r} ({error})") from error
    n_variables, found = totals.get("N", -1), len(indicators) + len(weights)
    if found != n_variables or len(cardinalities) != totals.get("v", -1):
        raise ValueError(
            f"{path} must say how many variables and nodes there are and describe them all, got {totals} and "
            f"{found} variables, {len(cardinalities)} nodes; is it cut short?"
        )
    if {*indicators, *weights} != set(range(1, n_variables + 1)):
        raise ValueError(f"{path} must give each of the variables 1..{n_variables} one meaning")
    found_values: dict[str, list[int]] = {name: [] for name in cardinalities}
    for node, index in indicators.values():
        found_values.setdefault(node, []).append(index)
    for name, unordered in found_values.items():
        values = sorted(unordered)
        if len(values) != cardinalities.get(name, -1) or values != list(range(len(values))):
            raise ValueError(
                f"{path}: node {name!r} must have one indicator for each of its {cardinalities.get(name, 0)} values, "
                f"got the values {values}"
            )
    return LiteralMap(n_variables, cardinalities, indicators, weights)


def read_blocks(path: Path, literals: LiteralMap) -> dict[str, list[ParameterClause]]:
    """Return the parameter clauses of each node in a ``.cnf`` file, nodes in the order of their blocks.

    Raises ValueError if a clause cannot be read, or clauses or parameters are missing.
    """
    blocks: dict[str, list[ParameterClause]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    exclusions: dict[tuple[tuple[str, int], ...], int] = {}
    used: set[int] = set()
    n_clauses, owner = 0, ""
    for number, line in numbered_lines(path):
        words = line.split()
        if words[0] == "c":
            continue
        try:
            if words[0] == "p":
                match words:
                    case ["p", "cnf", variables, clauses]:
                        define(sizes, "p", (int(variables), int(clauses)))
                        continue
                raise ValueError("must be 'p cnf variables clauses'")
            n_clauses += 1
            negated, positive = _split_clause(words, literals)
            if not negated:
                owner = _listed_node(positive, literals)
                define(blocks, owner, [])
            elif not positive and len(negated) == 2 and negated[0][0] == negated[1][0]:
                define(exclusions, tuple(sorted(negated)), number)  # at most one value of a node
            elif len(positive) > 1 or len(dict(negated)) != len(negated):
                raise ValueError("not a clause of a naive Bayes network")
            elif not blocks or (not positive and owner not in dict(negated)):
                raise ValueError("a clause must stand in the block of its node, and name it if it has no parameter")
            else:
                used.update(positive)
                weight = literals.weights[positive[0]] if positive else 0.0
                blocks[owner].append(ParameterClause(number, dict(negated), weight))
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path}, line {number}: cannot read {line!r} ({error!r})") from error
    if sizes.get("p") != (literals.n_variables, n_clauses):
        raise ValueError(
            f"{path} must state its numbers of variables and clauses in a line 'p cnf {literals.n_variables} "
            f"{n_clauses}', got {sizes.get('p')}; is it cut short, or does the literal map belong to another network?"
        )
    missing = sorted(set(literals.cardinalities) - set(blocks))
    if missing or len(exclusions) != sum(n * (n - 1) // 2 for n in literals.cardinalities.values()):
        raise ValueError(
            f"{path} must list the values of every node and exclude every pair of them, got no block for {missing} "
            f"and {len(exclusions)} excluded pairs"
        )
    if used != set(literals.weights):
        raise ValueError(f"{path} must use every parameter, got no clause for {min(set(literals.weights) - used)}")
    return blocks


def _split_clause(words: list[str], literals: LiteralMap) -> tuple[list[tuple[str, int]], list[int]]:
    """Return the values that a clause negates, as (node, value), and its positive literals."""
    *clause, end = (int(word) for word in words)
    if end != 0 or not clause or len({abs(literal) for literal in clause} - {0}) != len(clause):
        raise ValueError("a clause must be distinct variables and end with 0")
    negated = [literals.indicators[-literal] for literal in clause if literal < 0]
    return negated, [literal for literal in clause if literal > 0]


def _listed_node(positive: list[int], literals: LiteralMap) -> str:
    owners = {literals.indicators[literal][0] for literal in positive}
    owner = owners.pop()
    if owners or len(positive) != literals.cardinalities[owner]:
        raise ValueError("must list the values of one node")
    return owner
