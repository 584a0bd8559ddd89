"""The live page in a real browser: what is called current is, what is called proven is what `plan solve` proves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import turning
from tests.browser.test_report_page import COLOURS, SMALLEST, WIDER, assert_contrast
from tests.live.conftest import Served, served
from tests.tiers import sampled

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def llama(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("llama"), "llama") as it:
        yield it


@pytest.fixture
def looked(chromium: Any) -> Iterator[Open]:
    """A page at an address, when its first answer is there; what it says and asks for elsewhere is nothing."""
    contexts, said, asked = [], [], []

    def open_page(it: Served, link: str = "", width: int = 1280, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append((request.url, it.origin)))
        page.goto(it.address + link)
        turning.settle(page)
        page.evaluate(turning.WATCH)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url, origin in asked if not url.startswith(origin + "/") and url != "data:,"] == []


def field(page: Any, path: str) -> Any:
    return page.locator(f"input[type=text][data-path='{path}']")


DEADLINE, QPM = "training.pretrain-8b.deadline", "serving.assistant.qpm"


def test_knobs_by_keyboard_undo_and_links(llama: Served, looked: Open) -> None:
    page = looked(llama)
    first = page.inner_text("#total")
    slider = page.locator(f"input[data-of='{field(page, DEADLINE).get_attribute('id')}']")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    assert page.get_attribute("#answer", "data-now") != "current"
    turning.settle(page)
    assert field(page, DEADLINE).input_value() == "20 days"
    assert slider.get_attribute("aria-valuetext") == "20 days"
    dearer = page.inner_text("#total")
    assert dearer != first
    assert page.inner_text("#badge") == "proven"
    assert "Since the start" in page.inner_text("#more")
    assert page.inner_text("#command") == f"plan solve llama --set '{DEADLINE}=20 days'"
    other = looked(llama, page.url.removeprefix(llama.address))
    assert field(other, DEADLINE).input_value() == "20 days"
    assert other.inner_text("#total") == dearer
    page.click("#undo")
    turning.settle(page)
    assert page.inner_text("#total") == first
    assert page.is_disabled("#undo")
    assert turning.stale(page) == []


def test_what_cannot_be_read_keeps_the_last_good_answer(llama: Served, looked: Open) -> None:
    page = looked(llama)
    total = page.inner_text("#total")
    field(page, DEADLINE).fill("3 das")
    field(page, DEADLINE).press("Enter")
    page.wait_for_selector("#answer[data-now=earlier]")
    assert field(page, DEADLINE).get_attribute("aria-invalid") == "true"
    place = page.locator("#" + str(field(page, DEADLINE).get_attribute("aria-describedby")))
    assert place.inner_text().startswith("'3 das' has an unknown unit; 'deadline' wants a time")
    assert page.inner_text("#total") == total
    assert "last good answer" in page.inner_text("#badge")
    field(page, DEADLINE).fill("30 days")
    field(page, DEADLINE).press("Enter")
    turning.settle(page)
    assert not place.is_visible()
    assert page.locator("[aria-invalid]").count() == 0


@pytest.mark.campaign
def test_a_way_out_is_a_button(llama: Served, looked: Open) -> None:
    page = looked(llama)
    field(page, DEADLINE).fill("3 days")
    field(page, DEADLINE).press("Enter")
    turning.settle(page)
    took = page.get_attribute("#answer", "data-took")
    assert page.inner_text("#badge").startswith("nothing meets every limit: proven")
    page.wait_for_selector("#answer .ways button", timeout=turning.LONGEST_MS)
    assert page.inner_text("#badge") == "nothing meets every limit: proven"
    assert page.get_attribute("#answer", "data-took") == took, "the answer was there before its ways out"
    page.click("#answer .ways button >> nth=0")
    turning.settle(page)
    assert page.inner_text("#total").startswith("$")
    assert turning.stale(page) == []


def test_devices_and_saving(llama: Served, looked: Open) -> None:
    page = looked(llama)
    page.uncheck("input[data-device='h100-sxm-80gb']")
    turning.settle(page)
    assert "H100" not in page.inner_text("#told .decision")
    page.fill("#save-name", "without-h100")
    page.click("#save")
    page.wait_for_selector("#saved:text-matches('^wrote ')")
    assert "h100-sxm-80gb" in (llama.folder / "without-h100.yaml").read_text()
    page.click("#save")
    page.wait_for_selector("#saved:has-text('is there already')")


@pytest.mark.parametrize(("width", "scheme"), sampled([(1280, "light"), (400, "dark"), (1600, "dark")], 2))
def test_readable_at_every_width_in_light_and_dark(llama: Served, looked: Open, width: int, scheme: str) -> None:
    page = looked(llama, f"#{DEADLINE}=31+days", width=width, color_scheme=scheme)
    page.wait_for_selector("#traded svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(WIDER) == []
    assert page.evaluate(SMALLEST) >= 11
    colours = {name: colour for name, colour in page.evaluate(COLOURS).items() if colour}
    assert_contrast(colours, scheme)


@pytest.mark.parametrize("width", [400, 1280])
def test_the_first_screen_has_the_decision_before_the_knobs(llama: Served, looked: Open, width: int) -> None:
    page = looked(llama, width=width)
    ends = page.evaluate(
        "[...document.querySelectorAll('#total, .decision, .sure')].map(o => o.getBoundingClientRect().bottom)"
    )
    assert len(ends) == 3
    assert max(ends) < 800
    knobs = page.evaluate("document.getElementById('knobs').getBoundingClientRect().toJSON()")
    assert knobs["left"] < 64
    assert knobs["top"] < 800  # beside the decision, or after it on the same screen
    assert (knobs["top"] >= max(ends)) == (width == 400)
    assert page.evaluate("document.querySelector('#more .cards').getBoundingClientRect().top") > ends[1]


@pytest.mark.campaign
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_axe_finds_nothing_serious(llama: Served, looked: Open, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    script = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    page = looked(llama, width=width, color_scheme=scheme)
    for text in ("30 days", "3 das", "3 days"):  # an answer, a mistake, ways out
        field(page, DEADLINE).fill(text)
        field(page, DEADLINE).press("Enter")
        page.wait_for_selector(f"#answer[data-now={'earlier' if text == '3 das' else 'current'}]", timeout=60_000)
        if text == "3 days":
            page.wait_for_selector("#answer .ways button", timeout=60_000)
        page.evaluate(script)
        found = page.evaluate("axe.run()")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["llama", "chat-fleet"])
@pytest.mark.parametrize("seed", range(4))
def test_sliders_at_random(name: str, seed: int, looked: Open, tmp_path: Path) -> None:
    with served(tmp_path, name) as it:
        page = looked(it)
        for shown in turning.moves(page, 5, seed):
            assert turning.differences(shown) == []
        assert turning.stale(page) == []


def test_the_end_is_said(looked: Open, tmp_path: Path, chromium: Any) -> None:
    with served(tmp_path, "gpt2-xl") as it:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(it.address)
        turning.settle(page)
        it.process.terminate()
        it.process.wait(20)
        page.locator("input[type=range]").first.press("ArrowRight")
        page.wait_for_selector("#answer[data-now=earlier]")
        assert page.inner_text("#badge").startswith("plan live has ended")
        context.close()
