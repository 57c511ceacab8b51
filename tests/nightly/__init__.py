"""Comparisons of random models that run for as long as they are given: `scripts/nightly`."""
