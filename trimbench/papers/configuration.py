"""Where the configuration is, and what is declared in it."""

from __future__ import annotations

import copy
import functools
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from trimbench.papers.validation import ConfigurationError, reason, unknown


def configuration_folder() -> Path:
    """Return the folder `conf`: inside an installed package, at the root of a source tree."""
    package = Path(__file__).resolve().parent
    for folder in (package / "conf", package.parents[1] / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigurationError(f"no folder 'conf' beside or inside {package}; install trimbench again")


@dataclass(frozen=True)
class Catalogue:
    """The declarations in one or several configuration folders.

    Attributes
    ----------
    folders : tuple of Path
        In order of precedence: a user's own folders, then the project's.
    """

    folders: tuple[Path, ...]

    def names(self, group: str) -> list[str]:
        """Return the names declared in a group, for example all experiments as ``family/name``."""
        found = {
            path.relative_to(folder / group).with_suffix("").as_posix()
            for folder in self.folders
            for path in (folder / group).rglob("*.yaml")
        }
        return sorted(found)

    def replaced(self) -> dict[str, Path]:
        """Return the files of a user's folders that take the place of the project's, by ``group/name``."""
        *own, project = self.folders
        found = (path for folder in own for path in sorted(folder.rglob("*.yaml")))
        names = ((path, path.relative_to(next(f for f in own if path.is_relative_to(f)))) for path in found)
        return {name.with_suffix("").as_posix(): path for path, name in names if (project / name).is_file()}

    def path(self, group: str, name: str) -> Path:
        """Return the file of a declaration; raise ConfigurationError if there is none."""
        for folder in self.folders:
            path = folder / group / f"{name}.yaml"
            if path.is_file():
                return path
        raise unknown(group, self.names(group), name)

    def mapping(self, group: str, name: str) -> dict[str, Any]:
        """Return the content of one declaration.

        Raises
        ------
        ConfigurationError
            When there is none of that name (the message lists those that exist) or it is no mapping.
        """
        path = self.path(group, name)
        try:
            content = copy.deepcopy(_read(path, path.stat().st_mtime_ns))
        except (OmegaConfBaseException, yaml.YAMLError, ValueError, OSError, RecursionError) as error:
            raise ConfigurationError(f"{path} cannot be read: {reason(error)}") from error
        if not isinstance(content, dict):
            raise ConfigurationError(f"{path} must hold keys and values, got {type(content).__name__}")
        return {str(key): value for key, value in content.items()}

    def keys(self, group: str, name: str) -> list[str]:
        """Return the keys of one declaration, without its values, which may refer to what stands elsewhere."""
        return [str(key) for key in OmegaConf.load(self.path(group, name))]

    def about(self, group: str, name: str) -> str:
        """Return the comment at the head of a declaration, its first paragraph in one line."""
        lines = self.path(group, name).read_text(encoding="utf-8").splitlines()
        comments = [line.removeprefix("#").strip() for line in itertools.takewhile(lambda x: x.startswith("#"), lines)]
        return " ".join(comment for comment in comments if not comment.startswith("@package"))

    def dataset_mapping(self, name: str) -> dict[str, Any]:
        """Return the content of a data set's declaration; a relative path in it starts at its file."""
        return self._with_absolute_path("dataset", name)

    def network_mapping(self, name: str) -> dict[str, Any]:
        """Return the content of a network's declaration; a relative path in it starts at its file."""
        return self._with_absolute_path("network", name)

    def _with_absolute_path(self, group: str, name: str) -> dict[str, Any]:
        mapping = self.mapping(group, name)
        path = mapping.get("path")
        if isinstance(path, str):
            mapping["path"] = str((self.path(group, name).parent / Path(path).expanduser()).resolve())
        return mapping


@functools.lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> Any:
    """Return the content of a file as it is since `changed`; many jobs read the same declarations."""
    return OmegaConf.to_container(OmegaConf.load(path), resolve=True)


def plain(config: DictConfig) -> dict[str, Any]:
    """Return a composed configuration as a resolved dictionary."""
    content = OmegaConf.to_container(config, resolve=True)
    if not isinstance(content, dict):
        raise ConfigurationError(f"the configuration must hold keys and values, got {content!r}")
    return {str(key): value for key, value in content.items()}
