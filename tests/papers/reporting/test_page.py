"""The page of results: what it says, and how it behaves in a real browser."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trimbench.papers.reporting.files import write_findings
from trimbench.papers.reporting.page import Entry, render_page
from trimbench.papers.reporting.verdicts import compare
from trimbench.papers.study.numbers import Number
from trimbench.papers.study.reported import Paper
from trimbench.papers.study.tables import Table

from .builders import findings, record, reported

REPORTED = [
    reported("a", "0.3"),
    reported("b", "7", "within", tolerance=2.0),
    reported("c", "12", reason="another <machine>"),
    reported("d", "1"),
]
PAPER = Paper(title="A family", citation="Author (2000): A paper", review={"Scope": "Everything & more."})
OTHER = Paper(title="Another family", citation="")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def page(folder: Path) -> str:
    sizes = [{"name": name, "size": size} for size, name in enumerate("zyxwvutsrq")]
    long = Table.of("A long table", [*sizes, {"name": "p"}], ["name", "size"], name="long")
    records = [record(number) for number in range(5)]
    keys = [one.job.key for one in records]
    main = Table.of("Main table", [{"row": "<b>", "a_value": 0.25}], ["row", "a_value"])
    found = findings(tables=(main, long), records=records)
    write_findings(found, [], folder)
    behind = {"a": (0.3, [*keys[1:3], keys[4]]), "b": (8.0, keys[:1]), "c": (100.0, keys)}
    numbers = [Number(row, "value", value, tuple(jobs)) for row, (value, jobs) in behind.items()]
    entries = [
        Entry("family/one", "complete", "What `code </script>` is about", compare(REPORTED, numbers), found),
        Entry("family/two", "failed", "", (), None),
    ]
    return render_page(entries, {"family": PAPER, "other": OTHER}, folder, profile="quick")


def test_everything_is_on_the_page_and_escaped(tmp_path: Path) -> None:
    text = page(tmp_path)
    for expected in (
        "Author (2000): A paper",
        "Everything &amp; more.",
        "What <code>code &lt;/script&gt;</code> is about",
        '<th>row</th><th class="number">a value</th>',
        "A note.",
        "profile quick",
    ):
        assert expected in text
    assert "another &lt;machine&gt;" in text
    assert "<td>&lt;b&gt;</td>" in text
    assert "family/two" in text
    (points,) = re.findall(r'download="family-one_points.csv" href="data:text/csv;base64,([^"]+)"', text)
    assert base64.b64decode(points).decode() == (tmp_path / "family/one_points.csv").read_text()
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert base64.b64decode(picture) == (tmp_path / "family/one.png").read_bytes()


def test_it_links_to_nothing_outside(tmp_path: Path) -> None:
    text = page(tmp_path)
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in text
    anchors = set(re.findall(r'id="([^"]+)"', text))
    assert {link[1:] for link in links if link.startswith("#")} <= anchors


@pytest.fixture
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=BROWSER, args=[*flags, "--disable-component-update"])
        yield opened
        opened.close()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_in_a_browser(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    (tmp_path / "index.html").write_text(page(tmp_path), encoding="utf-8")
    view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    messages: list[str] = []
    view.on("console", lambda message: messages.append(message.text))
    view.on("pageerror", lambda error: messages.append(str(error)))
    view.goto((tmp_path / "index.html").as_uri())

    def column(table: str, place: int) -> list[str]:
        rows = f"#{table} tbody tr:not([hidden]) td:nth-child({place})"
        return [text.strip() for text in view.locator(rows).all_inner_texts()]

    # Sorting: by number, both ways, missing values last; with the keyboard too.
    head = view.locator("#family-one-table-1 th").nth(1)
    head.click()
    assert column("family-one-table-1", 2) == [*map(str, map(float, range(10))), "–"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.press("Enter")
    assert column("family-one-table-1", 2) == [*map(str, map(float, reversed(range(10)))), "–"]
    view.locator("#family-one-table-1 th").nth(0).click()
    assert column("family-one-table-1", 1) == sorted("zyxwvutsrqp")
    # Filtering: by words and by verdict.
    assert len(column("all-numbers", 2)) == 4
    view.locator("#numbers input[type=search]").fill("machine")
    assert column("all-numbers", 2) == ["c/value"]
    assert view.locator("[data-counts=all-numbers]").inner_text() == "1 of 4 rows"
    view.locator("#numbers input[type=search]").fill("")
    view.locator("#numbers input[data-verdict=differs]").uncheck()
    assert column("all-numbers", 5) == ["exact", "within", "not attempted"]
    # The summary can be sorted and filtered too.
    view.locator("#by-paper th").nth(1).click()
    assert column("by-paper", 2) == ["0", "4"]
    view.locator("#summary input[type=search]").fill("another")
    assert column("by-paper", 1) == ["Another family"]
    # A number leads to its own jobs, which opens their list; from there to all jobs, and to those of the next number.
    jobs = view.locator("#family-one-jobs")
    assert not jobs.evaluate("e => e.open")
    links = view.locator("#all-numbers a[data-jobs]")
    assert links.all_inner_texts() == ["3", "1", "5"]
    links.nth(0).click()
    assert jobs.evaluate("e => e.open")
    assert column("family-one-job-list", 2) == ["1", "2", "4"]
    assert jobs.locator(".behind").inner_text().startswith("Behind a/value")
    jobs.locator("button").click()
    assert column("family-one-job-list", 2) == ["0", "1", "2", "3", "4"]
    assert not jobs.locator(".behind").is_visible()
    links.nth(1).click()
    assert column("family-one-job-list", 2) == ["0"]
    assert column("family-one-job-list", 1) == ["ok"]
    assert '"configuration"' in jobs.locator("pre").inner_text()
    # Nothing is wider than the screen, and nothing complains.
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    background = view.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 20, 25)")
    assert messages == []
    view.close()
