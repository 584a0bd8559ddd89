"""The YAML entrance: 1.2 numbers, refusals, places. Bombs and broken scenarios: tests/faults."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError, Problem
from planner.yamlfile import BAD, parse_yaml, read_yaml
from tests.tiers import settings


def value(text: str) -> object:
    return parse_yaml(f"a: {text}\n", "t.yaml").data["a"]


def refusal(text: str) -> Problem:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "t.yaml")
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].hint
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15.6e12", 15.6e12), ("2e12", 2e12), ("1e3", 1000.0), ("1.0e3", 1000.0), ("1E-3", 0.001), (".5", 0.5),
        ("1.", 1.0), ("0", 0), ("-0.25", -0.25), ("+7", 7), ("0.10", 0.1),
        ("true", True), ("false", False), ("null", None), ("~", None), ("", None),
        ("2026-12-01", "2026-12-01"), ("2021-13-45", "2021-13-45"), ("2026-12-01 10:00:00", "2026-12-01 10:00:00"),
        ("llama-3.1-8b", "llama-3.1-8b"), ("30 days", "30 days"), ("$60000", "$60000"), ("1.2.3", "1.2.3"),
        ("y", "y"), ("n", "n"), ("yes please", "yes please"), ("nan", "nan"), ("inf", "inf"), ("=", "="), ("-", [None]),
        ("'NO'", "NO"), ('"010"', "010"), ("'1:30'", "1:30"), ("'0x10'", "0x10"), ('"a\\nb"', "a\nb"),
        ("[a, 1]", ["a", 1]), ("{b: 1}", {"b": 1}), ("10.0.0.1", "10.0.0.1"), ("1e", "1e"), ("+", "+"), ("...", "..."),
    ],
)  # fmt: skip
def test_scalars(text: str, expected: object) -> None:
    if text in ("-", "..."):
        return  # markers of YAML itself, not scalars
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("1:30", "ambiguous-number"), ("12:30:45", "ambiguous-number"), ("010", "ambiguous-number"),
        ("-010", "ambiguous-number"), ("00.5", "ambiguous-number"), ("0x10", "ambiguous-number"),
        ("0o10", "ambiguous-number"), ("0b11", "ambiguous-number"), ("1_000_000", "ambiguous-number"),
        ("1_0.5", "ambiguous-number"),
        ("NO", "ambiguous-boolean"), ("yes", "ambiguous-boolean"), ("On", "ambiguous-boolean"),
        ("off", "ambiguous-boolean"),
        (".nan", "out-of-range"), (".inf", "out-of-range"), ("-.inf", "out-of-range"), ("1.0e+400", "out-of-range"),
        ("9" * 5000, "out-of-range"),
        ("!!int foo", "bad-yaml"), ("!!float x", "bad-yaml"), ("!!timestamp foo", "bad-yaml"), ("!!bool x", "bad-yaml"),
        ("! x", "bad-yaml"), ("!local {a: 1}", "bad-yaml"), ("!!python/name:os.system", "bad-yaml"),
        ("!!set {a}", "bad-yaml"), ("*absent", "bad-yaml"), ("&x [*x]", "bad-yaml"), ("{<<: 3}", "bad-yaml"),
        ("{<<: [1]}", "bad-yaml"), ("{[a]: 1}", "bad-yaml"), ("{&k a: 1}", "bad-yaml"), ("{!!str a: 1}", "bad-yaml"),
        ('{"": 1}', "bad-yaml"), ("@x", "bad-yaml"), ("`x", "bad-yaml"), ("%x", "bad-yaml"), ("[1", "bad-yaml"),
        ('"\\e[31m"', "control-character"), ('"a\\0"', "control-character"), ('"\\u202e"', "control-character"),
        ("a\x00b", "bad-yaml"), ("a\x1bb", "bad-yaml"), ("a\u202eb", "bad-yaml"), ("a\ud800b", "bad-yaml"),
    ],
)  # fmt: skip
def test_refusals(text: str, reference: str) -> None:
    problem = refusal(f"first: 1\na: {text}\n")
    if text.startswith(("[1", "{", "&x", "!", "*", "%")):
        assert problem.places[0].line >= 2
    else:
        assert problem.places[0].line == 2
    assert problem.reference == reference


def test_words_as_keys_are_text() -> None:
    assert parse_yaml("on: 1\nno: 2\n010: 3\n1:30: 4\n", "t").data == {"on": 1, "no": 2, "010": 3, "1:30": 4}


def test_places_are_exact() -> None:
    text = "a:\n  - name: x\n    deadline: 30 days   # soon\n  - {name: y, k: [1, 2]}\n'b.c': \"é\"\n"
    document = parse_yaml(text, "t.yaml")
    place = document.place("a[0].deadline")
    assert (place.line, place.column, place.width, place.text) == (3, 15, 7, "    deadline: 30 days   # soon")
    assert str(document.key_place("a[0].deadline")) == "t.yaml:3:5"
    assert str(document.place("a[1].k[1]")) == "t.yaml:4:22"
    assert str(document.place("a[1]")) == "t.yaml:4:5"
    assert str(document.place("b.c")) == "t.yaml:5:8"
    assert document.place(("b.c",)) == document.place("b.c")
    assert str(document.place("a[0].absent")) == "t.yaml:2:5"  # the nearest thing above
    assert str(document.places["a[1].name"]) == "t.yaml:4:12"
    assert set(document.places) >= {"", "a", "a[0].name", "b.c"}


def test_line_ends_of_every_kind_count_as_the_parser_counts_them() -> None:
    for end in ("\n", "\r\n", "\r"):
        document = parse_yaml(f"a: 1{end}b: 2{end}c: x y{end}", "t")
        assert (str(document.place("c")), document.place("c").text) == ("t:3:4", "c: x y")


def test_duplicate_keys_are_all_told_with_both_places() -> None:
    problems: list[Problem] = []
    document = parse_yaml("a: 1\nb: {c: 1, c: 2}\na: 2\na: 3\n", "t", problems=problems)
    assert [str(p.places[0]) + " " + str(p.places[1]) for p in problems] == [
        "t:2:5 t:2:11",
        "t:1:1 t:3:1",
        "t:1:1 t:4:1",
    ]
    assert problems[0].message == "'c' is given twice in b"
    assert document.data == {"a": 1, "b": {"c": 1}}


def test_refused_scalars_become_bad_when_problems_are_collected() -> None:
    problems: list[Problem] = []
    assert parse_yaml("a: 1:30\nb: [NO]\n", "t", problems=problems).data == {"a": BAD, "b": [BAD]}
    assert len(problems) == 2


def test_aliases_and_merges() -> None:
    text = "base: &b {x: 1, y: 2}\nuse: *b\nover:\n  y: 5\n  <<: *b\nboth: {<<: [*b, {x: 9, z: 3}]}\n"
    data = parse_yaml(text, "t").data
    assert data["use"] == {"x": 1, "y": 2}
    assert data["over"] == {"y": 5, "x": 1}
    assert data["both"] == {"x": 1, "y": 2, "z": 3}
    assert data == yaml.safe_load(text)
    assert str(parse_yaml(text, "t").place("over.x")) == "t:1:14"


def test_limits_hold_at_their_edges() -> None:
    parse_yaml("[" * 32 + "]" * 32, "t")
    assert refusal("[" * 33 + "]" * 33).reference == "too-large"
    parse_yaml("[" + ",".join("1" * 49_999) + "]", "t")
    assert refusal("[" + ",".join("1" * 50_000) + "]").reference == "too-large"
    assert refusal("#" * 1_000_001).reference == "too-large"
    # An alias is as deep and as large as what it stands for.
    assert refusal("a: &a " + "[" * 20 + "]" * 20 + "\nb: " + "[" * 15 + "*a" + "]" * 15).reference == "too-large"


def test_empty_and_many_documents(tmp_path: Path) -> None:
    assert parse_yaml("", "t").data is None
    assert parse_yaml("# only words\n", "t").data is None
    assert parse_yaml("---\na: 1\n...\n", "t").data == {"a": 1}
    assert refusal("a: 1\n---\nb: 1\n").places[0].line == 2
    (tmp_path / "a.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_yaml(tmp_path / "a.yaml")


def test_pure_loader_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a: [1, {b: 'x'}]\nc: &d\n  e: 1.5\nf: *d\n", "a: 1:30\n", "a: [1", "a: *x", "a: &x [*x]", "\ta: 1"]
    fast = [outcome(text) for text in texts]
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert [outcome(text)[0] for text in texts] == [first for first, _ in fast]
    assert outcome(texts[0]) == fast[0]


def outcome(text: str) -> tuple[str, str]:
    try:
        document = parse_yaml(text, "t")
        return "read", str(document.data) + str({path: str(place) for path, place in document.places.items()})
    except InputError as error:
        return error.problems[0].reference, str(error)


CHARACTERS = st.characters(
    codec="utf-8", max_codepoint=0xFFFF, exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
)
NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(CHARACTERS, max_size=12),
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), below, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200, few=100)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), JSON_LIKE, max_size=4))
def test_reads_back_what_pyyaml_writes(data: dict[str, object]) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    problems: list[Problem] = []
    found = parse_yaml(text, "t", problems=problems).data
    # PyYAML leaves plain what only YAML 1.2 reads as a number; we may refuse such text, never misread it.
    assert {problem.reference for problem in problems} <= {"ambiguous-number", "out-of-range"}
    assert problems or normal(found) == normal(data)


def normal(data: object) -> object:
    """Numbers as floats: '1e3' is text to PyYAML and a number to YAML 1.2."""
    if isinstance(data, dict):
        return {key: normal(item) for key, item in data.items()}
    if isinstance(data, list):
        return [normal(item) for item in data]
    if isinstance(data, str):
        try:
            number = float(data)
            return number if math.isfinite(number) and data[0] in "0123456789+-." else data
        except ValueError:
            return data
    return float(data) if isinstance(data, int) and not isinstance(data, bool) else data
