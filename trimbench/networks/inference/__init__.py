"""Exact inference in Bayesian networks."""
