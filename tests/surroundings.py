"""What the tests of all parts share: none sees a user's caches or writes into the tree, and Ctrl-C stops programs."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

# A loaded machine makes a test slow, not wrong. Examples are the same in every run, so that a change is judged by what
# it changes; `--hypothesis-profile fresh` looks for others, as `scripts/nightly` does.
hypothesis.settings.register_profile("trimbench", deadline=None, derandomize=True)
hypothesis.settings.register_profile("fresh", deadline=None, print_blob=True)
hypothesis.settings.load_profile("trimbench")

# Coverage takes out the instruments of lines that have run often, which takes as long as thousands of calls of them.
if instruments := getattr(sys.modules.get("slipcover.pytest_plugin"), "_slipcover_instance", None):
    instruments.d_miss_threshold = 1000

# Fixtures that take long to make. All tests that ask for one run in the same worker, which makes it once.
MADE_ONCE = ("browser", "cancer", "experiment", "flower_jobs", "wheel", "wide")


@contextlib.contextmanager
def _after_the_first_worker() -> Iterator[None]:
    """Where all tests run, one worker collects first; the others wait, and read the byte code that it has kept."""
    if not (folder := os.environ.get("SLIPCOVER_COVERAGE_DIR")):
        yield
        return
    with Path(folder, "collecting").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are no garbage: looking through them again and again took a third of the collection."""
    gc.disable()
    try:
        with _after_the_first_worker():
            return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in MADE_ONCE:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session", autouse=True)
def _one_font_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """matplotlib lists the fonts of the machine once for all tests, in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(tmp_path_factory.mktemp("matplotlib")))
        yield


@pytest.fixture(autouse=True)
def _ctrl_c_is_heeded() -> Iterator[None]:
    """Ctrl-C comes also where the tests run in the background, which ignores it; no test leaves a handler behind."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.fixture(autouse=True)
def _no_caches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The caches are empty, except in tests that ask for `given_folder`; relative paths lead to the test's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if "given_folder" not in request.fixturenames:
        monkeypatch.delenv("TRIMBENCH_CACHE", raising=False)


@pytest.fixture
def given_folder() -> Path:
    """The folder that TRIMBENCH_CACHE names; without one, the test is skipped."""
    if not (value := os.environ.get("TRIMBENCH_CACHE")):
        pytest.skip("TRIMBENCH_CACHE is not set, so there is no data to run on")
    return Path(value)
