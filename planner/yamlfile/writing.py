"""Values as they are written into a YAML file, so that our own reader reads them back."""

from __future__ import annotations

import json
import re
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
