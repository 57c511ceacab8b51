"""Data sets and networks: declared in YAML, fetched, verified, and handed on as plain pandas."""
