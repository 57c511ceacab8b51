"""Draw the three parts of trimbench, and which room imports which, from the imports themselves.

The picture is `docs/_static/floors.svg`; `scripts/docs` writes it. An arrow leads from what is used to what uses it;
one that follows from others is left out. A room of the papers says which rooms of the library it uses; nearly all of
them use the framework.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/_static/floors.svg"
LIBRARY, FRAMEWORK, PAPERS = "trimbench", "trimbench.reproduction", "trimbench.papers"
_WIDTH, _BOX, _HEIGHT, _STEP, _MARGIN, _TITLE = 980, 150, 72, 92, 16, 24
_LINE = 24  # characters of the small print in a box
# Shared helpers of a module or two, which nearly every room uses, would hide the rest.
_NOT_ROOMS = {
    PAPERS,
    FRAMEWORK,
    "trimbench.__main__",
    *(f"trimbench._{name}" for name in ("checks", "current_folder", "extras", "numba", "typing")),
    *(f"{FRAMEWORK}.{name}" for name in ("children", "extras", "project")),
    f"{PAPERS}.project",
}
_STYLE = (
    "text{font:15px sans-serif;text-anchor:middle}"
    ".s{font-size:11px;fill:#555}.f{font-weight:bold;text-anchor:start}path{stroke:#666;fill:none}"
)


class _Area(NamedTuple):
    """Where a part is drawn: its name, its colour, and the left end and width of its strip."""

    title: str
    colour: str
    left: float
    width: float


_AREAS = {
    PAPERS: _Area("papers: the three papers", "#eef4fb", 0, _WIDTH),
    LIBRARY: _Area("library: the methods", "#fdf3e4", 0, _WIDTH / 2),
    FRAMEWORK: _Area("reproduction: reruns what a paper reports", "#edf7ed", _WIDTH / 2, _WIDTH / 2),
}


def rooms_and_imports() -> dict[str, set[str]]:
    """Return for each room, by its full name, the rooms that it imports."""
    graph = grimp.build_graph(LIBRARY, cache_dir=None)
    rooms = {room for part in _AREAS for room in graph.find_children(part)} - _NOT_ROOMS
    return {
        room: {
            other
            for other in rooms - {room}
            if graph.direct_import_exists(importer=room, imported=other, as_packages=True)
        }
        for room in rooms
    }


def part_of(room: str) -> str:
    """Return the part to which a room belongs."""
    return next((part for part in (PAPERS, FRAMEWORK) if room.startswith(f"{part}.")), LIBRARY)


def levels(imports: dict[str, set[str]]) -> dict[str, int]:
    """Return how many rooms of its part are below each at most, over all chains of imports."""

    @cache
    def level(room: str) -> int:
        below = [level(other) for other in imports[room] if part_of(other) == part_of(room)]
        return 1 + max(below, default=-1)

    return {room: level(room) for room in imports}


def needed(imports: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a room and one of its part that it imports, unless a chain of other imports implies it."""

    @cache
    def reached(room: str) -> frozenset[str]:
        return frozenset(imports[room]).union(*(reached(other) for other in imports[room]))

    for room in sorted(imports):
        for other in sorted(imports[room]):
            if part_of(other) == part_of(room) and not any(
                other in reached(third) for third in imports[room] - {other}
            ):
                yield room, other


def picture() -> str:
    """Return the drawing as SVG."""
    imports = rooms_and_imports()
    level_of = levels(imports)
    n_levels = {part: 1 + max(level_of[room] for room in imports if part_of(room) == part) for part in _AREAS}
    heights = {part: _TITLE + _MARGIN + _STEP * n for part, n in n_levels.items()}
    ground = heights[PAPERS]
    height = ground + max(heights[LIBRARY], heights[FRAMEWORK])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>The three parts of trimbench: an arrow leads from what is used to what uses it</title>",
        f"<style>{_STYLE}</style>",
        '<marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8" /></marker>',
    ]
    at: dict[str, tuple[float, float]] = {}
    for part, area in _AREAS.items():
        top, bottom = (0, ground) if part == PAPERS else (ground, height)
        lines += [
            f'<rect x="{area.left:.0f}" y="{top}" width="{area.width:.0f}" height="{bottom - top}" '
            f'fill="{area.colour}" />',
            f'<text class="f" x="{area.left + 8:.0f}" y="{top + 17}">{area.title}</text>',
        ]
        for level in range(n_levels[part]):
            row = sorted(room for room in imports if part_of(room) == part and level_of[room] == level)
            for place, room in enumerate(row):
                x = area.left + area.width * (place + 0.5) / len(row)
                at[room] = (x, bottom - _MARGIN / 2 - _STEP * (level + 1) + (_STEP - _HEIGHT) / 2)
    for user, used in needed(imports):
        (x, y), (to_x, to_y) = at[used], at[user]
        lines.append(f'<path d="M{x:.0f} {y:.0f}L{to_x:.0f} {to_y + _HEIGHT:.0f}" marker-end="url(#a)" />')
    for room, (x, y) in sorted(at.items()):
        lines += _box(room, x, y, imports[room])
    return "\n".join([*lines, "</svg>", ""])


def _box(room: str, x: float, y: float, imported: set[str]) -> Iterator[str]:
    """Yield the box of a room with its name and, for one of the papers, what it uses of the library."""
    used = [other.rpartition(".")[2] for other in sorted(imported) if part_of(other) == LIBRARY != part_of(room)]
    on = textwrap.wrap(f"on {', '.join(used)}", _LINE) if used else []
    shape = f'x="{x - _BOX / 2:.0f}" y="{y:.0f}" width="{_BOX}" height="{_HEIGHT}" rx="4"'
    yield f'<rect {shape} fill="#fff" stroke="#333" />'
    first = y + _HEIGHT / 2 + 5 - 6.5 * len(on)
    yield f'<text x="{x:.0f}" y="{first:.0f}">{html.escape(room.rpartition(".")[2])}</text>'
    for place, line in enumerate(on, 1):
        yield f'<text class="s" x="{x:.0f}" y="{first + 2 + 13 * place:.0f}">{line}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
