"""Benchmarks; `scripts/bench/run NAME` runs one, `scripts/bench/run all` those that compare with something else."""

from trimbench.papers.project import PROJECT
from trimbench.reproduction.project import use

use(PROJECT)
