"""Engines: how the agreement of a feature subset with the original is computed."""
