"""Compiled inner loops; a module here imports numba, so it is imported only where a problem is large enough.

Machine code is kept by file, in ``__pycache__``. After a change to a kernel that kernels of other files call, delete
that folder.
"""
