"""Print the sizes of the parts of the package and its tests, and fail where an import leads upwards or in a circle.

    .venv-test/bin/python scripts/size.py

scripts/test runs it.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "trimbench"
LIBRARY, FRAMEWORK, PAPERS = "library", "reproduction", "papers"
# What a part may import besides itself.
BELOW: Mapping[str, tuple[str, ...]] = {LIBRARY: (), FRAMEWORK: (), PAPERS: (LIBRARY, FRAMEWORK)}
# The command is the one module outside of its part that leads to the other two.
DOORS = ("trimbench.__main__",)


def measured(root: Path) -> tuple[dict[str, int], list[str]]:
    """Return the sizes by name, and what imports upwards or in a circle."""
    files = {module_of(path.relative_to(root)): path for path in sorted((root / PACKAGE).rglob("*.py"))}
    edges: dict[str, set[str]] = {name: set() for name in files}
    for path in sorted((root / PACKAGE).rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            name = module_of(path.relative_to(root))
            edges.setdefault(name, set()).update(set(imported(path, name, files)) - {name})
    upwards = [f"{one} imports {other}" for one in edges for other in sorted(edges[one]) if is_upwards(one, other)]
    packages = [name for name, path in files.items() if path.name == "__init__.py"]
    floors, rounds = 0, []
    for package in packages:
        try:
            floors = max(floors, n_floors(rooms_of(package, edges)))
        except CycleError as error:
            rounds.append(f"in a circle: {' -> '.join(error.args[1])}")
    stub = ast.parse((root / PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    counts = {
        **{
            f"{what} of the {part}": sum(map(measure, paths))
            for part in BELOW
            for paths in [[path for name, path in files.items() if part_of(name) == part]]
            for what, measure in (("files", lambda _: 1), ("lines", n_lines))
        },
        "imports from the framework to the rest": sum(
            part_of(one) == FRAMEWORK and is_upwards(one, other) for one in edges for other in edges[one]
        ),
        "imports between files": sum(map(len, edges.values())),
        "public names": sum(len(node.names) for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)),
        "floors of a package": floors,
        "packages in packages": max(name.count(".") for name in packages),
        "lines of tests": sum(map(n_lines, (root / "tests").rglob("*.py"))),
        "imports upwards": len(upwards),
        "circles": len(rounds),
    }
    return counts, upwards + rounds


def module_of(path: Path) -> str:
    """Return the name under which a file, or the file of a stub, is imported."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def n_lines(path: Path) -> int:
    """Return how many lines a file has."""
    return path.read_text(encoding="utf-8").count("\n")


def imported(path: Path, name: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules that a file imports, also inside of functions and for types alone."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for one in node.names:
                yield from [found for found in (f"{base}.{one.name}", base) if found in modules][:1]


def part_of(module: str) -> str:
    """Return the part to which a module belongs."""
    rest = module.split(".")[1:]
    return rest[0] if rest and rest[0] in (FRAMEWORK, PAPERS) else LIBRARY


def is_upwards(importer: str, target: str) -> bool:
    """Tell whether a part imports one that it must not know."""
    part, other = part_of(importer), part_of(target)
    return other not in (part, *BELOW[part]) and importer not in DOORS


def rooms_of(package: str, edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return what each module or package right inside of a package imports of the others there."""
    depth = package.count(".") + 2
    found: dict[str, set[str]] = defaultdict(set)
    for one, others in edges.items():
        for other in others:
            rooms = [".".join(name.split(".")[:depth]) for name in (one, other) if name.startswith(f"{package}.")]
            if len(rooms) == 2 and rooms[0] != rooms[1]:
                found[rooms[0]].add(rooms[1])
    return found


def n_floors(rooms: Mapping[str, set[str]]) -> int:
    """Return the length of the longest chain of rooms in which each imports the next; CycleError for a circle."""
    height: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        height[room] = 1 + max((height[below] for below in rooms.get(room, ())), default=0)
    return max(height.values(), default=0)


def main(root: Path = ROOT) -> int:
    """Print each size, and what imports upwards or in a circle; return 1 if anything does."""
    counts, faults = measured(root)
    for name, count in counts.items():
        print(f"{name}: {count:,}")
    for fault in faults:
        print(fault)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
