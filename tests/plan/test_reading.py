"""Plan files are held against their types where they are read: what is missing or wrong is told by its path."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.errors import InputError
from planner.plan.plan_files import read_document, read_frontier, read_plan
from planner.report.explanation_view import render_explanation
from planner.report.plan_formats import render_plan
from tests.export.conftest import GOLDEN, whole_plan
from tests.tiers import cases, sampled

Document = dict[str, Any]
Path_ = tuple[str | int, ...]
TESTS = Path(__file__).parents[1]
SMALL, SERVING, MIX, CALENDAR = "gpt2-xl", "disaggregated", "mixed-job", "portfolio"
OPEN = {"terms_bytes", "time_terms_s", "decode_terms_s", "binds", "rejected", "targets_s", "memory", "time", "mixes",
        "workloads"}  # fmt: skip
OPTIONAL = {"settings", "own_prices", "simulation", "others", "level", "mix", "mixes", "ties", "named", "plain"}


def plan_of(name: str) -> Document:
    """A plan as the planner made it; what goldens leave out is filled in."""
    if name == CALENDAR:
        document: Document = json.loads((TESTS / "report/samples/portfolio.json").read_text(encoding="utf-8"))
        schedule, facts = document["schedule"], document["provenance"]["facts"][:1]
        few = {name: schedule[name][:1] for name in ("jobs", "use", "shares")}
        return {**document, "workloads": [document["workloads"][0], document["workloads"][-1]], "rejected": {},
                "schedule": schedule | few, "provenance": {**document["provenance"], "facts": facts}}  # fmt: skip
    return whole_plan(GOLDEN / f"{name}.json")


def paths(node: Any, here: Path_ = ()) -> Iterator[Path_]:
    """Every key of a document; of the entries of a list each kind of key once."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*here, key)
            yield from paths(value, (*here, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from paths(value, (*here, index))


def once(document: Document) -> list[Path_]:
    return list(
        {tuple("*" if isinstance(part, int) else part for part in path): path for path in paths(document)}.values()
    )


def told(path: Path_) -> str:
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{part}"
    return words.removeprefix(".")


def inside(document: Any, path: Path_) -> Any:
    for part in path:
        document = document[part]
    return document


def without(document: Document, path: Path_) -> Document:
    """The document lacking one thing; all that is not on its way there is shared."""
    forged = here = copy.copy(document)
    for part in path[:-1]:
        here[part] = copy.copy(here[part])
        here = here[part]
    del here[path[-1]]
    return forged


def refused(document: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_document(document, "p.json")
    assert all(problem.places[0].file == "p.json" and problem.hint for problem in caught.value.problems)
    return [problem.message for problem in caught.value.problems]


@pytest.mark.parametrize("name", sampled([SMALL, SERVING, MIX, CALENDAR], 2))
def test_a_key_that_is_missing_is_told_by_its_path(name: str) -> None:
    document = plan_of(name)
    read_document(document)
    for path in once(document):
        if path[0] == "scenario" and len(path) > 1:
            continue
        try:
            read_document(without(document, path))
        except InputError as error:
            (problem,) = error.problems
            expected = "this is not a plan" if path == ("schema",) else f"{told(path)} is missing"
            assert problem.message == expected
        else:
            old = path[-3:-2] == ("alternatives",) and path[-1] == "replicas"  # plans of before do not tell it
            assert old or path[-1] in OPTIONAL or path[-2] in OPEN or "mixes" in path, f"{told(path)} may be missing"


READERS: dict[str, Callable[[Document], object]] = {
    "verify": api.verify,
    "explain": lambda part: render_explanation(part, "table", width=80),
    "table": lambda part: render_plan(part, "table", width=80),
    "report": api.report,
    "export": lambda part: api.export_plan(part, "slurm"),
    "compare": lambda part: api.compare(plan_of(SMALL), part, cause=False),
}


@pytest.fixture(scope="module")
def ways() -> list[Path_]:
    """What may be missing from a plan."""
    document = plan_of(SMALL)
    told_apart = {path[:-1]: path for path in once(document) if path[0] != "scenario" and taken(document, path)}
    return [*told_apart.values(), *(path for path in once(document) if path[0] == "scenario" and len(path) == 2)]


@pytest.mark.usefixtures("listed_once", "rated_once")
@pytest.mark.parametrize("reader", READERS)
def test_what_may_be_missing_hurts_no_reader(reader: str, ways: list[Path_]) -> None:
    document = plan_of(SMALL)
    for path in ways[:: cases(2, 1) if reader in ("explain", "table") else cases(8, 2)]:
        with suppress(InputError):
            READERS[reader](without(document, path))


def taken(document: Document, path: Path_) -> bool:
    try:
        read_document(without(document, path))
    except InputError:
        return False
    return True


@pytest.mark.parametrize("reader", ["verify", "report", "export", "compare"])
def test_every_function_that_takes_a_plan_tells_the_path(reader: str) -> None:
    part = without(plan_of(SMALL), ("workloads", 0, "allocations", 0, "cost_microusd"))
    with pytest.raises(InputError, match=r"workloads\[0\]\.allocations\[0\]\.cost_microusd is missing"):
        READERS[reader](part)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("summary", "cost_usd"), float("nan"), "summary.cost_usd is no finite number"),
        (("summary", "cost_usd"), float("-inf"), "summary.cost_usd is no finite number"),
        (("summary", "cost_usd"), -1e308, "summary.cost_usd is beyond 1e+100"),
        (("summary", "cost_microusd"), 2**63, "summary.cost_microusd is a whole number of more than 63 bits"),
        (("summary", "devices"), -1, "summary.devices is -1, should be greater than or equal to 0"),
        (("summary", "devices"), 2.0, "summary.devices is 2.0, should be a valid integer"),
        (("summary", "gap"), True, "summary.gap is true, should be a valid number"),
        (("scenario", "training", 0, "tokens"), float("inf"), "scenario.training[0].tokens is no finite number"),
        (("workloads", 0, "kind"), "dancing", "workloads[0].kind is none of 'training', 'serving'"),
        (("workloads", 0, "count"), [1], "workloads[0].count is a list, should be a valid integer"),
        (("workloads", 0, "allocations", 0, "layout", "sharding"), "zero-4",
         "workloads[0].allocations[0].layout.sharding is \"zero-4\", should be 'none', 'zero-1', 'zero-2' or 'zero-3'"),
        (("workloads", 0, "because", 0), "\ud800", "workloads[0].because[0] holds half a character"),
        (("title",), "\x1b[31m" + "x" * 90 + "\ud800", "title holds half a character"),
        (("name",), {"\x1b[31m": 1}, "name is a mapping, should be a valid string"),
        (("\x1b[31m",), 1, '"\\u001b[31m" is not known'),
        (("schema",), "plan/result/v9",
         "p.json is a plan of version plan/result/v9; this planner reads plan/result/v1"),
        (("schema",), "plan/frontier/v1", "p.json is not a plan"),
        (("schema",), 3, "p.json is not a plan"),
    ],
)  # fmt: skip
def test_a_value_that_no_plan_holds_is_told_by_its_path(path: Path_, value: object, said: str) -> None:
    document = plan_of(SMALL)
    inside(document, path[:-1])[path[-1]] = value
    assert refused(document) == [said]


def test_of_many_mistakes_the_first_are_told() -> None:
    document = plan_of(CALENDAR)
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            for key in ("offer", "count", "devices", "hours", "cost_usd", "memory"):
                del row[key]
    messages = refused(document)
    assert len(messages) == 10
    assert messages[0] == "workloads[0].allocations[0].offer is missing"
    count = sum(6 * len(workload["allocations"]) for workload in document["workloads"])
    assert messages[-1] == f"and {count - 9} more places"


@pytest.mark.parametrize(
    ("text", "path"),
    [("1e400", "summary.cost_usd"), ("NaN", "summary.cost_usd"), ("-Infinity", "summary.cost_usd"),
     ("9" * 5000, "summary.cost_usd")],
)  # fmt: skip
def test_a_file_may_hold_numbers_that_no_plan_does(tmp_path: Path, text: str, path: str) -> None:
    document = plan_of(SMALL)
    document["summary"]["cost_usd"] = "here"
    file = tmp_path / "p.json"
    file.write_text(json.dumps(document).replace('"here"', text), encoding="utf-8")
    with pytest.raises(InputError, match=path):
        read_plan(file)


def test_what_is_no_json_is_told_what_writes_one(tmp_path: Path) -> None:
    """`plan verify mine.yaml` was "not JSON: Expecting value", and nothing to do next."""
    file = tmp_path / "mine.yaml"
    file.write_text("schema: plan/v1\n", encoding="utf-8")
    for read, told in ((read_plan, "plan solve SCENARIO writes one"), (read_frontier, "plan frontier SCENARIO ")):
        with pytest.raises(InputError) as caught:
            read(file)
        assert told in caught.value.problems[0].hint


def test_a_plan_is_no_frontier(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(plan_of(SMALL)), encoding="utf-8")
    with pytest.raises(InputError, match="not-a-frontier"):
        read_frontier(file)
    assert read_plan(file) == plan_of(SMALL)
