"""The framework: reruns what a paper reports, and says of each printed number whether it was reproduced.

The names that the modules of a project need are listed in ``__init__.pyi``; each is loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
