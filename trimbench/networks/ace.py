"""Reader for naive Bayes networks in the encoding of the ACE compiler.

A network is a CNF file (``.cnf``) whose weights stand in a literal map (``.lmap``); a third file (``.search``)
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

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.ace_files import (
    LiteralMap,
    ParameterClause,
    checked_number,
    define,
    numbered_lines,
    read_blocks,
    read_literal_map,
)
from trimbench.networks.file_parsing import MAX_UNSTATED, checked_shape, short_errors
from trimbench.networks.naive_bayes import NaiveBayes

logger = logging.getLogger(__name__)

# ACE files carry parameters of few digits; columns of the published networks are off by up to 0.01.
ROUNDING_TOLERANCE = 0.02


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


@short_errors()
def read_ace(cnf_path: str | Path, lmap_path: str | Path) -> NaiveBayes:
    """Read a naive Bayes network from an ACE encoding.

    States are named by their index, ``"0", "1", ...``. Parameters in such files are rounded: each distribution is
    normalised, and the largest deviation from 1 is logged.

    Parameters
    ----------
    cnf_path, lmap_path : str or Path

    Returns
    -------
    NaiveBayes

    Raises
    ------
    ValueError
        When a file is cut short, is not UTF-8, holds a line or clause that cannot be read (named by its line), the
        network is not naive Bayes, or a distribution is off by more than rounding explains.
    """
    literals = read_literal_map(Path(lmap_path))
    blocks = read_blocks(Path(cnf_path), literals)
    target = _class_node(blocks, cnf_path)
    features = [name for name in blocks if name != target]
    prior = _table((target,), blocks[target], literals, cnf_path)
    tables = [_table((target, name), blocks[name], literals, cnf_path) for name in features]
    deviations = [float(np.abs(table.sum(axis=-1) - 1.0).max()) for table in (prior, *tables)]
    if max(deviations) > ROUNDING_TOLERANCE:
        worst = (target, *features)[int(np.argmax(deviations))]
        raise ValueError(
            f"{cnf_path}: the distributions of {worst!r} must sum to 1 within {ROUNDING_TOLERANCE}, got a deviation "
            f"of {max(deviations):.4g}; are {cnf_path} and {lmap_path} of the same network?"
        )
    logger.info("%s: normalised; distributions were off by up to %.2g", cnf_path, max(deviations))
    return NaiveBayes(
        prior / prior.sum(),
        [table / table.sum(axis=1, keepdims=True) for table in tables],
        feature_names=features,
        class_variable=target,
    )


@short_errors()
def read_ace_problem(search_path: str | Path) -> AceProblem:
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
