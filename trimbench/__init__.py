"""Robust trimming, conformant learning and selection-bias correction of classifiers.

The public names stand in ``__init__.pyi``; each is loaded when it is first used, so that the import takes no time.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
