"""Write what ``task=list`` and the progress of a run expect: the seconds of a job by experiment and function.

``scripts/bench/run cost results quick`` takes the run ``quick`` and its records in ``results/jobs``, and writes the
means to ``conf/cost/<profile>.yaml``, by the profile that the run had; other experiments in that file stay. Take a run
that found nothing stored: the first job of a data set pays for what all others use.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import yaml

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.parts import SHORT_KEY
from trimbench.reproduction.vocabulary.planning import COST, measured

HEAD = "# Mean processor seconds of a job by experiment and function, as `scripts/bench/run cost` found them.\n"
Costs = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="folder of results")
    parser.add_argument("run", help="name of a run in it")
    arguments = parser.parse_args()
    found = costs_of(arguments.results / arguments.run, stored(arguments.results / "jobs"))
    if not found:
        raise SystemExit(
            f"results and run must name a run whose records are stored, got {arguments.results} {arguments.run}; "
            "run trimbench first"
        )
    catalogue = Catalogue()
    for profile, new in found.items():
        merged = {**measured(catalogue, profile), **new}
        path = project().configuration / COST / f"{profile}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + as_yaml(merged), encoding="utf-8")
        print(f"{path}: {len(new)} experiments written, {len(merged) - len(new)} kept")


def stored(jobs: Path) -> dict[str, tuple[str, float]]:
    """Return function and seconds of the successes in a store, by the key as a run's provenance has it."""
    records = (Record.from_json(path.read_bytes()) for path in jobs.glob("*/*.json"))
    return {
        record.job.key[:SHORT_KEY]: (record.job.function.rpartition(":")[2], record.seconds)
        for record in records
        if record.ok
    }


def costs_of(run: Path, records: dict[str, tuple[str, float]]) -> dict[str, Costs]:
    """Return the mean seconds of the experiments of a run by profile, experiment and function."""
    found: dict[str, Costs] = defaultdict(dict)
    for about in sorted(run.glob("*/*.json")):
        content = json.loads(about.read_text(encoding="utf-8"))
        name = str(content["experiment"])
        if about.stem != name.rpartition("/")[2]:  # of a command with other settings, which are in the file's name
            continue
        seconds: dict[str, list[float]] = defaultdict(list)
        for key in content["jobs"]:
            if key in records:
                function, taken = records[key]
                seconds[function].append(taken)
        if seconds:
            means = {function: fmean(values) for function, values in seconds.items()}
            found[content["configuration"]["profile"]["name"]][name] = means
    return found


def as_yaml(costs: Costs) -> str:
    """Return costs with two digits."""
    rounded = {name: {one: float(f"{mean:.2g}") for one, mean in means.items()} for name, means in costs.items()}
    return str(yaml.safe_dump(rounded, default_flow_style=None))


if __name__ == "__main__":
    main()
