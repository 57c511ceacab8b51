"""What results look like: drawings into matplotlib's axes, and the HTML with which notebooks show a result."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench._current_folder import imported
from trimbench._extras import is_installed
from trimbench._typing import Vector

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def html_of(table: pd.DataFrame, draw: Callable[[Axes], object] | None = None, *, height: float = 2.5) -> str:
    """Return a table as HTML, below its picture where matplotlib is installed.

    Parameters
    ----------
    table : DataFrame
    draw : callable, optional
        Draws the picture into the axes that it is given.
    height : float
        Of the picture, in inches.
    """
    picture = ""
    if draw is not None and is_installed("matplotlib"):
        # A figure without pyplot: nothing to close, no backend, no window.
        figure = _drawing("matplotlib.figure").Figure(figsize=(6.0, height), layout="constrained")
        draw(figure.subplots())
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg")
        text = drawn.getvalue()
        picture = text[text.index("<svg") :]
    rows: str = table.to_html(index=False, border=0, float_format="{:.4g}".format)
    return f"<div>{picture}{rows}</div>"


def new_axes() -> Axes:
    """Return the axes of a new figure of pyplot, which shows it where there is a screen or a notebook."""
    axes: Axes = _drawing("matplotlib.pyplot").subplots(layout="constrained")[1]
    return axes


def _drawing(module: str) -> ModuleType:
    """Import a module of matplotlib, which reads no settings in the current folder."""
    imported("matplotlib", ignoring="matplotlibrc")
    return import_module(module)


def draw_bounds(ax: Axes, value: float, interval: tuple[float, float], bound: float) -> None:
    """Draw an agreement with its interval, and the bound that no other trimming exceeds."""
    low, high = interval
    ax.barh([0.0], [value], height=0.5, alpha=0.4)
    if high > low:
        ax.errorbar([value], [0.0], xerr=[[value - low], [high - value]], color="black", capsize=4)
    ax.axvline(bound, color="0.3", linestyle=":", label="bound")
    ax.set(xlabel="agreement with the original", xlim=(0.0, 1.02), ylim=(-0.6, 0.6))
    ax.set_yticks([])
    ax.legend(frameon=False, loc="lower left")


def draw_evidence(ax: Axes, table: pd.DataFrame, predicted: Any, most: int, **bars: Any) -> None:
    """Draw a bar for each feature of a table of evidence, the strongest on top; those that were chosen are filled."""
    shown = table.head(most).iloc[::-1]
    places = np.arange(len(shown))
    drawn = ax.barh(places, shown["evidence"].to_numpy(), **bars)
    for bar, chosen in zip(drawn, shown["chosen"], strict=True):
        if not chosen:
            bar.set(facecolor="none", edgecolor=bar.get_facecolor())
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    ax.set_yticks(places, [str(name) for name in shown["feature"]])
    if len(shown) < len(table):
        ax.set_ylabel(f"the {len(shown)} strongest of {len(table)} features")
    ax.set_xlabel(f"evidence for {predicted} (log-odds); filled: the explanation")


def draw_stability(ax: Axes, stability: Vector, **line: Any) -> None:
    """Draw which share of the rows has at least each stability."""
    ordered = np.sort(stability)
    share = np.arange(len(ordered), 0, -1) / max(1, len(ordered))
    ax.plot(ordered, share, **{"drawstyle": "steps-pre", **line})
    ax.set(xlabel="stability, at least", ylabel="share of rows", ylim=(0.0, 1.05))
