"""Every link leads somewhere, every scenario of a page loads, every piece of Python runs."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest

from planner.scenario.load import parse_scenario
from tests.docs import console, links

pytestmark = pytest.mark.usefixtures("answered_once")

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
CATALOGS = [ROOT / folder / "hardware" / "README.md" for folder in ("", "tests/frozen")]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(language: str) -> list[tuple[Path, str]]:
    """(page, text) of every block of a language, those of generated equation pages left out."""
    pages = [page for page in PAGES if page.parent.name != "model"]
    found = [(page, _BLOCK.findall(page.read_text(encoding="utf-8"))) for page in pages]
    return [(page, text) for page, all_of_it in found for name, text in all_of_it if name == language]


@pytest.mark.parametrize("page", [*PAGES, *CATALOGS], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(links.broken(page)) == []


def test_every_page_is_reached_from_the_index() -> None:
    """Following links from the README and the index, a reader comes to every page."""
    reached, todo = set(), [ROOT / "README.md", ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop()
        reached.add(page)
        for target in links.targets(page.read_text(encoding="utf-8")):
            path = (page.parent / target.partition("#")[0]).resolve()
            if path.suffix == ".md" and path.is_file() and path not in reached:
                todo.append(path)
    assert {page for page in PAGES if page.name != "CHANGELOG.md"} - reached == set()


def test_every_picture_is_shown_light_and_dark() -> None:
    shown = {
        (page.parent / target).resolve().name
        for page in PAGES
        for target in links.targets(page.read_text(encoding="utf-8"))
    }
    pictures = {path.name for path in (ROOT / "docs" / "pictures").glob("*.png")}
    assert pictures
    assert pictures <= shown
    assert {name.replace("-dark", "-light") for name in pictures} <= pictures


@pytest.mark.parametrize(
    ("page", "text"), blocks("yaml"), ids=lambda value: name_of(value) if isinstance(value, Path) else ""
)
def test_scenarios_of_pages_load(page: Path, text: str) -> None:
    if text.startswith("schema: plan/v1") or "\nschema: plan/v1" in text:
        assert parse_scenario(text, file=str(page.parent / "page.yaml")).workloads


@pytest.mark.parametrize(
    ("page", "text"), blocks("python"), ids=lambda value: name_of(value) if isinstance(value, Path) else ""
)
def test_python_of_pages_runs(page: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    monkeypatch.chdir(tmp_path)
    for step in console.steps(page.read_text(encoding="utf-8")):
        if isinstance(step, console.Saved):
            step.into(tmp_path)
    if ">>>" in text:
        examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0
    else:
        exec(compile(text, str(page), "exec"), {})


SAMPLE = """
# A page of `code`, and more
## Again
## Again
[a](b.md) ![picture](c.png "title") [`d`](e.py#L3) <img src="f.png"> [x [1]](g.md#again-1) `[not](one)`
```text
# no heading
[no](link.md)
```
[ref]: h.md
"""


def test_links_are_found() -> None:
    assert sorted(links.targets(SAMPLE)) == ["b.md", "c.png", "e.py#L3", "f.png", "g.md#again-1", "h.md"]


def test_anchors_are_those_of_headings() -> None:
    assert links.anchors(SAMPLE) == {"a-page-of-code-and-more", "again", "again-1"}


def test_broken_links_are_told(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# There\n")
    (tmp_path / "e.py").write_text("one\n")
    page = tmp_path / "a.md"
    page.write_text(
        "[1](b.md#there) [2](b.md#gone) [3](c.md) [4](e.py#L1) [5](e.py#L9) [6](https://example.org/x) [7](#no)"
    )
    assert list(links.broken(page)) == [
        "b.md#gone: no such heading", "c.md: no such file", "e.py#L9: the file is shorter", "#no: no such heading",
    ]  # fmt: skip
