"""No bytes give anything but a scenario or an InputError."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.scenario import Scenario, load_scenario, parse_scenario
from tests.tiers import settings

SEED = (Path(__file__).parents[1] / "faults" / "good" / "llama.yaml").read_bytes()
PIECES = [
    b"&a ",
    b"*a",
    b"<<: *a",
    b"[",
    b"]",
    b"{",
    b"}",
    b": ",
    b"- ",
    b"\n",
    b"\t",
    b"!!int ",
    b"null",
    b"1:30",
    b"010",
    b"\x00",
    b"\xff",
    b"\xc2\x85",
    b"1e999",
    b"true",
    b"'",
    b'"',
    b"|",
    b">",
    b"%",
    b"---\n",
    b"include: x\n",
    b"?",
    b"overrides: 3\n",
    b"9" * 50,
    b"-1",
    b"0",
    b"[[[[",
    b"$",
    b"{field}",
    b"{message}",
    b"\xf0\x9f\x98\x80",
]
EDIT = st.tuples(
    st.integers(0, len(SEED)), st.integers(0, 12), st.sampled_from(PIECES) | st.binary(max_size=6)
)  # position, bytes taken out, bytes put in


def judge(load) -> None:  # type: ignore[no-untyped-def]
    problems = None
    try:
        assert isinstance(load(), Scenario)
    except InputError as error:
        problems = error.problems
    if problems is not None:
        assert problems
        assert all(problem.reference and problem.hint for problem in problems)
        assert all(str(problem).encode("utf-8") for problem in problems)


@settings(max_examples=600, few=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EDIT, min_size=1, max_size=6))
def test_mutated_bytes(tmp_path: Path, edits: list[tuple[int, int, bytes]]) -> None:
    data = SEED
    for position, out, put in edits:
        data = data[:position] + put + data[position + out :]
    (tmp_path / "s.yaml").write_bytes(data)
    judge(lambda: load_scenario(tmp_path / "s.yaml"))


KEYS = [
    "schema",
    "name",
    "training",
    "serving",
    "hardware",
    "limits",
    "objective",
    "model",
    "tokens",
    "deadline",
    "mfu",
    "global_batch",
    "min",
    "max",
    "overrides",
    "scenarios",
    "include",
    "recompute",
    "owned",
    "quotas",
    "input_tokens",
    "failures",
    "stack",
    "a",
    "count",
    "config",
    "currency",
    "uncertainty",
    "set",
    "slo",
    "after",
]
SCALARS = st.sampled_from(
    [
        "plan/v1",
        "a",
        "8B",
        "30 days",
        "$5",
        "$5/h",
        "1",
        "0.5",
        "-1",
        "null",
        "true",
        "bf16",
        "none",
        "[]",
        "{}",
        "'x y'",
        "80 GB",
        "30 %",
        "2026-12-01",
        "EUR",
        "4M tokens",
        "[a, a]",
        "[1, [2]]",
        "1e300",
    ]
)
TREES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.dictionaries(st.sampled_from(KEYS), below, max_size=5).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=20,
)


@settings(max_examples=500, few=120)
@given(st.dictionaries(st.sampled_from(KEYS), TREES, max_size=8), st.lists(TREES, max_size=1), st.booleans())
def test_any_tree_of_known_words(tree: dict[str, str], value: list[str], case: bool) -> None:
    text = "\n".join(f"{key}: {below}" for key, below in tree.items())
    path = ["training.a.tokens", "limits.budget", "x[0]", "hardware.owned[0].price"][len(text) % 4]
    judge(lambda: parse_scenario(text, settings=[f"{path}={v}" for v in value], case="a" if case else None))


@settings(max_examples=300, few=100)
@given(st.text(max_size=40))
def test_any_setting(text: str) -> None:
    judge(lambda: parse_scenario(SEED.decode(), settings=[text]))
    judge(lambda: parse_scenario(SEED.decode(), settings=[f"training.pretrain-8b.{text}"]))
