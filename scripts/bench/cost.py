"""Write what ``task=list`` estimates with: the mean seconds of one job of each experiment, from a folder of results.

``scripts/bench/run cost results`` reads the rows of all experiments below a folder and writes them to
``conf/cost/<profile>.yaml``, by the profile that they were run with; other experiments in that file stay.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd
import yaml

from trimbench.papers.commands.cost import GROUP, measured
from trimbench.papers.configuration import Catalogue, configuration_folder

HEAD = "# Mean processor seconds of one job, as `scripts/bench/run cost` found them in stored results.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="folder of results")
    results = parser.parse_args().results
    found: dict[str, dict[str, float]] = {}
    for rows in sorted(results.glob("*/*_rows.csv")):
        name = rows.stem.removesuffix("_rows")
        settings = json.loads((rows.parent / f"{name}.json").read_text(encoding="utf-8"))["configuration"]
        frame = pd.read_csv(rows)
        if "seconds" not in frame:  # its data was not available
            continue
        seconds = frame.loc[frame["status"] == "ok", "seconds"]
        if len(seconds):
            found.setdefault(settings["profile"]["name"], {})[f"{rows.parent.name}/{name}"] = float(seconds.mean())
    if not found:
        raise SystemExit(
            f"results must be a folder with rows of experiments, got {str(results)!r}; run trimbench first"
        )
    catalogue = Catalogue((configuration_folder(),))
    for profile, new in found.items():
        merged = {**measured(catalogue, profile), **new}
        path = configuration_folder() / GROUP / f"{profile}.yaml"
        path.parent.mkdir(exist_ok=True)
        lines = yaml.safe_dump({name: float(f"{merged[name]:.2g}") for name in sorted(merged)})
        path.write_text(HEAD + lines, encoding="utf-8")
        print(f"{path}: {len(new)} experiments written, {len(merged) - len(new)} kept")


if __name__ == "__main__":
    main()
