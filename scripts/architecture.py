"""Draw the rooms of trimbench, and which room imports which, from the imports themselves.

The picture is `docs/_static/floors.svg`; `scripts/docs` writes it. An arrow leads from what is used to what uses it;
one that follows from others is left out, and a room of the papers floor says which rooms of the library it
uses.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/_static/floors.svg"
LIBRARY, PAPERS = "trimbench", "trimbench.papers"
_WIDTH, _BOX, _HEIGHT, _STEP, _MARGIN = 980, 234, 58, 86, 20
_LINE = 34  # characters of the small print in a box
# Shared helpers of a module or two, which nearly every room uses, would hide the rest.
_NOT_ROOMS = {
    "trimbench.papers",
    "trimbench.__main__",
    *(f"trimbench._{name}" for name in ("checks", "current_folder", "extras", "numba", "typing")),
}
_STYLE = (
    "text{font:15px sans-serif;text-anchor:middle}"
    ".s{font-size:12px;fill:#555}.f{font-weight:bold;text-anchor:start}path{stroke:#666;fill:none}"
)


def rooms_and_imports() -> dict[str, set[str]]:
    """Return for each room, by its full name, the rooms that it imports."""
    graph = grimp.build_graph(LIBRARY, cache_dir=None)
    rooms = {room for floor in (LIBRARY, PAPERS) for room in graph.find_children(floor)} - _NOT_ROOMS
    return {
        room: {
            other
            for other in rooms - {room}
            if graph.direct_import_exists(importer=room, imported=other, as_packages=True)
        }
        for room in rooms
    }


def levels(imports: dict[str, set[str]]) -> dict[str, int]:
    """Return how many rooms are below each at most, over all chains of imports; the papers floor begins anew."""

    @cache
    def level(room: str) -> int:
        below = [level(other) for other in imports[room] if is_upstairs(other) == is_upstairs(room)]
        return 1 + max(below, default=-1)

    first = 1 + max(level(room) for room in imports if not is_upstairs(room))
    return {room: level(room) + first * is_upstairs(room) for room in imports}


def is_upstairs(room: str) -> bool:
    """Tell whether a room is on the papers floor."""
    return room.startswith(f"{PAPERS}.")


def needed(imports: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a room and one of its floor that it imports, unless a chain of other imports implies it."""

    @cache
    def reached(room: str) -> frozenset[str]:
        return frozenset(imports[room]).union(*(reached(other) for other in imports[room]))

    for room in sorted(imports):
        for other in sorted(imports[room]):
            if is_upstairs(other) == is_upstairs(room) and not any(
                other in reached(third) for third in imports[room] - {other}
            ):
                yield room, other


def picture() -> str:
    """Return the drawing as SVG."""
    imports = rooms_and_imports()
    level_of = levels(imports)
    top = max(level_of.values())
    at: dict[str, tuple[float, float]] = {}
    for level in range(top + 1):
        row = sorted(room for room in imports if level_of[room] == level)
        for place, room in enumerate(row):
            at[room] = (_WIDTH * (place + 0.5) / len(row), _MARGIN + _STEP * (top - level))
    ground = _MARGIN + _STEP * (top - min(level_of[room] for room in imports if is_upstairs(room))) + _HEIGHT + 14
    height = _STEP * top + _HEIGHT + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>The rooms of trimbench: an arrow leads from what is used to what uses it</title>",
        f"<style>{_STYLE}</style>",
        '<marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8" /></marker>',
        f'<rect width="{_WIDTH}" height="{ground}" fill="#eef4fb" />',
        f'<rect y="{ground}" width="{_WIDTH}" height="{height - ground}" fill="#fdf3e4" />',
        f'<text class="f" x="8" y="16">papers</text><text class="f" x="8" y="{ground + 16}">library</text>',
    ]
    for user, used in needed(imports):
        (x, y), (to_x, to_y) = at[used], at[user]
        lines.append(f'<path d="M{x:.0f} {y:.0f}L{to_x:.0f} {to_y + _HEIGHT:.0f}" marker-end="url(#a)" />')
    for room, (x, y) in sorted(at.items()):
        name = html.escape(room.removeprefix(f"{PAPERS}.").removeprefix(f"{LIBRARY}."))
        downstairs = sorted(other.rpartition(".")[2] for other in imports[room] if not is_upstairs(other))
        on = textwrap.wrap(f"on {', '.join(downstairs)}", _LINE) if is_upstairs(room) and downstairs else []
        lines += [
            f'<rect x="{x - _BOX / 2:.0f}" y="{y:.0f}" width="{_BOX}" height="{_HEIGHT}" rx="4" fill="#fff" '
            'stroke="#333" />',
            f'<text x="{x:.0f}" y="{y + 34 - 8 * len(on):.0f}">{name}</text>',
            *(
                f'<text class="s" x="{x:.0f}" y="{y + 52 - 8 * len(on) + 15 * i:.0f}">{one}</text>'
                for i, one in enumerate(on)
            ),
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
