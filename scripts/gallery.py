"""Write the gallery of published figures, `docs/gallery.md`, from what the published run says of them."""

from __future__ import annotations

import csv
import html
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs/gallery.md"
PUBLISHED = ROOT / "results/published"
TITLES = ROOT / "trimbench/papers/page/papers.yaml"
_ABREAST = 3
_WIDTH = 230  # pixels
_FAMILIES = {"trimming": "Robust trimming", "conformant": "Conformant learning", "selection_bias": "Selection bias"}
_INTRODUCTION = """\
# Gallery

All figures of the [published run](reference/results.md). Each heading names an experiment, such as
`trimming/figure5`, and one command makes its figures with the repetitions of the papers; without `profile=paper` it
takes less time:

```sh
scripts/reproduce profile=paper experiment=trimming/figure5
```

*Points* is the file of the numbers that a figure shows, from which `scripts/reproduce task=plot`
[draws it again](howto/figures.md) for your paper, without running anything.
"""


def gallery(declared: Path = ROOT / "conf/experiment") -> str:
    """Return the page as Markdown; it names the declared experiments that the published run does not have."""
    with (PUBLISHED / "summary.csv").open(encoding="utf-8", newline="") as file:
        experiments = [(line["experiment"], line["table"]) for line in csv.DictReader(file)]
    beyond = {
        name: title
        for paper in yaml.safe_load(TITLES.read_text("utf-8")).values()
        for name, title in paper["beyond"].items()
    }
    parts = [_INTRODUCTION]
    for family, title in _FAMILIES.items():
        parts.append(f"## {title}\n")
        for experiment, table in experiments:
            about = json.loads((PUBLISHED / f"{experiment}.json").read_text(encoding="utf-8"))
            if experiment.startswith(f"{family}/") and about["figures"]:
                heading = f"{beyond[experiment]} ({table})" if experiment in beyond else table
                parts += _group(experiment, heading, about["figures"])
    names = sorted(path.relative_to(declared).with_suffix("").as_posix() for path in declared.rglob("*.yaml"))
    if absent := [f"`{name}`" for name in names if name not in dict(experiments)]:
        parts.append(f"## Not published yet\n\nThe published run is older than {', '.join(absent)}.\n")
    return "\n".join(parts)


def _group(experiment: str, title: str, figures: list[dict[str, str]]) -> Iterator[str]:
    """Yield the parts of the figures of one experiment: heading, and tables of small pictures."""
    folder = f"../results/published/{experiment.partition('/')[0]}"
    yield f"### {title}: `{experiment}`\n"
    cells = []
    for figure in figures:
        caption = html.escape(figure["title"]).replace("|", "&#124;")
        image = f'<img src="{folder}/{figure["pictures"][0]}" width="{_WIDTH}" alt="{caption}">'
        cells.append((image, f"{caption} ([points]({folder}/{figure['points']}))"))
    abreast = min(_ABREAST, len(cells))
    lines = [_row([""] * abreast), _row(["---"] * abreast)]
    for start in range(0, len(cells), abreast):
        some = cells[start : start + abreast]
        empty = [("", "")] * (abreast - len(some))
        lines += map(_row, zip(*itertools.chain(some, empty), strict=True))
    yield "\n".join(lines) + "\n"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    GALLERY.write_text(gallery(), encoding="utf-8")
    print(GALLERY.relative_to(ROOT))
