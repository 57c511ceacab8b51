"""Densities of the features of raw tables, from which what is hidden of a row is drawn."""
