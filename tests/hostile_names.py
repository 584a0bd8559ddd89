"""Two hundred names that a hostile user might give: formulas, markup, links, escapes, control characters."""

from __future__ import annotations

import random

HAND_MADE = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "=HYPERLINK(\"http://x\",\"y\")",
    "=cmd|' /C calc'!A0", "a|b", "a||b\\|c", "`code`", "``` fence", "**bold**", "_under_",
    "[text](http://evil)", "![pic](http://evil/p.png)", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "&lt;b&gt;", "http://evil.example/x", "www.evil.example",
    "user@evil.example", "@team", "# head", "## head", "- item", "+ item", "1. item", "12) item", "---", "===",
    "> quote", "    code", "a\nb", "a\r\n\r\nb", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "a\x00b",
    "a\x7fb", "\u202eabc", "\u2066abc\u2069", "a\u2028b", "a\u200bb", "\ud800", "$x^2$", "$$x$$", "~~gone~~",
    "<!-- c -->", "</details>", "<details open>", "![][x]", "[x]: http://evil", "\\", "\\\\|", "|", "日本語のなまえ",
    "é", "🙂", " ", "a" * 300,
]  # fmt: skip


def hostile_names() -> list[str]:
    """The hand-made ones and mixtures of them, 200 in all, always the same."""
    chance = random.Random(7)
    mixed = ["".join(chance.choices(HAND_MADE, k=chance.randint(2, 3))) for _ in range(200 - len(HAND_MADE))]
    return HAND_MADE + mixed
