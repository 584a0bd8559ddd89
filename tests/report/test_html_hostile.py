"""Whatever a name says, it stays text: the page has the elements and attributes that it always has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.report import escape
from planner.report.html.pages import render_page
from tests.hostile_names import hostile_names
from tests.report.conftest import plan_named
from tests.report.pages import Read, assert_inert, read
from tests.report.test_html_page import report_of
from tests.tiers import sampled, settings

Document = dict[str, Any]
# what is no name: words of our own that views choose by, dates, units
KEPT = {
    "schema", "status", "kind", "unit", "currency", "price_model", "funding", "role", "as_of", "begin", "start_date",
    "end_date", "finish_date", "fiscal_year", "objective", "commitment", "over", "against", "category", "metric",
}  # fmt: skip
OURS = ("limits.budget", "ttft_", "tpot_", "e2e_")  # names of ours, that views choose by
WORDS = {"aria-label", "content"}  # attributes that carry words
FIXED = ("html", "head", "title", "meta", "style", "body", "header", "nav", "main", "footer", "h1", "h2", "script", "a")
_ALWAYS: dict[int, tuple[set[Any], dict[str, int]]] = {}


@pytest.fixture(scope="module")
def reports() -> dict[str, Document]:
    catalog = api.load_catalog()
    return {name: report_of(plan_named(name), catalog) for name in ("llama", "portfolio", "infeasible")}


def poisoned(piece: Any, name: str, key: str = "") -> Any:
    """A report in which every text that may come from a file is that name."""
    if isinstance(piece, dict):
        return {inner: poisoned(value, name, inner) for inner, value in piece.items()}
    if isinstance(piece, list):
        return [poisoned(value, name, key) for value in piece]
    ours = not isinstance(piece, str) or key in KEPT or piece.startswith(OURS)
    return piece if ours else name


def assert_as_always(report: Document, name: str) -> Read:
    """Elements and attributes are those of a page of harmless names; rows alone may fall together."""
    page = read(render_page(poisoned(report, name)).text)
    assert_inert(page)
    signatures, counts = always(report)
    assert set(signature_of(page)) <= signatures
    assert {tag: len(page.all(tag)) for tag in counts} == counts
    return page


def signature_of(page: Read) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [
        (e.tag, tuple((key, "" if key in WORDS else value) for key, value in e.attributes.items()))
        for e in page.elements
    ]


def always(report: Document) -> tuple[set[Any], dict[str, int]]:
    """What stands on the page with a short name and with a long one, and what it has a fixed number of."""
    if id(report) not in _ALWAYS:
        pages = [
            read(render_page(poisoned(report, name)).text) for name in ("x", "a long plain name of many words", "")
        ]
        signatures = {signature for page in pages for signature in signature_of(page)}
        _ALWAYS[id(report)] = signatures, {tag: len(pages[0].all(tag)) for tag in FIXED}
    return _ALWAYS[id(report)]


@pytest.mark.parametrize("index", sampled(range(200), 24))
def test_a_hostile_name_is_text(index: int, reports: dict[str, Document]) -> None:
    name = hostile_names()[index]
    page = assert_as_always(reports["llama"], name)
    shown = escape.terminal(name)
    assert page.all("title")[0].text == shown
    assert page.all("h1")[0].text == shown
    assert shown in [cell.text for cell in page.all("td")]
    assert [text.text for text in page.all("text")] != []


@pytest.mark.parametrize("index", sampled(range(0, 200, 23), 3))
@pytest.mark.parametrize("name", ["portfolio", "infeasible"])
def test_a_hostile_name_is_text_on_other_pages(name: str, index: int, reports: dict[str, Document]) -> None:
    assert_as_always(reports[name], hostile_names()[index])


@settings(max_examples=30)
@given(name=st.text(st.characters(), min_size=1, max_size=40))
def test_no_text_at_all_changes_the_page(name: str) -> None:
    assert_as_always(_small(), name)


_KEPT_REPORT: list[Document] = []


def _small() -> Document:
    if not _KEPT_REPORT:
        _KEPT_REPORT.append(report_of(plan_named("llama"), api.load_catalog()))
    return _KEPT_REPORT[0]


def test_a_page_that_leaks_is_caught(reports: dict[str, Document]) -> None:
    """The reader of these tests sees an element that is not ours."""
    text = render_page(reports["llama"]).text
    leaks = (
        "<script>alert(1)</script>", '<img src="x">', '<a href="http://x">x</a>', '<b onclick="x">x</b>',
        '<rect fill="url(http://x)"/>', '<use href="#fill-0"/>',
    )  # fmt: skip
    for leak in leaks:
        with pytest.raises(AssertionError):
            assert_inert(read(text.replace("</main>", leak + "</main>")))
