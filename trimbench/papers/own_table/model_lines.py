"""The lines of Python that rebuild the model to keep."""

from __future__ import annotations

from pathlib import Path

from trimbench.papers.data.table_reading import TableSettings
from trimbench.papers.own_table.steps import Steps


def model_lines(found: Steps, source: str, target: str) -> str:
    """Return a program that learns the model to keep from the same rows, and saves it as ``model.json``."""
    own = found.settings
    chosen = found.chosen
    if chosen is None:
        raise ValueError("a study without any trimming has no model to keep")
    reading = _reading(own.reading)
    is_count = set(found.costs.values()) == {1.0}
    arguments = [
        f"budget={chosen['budget']!r}",
        *([] if is_count else ["costs=costs"]),
        f"time_limit={own.time_limit!r}",
    ]
    parts = [
        "from trimbench.estimators import TrimmedClassifier",
        f"from trimbench.papers.data.table_reading import {'TableSettings, ' if reading else ''}read_table",
        "from trimbench.papers.own_table.stored_table import StoredTable",
        "",
        f"table = read_table({_from_home(source)!r}, {target!r}{f', TableSettings({reading})' if reading else ''})",
        "data = StoredTable(table.features, table.labels, table.classes)",
        f"answers = data.answers({found.positive!r})",
        f"rows = data.training_rows({own.test_share!r}, {own.seed!r}, {own.rows!r})  # those of the study",
        *([] if is_count else [f"costs = {dict(found.costs)!r}"]),
        f"model = TrimmedClassifier({', '.join(arguments)})",
        "model.fit(data.features.iloc[rows], answers[rows])  # .fit(data.features, answers) learns from all rows",
        'print("features:", ", ".join(model.features_))',
        'model.save("model.json")  # TrimmedClassifier.load("model.json").predict(new_rows)',
    ]
    return "\n".join(parts) + "\n"


def _from_home(source: str) -> str:
    """Return a path that begins with ``~`` if it is in this user's home: pages of a study are shared."""
    home = str(Path.home())
    return f"~{source.removeprefix(home)}" if source.startswith(home.rstrip("/") + "/") and home != "/" else source


def _reading(settings: TableSettings) -> str:
    """Return the settings that are not the default ones, as arguments."""
    usual = TableSettings()
    names = [name for name in vars(usual) if getattr(settings, name) != getattr(usual, name)]
    return ", ".join(f"{name}={getattr(settings, name)!r}" for name in names)
