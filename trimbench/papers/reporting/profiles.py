"""The profile that an experiment, or its tables of an earlier run, belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.store import JobStore


def profile_of(settings: Mapping[str, Json]) -> str:
    """Return the name of the profile in an experiment's configuration; empty if there is none."""
    profile = settings.get("profile")
    return str(profile.get("name", "")) if isinstance(profile, Mapping) else ""


def stored_profile(about: Path, store: JobStore) -> str:
    """Return the profile named in the provenance beside the tables; empty unless some of their jobs are stored."""
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
        stored = any(store.has(str(key)) for key in content["jobs"])
        return profile_of(content["configuration"]) if stored else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
