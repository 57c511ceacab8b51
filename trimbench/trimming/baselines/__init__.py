"""Selections of features that trimming is compared with."""
