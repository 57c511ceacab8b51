"""Compose the configurations of many experiments, or of many points of a sweep, without reading every file again."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, open_dict

from trimbench.papers.configuration import Catalogue, plain

GROUPS = ("experiment", "executor", "profile", "figure")
_STUDY = "study"
_BY_COLUMN = ("types=", "types.")


def root_of(arguments: Sequence[str]) -> str:
    """Return the name of the root of the configuration: a study has keys of its own."""
    return _STUDY if f"task={_STUDY}" in arguments else "config"


def with_columns(arguments: Sequence[str]) -> list[str]:
    """Let `types` of a study name columns, which no file of the configuration can have."""
    if root_of(arguments) != _STUDY:
        return list(arguments)
    return [f"++{word}" if word.startswith(_BY_COLUMN) else word for word in arguments]


def parsed(words: Sequence[str]) -> list[Override]:
    """Parse settings as they stand on the command line."""
    return list(OverridesParser.create().parse_overrides(list(words)))


class Composer:
    """Composes configurations while Hydra runs, and remembers what they have in common."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._composed = functools.cache(lambda groups: hydra.compose("config", overrides=list(groups)))
        self._read = functools.cache(OmegaConf.load)

    def compose(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the configuration with these settings, resolved."""
        overrides = parsed(words)
        if any(one.type is not OverrideType.CHANGE for one in overrides):
            return plain(hydra.compose("config", overrides=list(words)))
        groups = {one.key_or_group: one for one in overrides if one.key_or_group in GROUPS}
        config = self._with_groups(groups)
        for one in overrides:
            if one.key_or_group not in GROUPS:
                OmegaConf.update(config, one.key_or_group, one.value(), merge=True)
        return plain(config)

    def _with_groups(self, groups: dict[str, Override]) -> DictConfig:
        """Return a configuration with these choices, which the caller may change."""
        experiment = groups.get("experiment")
        others = tuple(str(one.input_line) for key, one in groups.items() if key != "experiment")
        path = self._merged_last(experiment)
        if experiment is None or path is None:
            return copy.deepcopy(self._composed((*others, *([str(experiment.input_line)] if experiment else []))))
        config = copy.deepcopy(self._composed(others))
        with open_dict(config):
            config.merge_with(self._read(path))
        return config

    def _merged_last(self, experiment: Override | None) -> Path | None:
        """Return the file of an experiment that Hydra would only merge into the rest: one that includes no others."""
        if experiment is None:
            return None
        path = self._catalogue.path("experiment", str(experiment.value()))
        text = path.read_text(encoding="utf-8")
        return path if text.startswith("# @package _global_\n") and "defaults" not in self._read(path) else None
