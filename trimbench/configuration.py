"""Where the configuration lives, and what is declared in it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

if TYPE_CHECKING:
    from trimbench.data.declaration import DatasetDeclaration
    from trimbench.data.network_declaration import NetworkDeclaration

Settings = TypeVar("Settings")


class ConfigurationError(ValueError):
    """Something in the configuration or on the command line that does not exist or cannot be."""


def configuration_folder() -> Path:
    """Return the folder `conf`: inside an installed package, at the root of a source tree."""
    package = Path(__file__).resolve().parent
    for folder in (package / "conf", package.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigurationError(f"no folder 'conf' beside or inside {package}; install trimbench again")


def unknown(what: str, allowed: Sequence[str], got: str) -> ConfigurationError:
    """Return the error for a name that does not exist: it lists those that do."""
    tails = [name for name in allowed if got and name.endswith(f"/{got}")]  # of an experiment without its family
    close = tails or get_close_matches(got, allowed, n=1)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return ConfigurationError(f"{what} must be one of {', '.join(sorted(allowed))}, got {got!r}{hint}")


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

    def _path(self, group: str, name: str) -> Path:
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
        path = self._path(group, name)
        try:
            content = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
        except (OmegaConfBaseException, yaml.YAMLError, ValueError, OSError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise ConfigurationError(f"{path} must hold keys and values, got {type(content).__name__}")
        return {str(key): value for key, value in content.items()}

    def about(self, group: str, name: str) -> str:
        """Return the comment at the head of a declaration, its first paragraph in one line."""
        lines = self._path(group, name).read_text(encoding="utf-8").splitlines()
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
            mapping["path"] = str((self._path(group, name).parent / Path(path).expanduser()).resolve())
        return mapping

    def dataset(self, name: str) -> DatasetDeclaration:
        """Return the declaration of a data set."""
        from trimbench.data.declaration import declare_dataset

        return declare_dataset(name, self.dataset_mapping(name))

    def network(self, name: str) -> NetworkDeclaration:
        """Return the declaration of a network."""
        from trimbench.data.network_declaration import declare_network

        return declare_network(name, self.network_mapping(name))


def build_settings(settings: type[Settings], values: Mapping[str, Any], what: str) -> Settings:
    """Return a settings dataclass filled from configuration values, with their types checked.

    Parameters
    ----------
    settings : dataclass type
    values : mapping
        One value for each of its fields; fields with a default may be left out.
    what : str
        How an error message calls the configuration.

    Raises
    ------
    ConfigurationError
        When a key is unknown (the message lists those that exist), has the wrong type or is missing, or the
        dataclass refuses its values.
    """
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{what} must be keys and values, got {values!r}")
    fields = {field.name: str(field.type) for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    for key, value in values.items():
        if key not in fields:
            raise unknown(f"{what}: a key", list(fields), key)
        if fields[key].startswith("list") and not isinstance(value, list):
            raise ConfigurationError(f"{what}: {key} must be a list, got {value!r}; write {key}=[{value}]")
    try:
        merged = OmegaConf.merge(OmegaConf.structured(settings), dict(values))
        built = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        key = getattr(error, "full_key", None) or "a key"
        raise ConfigurationError(f"{what}: {key} has no valid value: {reason}") from error
    except ValueError as error:
        raise ConfigurationError(f"{what}: {error}") from error
    if not isinstance(built, settings):
        raise ConfigurationError(f"{what} must be keys and values, got {values!r}")
    return built


def plain(config: DictConfig) -> dict[str, Any]:
    """Return a composed configuration as a resolved dictionary."""
    content = OmegaConf.to_container(config, resolve=True)
    if not isinstance(content, dict):
        raise ConfigurationError(f"the configuration must hold keys and values, got {content!r}")
    return {str(key): value for key, value in content.items()}
