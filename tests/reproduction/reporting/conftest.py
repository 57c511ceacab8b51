"""A real browser for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium without a window; tests that need it are skipped where there is none."""
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import Error, sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
    with sync_playwright() as play:
        launch = partial(play.chromium.launch, executable_path=BROWSER, args=[*flags, "--disable-component-update"])
        try:
            opened = launch()
        except Error:  # all tests of the package would fail with this one
            opened = launch()
        yield opened
        opened.close()
