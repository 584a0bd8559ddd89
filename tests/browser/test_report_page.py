"""The report in a real browser: no network, every figure drawn, readable on a phone and on a wide screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import tiers
from tests.tiers import sampled

Open = Callable[..., Any]
SAMPLES = ["llama", "fleet", "portfolio", "infeasible", "hostile"]
EVERY = ((400, "light"), (400, "dark"), (1600, "dark"), (1600, "light"))
LOOKED_AT = ((400, "dark"), (1600, "light"))
DRAWN = """() => [...document.querySelectorAll("svg.chart[id]")].map(drawing => {
  const boxes = (query) => [...drawing.querySelectorAll(query)].map(one => one.getBoundingClientRect());
  const texts = [...drawing.querySelectorAll("text")].map(one => Object.assign(one.getBoundingClientRect(),
    {words: one.textContent})), frame = drawing.getBoundingClientRect();
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  return {
    id: drawing.id, width: frame.width, height: frame.height,
    marks: boxes("rect, circle, path, line:not(.rule)").filter(box => box.width > 0 || box.height > 0).length,
    told: drawing.querySelectorAll("title").length,
    cut: texts.filter(box => box.right > frame.right + 1 || box.left < frame.left - 1).length,
    crossed: texts.flatMap((a, n) => texts.slice(n + 1).filter(b => over(a, b)).map(b => [a.words, b.words])),
  };
})"""
WIDER = """() => [...document.querySelectorAll("body *")]
  .filter(one => !one.closest(".scroll, nav ol, svg, .unseen, .skip, script, style"))
  .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(one => one.tagName + "." + one.className)"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll("p, li, td, th, dd, dt, figcaption, svg text")]
  .filter(one => one.textContent.trim() && !one.closest(".unseen"))
  .map(one => parseFloat(getComputedStyle(one).fontSize)))"""
COLOURS = """() => {
  const of = (query, what) => { const one = document.querySelector(query);
    return one ? getComputedStyle(one)[what] : null; };
  return {paper: of("body", "backgroundColor"), ink: of("body", "color"), soft: of(".note, .name", "color"),
    link: of("nav a", "color"),
    ...Object.fromEntries([...document.querySelectorAll("svg text")].map(one => getComputedStyle(one).fill)
      .map(fill => [`figure ${fill}`, fill]))};
}"""


@pytest.mark.parametrize("name", sampled(SAMPLES, 1))
def test_drawn_and_readable_at_every_width_in_light_and_dark(name: str, opened: Open) -> None:
    it = opened(name)
    for width, scheme in EVERY if tiers.LONG and name == "llama" else LOOKED_AT:
        it.look(width, scheme)
        where = f"{name} at {width} px, {scheme}"
        for figure in it.page.evaluate(DRAWN):
            assert figure["marks"] > 0, (where, figure)
            assert figure["told"] > 0, (where, figure)
            assert figure["width"] > 300, (where, figure)
            assert figure["height"] > 60, (where, figure)
            assert figure["cut"] == 0, (where, figure)
            assert figure["crossed"] == [], (where, figure)
        assert it.page.evaluate("document.documentElement.scrollWidth") <= width, where
        assert it.page.evaluate(WIDER) == [], where
        assert it.page.evaluate(SMALLEST) >= 11, where
        assert_contrast(it.page.evaluate(COLOURS), scheme)
        it.picture(f"{name}-{width}-{scheme}")
    assert it.said == []
    assert [address for address in it.asked if not address.startswith("file:")] == []
    assert len(it.asked) == 1


def assert_contrast(colours: dict[str, str | None], scheme: str) -> None:
    """All text stands out by 4.5 to 1 or more (WCAG AA), on paper that is of the scheme."""
    paper = luminance(colours["paper"] or "")
    assert (paper > 0.5) == (scheme == "light")
    for part, colour in colours.items():
        if part != "paper" and colour is not None:
            lighter, darker = sorted((luminance(colour), paper), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (part, colour, scheme)


def luminance(colour: str) -> float:
    """Relative luminance of "rgb(1, 2, 3)" (WCAG 2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.campaign
def test_on_paper_figures_stand_still_keep_their_colours_and_fit(opened: Open) -> None:
    it = opened("llama", color_scheme="dark")
    it.look(1600, "dark")
    pdf = it.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 4
    it.page.emulate_media(media="print", color_scheme="dark")
    # a page of paper is narrower than the screen that the figures were drawn for
    it.page.evaluate("document.body.style.width = '690px'")
    for figure in it.page.evaluate(DRAWN):
        assert 600 < figure["width"] <= 690, figure
        assert figure["marks"] > 0, figure
    colours = it.page.evaluate(COLOURS)
    assert luminance(colours["ink"]) < luminance("rgb(128, 128, 128)")  # dark ink, whatever the screen likes
    assert it.page.evaluate("getComputedStyle(document.querySelector('.key .mark')).printColorAdjust") == "exact"
    assert it.page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"


@pytest.mark.campaign
def test_hostile_names_stay_text(opened: Open) -> None:
    it = opened("hostile")
    it.page.wait_for_timeout(300)
    own = "img, iframe, object, embed, link, form, a[href]:not([href^='#']), [onerror], [onclick], main script"
    assert it.page.evaluate("query => document.querySelectorAll(query).length", own) == 0
    assert "<script>alert(1)</script>" in it.page.inner_text("h1")
    assert "<script>alert(1)" in "".join(it.page.locator("svg.chart text").all_text_contents())
    assert it.said == []


@pytest.mark.campaign
def test_the_policy_stops_what_is_not_ours(opened: Open) -> None:
    """Even if a name became an element, it would not run and would not be fetched."""
    it = opened("llama")
    it.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'taken over'";
          document.body.append(script);
          const picture = document.createElement("img");
          picture.src = "http://127.0.0.1:9/picture.png";
          document.body.append(picture);
        }"""
    )
    it.page.wait_for_timeout(200)
    assert it.page.title() != "taken over"
    assert len(it.said) >= 2
    assert all("Content Security Policy" in line for line in it.said)


@pytest.mark.parametrize("width", [400, 1280])
def test_the_first_screen_holds_the_decision_the_total_its_range_and_the_reasons(width: int, opened: Open) -> None:
    it = opened("llama")
    it.page.set_viewport_size({"width": width, "height": 800})
    shown = it.page.evaluate(
        """() => Object.fromEntries([".decision", ".total strong", ".likely", ".sure", ".reasons li:nth-child(3)"]
          .map(query => [query, document.querySelector(query).getBoundingClientRect()])
          .map(([query, box]) => [query, [box.left, box.top, box.right, box.bottom]]))"""
    )
    for query, (left, top, right, bottom) in shown.items():
        assert 0 <= left < right <= width, (query, left, right)
        assert 0 <= top < bottom <= 800, (query, top, bottom)


@pytest.mark.parametrize("width", [400, 1280])
def test_what_is_not_folded_takes_six_screens_at_most(width: int, opened: Open) -> None:
    it = opened("llama")
    it.page.set_viewport_size({"width": width, "height": 800})
    folded = "document.querySelector('details.section').getBoundingClientRect().top + scrollY"
    assert it.page.evaluate(folded) <= 6 * 800


def test_the_contents_stay_in_sight_and_open_what_is_folded(opened: Open) -> None:
    it = opened("llama")
    for width in (400, 1280):
        it.page.set_viewport_size({"width": width, "height": 800})
        it.page.evaluate("scrollTo(0, 2500)")
        box = it.page.locator("nav").bounding_box()
        assert box["y"] >= -1
        link = it.page.locator("nav a[href='#made']")
        link.click()
        assert it.page.locator("#made table").is_visible()


def test_a_table_that_is_wider_than_the_page_shows_that_it_scrolls(opened: Open) -> None:
    it = opened("llama")
    it.look(400, "light")
    before, after = it.page.evaluate(
        """() => { const one = [...document.querySelectorAll(".scroll")].find(e => e.scrollWidth > e.clientWidth + 40);
          const shades = getComputedStyle(one).backgroundImage.split("radial-gradient").length - 1;
          one.focus(); one.scrollLeft = 30; return [shades, one.scrollLeft]; }"""
    )
    assert (before, after) == (2, 30)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["llama", "portfolio", "infeasible"])
def test_axe_finds_nothing_serious(name: str, opened: Open) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    script = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    it = opened(name)
    for width, scheme in ((1280, "light"), (400, "dark")):
        it.look(width, scheme)
        it.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        it.page.evaluate(script)
        found = it.page.evaluate("axe.run()")
        assert len(found["passes"]) > 20
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


@pytest.mark.campaign
def test_the_keyboard_finds_its_way(opened: Open) -> None:
    it = opened("llama")
    it.page.keyboard.press("Tab")
    assert it.page.evaluate("document.activeElement.className") == "skip"
    box = it.page.locator(".skip").bounding_box()
    assert box["x"] >= 0
    it.page.keyboard.press("Tab")
    assert it.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
