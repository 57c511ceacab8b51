"""What an earlier run left beside the tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimbench.papers.execution.store import JobStore


def profile_of(settings: Mapping[str, Any]) -> str:
    """Return the name of the profile in an experiment's configuration; empty if there is none."""
    profile = settings.get("profile")
    return str(profile.get("name", "")) if isinstance(profile, Mapping) else ""


def stored_profile(about: Path, store: JobStore) -> str:
    """Return the profile that the tables of an experiment were written for, if jobs of theirs are stored.

    Parameters
    ----------
    about : Path
        The provenance beside the tables.
    store : JobStore

    Returns
    -------
    str
        Empty if there are no tables, or no stored jobs of theirs.
    """
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
        stored = any(store.has(str(key)) for key in content["jobs"])
        return profile_of(content["configuration"]) if stored else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
