"""Experiments of Choi and Van den Broeck (2018), On Robust Trimming of Bayesian Network Classifiers."""
