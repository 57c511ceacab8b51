"""Experiments beyond the papers: more data, more methods, and their limits."""
