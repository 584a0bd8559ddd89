"""`plan sweep`: formats, the journal, exit codes, what is refused, and hostile names on the page."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.report.sweep_view import MOST_CELLS, question_words, render_sweep
from planner.report.text import cells
from tests.cli.conftest import Run, check_golden, without_price_age
from tests.verified import follow_schema

pytestmark = pytest.mark.usefixtures("answered_once")

SWEEP = ("sweep", "scenarios/gpt2-xl.yaml", "--over", "training.gpt2-xl.deadline=20d..80d/4")
PRICES = ("--over", "price:v100-*=-20%,40%")


def test_a_sweep_in_every_format(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = run(*SWEEP, *PRICES, "--borders", "2")
    assert (table.code, without_price_age(table.err)) == (0, "")
    assert max(map(cells, table.out.splitlines())) <= 80
    text = re.sub(r"\(\d+\.\d s\)", "(T s)", table.out)
    check_golden("sweep-80.txt", re.sub(r" +(?=\d+ decisions\n)", "  ", text))  # pushed to the right of a time
    journal = (here / ".plan/gpt2-xl.sweep.jsonl").read_bytes()
    document = json.loads(run(*SWEEP, *PRICES, "--borders", "2", "-o", "json").out, parse_constant=pytest.fail)
    follow_schema(document, "sweep")
    rows = list(csv.DictReader(io.StringIO(run(*SWEEP, *PRICES, "-o", "csv").out)))
    assert [float(row["cost_usd"]) for row in rows] == [point["cost_usd"] for point in document["points"]]
    # a spreadsheet would take what begins with a minus for a formula
    assert [row["price:v100-*"] for row in rows[:2]] == ["'-20%", "40%"]
    assert "| 20d" in run(*SWEEP, *PRICES, "-o", "md").out
    answer = run(*SWEEP, *PRICES, "-o", "html", "--out", "s.html")
    assert (answer.code, without_price_age(answer.err)) == (0, "wrote s.html\n")
    assert (here / ".plan/gpt2-xl.sweep.jsonl").read_bytes() == journal  # nothing was solved again


def test_another_seller_is_another_decision(run: Run, here: Path) -> None:
    """Of which price on a fleet goes from one seller to another was not told: "1 decision", and no border."""
    asks = ("sweep", "scenarios/reserve.yaml", "--set", "hardware.providers=[aws, lambda]", "--set", "periods=null",
            "--set", "hardware.pricing=on_demand", "--over", "price:lambda:*=0%,80%", "--no-journal")  # fmt: skip
    document = json.loads(run(*asks, "-o", "json").out)
    sellers = ["chat: h100-sxm-80gb (lambda)", "chat: h100-sxm-80gb (aws)"]
    assert [point["decision"] for point in document["points"]] == sellers
    (border,) = document["borders"]
    assert [border[side]["decision"] for side in ("low", "high")] == sellers


def test_the_map_draws_borders_where_both_sides_are_known(run: Run, here: Path) -> None:
    text = run(*SWEEP, *PRICES, "-o", "html", "--no-journal").out
    assert not (here / ".plan").exists()
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text)
    assert [head for head, _ in rows] == ["20d", "40d", "60d", "80d"]
    edges = [re.findall(r'<td class="(.*?)"', row) for _, row in rows]
    document = json.loads(run(*SWEEP, *PRICES, "-o", "json", "--no-journal").out)
    lines = {(one["axis"], one["high"]["value"], *one["fixed"].values()) for one in document["borders"]}
    drawn = set()
    for (head, _), row in zip(rows, edges, strict=True):
        for price, edge in zip(("-20%", "40%"), row, strict=True):
            drawn |= {("training.gpt2-xl.deadline", head, price)} if "t" in edge else set()
            drawn |= {("price:v100-*", price, head)} if "l" in edge else set()
    assert drawn == lines
    assert lines


def test_a_refused_neighbour_has_no_border(run: Run, here: Path) -> None:
    text = run(*SWEEP[:2], "--over", "training.gpt2-xl.deadline=60d,soon", "-o", "html").out
    assert re.findall(r'<td class="(.*?)"', text) == ["", ""]
    assert "no answer: " in text


def test_one_axis_three_axes_and_none(run: Run, here: Path) -> None:
    one = api.sweep("scenarios/gpt2-xl.yaml", api.grid("training.gpt2-xl.deadline=20d,60d")).document
    page = render_sweep(one, "html")
    assert page.count('<table class="map">') == 1
    three = api.sweep(
        "scenarios/gpt2-xl.yaml", api.grid("seed=0,1", "training.gpt2-xl.deadline=20d,60d", "price:v100-*=-20%,0%")
    ).document
    page = render_sweep(three, "html")
    assert re.findall("<caption>(.*?)</caption>", page) == ["seed 0", "seed 1"]
    none = api.sweep("scenarios/gpt2-xl.yaml", [api.Question(seed=3), api.Question()]).document
    assert '<table class="map">' not in render_sweep(none, "html")
    assert "seed=3" in render_sweep(none, "table")
    assert [row["seed"] for row in csv.DictReader(io.StringIO(render_sweep(none, "csv")))] == ["3", ""]


def test_words_of_a_question() -> None:
    asked = api.Question(settings=("a=1",), prices=("x=+5%",), case="c", catalog="d", until="2026-01-01", seed=0).told()
    words: Any = asked
    assert question_words(words) == "a=1, x=+5%, case=c, catalog=d, until=2026-01-01, seed=0"
    nothing: Any = api.Question().told()
    assert question_words(nothing) == "as it is"


def test_long_sweeps_show_their_beginning(here: Path) -> None:
    document = api.sweep("scenarios/gpt2-xl.yaml", api.grid("training.gpt2-xl.deadline=20d,60d")).document
    border = document["borders"]
    document["points"] = document["points"] * 150
    assert "the first 200 of 300 rows" in render_sweep(document, "table")
    assert "the first 200" not in render_sweep(document, "table", full=True)
    document["borders"] = [dict(one) for one in border] * 250  # type: ignore[misc]
    document["axes"] = [{"name": "a", "values": [str(k) for k in range(MOST_CELLS + 1)]}]
    assert "too many questions for a map" in render_sweep(document, "html")


def test_many_reasons_are_counted(here: Path) -> None:
    asked = [api.Question(settings=(f"training.nobody{k}.tokens=1B",)) for k in range(12)]
    text = render_sweep(api.sweep("scenarios/gpt2-xl.yaml", [*asked, asked[0]]).document, "table", width=200)
    assert "2 × bad-reference: " in text
    assert "2 other reasons" in text


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\x1b[31mred", "</script><b>", "\"'&"])
def test_hostile_values_on_the_page(here: Path, hostile: str) -> None:
    found = api.sweep("scenarios/gpt2-xl.yaml", api.grid(f"training.gpt2-xl.deadline={hostile},60d"))
    page = render_sweep(found.document, "html")
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\x1b" not in render_sweep(found.document, "table")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "what is varied?"),
        (("--over", "a"), "varies nothing"),
        (("--over", "a=1", "-o", "parquet"), "a parquet file is no text"),
        (("--over", "a=1", "--journal", "j", "--no-journal"), "--journal and --no-journal"),
        (("--over", "a=1", "--tls", "a,b"), "write three files"),
    ],
)
def test_usage(run: Run, here: Path, flags: tuple[str, ...], said: str) -> None:
    answer = run("sweep", "scenarios/gpt2-xl.yaml", *flags)
    assert answer.code == 2
    assert said in answer.err
    assert not list(here.glob("**/*.jsonl"))


def test_refused_questions_end_with_a_code(run: Run, here: Path) -> None:
    assert run(*SWEEP[:2], "--over", "training.gpt2-xl.deadline=1 hour").code == 4
    some = run(*SWEEP[:2], "--over", "training.gpt2-xl.deadline=soon,60d")
    assert (some.code, "1 without an answer" in some.out) == (5, True)


@pytest.mark.parametrize(
    ("over", "code", "said"),
    [
        ("training.gpt2-x.deadline=20d,60d", 3, "did you mean 'gpt2-xl'?"),
        ("training.gpt2-xl.dedline=20d,60d", 3, "did you mean 'deadline'?"),
        ("price:h900-*=-10%,+10%", 2, "nothing that is offered is meant by 'h900-*'"),
    ],
)
def test_a_key_that_no_question_can_have_is_refused_at_once(
    run: Run, here: Path, over: str, code: int, said: str
) -> None:
    """Each row was refused by itself, at exit code 6, and the journal begun."""
    answer = run(*SWEEP[:2], "--over", "training.gpt2-xl.tokens=9B,8B", "--over", over)
    assert (answer.code, answer.out) == (code, "")
    assert said in " ".join(answer.err.split())
    assert not list(here.glob("**/*.jsonl"))


def test_a_key_that_some_questions_have_is_asked(run: Run, here: Path) -> None:
    """The second item is there once the list has two."""
    lists = "limits.sites=[],[{provider: aws, power: 8 MW}]"
    some = run(*SWEEP[:2], "--over", lists, "--over", "limits.sites[0].power=7 MW,9 MW")
    assert (some.code, "'limits.sites[0].power' does not exist" in some.out) == (5, True)


def test_lines_that_did_not_hold_are_told(run: Run, here: Path) -> None:
    assert run(*SWEEP, "--journal", "j.jsonl").code == 0
    whole = (here / "j.jsonl").read_bytes()
    (here / "j.jsonl").write_bytes(whole.replace(b'"devices": 8', b'"devices": 9', 1))
    again = run(*SWEEP, "--journal", "j.jsonl")
    assert "1 lines of j.jsonl did not hold" in again.err


def test_parquet(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    def written(frame: Any, into: Any, index: bool) -> None:
        into.write(f"PAR1 {len(frame)} {next(iter(frame))}".encode())

    monkeypatch.setattr(pd.DataFrame, "to_parquet", written)  # the library that writes is no dependency of ours
    assert run(*SWEEP, "-o", "parquet", "--out", "s.parquet").code == 0
    assert (here / "s.parquet").read_bytes() == b"PAR1 4 training.gpt2-xl.deadline"

    def missing(frame: Any, into: Any, index: bool) -> None:
        raise ImportError("pyarrow")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", missing)
    answer = run(*SWEEP, "-o", "parquet", "--out", "t.parquet")
    assert answer.code == 2
    assert "pip install pyarrow" in answer.err
    assert not (here / "t.parquet").exists()


def test_progress_on_a_terminal(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.cli import sweep as command

    monkeypatch.setattr(command, "TOLD_EVERY_S", 0.0)
    assert "4 of 4" not in run(*SWEEP).err  # no terminal
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    err = run(*SWEEP).err
    assert "\r4 of 4, best $256" in err
    assert err.endswith("\r")
