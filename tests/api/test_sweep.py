"""`planner.sweep`: the same bytes from one process, two, or the journal; each row is what `solve` says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from planner import api
from planner.errors import InputError, OutputError, UsageError
from planner.files import LineFile
from planner.plan.document import digest_of
from tests.verified import follow_schema

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAME = str(SCENARIOS / "gpt2-xl.yaml")
OVER = ("training.gpt2-xl.deadline=20d..80d/4", "price:v100-*=-20%,0%,40%")


def bytes_of(found: planner.Sweep, folder: Path) -> tuple[str, dict[str, bytes]]:
    return found.to_json(), {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> tuple[planner.Sweep, Path]:
    folder = tmp_path_factory.mktemp("plans")
    return planner.sweep(NAME, planner.grid(*OVER), plans=folder, borders=2), folder


def test_processes_give_the_same_bytes(serial: tuple[planner.Sweep, Path], tmp_path: Path) -> None:
    found = planner.sweep(NAME, planner.grid(*OVER), plans=tmp_path, borders=2, workers=2)
    assert bytes_of(found, tmp_path) == bytes_of(*serial)


def test_the_journal_gives_the_same_bytes_and_nothing_is_asked(
    serial: tuple[planner.Sweep, Path], tmp_path: Path
) -> None:
    journal, plans = tmp_path / "a.jsonl", tmp_path / "plans"
    for times in range(2):
        found = planner.sweep(NAME, planner.grid(*OVER), plans=plans, borders=2, journal=journal)
        assert bytes_of(found, plans) == bytes_of(*serial)
        assert bool(found.asked) is (times == 0)


def test_a_row_is_what_solve_says(serial: tuple[planner.Sweep, Path]) -> None:
    found, folder = serial
    follow_schema(found.document, "sweep")
    for point in found.points[::5]:
        asked = point["question"]
        scenario = api.load_scenario(NAME, settings=asked["settings"])
        catalog = api.load_catalog()
        for text in asked["prices"]:
            catalog = api_priced(catalog, text, scenario)
        plan = api.solve(scenario, catalog)
        assert point["cost_usd"] == plan.cost_usd
        (row,) = plan.document["workloads"][0]["allocations"]
        assert point["decision"] == f"gpt2-xl: {row['device']} ({row['provider']})"
        kept = json.loads((folder / f"{point['plan_sha256']}.plan.json").read_text(encoding="utf-8"))
        assert digest_of(kept) == kept["sha256"] == point["plan_sha256"]
        assert kept["summary"] == plan.document["summary"]
        assert point["warnings"] == plan.document["warnings"] != []  # they were dropped
    assert "no such job was measured there (inherited)" in " ".join(str(found).split())


def api_priced(catalog: Any, text: str, scenario: Any) -> Any:
    from planner.catalog.own_prices import with_device_price

    return with_device_price(catalog, text, scenario.rates)


def test_borders_are_where_solving_anew_turns(serial: tuple[planner.Sweep, Path]) -> None:
    """Each side of each border once more, by `solve`, from the question alone."""
    found, _ = serial
    borders = found.document["borders"]
    assert borders
    for border in borders:
        for side in (border["low"], border["high"]):
            values = {**border["fixed"], border["axis"]: side["value"]}
            scenario = api.load_scenario(
                NAME, settings=[f"{OVER[0].partition('=')[0]}={values[OVER[0].partition('=')[0]]}"]
            )
            price = values["price:v100-*"]
            catalog = api.load_catalog()
            if price != "0%":
                catalog = api_priced(catalog, f"v100-*={price if price[0] in '+-' else '+' + price}", scenario)
            document = api.solve(scenario, catalog).document
            devices = {f"{row['device']} ({row['provider']})" for row in document["workloads"][0]["allocations"]}
            assert side["decision"] == f"gpt2-xl: {' + '.join(sorted(devices))}"
        assert border["low"]["decision"] != border["high"]["decision"]


def test_questions_that_fail_are_rows(tmp_path: Path) -> None:
    asked = [
        planner.Question(),
        planner.Question(settings=("training.gpt2-xl.deadline=soon",)),
        planner.Question(settings=("training.nobody.tokens=1B",)),
        planner.Question(settings=("training.gpt2-xl.deadline=1 hour",)),
        planner.Question(prices=("nothing-*=-10%",)),
        planner.Question(settings=("hardware.catalog=elsewhere",)),
    ]
    found = planner.sweep(NAME, asked, journal=tmp_path / "a.jsonl")
    statuses = [point["status"] for point in found.points]
    assert statuses[0] == "optimal"
    assert statuses[3] == "infeasible"
    assert {statuses[place] for place in (1, 2, 4, 5)} == {"refused"}
    for place in (1, 2, 4, 5):
        problem = found.points[place]["problem"]
        assert problem is not None
        assert problem["message"]
    assert found.status == "feasible"
    assert found.document["counted"] == {"questions": 6, "plans": 1, "infeasible": 1, "without_answer": 4}
    assert len((tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert planner.sweep(NAME, asked, journal=tmp_path / "a.jsonl").to_json() == found.to_json()


def test_a_bug_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    held = planner.session(NAME)

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(api.Session, "beside", broken)
    row = planner.sweep(held, [planner.Question()]).points[0]
    assert row["status"] == "failed"
    assert row["problem"] is not None
    assert row["problem"]["message"] == "this is a bug in plan: ZeroDivisionError"


def test_cases_dates_and_seeds(tmp_path: Path) -> None:
    grid = planner.grid("case=low,high", "seed=0,1")
    path = tmp_path / "mine.yaml"
    text = Path(NAME).read_text(encoding="utf-8")
    cases = (
        "\noverrides:\n  few: {training.gpt2-xl.tokens: 3B}\n  many: {training.gpt2-xl.tokens: 12B}\n"
        "scenarios:\n  low: [few]\n  high: [many]\n"
    )
    path.write_text(text + cases, encoding="utf-8")
    found = planner.sweep(str(path), grid)
    assert [point["question"]["case"] for point in found.points] == ["low", "low", "high", "high"]
    costs = [point["cost_usd"] for point in found.points]
    assert costs[0] == costs[1]
    assert costs[2] == costs[3]
    assert (costs[0] or 0) < (costs[2] or 0)
    with pytest.raises(InputError):
        planner.sweep(str(path), planner.grid("case=none"))
    with pytest.raises(InputError):
        planner.sweep(NAME, planner.grid("catalog=nowhere"))
    with pytest.raises(InputError, match="as old as 2001-01-01"):
        planner.sweep(NAME, planner.grid("prices=2001-01-01"))


@pytest.mark.parametrize("edit", ["base", "question"])
def test_a_file_that_changed_is_another_question(tmp_path: Path, edit: str) -> None:
    """The same words over other contents: nothing of the journal answers them."""
    shutil.copytree(SCENARIOS, tmp_path / "s")
    scenario, other = tmp_path / "s" / "chat-fleet.yaml", tmp_path / "s" / "other.csv"
    shutil.copy(tmp_path / "s" / "chat.csv", other)
    name = api.load_scenario(scenario).serving[0].name
    asked = [planner.Question(settings=(f"serving.{name}.histogram=other.csv",)), planner.Question()]
    journal = tmp_path / "a.jsonl"
    assert planner.sweep(str(scenario), asked, journal=journal).asked == 2
    assert planner.sweep(str(scenario), asked, journal=journal).asked == 0
    changed = other if edit == "question" else tmp_path / "s" / "chat.csv"
    head, *rows = changed.read_text(encoding="utf-8").splitlines()
    changed.write_text("\n".join([head, *reversed(rows)]) + "\n", encoding="utf-8")
    assert planner.sweep(str(scenario), asked, journal=journal).asked == (1 if edit == "question" else 2)


def test_two_sweeps_on_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.files.LOCK_WAIT_S", 0.1)
    monkeypatch.setitem(LineFile.__init__.__kwdefaults__, "wait_s", 0.1)
    journal = tmp_path / "a.jsonl"
    with LineFile(journal), pytest.raises(OutputError, match="in use by another run"):
        planner.sweep(NAME, [planner.Question()], journal=journal)


def damaged(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace('"cost', '"c0st', 1), encoding="utf-8")


@pytest.mark.parametrize("damage", [Path.unlink, damaged, lambda path: path.write_bytes(b"\xff{")])
def test_a_plan_file_that_is_gone_or_wrong_is_made_again(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    journal, plans = tmp_path / "a.jsonl", tmp_path / "plans"
    planner.sweep(NAME, [planner.Question()], journal=journal, plans=plans)
    (path,) = plans.iterdir()
    whole = path.read_bytes()
    damage(path)
    found = planner.sweep(NAME, [planner.Question()], journal=journal, plans=plans)
    assert found.asked == 1
    assert path.read_bytes() == whole


@pytest.mark.parametrize("given", [{"workers": 0}, {"workers": 1025}, {"borders": -1}, {"borders": 21}])
def test_numbers_out_of_range(given: dict[str, int]) -> None:
    with pytest.raises(UsageError) as told:
        planner.sweep(NAME, [planner.Question()], **given)  # type: ignore[arg-type]
    assert told.value.problems[0].reference == "out-of-range"


def test_a_session_with_one_deadline_for_all_is_refused() -> None:
    from planner.deadline import Deadline

    held = planner.session(NAME, time_limit_s=Deadline.of(5.0))
    with pytest.raises(UsageError, match="the deadline of a session"):
        planner.sweep(held, [planner.Question()])


def test_what_a_notebook_shows(serial: tuple[planner.Sweep, Path]) -> None:
    found, _ = serial
    frame = found.to_frame()
    assert list(frame["price:v100-*"][:3]) == ["-20%", "0%", "40%"]
    assert len(frame) == 12
    assert "SWEEP" in str(found)
    assert "<table" in found._repr_html_()
