"""The pages of a comparison and of a sweep in a browser: nothing is cut, and nothing complains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.reproduction.reporting.builders import findings
from tests.reproduction.stored_runs import REPORTED, TABLE, run
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.comparison import compare_runs, write_comparison
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.page import facts_of, render
from trimbench.reproduction.reporting.runs import read_run
from trimbench.reproduction.reporting.sweeps import SweepPoint, write_sweep
from trimbench.reproduction.vocabulary.tables import Table

LONG = "unbroken" * 9


def comparison(folder: Path) -> None:
    first = read_run("first", run(folder / "first"))
    texts = {
        "family/one.csv": REPORTED.replace("exact", "differs"),
        "family/one_table.csv": TABLE.replace("x2", LONG).replace("0.25", "0.5") + "c,4,5,6,7,8\n",
    }
    about = {"configuration": {"seed": [*range(100)], LONG: 1}}
    write_comparison(compare_runs(first, read_run(LONG, run(folder / "second", texts, **about))), folder)


def sweep(folder: Path) -> None:
    points = [
        SweepPoint(
            {"alpha": alpha, LONG: LONG},
            [findings(tables=(Table("Main", pd.DataFrame({"row": [LONG, "b"], "error": [2.0 * alpha, 1.0]})),))],
            {"family/two": LONG} if alpha == 2 else {},
        )
        for alpha in (1, 2)
    ]
    write_sweep(points, folder, FigureSettings())


def study(folder: Path) -> None:
    lists: dict[str, Any] = {"conclusions": [LONG], "notes": [LONG], "tables": [], "figures": []}
    lists["jobs"] = {"length": 0, "file": "", "columns": []}
    page = render("study.html", title="A study", facts=facts_of(), lines=f"model = {9 * LONG}", provenance="", **lists)
    (folder / "index.html").write_text(page)


@pytest.mark.parametrize("make", [comparison, sweep, study])
def test_pages_fit_the_screen(make: Callable[[Path], None], browser: Any, tmp_path: Path) -> None:
    make(tmp_path)
    for width, scheme in ((360, "light"), (1280, "dark")):
        messages: list[str] = []
        view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        view.on("console", lambda message, found=messages: found.append(message.text))
        view.on("pageerror", lambda error, found=messages: found.append(str(error)))
        view.on("requestfailed", lambda request, found=messages: found.append(request.url))
        view.goto((tmp_path / "index.html").as_uri())
        assert view.evaluate("document.documentElement.scrollWidth") == width
        for link in view.locator("nav a").all():
            assert view.locator(link.get_attribute("href")).count() == 1
        view.close()
        assert messages == []


PUBLISHED = project().configuration.parent / "results/published"


def test_the_published_pages_are_short_and_fit_with_everything_unfolded(browser: Any) -> None:
    view = browser.new_page()
    for path in PUBLISHED.rglob("*.html"):  # those of single experiments have the same parts
        view.goto(path.as_uri())
        view.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        for width in (360, 768, 1280) if path.parent == PUBLISHED else (360,):
            view.set_viewport_size({"width": width, "height": 800})
            assert view.evaluate("document.documentElement.scrollHeight") < 15_000, (path, width)
            assert view.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            view.wait_for_function(
                "[...document.querySelectorAll('.scroll:not(.wide)')].every((b) => b.scrollWidth <= b.clientWidth + 1)"
            )
    view.close()


@pytest.mark.parametrize(("width", "height", "last"), [(1280, 800, "#matrix .matrix"), (390, 2 * 844, "#overview")])
def test_the_first_screen_says_it_all(browser: Any, width: int, height: int, last: str) -> None:
    view = browser.new_page(viewport={"width": width, "height": height})
    view.goto((PUBLISHED / "index.html").as_uri())
    ends = [one.bounding_box()["y"] + one.bounding_box()["height"] for one in view.locator(last).all()]
    assert max(ends) <= height
    sizes = "[...document.querySelectorAll('body *')].map(one => parseFloat(getComputedStyle(one).fontSize))"
    assert min(view.evaluate(sizes)) >= 14
    view.close()
