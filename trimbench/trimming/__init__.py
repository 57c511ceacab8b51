"""Robust trimming of Bayesian classifiers (Choi and Van den Broeck, 2018)."""
