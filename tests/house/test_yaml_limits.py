"""What YAML may hold, at its limits; and what is written, as it is read again."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.yamlfile import parse_yaml
from planner.yamlfile.reader import MAX_NODES
from planner.yamlfile.writing import flow_text


def aliased(times: int, size: int) -> str:
    """A list of `size` values that is meant `times` times over."""
    return f"a: &a [{', '.join(['1'] * size)}]\nb: [{', '.join(['*a'] * times)}]\n"


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_aliases_count_at_full_length(more: int, refused: bool) -> None:
    """A file of a kilobyte that stands for just as many values as may be, or for one list more."""
    size = 99
    times = (MAX_NODES - 1000) // (size + 1) + 10 * more
    if not refused:
        assert len(parse_yaml(aliased(times, size), "x.yaml").data["b"]) == times
        return
    with pytest.raises(InputError, match=r"more than [\d,]+ values, aliases counted at full length"):
        parse_yaml(aliased(times, size), "x.yaml")


def test_a_bomb_of_aliases_is_refused() -> None:
    """Nine lines that stand for 9^9 values."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="aliases counted at full length"):
        parse_yaml("\n".join(lines), "x.yaml")


@pytest.mark.parametrize(
    "text",
    ["a ", " a", "a", "a b", "", "yes", "No", "null", "y", "1:2", "a: b", "- a", "#a", "a #b", "{a}", "*a", "$9.80/h",
     "é", 'a"b', "a\nb", "~", "=", "[", "a,b", "%a", "2026-12-01"],
)  # fmt: skip
def test_what_is_written_is_read_again(text: str) -> None:
    written = f"a: {flow_text(text)}\nb: {flow_text([text, {text or 'k': text}])}\n"
    assert parse_yaml(written, "x.yaml").data == {"a": text, "b": [text, {text or "k": text}]}
