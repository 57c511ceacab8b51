"""Settings of `fit_selection_corrected` from names and values without the objects that hold them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from trimbench.selection_bias.factors import Simulation
from trimbench.selection_bias.mixture import MixtureSampler
from trimbench.selection_bias.prior import Prior


def grouped(**given: Any) -> dict[str, Any]:
    """Return the settings, without a calibration unless they ask for one."""
    found: dict[str, Any] = {"calibrate": False}
    sampler = [("sampler", MixtureSampler)] if given.get("features") == "mixture" else []
    for holder, kind in [("prior", Prior), *sampler, ("simulation", Simulation)]:
        held = {field.name: given.pop(field.name) for field in fields(kind) if field.name in given}
        if held:
            found[holder] = kind(**held)
    return found | given
