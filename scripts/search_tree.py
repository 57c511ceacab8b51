"""Draw the search of the trimming paper's Figure 2, as `search_nodes` traces it.

The picture is `docs/_static/search.svg`; `scripts/docs` writes it. The costs, the budget, the bound of 0.95 and the
best agreement of 0.97 are printed; the other agreements are made up.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path

from trimbench.papers.trimming.table6 import Node, search_nodes

PICTURE = Path(__file__).parents[1] / "docs/_static/search.svg"
COSTS, BUDGET = (0.5, 1.0, 1.0, 2.0), 1.5
ACHIEVED = {(): 0.60, (0,): 0.80, (0, 1): 0.90, (0, 2): 0.97}
BOUNDS = {(): 1.00, (1,): 0.99, (0,): 0.95}
_STYLE = "text{font:12px sans-serif;text-anchor:middle}rect{fill:#fff;stroke:#666}.p rect{stroke:#c33}path{stroke:#666}"
_WIDTH, _HEIGHT, _STEP = 176, 66, 104


def nodes() -> list[Node]:
    """Return the nodes in the order of the search."""
    features = range(len(COSTS))
    return list(search_nodes(features, COSTS, BUDGET, lambda included, _: ACHIEVED[included], BOUNDS.__getitem__))


def picture() -> str:
    """Return the drawing: a node on each level for each decision, and a column for each end of a branch."""
    found = nodes()
    columns = _columns(found)
    places = {(n.included, n.excluded): (columns[n.included, n.excluded], _depth(n)) for n in found}
    shapes = [shape for node in found for shape in _drawn(node, places)]
    width = int((max(x for x, _ in places.values()) + 1) * (_WIDTH + 12) + 12)
    height = (max(map(_depth, found)) + 1) * _STEP
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    return "\n".join([opening, f"<style>{_STYLE}</style>", *shapes, "</svg>\n"])


def _depth(node: Node) -> int:
    return len(node.included) + len(node.excluded)


def _columns(found: Sequence[Node]) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """Return the column of each node: ends of branches from left to right, the others between their two children."""
    columns: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    keys = [(node.included, node.excluded) for node in found]
    ends = 0
    for included, excluded in keys:
        if not [key for key in keys if _parent(*key) == (included, excluded)]:
            columns[included, excluded] = ends
            ends += 1
    for key in sorted(keys, key=lambda key: -len(key[0]) - len(key[1])):
        if key not in columns:
            children = [columns[child] for child in keys if _parent(*child) == key]
            columns[key] = sum(children) / len(children)
    return columns


def _parent(included: tuple[int, ...], excluded: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    if not included and not excluded:
        return None
    # Features are decided in order: the one with the largest number came last.
    last_is_included = max(included, default=-1) > max(excluded, default=-1)
    return (included[:-1], excluded) if last_is_included else (included, excluded[:-1])


def _drawn(node: Node, places: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[float, int]]) -> Iterator[str]:
    """Yield the line from the parent, the box, and its three lines of text."""
    column, depth = places[node.included, node.excluded]
    x, y = 12 + column * (_WIDTH + 12), 10 + depth * _STEP
    parent = _parent(node.included, node.excluded)
    if parent is not None:
        px, py = places[parent]
        start = (12 + px * (_WIDTH + 12) + _WIDTH / 2, 10 + py * _STEP + _HEIGHT)
        yield f'<path d="M{start[0]:.0f} {start[1]:.0f}L{x + _WIDTH / 2:.0f} {y}"/>'
    bound = "no feature left to afford" if node.bound is None else f"bound {node.bound:.2f}"
    texts = [
        f"with {_names(node.included)}, without {_names(node.excluded)}",
        f"MAA {node.achieved:.2f}, best so far {node.agreement:.2f}" if node.achieved is not None else "beyond budget",
        f"{bound}: pruned" if node.pruned else bound,
    ]
    shape = f'<rect x="{x:.0f}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
    yield f'<g class="{"p" if node.pruned else "n"}">{shape}'
    for line, text in enumerate(texts):
        yield f'<text x="{x + _WIDTH / 2:.0f}" y="{y + 20 + 19 * line}">{html.escape(text)}</text>'
    yield "</g>"


def _names(features: Sequence[int]) -> str:
    return " ".join(f"F{feature + 1}" for feature in features) or "none"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
