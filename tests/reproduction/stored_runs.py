"""Runs that have finished, as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .command_line import write

REPORTED = """source,cell,reported,reproduced,verdict,reason,subject
A paper,a/error,0.12,0.123,exact,rounds,number
A paper,a/seconds,3,0.5,trend,below,time
A paper,b/speed,3,7.25,trend,above,time
"""
TABLE = """data,splits,error,kept,gap,fit (s)
a,3,0.123,x1,1e-15,0.5
b,3,0.25,x2,0,0.75
"""
ABOUT: dict[str, Any] = {
    "experiment": "family/one",
    "configuration": {"seed": 1, "prior": {"rate": 2.0}, "results": "results", "task": "run"},
    "data": {"dataset/a": "0" * 64},
    "missing": {},
    "computed_with": [{"python": "3.11", "packages": {"numpy": "2.0"}, "commit": "c0", "time": "2026"}],
    "written_with": {"python": "3.11", "commit": "c0", "dirty": False, "time": "2026"},
    "files": ["one.csv", "one_table.csv", "one_rows.csv", "one_points.csv", "one.md"],
}


def run(folder: Path, texts: Mapping[str, str] = MappingProxyType({}), stem: str = "family/one", **about: Any) -> Path:
    """Write a run of one experiment, with other texts for some of its files and other entries of its provenance."""
    name = Path(stem).name
    files = [file.replace("one", name) for file in ABOUT["files"]]
    provenance = json.dumps(ABOUT | {"files": files} | about)
    names = (f"{stem}.csv", f"{stem}_table.csv", f"{stem}_rows.csv", f"{stem}_points.csv", f"{stem}.json")
    default = dict(zip(names, (REPORTED, TABLE, "job\n1\n", "x,y\n1,1\n", provenance), strict=True))
    write(folder, default | dict(texts))
    return folder
