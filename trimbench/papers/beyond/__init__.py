"""Experiments that no paper printed: more data, more methods, and where the methods end."""
