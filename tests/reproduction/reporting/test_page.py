"""The page of a run: what it says, its list of jobs, and how it behaves in a real browser."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.reproduction.execution.provenance import provenance
from trimbench.reproduction.project import project, use
from trimbench.reproduction.reporting import page as reporting_page
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.page import assets, counted, facts_of, render_pages, table_part
from trimbench.reproduction.reporting.parts import Entry, as_ranges, in_ranges, job_list, part_of
from trimbench.reproduction.reporting.runs import read_about, write_findings
from trimbench.reproduction.reporting.verdicts import CAUSES, NOT_ATTEMPTED, Counted, compare, counted_once, once
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.numbers import Explanation, Number, Probability
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.reported import Literature, Paper, ReportedExperiment
from trimbench.reproduction.vocabulary.tables import Table

from ..conftest import BARE
from .builders import findings, record, reported

# One worker makes the page that most tests look at.
pytestmark = pytest.mark.xdist_group("browser")

REASON = "another <machine>"
REPORTED = [
    reported("a", "0.3"),
    reported("b", "7", "within", tolerance=2.0),
    reported("c", "12", reason=REASON),
    reported("d", "1"),
    reported("e", "0.000000", "at_least", subject="claim", reason=REASON),
    reported("f", "0.000000", "at_least", subject="claim"),
    reported("g", "12.5", "at_most", subject="time"),
    reported("h", "2", subject="identity"),
]
VALUES = {"a": 0.3, "b": 8.0, "c": 100.0, "e": -0.25, "f": 0.25, "g": 3.0, "h": 2.0}


def literature() -> Literature:
    """Return a paper whose Figure 9 comes before its Table 1, and one without title."""
    papers = {
        "family": Paper(title="A family", citation="Author (2000): A paper", review={"Scope": "Everything & more."}),
        "other": Paper(title="Another family", citation="Nobody (1999)"),
    }
    tables = {"family/zeta": "Figure 9", "family/one": "Table 1", "family/changed": "Table 2"}
    experiments = {name: ReportedExperiment(source="", rules={}, numbers={}, table=t) for name, t in tables.items()}
    return Literature(papers, experiments)


def pages(folder: Path) -> dict[str, str]:
    sizes = [{"name": name, "size": size} for size, name in enumerate("zyxwvutsrq")]
    long = Table.of("A long table", [*sizes, {"name": "p"}], ["name", "size"], name="long")
    records = [record(number) for number in range(5)]
    keys = [one.job.key for one in records]
    wide = "unbroken" * 9
    main = Table.of("Main table", [{"row": "<b>", "a_value": 0.25}, {"row": wide}], ["row", "a_value"])
    found = findings(tables=(main, long), records=records)
    behind = {"a": [*keys[1:3], keys[4]], "b": keys[:1], "c": keys[3:]}
    numbers = [Number(row, "value", value, tuple(behind.get(row, keys))) for row, value in VALUES.items()]
    judged = compare(REPORTED, numbers)
    changed = dataclasses.replace(findings("family/changed"), altered=("seed", "ks"))
    entries = [
        Entry("family/changed", "complete", "", compare(REPORTED[:2], ()), changed),
        Entry("family/of_mine", "1 of 2 jobs failed", "", (), findings("family/of_mine")),
        Entry("family/one", "complete", "What `code </script>` is about", judged, found),
        Entry("family/zeta", "failed", "", compare([reported("z", "1")], (), "Boom"), None),
    ]
    return rendered(entries, folder)


def rendered(entries: Sequence[Entry], folder: Path, figure: FigureSettings | None = None) -> dict[str, str]:
    """Write the files of entries, and return the pages that are made of them."""
    parts = []
    for entry in entries:
        if found := entry.findings:
            given = (found, entry.judgements, folder, figure or FigureSettings())
            write_findings(*given, status=entry.status, about=entry.about)
        parts.append(read_about(folder, found.stem)["page"] if found else part_of(entry, folder))
    return render_pages(parts, literature(), run="mine", profile="quick", folder=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with its pages."""
    before, made = project(), tmp_path_factory.mktemp("run")
    use(BARE)
    for name, text in (assets() | {f"{name}.html": text for name, text in pages(made).items()}).items():
        (made / name).write_text(text, encoding="utf-8")
    use(before)  # made before the fixture of each test, which would take it for the project of other tests
    return made


@pytest.fixture
def texts(folder: Path) -> dict[str, str]:
    found = folder.rglob("*.html")
    return {path.relative_to(folder).with_suffix("").as_posix(): path.read_text("utf-8") for path in found}


def headings(text: str, level: int) -> list[str]:
    found = re.findall(rf"<h{level}>(.*?)</h{level}>", text, re.DOTALL)
    return [" ".join(re.sub("<[^>]+>", "", heading).split()) for heading in found]


def test_everything_is_on_the_pages_and_escaped(texts: dict[str, str]) -> None:
    assert {*texts} == {"index", "paper_family", *(f"family/{name}" for name in ("one", "zeta", "changed", "of_mine"))}
    assert "Author (2000): A paper" in texts["index"]
    assert "Everything &amp; more." in texts["paper_family"]
    for expected in (
        "What <code>code &lt;/script&gt;</code> is about",
        '<th>row</th><th class="number">a value</th>',
        "A note.",
        "<li>run mine</li>",
        "another &lt;machine&gt;",
        "<td>&lt;b&gt;</td>",
        '<td>claim</td><td class="number">≥ 0</td><td class="number">-0.25</td>',  # what it asks
    ):
        assert expected in texts["family/one"]


def test_a_paper_says_what_came_out_of_its_own_experiments(tmp_path: Path) -> None:
    values = {"family/one": 0.3, "other/two": 0.4}
    entries = []
    for name, value in values.items():
        judged = compare([reported("a", "0.3")], [Number("a", "value", value)])
        entries.append(Entry(name, "complete", "", judged, findings(name)))
    found = rendered(entries, tmp_path)
    assert [re.findall('<p class="outcome">(.*)</p>', found[f"paper_{name}"])[0] for name in ("family", "other")] == [
        "1 of 1 number reproduced.",
        "0 of 1 number reproduced, 1 differs. Of the differences: open.",
    ]


def test_each_sentence_counts_once(tmp_path: Path) -> None:
    claims = [reported(row, "0", "at_least", subject="claim") for row in ("a case", "another", "a third")]
    values = {"a case": 1.0, "another": -1.0, "n": 1.0}
    judged = compare([*claims, reported("n", "1")], [Number(row, "value", value) for row, value in values.items()])
    part = part_of(Entry("family/one", "complete", "", judged, findings("family/one")), tmp_path)
    assert [(one.row, one.verdict) for one in counted(part)] == [("another", "fails"), ("n", "exact")]
    assert counted(part) == counted_once(judged)
    # One that holds in some cases and was not tried in others holds.
    cases = [Counted("claim", verdict, None, verdict, "led") for verdict in (NOT_ATTEMPTED, "holds", NOT_ATTEMPTED)]
    assert once(cases) == [cases[1]]


@pytest.mark.parametrize("place", range(len(CAUSES)))
def test_a_sentence_that_fails_in_several_cases_counts_with_what_is_known_least(place: int) -> None:
    cases = [Counted("claim", "fails", cause, cause, "led") for cause in CAUSES[: place + 1]]
    assert once([*cases, Counted("claim", "holds", None, "d", "led")]) == [cases[-1]]


def test_tables_are_in_the_papers_order_with_counts(texts: dict[str, str]) -> None:
    assert headings(texts["index"], 2) == [
        "Author (2000): A paper",
        "How much of every table and figure was reproduced (each number, claim and curve counts once)",
        "All numbers, claims, curves and times",
        "Beyond the papers",
        "Glossary",
    ]
    assert headings(texts["paper_family"], 2) == ["Tables and figures", "What differs, and why", "The reproduction"]
    lines = [re.sub("<[^>]+>", "", line).strip() for line in texts["paper_family"].splitlines() if "<li><a" in line]
    assert lines[:3] == [
        "Figure 9: 1 number not attempted",
        "Table 1: 2 of 4 numbers reproduced (1 as printed, 1 close), 1 differs, 1 not attempted; "
        "1 of 1 identity holds; 0 of 1 claim holds, 1 fails; 1 of 1 time is shorter",
        "Table 2: not compared, seed, ks set",
    ]
    assert [headings(texts[f"family/{name}"], 1) for name in ("one", "of_mine")] == [
        ["A family: Table 1"],
        ["A family: family/of_mine"],
    ]
    assert '<p class="remark">1 of 2 jobs failed</p>' in texts["family/of_mine"]
    assert '<p class="remark">complete</p>' not in texts["family/one"]


def test_numbers_of_changed_settings_are_one_sentence(texts: dict[str, str]) -> None:
    assert "2 reported numbers not compared: this run set seed, ks." in " ".join(texts["family/changed"].split())
    rows = [texts[f"family/{name}"].count('<tr id="n') for name in ("one", "zeta", "changed")]
    assert rows == [len(REPORTED), 1, 0]


def test_they_link_to_nothing_but_each_other_and_files_beside_them(folder: Path, texts: dict[str, str]) -> None:
    anchors = {(folder / f"{name}.html").resolve(): set(re.findall(r'id="([^"]+)"', texts[name])) for name in texts}
    for name, text in texts.items():
        here = folder / f"{name}.html"
        links = re.findall(r'(?:src|href)="([^"]*)"', text)
        for file, _, anchor in (link.partition("#") for link in links):
            found = (here.parent / file).resolve() if file else here.resolve()
            assert found.is_file()
            assert folder.resolve() in found.parents
            assert not anchor or anchor in anchors[found]
        assert "data:" not in text
    endings = (".png", "_points.csv", ".json", "_table.csv", "_long.csv", "_rows.csv.gz")
    linked = set(re.findall(r'(?:src|href)="../(family/one[^"]*)"', texts["family/one"]))
    assert linked == {f"family/one{ending}" for ending in endings}


@pytest.mark.parametrize(("formats", "shown"), [(["png", "svg"], "png"), (["pdf", "svg"], "svg"), (["pdf"], "")])
def test_a_picture_is_shown_in_a_format_that_browsers_know(tmp_path: Path, formats: list[Any], shown: str) -> None:
    found = dataclasses.replace(findings("family/one"), stem="family/one__seed-7")
    text = rendered([Entry("family/one", "complete", "", (), found)], tmp_path, FigureSettings(formats=formats))[
        "family/one"
    ]
    pictures = re.findall(r'<img src="([^"]+)" alt="A title" (width="\d+" height="\d+")?', text)
    assert [address for address, _ in pictures] == ([f"../family/one__seed-7.{shown}"] if shown else [])
    assert [bool(size) for _, size in pictures] == ([shown == "png"] if shown else [])


def test_without_any_experiment_of_a_paper_nothing_is_compared(tmp_path: Path) -> None:
    text = rendered([Entry("mine/x", "complete", "", (), None)], tmp_path)["index"]
    assert headings(text, 2) == ["Beyond the papers", "Glossary"]
    assert "No number of the papers is compared with this run." in text


def test_an_experiment_of_another_commit_says_which(tmp_path: Path) -> None:
    part = part_of(Entry("mine/x", "complete", "", (), None), tmp_path)
    parts = [part, {**part, "name": "mine/y", "commit": "abc", "computed": ["abc", "def"]}]
    later = render_pages(parts, literature(), run="r", profile="quick", folder=tmp_path)
    assert re.findall("written with commit ([^<]+)<", later["mine/y"]) == ["abc"]
    assert f"written with commit {part['commit']}, abc<" in later["index"]
    assert ["computed with commit abc, def<" in later[name] for name in ("mine/x", "mine/y", "index")] == [0, 1, 1]


@pytest.fixture(params=[(1280, "light"), (360, "dark")])
def view(browser: Any, folder: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The first page in a browser; nothing may complain."""
    width, scheme = request.param
    opened = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    messages: list[str] = []
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.on("requestfailed", lambda request: messages.append(request.url))
    opened.goto((folder / "index.html").as_uri())
    yield opened
    opened.close()
    assert messages == []


def column(view: Any, table: str, place: int) -> list[str]:
    rows = f"#{table} tbody tr:not([hidden]) td:nth-child({place})"
    return [text.strip() for text in view.locator(rows).all_inner_texts()]


def unfold(view: Any) -> None:
    view.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


def open_page(view: Any, folder: Path, name: str) -> None:
    view.goto((folder / f"{name}.html").as_uri())
    unfold(view)


def test_sorting_and_filtering(view: Any, folder: Path) -> None:
    open_page(view, folder, "family/one")
    # By number, both ways, missing values last; with the keyboard too.
    head = view.locator("#family-one-table-1 th").nth(1)
    head.click()
    assert column(view, "family-one-table-1", 2) == [*map(str, map(float, range(10))), "–"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.press("Enter")
    assert column(view, "family-one-table-1", 2) == [*map(str, map(float, reversed(range(10)))), "–"]
    view.locator("#family-one-table-1 th").nth(0).click()
    assert column(view, "family-one-table-1", 1) == sorted("zyxwvutsrqp")
    # By words and by verdict.
    open_page(view, folder, "index")
    words, shown = view.locator("#numbers input[type=search]"), view.locator("[data-counts=all-numbers]")
    assert shown.inner_text() == "9 of 9 rows"
    words.fill("Another <machine")
    assert shown.inner_text() == "0 of 9 rows"
    words.fill("e: value")
    assert column(view, "all-numbers", 1) == ["e: value"]
    words.fill("table 1")
    view.locator("#numbers input[data-verdict=open]").uncheck()
    assert column(view, "all-numbers", 7) == [
        *("as printed", "close", "not run", "as printed", "shorter time", "as printed")
    ]


def test_from_a_count_to_a_number_its_reason_and_its_jobs_in_three_clicks(view: Any) -> None:
    # From the first screen: the count leads to the table, which says of each number how it stands.
    view.locator("#matrix a", has=view.locator(".chip.open")).click()
    assert not view.locator("#family-one-jobs").evaluate("e => e.open")
    view.locator(".printed a.open").last.wait_for()
    assert view.locator(".printed a.open").all_inner_texts() == ["12 → 100 open", "≥ 0 → -0.25 open"]
    # From the paper's table: the number leads to its row, though it is filtered away, and does so again.
    row = view.locator("#all-numbers tr:target")
    for _ in range(2):
        unfold(view)
        view.locator("#numbers input[type=search]").fill("nothing")
        assert column(view, "all-numbers", 2) == []
        view.locator(".printed a.open").last.click()
        row.wait_for()
    assert row.locator("td").all_inner_texts()[:2] == ["e", "value"]
    assert REASON in row.inner_text()
    row.locator("a[data-jobs]").click()
    assert column(view, "family-one-job-list", 2) == ["0", "1", "2", "3", "4"]
    # Its verdict leads to all numbers with this reason, on the page of the paper, and these lead back.
    view.locator(".printed a.open").last.click()
    row.locator("a", has_text="open").click()
    reason = view.locator("details.reason:target")
    assert reason.locator("summary").inner_text() == f"open: {REASON} Table 1, 2 rows"
    reason.locator("a").first.click()
    row.wait_for()
    assert row.locator("td").all_inner_texts()[:2] == ["c", "value"]


def test_lists_of_jobs(view: Any, folder: Path) -> None:
    open_page(view, folder, "family/one")
    jobs = view.locator("#family-one-jobs")
    links = view.locator("#all-numbers a[data-jobs]")
    assert links.all_inner_texts() == ["3", "1", "2", "5", "5", "5", "5"]
    links.nth(0).click()
    assert column(view, "family-one-job-list", 2) == ["1", "2", "4"]
    jobs.locator("button").click()
    assert column(view, "family-one-job-list", 2) == ["0", "1", "2", "3", "4"]
    assert not jobs.locator(".behind").is_visible()
    links.nth(1).click()
    assert column(view, "family-one-job-list", 2) == ["0"]
    assert column(view, "family-one-job-list", 1) == ["ok"]


# Parts of the page that reach beyond the window, and boxes that cut their content.
CUT = """() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const wide = document.documentElement.clientWidth + 0.5;
  return [...document.querySelectorAll("header *, nav *, main *")].filter((part) => {
    const box = part.getBoundingClientRect();
    const hides = getComputedStyle(part).overflowX !== "visible" && part.scrollWidth > part.clientWidth;
    return part.tagName !== "THEAD" && part.closest(".matrix thead") === null && (box.right > wide || hides);
  }).map((part) => part.outerHTML.slice(0, 80));
}"""


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_nothing_is_wider_than_the_window(browser: Any, folder: Path, width: int, scheme: str) -> None:
    view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    for name in ("index", "paper_family", "family/one"):
        view.goto((folder / f"{name}.html").as_uri())
        assert view.evaluate(CUT) == []
        assert view.evaluate("document.documentElement.scrollWidth") <= width
    background = view.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 20, 25)")
    # On a phone a row is a card: its cells stand below one another, each with the heading of its column.
    cells = view.locator("#n2 td")
    tops = {cell.bounding_box()["y"] for cell in cells.all()}
    assert (len(tops) > 1) == (width < 640)
    before = cells.nth(3).evaluate("e => getComputedStyle(e, '::before').content")
    assert before == ('"reported"' if width < 640 else "none")
    view.close()


def listed(found: Findings, folder: Path) -> dict[str, Any]:
    write_findings(found, (), folder, FigureSettings(), drawn=False)
    return job_list(read_about(folder, found.stem)["page"]["jobs"], folder)


@pytest.mark.parametrize(
    ("printed", "behind", "said"), [("1.0", "0 3", "0.25 with the stated set-up"), ("9.0", "0", "0.25")]
)
def test_what_is_said_of_an_inferred_set_up_is_of_a_number_that_differs(
    tmp_path: Path, printed: str, behind: str, said: str
) -> None:
    records = [record(place) for place in range(4)]
    inferred = Explanation("twice", 1.04, jobs=(records[3].job.key, "another"))
    number = Number("a", "value", 9.0, (records[0].job.key,), explanation=inferred, probability=Probability(0.25, 0.01))
    found = compare([reported("a", printed)], [number])
    write_findings(findings(records=records), found, tmp_path, FigureSettings(), drawn=False)
    (shown,) = read_about(tmp_path, "family/one")["page"]["numbers"]
    assert (shown["jobs"], shown["probability"]) == (behind, said)


def test_jobs_are_listed_by_their_keys(tmp_path: Path) -> None:
    records = [record(0), record(1, "failed", "no"), record(2), record(3)]
    records[2] = dataclasses.replace(records[2], provenance={"python": "4"})
    found = findings(records=records)
    found.rows["seconds"] = [0.12345, None, 0.12345, 1234.5]
    assert cells(listed(found, tmp_path)) == {
        "status": ["ok", "failed", "ok", "ok"],
        "cell": [0, 1, 2, 3],
        "seconds": [0.123, None, 0.123, 1230.0],
        "computed with": [1, 1, 2, 1],
        "key": [one.job.key[:12] for one in records],
    }


def cells(listed: dict[str, Any]) -> dict[str, list[Json]]:
    """Return the columns as the script of the page reads them."""

    def values(of: list[Json], at: list[int]) -> list[Json]:
        if at:
            return [of[place] for place in at]
        return of * listed["length"] if len(of) == 1 else of

    return {column["name"]: values(column["of"], column["at"]) for column in listed["columns"]}


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 1], [0, 1, True, False, None, 1.5, "a"], ["1", "01", "1", ""], [1.0, 2.0, 1.0], [1.0, None], ["=1", "nan"]],
)
def test_a_column_has_the_value_of_each_row(labels: list[Json], tmp_path: Path) -> None:
    found = findings(records=[record(number) for number in range(len(labels))])
    found.rows["cell"] = pd.Series(labels, dtype=object)
    assert list(map(repr, cells(listed(found, tmp_path))["cell"])) == list(map(repr, labels))


@given(st.sets(st.integers(0, 60)))
def test_ranges_stand_for_their_rows(places: set[int]) -> None:
    text = as_ranges(sorted(places))
    ends = [[int(end) for end in run.split("-")] for run in text.split()]
    assert list(in_ranges(text)) == sorted(places)
    assert all(later[0] > earlier[-1] + 1 for earlier, later in itertools.pairwise(ends))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("name", "family/other", "must be about family/one"),
        ("notes", "A note.", "notes must be a list, each a text"),
        ("notes", ["\ud800"], "surrogates not allowed"),
        ("script", "x", "unknown .'script'."),
        ("provenance", "javascript:alert(1)", "provenance must be empty or the address of a file of the run"),
        ("tables.0.file", "../other.csv", "tables must be .* file: the address of a table of the run"),
        ("tables.0.file", "%2Fetc/other.csv", "tables must be"),
        ("tables.0.file", "family/one.json", "tables must be"),
        ("tables.0.formats.value", ".999999999f", "tables must be"),
        ("tables.0.formats.value", "d", "a table of family/one cannot be shown: Unknown format code 'd'"),
        ("jobs.computed with", ["0-999999999999"], "jobs must be"),
        ("jobs.computed with", ["0-999999999"], "jobs on a page must be among its 2 rows, got 999999999"),
        ("jobs.labels", ["ward"], "family/one_rows.csv.gz must have the column 'ward'"),
        ("jobs.file", "family/one.csv", "family/one.csv must have the column"),
        ("numbers.0.jobs", "1 0", "numbers must be"),
        ("numbers.0.jobs", "0-2", "jobs on a page must be among its 2 rows, got 2"),
        ("numbers.0.verdict", "differs", "numbers must be"),
        ("numbers.0.cause", "chance", "numbers must be"),
        ("numbers.0.subject", "guess", "numbers must be"),
        ("numbers", [], ""),
    ],
)
def test_what_a_page_was_written_with_is_read_again_or_refused(
    tmp_path: Path, place: str, value: Any, message: str
) -> None:
    found = findings(values={"a": 0.3})
    write_findings(found, compare(REPORTED[:1], found.numbers), tmp_path, FigureSettings(), drawn=False)
    path = tmp_path / "family/one.json"
    about = json.loads(path.read_text())
    assert read_about(tmp_path, found.stem) == about
    inside, *keys = about["page"], *place.split(".")
    for key in keys[:-1]:
        inside = inside[int(key) if isinstance(inside, list) else key]
    last: Any = keys[-1]
    many = about["page"]["numbers"] * 501
    inside[last] = value or many
    path.write_text(json.dumps(about))
    with pytest.raises(ConfigurationError, match=message or "numbers must be at most 500 numbers"):
        render_pages([read_about(tmp_path, found.stem)["page"]], literature(), run="", profile="", folder=tmp_path)


@pytest.mark.parametrize(
    ("commit", "dirty", "fact"),
    [
        ("0123456789abcdef", False, "written with commit 0123456789ab"),
        ("0123456789abcdef", True, "written with commit 0123456789ab and uncommitted changes"),
        (None, None, "written with commit unknown"),
    ],
)
def test_the_facts_say_where_a_page_comes_from(
    monkeypatch: pytest.MonkeyPatch, commit: str | None, dirty: bool | None, fact: str
) -> None:
    where = {**provenance(), "commit": commit, "dirty": dirty, "time": "2026-01-02T03:04:05+00:00"}
    monkeypatch.setattr(reporting_page, "provenance", lambda: where)
    facts = facts_of("run a", "profile b")
    assert facts[:2] == ["run a", "profile b"]
    assert fact in facts
    assert facts[-1] == "2026-01-02"


def test_cells_keep_the_value_by_which_they_are_sorted() -> None:
    part = table_part(Table.of("T", [{"x": 1.5}, {"x": math.inf}, {"x": None}], {"x": ".0f"}))
    assert part["columns"] == [("x", True)]
    assert part["rows"] == [
        [{"text": "2", "is_number": True, "value": "1.5"}],
        [{"text": "inf", "is_number": True, "value": ""}],
        [{"text": "–", "is_number": True, "value": ""}],
    ]


# Linear light to what an eye without red or green cones sees of it, by Machado, Oliveira and Fernandes (2009).
_EYES = [
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
]
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def _lab(colour: str, eye: Any) -> Any:
    light = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    parts = _XYZ @ np.clip(eye @ light, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(parts > 0.008856, np.cbrt(parts), 7.787 * parts + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_no_two_standings_have_colours_that_are_alike() -> None:
    style = assets()["page.css"]
    names = ("exact", "within", "trend", "differs", "contradicted", "chance", "open", "faster", "not-attempted")
    light = {name: re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style) for name in names}
    for scheme in (0, -1):  # the last is that of dark screens, where there are two
        for eye in _EYES:
            colours = [_lab(found[scheme], eye) for found in light.values()]
            assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2)) > 20


def test_a_column_without_counts_has_no_heading_and_faster_has_a_swatch(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    (table,) = re.findall(r'<table class="matrix">.*?</table>', page, re.DOTALL)
    headings = re.findall(r'<th scope="col">([^<]*)</th>', table)[1:]
    last = table.rpartition('class="all"')[2]
    counts = [cell.strip() for cell in re.findall(r"<td>(.*?)</td>", last)]
    assert len(headings) == len(counts)
    assert all(counts)
    assert ('<dt><span class="faster verdict">faster</span>' in page) == ("faster" in headings)
    assert re.search(r'title="\d+ as printed \(', table)
