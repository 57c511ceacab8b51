"""Which figures a command line asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trimbench.papers.configuration import Catalogue
from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.file_names import safe_name
from trimbench.papers.validation import unknown, validated

GROUP = "figure"


@dataclass(frozen=True)
class FigureChoice:
    """The settings of figures, and a name for them.

    The name is that of the chosen file of the group `figure`, followed by the values that the command line changes, for
    example ``column,width=4``.
    """

    settings: FigureSettings
    name: str

    @classmethod
    def of(cls, values: Mapping[str, Json], chosen: str, catalogue: Catalogue) -> FigureChoice:
        """Return the choice in a composed configuration; raise ConfigurationError if a value is not valid."""
        ours = values.get(GROUP)
        if not isinstance(ours, Mapping):
            raise unknown(GROUP, catalogue.names(GROUP), str(ours))
        settings = validated(FigureSettings, ours, GROUP)
        preset = catalogue.mapping(GROUP, chosen)
        changes = [f"{key}={_text(value)}" for key, value in ours.items() if value != preset.get(key)]
        return cls(settings, safe_name(",".join([chosen, *changes])))

    @property
    def is_default(self) -> bool:
        """Whether the command line asks for nothing in particular."""
        return self.name == "default"


def _text(value: Json) -> str:
    text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.lower() if isinstance(value, bool) else text
