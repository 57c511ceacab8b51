"""Benchmarks; `scripts/bench/run NAME` runs one, `scripts/bench/run all` those that compare with something else."""
