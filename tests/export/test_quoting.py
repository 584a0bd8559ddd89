"""Quoting of every target language: what comes back is what went in, by the language's own reader."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.export import file_text
from tests.export.hostile import HOSTILE
from tests.tiers import settings

TEXT = st.text(max_size=40) | st.sampled_from(HOSTILE)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def encodable(text: str) -> str:
    """As a UTF-8 file can hold it: a lone surrogate, which JSON can carry in, is a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def printed(words: list[str], *, double: bool = False) -> list[str]:
    """The words as a real shell hands them to a program."""
    quoted = [f'"{file_text.shell_double(word)}"' if double else file_text.shell(word) for word in words]
    script = "printf '%s\\0' " + " ".join(quoted)
    answer = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    return answer.stdout.decode("utf-8").split("\0")[:-1]


@settings(max_examples=100, few=40)
@given(st.lists(TEXT, min_size=10, max_size=10))
def test_a_shell_hands_on_what_was_quoted(words: list[str]) -> None:
    """1,000 texts, ten a shell."""
    assert printed(words) == [encodable(word).replace("\0", "") for word in words]


@settings(max_examples=50, few=20)
@given(st.lists(TEXT, min_size=10, max_size=10))
def test_a_shell_expands_nothing_in_double_quotes(words: list[str]) -> None:
    assert printed(words, double=True) == [encodable(word).replace("\0", "") for word in words]


@pytest.mark.parametrize("double", [False, True])
def test_hostile_names_through_a_shell(double: bool) -> None:
    names = [name for name in HOSTILE if name]
    assert printed(names, double=double) == [encodable(name).replace("\0", "") for name in names]


@settings(max_examples=150, few=60)
@given(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans() | st.lists(TEXT, max_size=3), max_size=4))
def test_documents_come_back(document: dict[str, object]) -> None:
    wanted = json.loads(json.dumps({encodable(key): _plain(value) for key, value in document.items()}))
    assert json.loads(file_text.json(document)) == wanted
    assert yaml.safe_load(file_text.yaml(document)) == wanted
    assert tomllib.loads(file_text.toml({"a table": document}))["a table"] == wanted


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return encodable(value) if isinstance(value, str) else value


@settings(deadline=None)
@given(TEXT)
def test_a_comment_is_one_visible_line(text: str) -> None:
    line = file_text.comment(text)
    assert not {unicodedata.category(character) for character in line} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(line.splitlines()) <= 1
    assert yaml.safe_load(f"# {line}\na: 1\n") == {"a": 1}
    assert tomllib.loads(f"# {line}\na = 1\n") == {"a": 1}


@given(TEXT)
def test_names_of_objects_are_labels(text: str) -> None:
    assert LABEL.fullmatch(file_text.dns_label(text))


def test_numbers_that_are_none_are_bugs() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            file_text.json({"a": value})
        with pytest.raises(ValueError):
            file_text.toml({"a": value})
