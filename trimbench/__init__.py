"""Robust trimming, conformant learning and selection-bias correction of classifiers.

The public names are listed in ``__init__.pyi``; each is loaded on first use, so that the import is quick.
"""

import lazy_loader

__version__ = "2.0.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
