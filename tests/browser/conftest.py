"""A real browser without a window: Debian's chromium, driven by playwright; without either these tests are skipped."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.report.html.pages import render_page
from tests.hostile_names import HAND_MADE
from tests.report.conftest import plan_named
from tests.report.test_html_hostile import poisoned
from tests.report.test_html_page import report_of

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "screenshots"  # git ignores it
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOSTILE = "".join(name for name in HAND_MADE if "<" in name or "&" in name)


PATIENCE_S = 180  # a browser that no longer answers ends its test, not the whole run


class NoAnswerError(Exception):
    """The browser does not answer."""


@contextmanager
def answered() -> Iterator[None]:
    """A time that the browser has for what is asked of it; playwright waits for ever for one that is gone."""

    def ring(*_: object) -> None:
        raise NoAnswerError(f"no answer from the browser in {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with answered():
        yield


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    program = os.environ.get("PLAN_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no chromium here: apt-get install chromium, or name one in PLAN_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        with answered():
            browser.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a sample as a file; "hostile" is one in which every name is hostile."""
    folder, catalog = tmp_path_factory.mktemp("pages"), api.load_catalog()

    def written(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            report = report_of(plan_named("llama" if name == "hostile" else name), catalog)
            report = poisoned(report, HOSTILE) if name == "hostile" else report
            path.write_text(render_page(report).text, encoding="utf-8")
        return path

    return written


@dataclass
class Opened:
    """A page in the browser, and what it said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def look(self, width: int, scheme: str) -> None:
        """At a width, in light or dark."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.wait_for_timeout(50)

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


@pytest.fixture
def opened(chromium: Any, files: Callable[[str], Path]) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def open_page(name: str, **options: Any) -> Opened:
        context = chromium.new_context(viewport={"width": 400, "height": 900}, offline=True, **options)
        contexts.append(context)
        it = Opened(context.new_page())
        it.page.on("console", lambda message: it.said.append(message.text))
        it.page.on("pageerror", lambda error: it.said.append(str(error)))
        it.page.on("dialog", lambda dialog: it.said.append(f"dialog {dialog.message}"))
        it.page.on("request", lambda request: it.asked.append(request.url))
        it.page.goto(files(name).as_uri())
        return it

    yield open_page
    for context in contexts:
        context.close()
