"""One escape function a format: what came from a user's file is text and stays text.

Terminal: no control character reaches the screen, so a name cannot move the cursor or
hide a line. CSV and spreadsheets: no cell becomes a formula. Markdown: no cell breaks its table, links or
embeds HTML. HTML: no tag. JSON needs none of this: its writer quotes (and refuses NaN).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_FORMULA_START = "=+-@\t\r\n＝＋－＠"
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_MARKDOWN_START = re.compile(r"^\s*(?=#|[-+](?:\s|$)|[-=]{2,}|\d{1,9}[.)](?:\s|$))")


def terminal(text: str) -> str:
    """Text for a terminal or log line: control, format and surrogate characters are gone."""
    return "".join(_visible(character) for character in text) if not text.isascii() or not text.isprintable() else text


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zl", "Zp") or character in "\t\n\r":
        return " "
    return "" if category in ("Cc", "Cf", "Cs") else character


_PLAIN = str.maketrans("·×→–−…▕▏█▒░▁▂▃▄▅▆▇≤≥±", ".x>--.||#:.1234567<>~")


def plain(text: str, encoding: str | None) -> str:
    """Text as it is where the stream can write it, else its marks and bars as ASCII of the same width."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_PLAIN)
    return text


def csv_cell(value: Any) -> Any:
    """A CSV cell: text that a spreadsheet would run gets a leading apostrophe; numbers pass."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = terminal(value)
    return f"'{text}" if runs_in_a_sheet(value) or runs_in_a_sheet(text) else text


_UNKNOWN_TO_XML = re.compile("[\ufffe\uffff]")
_LONGEST_CELL = 32_767  # characters that a spreadsheet keeps


def xlsx_cell(text: str) -> str:
    """Text of a spreadsheet cell: no control character, none that XML forbids; it is written as text, never parsed."""
    return _UNKNOWN_TO_XML.sub("", terminal(text))[:_LONGEST_CELL]


def runs_in_a_sheet(text: str) -> bool:
    """Whether a spreadsheet would take a text for a formula if it were typed in."""
    return any(part[:1] and part[0] in _FORMULA_START for part in (text, text.lstrip()))


def markdown(text: str) -> str:
    """Text inside a Markdown cell, bullet or paragraph: no table break, link, HTML or block mark."""
    safe = terminal(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = _MARKDOWN_SPECIAL.sub(r"\\\1", safe)
    # GitHub turns bare addresses and mentions into links; entities are not recognised as such.
    safe = re.sub("://", "&#58;//", safe)
    safe = re.sub(r"(?i)(www)\.", r"\1&#46;", safe).replace("@", "&#64;")
    safe = safe.strip()
    if not _MARKDOWN_START.match(safe):
        return safe
    digits = len(safe) - len(safe.lstrip("0123456789"))
    return f"{safe[:digits]}\\{safe[digits:]}"


def html(text: str) -> str:
    """Text inside an element or attribute of HTML or SVG: no tag, no entity, no character that XML forbids."""
    safe = _UNKNOWN_TO_XML.sub("", terminal(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def file_stem(name: str) -> str:
    """A scenario's name as part of a file name: no separators, no leading dot, never empty."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")
    return stem[:80] or "plan"
