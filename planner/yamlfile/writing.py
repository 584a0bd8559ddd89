"""Values as they are written into a YAML file, so that our own reader reads them back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# begins like a word, a number or an amount of money; nothing in it that YAML gives a meaning
_PLAIN = re.compile(r"[A-Za-z0-9$.][A-Za-z0-9$%./_+ -]*")
_KEYWORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def flow_text(value: Any, *, plain: bool = True) -> str:
    """A value on one line: text bare where that is safe (and wanted), else quoted; lists and mappings in brackets.

    Text that a person typed stays as it was typed, so that the reader judges what was meant: 600 is a number,
    "30 days" a quantity, a word of YAML such as `no` is quoted.
    """
    if isinstance(value, str):
        bare = plain and _PLAIN.fullmatch(value) and value.lower() not in _KEYWORDS and value == value.strip()
        return value if bare else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow_text(str(key))}: {flow_text(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow_text, value)) + "]"
    return json.dumps(value, allow_nan=False)


def item_lines(item: Mapping[str, Any], indent: int) -> list[str]:
    """An item of a list, its keys one below the other."""
    lines = [line for key, value in item.items() for line in block_lines(str(key), value, indent + 2)] or ["{}"]
    return [" " * indent + "- " + lines[0].strip(), *lines[1:]]


def block_text(data: Mapping[str, Any]) -> str:
    """A whole file of plain data."""
    return "".join(f"{line}\n" for key, value in data.items() for line in block_lines(str(key), value))


def block_lines(key: str, value: Any, indent: int = 0) -> list[str]:
    """A key with its value, mappings one key a line, lists of mappings one item each; the rest on one line.

    Parameters
    ----------
    key
        Quoted where that is needed.
    value
        Plain data.
    indent
        Spaces before the key; what stands below it has two more.
    """
    pad, key = " " * indent, flow_text(key)
    if isinstance(value, Mapping) and value and (len(value) > 3 or any(_deep(each) for each in value.values())):
        return [
            f"{pad}{key}:",
            *(line for below, each in value.items() for line in block_lines(str(below), each, indent + 2)),
        ]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [f"{pad}{key}:", *(line for item in value for line in item_lines(item, indent + 2))]
    plain = dict(value) if isinstance(value, Mapping) else value
    return [f"{pad}{key}: {flow_text(plain)}"]


def _deep(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value))
