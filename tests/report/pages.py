"""Reading a page back: its elements, attributes, scripts and tables, by the parser of the standard library."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "img", "br", "hr", "input", "base", "source", "area", "col", "embed", "track", "wbr"}
_MANY = 100  # rows of the tables of sources: every new figure of a plan changes them
_FOREIGN = {"iframe", "object", "embed", "img", "link", "base", "form", "input", "video", "audio", "template"}
_URLS = {"href", "src", "srcset", "action", "formaction", "data", "poster", "background", "cite", "xlink:href"}


@dataclass
class Element:
    """One element, with the text right inside it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    text: str = ""


@dataclass
class Read(HTMLParser):
    """A page as it was read."""

    elements: list[Element] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(one.tag for one in self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        assert self._open[-1].tag == tag, (tag, [one.tag for one in self._open])
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def by_id(self, name: str) -> Element:
        (found,) = [element for element in self.elements if element.attributes.get("id") == name]
        return found


def read(text: str) -> Read:
    """A page, whose elements all have to be closed."""
    page = Read()
    page.feed(text)
    page.close()
    assert page._open == []
    return page


def drawn(page: Read) -> dict[str, Counter[str]]:
    """The figures of a page in their order: how many things of each look stand in one."""
    found: dict[str, Counter[str]] = {}
    here: Counter[str] = Counter()
    for element in page.elements:
        if element.tag == "svg" and "id" in element.attributes:
            here = found.setdefault(element.attributes["id"], Counter())
        elif element.tag == "figcaption" or element.attributes.get("class") == "key":
            here = Counter()
        elif element.tag in ("rect", "circle", "path", "line") and element.attributes.get("class", "rule") != "rule":
            here[element.attributes["class"].split()[0]] += 1
    return found


def assert_inert(page: Read) -> None:
    """Nothing runs, and nothing leads out of the file."""
    (policy,) = [
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert page.comments == []
    for element in page.elements:
        assert element.tag not in {*_FOREIGN, "script", "foreignobject", "use", "image"}, element.tag
        for name, value in element.attributes.items():
            assert not name.startswith("on"), (element.tag, name)
            assert name not in _URLS or value.startswith("#"), (element.tag, name, value)
            assert "url(" not in value or re.fullmatch(r"url\(#fill-\d\)", value), (element.tag, name, value)


def structure(page: Read) -> str:
    """A page in a few lines: headings, figures with their traces, tables with their heads and how many rows."""
    lines, figures = [], drawn(page)
    for element in page.elements:
        if element.tag in ("h1", "h2", "h3", "summary", "figcaption"):
            lines.append(f"{element.tag}: {_uncounted(element.text)}")
        if element.attributes.get("id") in figures:
            marks = [f"{look} ×{count}" for look, count in figures[element.attributes["id"]].items() if count]
            lines.append(f"  figure {element.attributes['id']}: " + ", ".join(marks))
        if element.tag == "caption":
            lines.append(f"  table {_uncounted(element.text)}")
        if element.tag == "th" and element.attributes.get("scope") == "col":
            lines.append(f"    | {element.text.strip()}")
    return "\n".join(_counted(lines, page)) + "\n"


def _uncounted(title: str) -> str:
    """A title without the number of its rows, which every new figure of a plan changes."""
    return re.sub(r" \([\d,]+\)$", "", title.strip())


def _counted(lines: list[str], page: Read) -> list[str]:
    """Heads of a table in one line, with the number of its rows."""
    rows: list[int] = []
    for element in page.elements:
        if element.tag == "caption":
            rows.append(0)
        if element.tag == "th" and element.attributes.get("scope") == "row":
            rows[-1] += 1
    told: list[str] = []
    for line in lines:
        if line.startswith("    | "):
            told[-1] += line[3:]
        elif line.startswith("  table "):
            count = rows.pop(0)
            told.append(line if count > _MANY else f"{line} ({count} rows)")
        else:
            told.append(line)
    return told
