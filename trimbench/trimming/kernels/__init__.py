"""Compiled inner loops; a module here imports numba, so it is imported only where a problem is large enough."""
