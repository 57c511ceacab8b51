"""Experiments of Li, Zhang and Neal (2008) on the bias from feature selection."""
