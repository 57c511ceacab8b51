"""Names of files and folders made of settings."""

from __future__ import annotations

import re


def safe_name(text: str) -> str:
    """Return a text as a name that every file system accepts."""
    return re.sub(r"[^\w=.,+-]+", "_", text, flags=re.ASCII)
