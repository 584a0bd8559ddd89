"""The report on a terminal, in a pull request comment and as a long table: goldens, sums, and hostile names."""

from __future__ import annotations

import copy
import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from markdown_it import MarkdownIt

from planner import api
from planner.budget.charges import metered_hours
from planner.catalog.model import Catalog
from planner.report.next_words import how
from planner.report.plan_words import counted
from planner.report.report_view import FOLDED, ROUNDED, misses, render_report, report_document, workload_grid
from planner.report.serving_words import seconds
from planner.report.workbook import workbook
from tests.hostile_names import hostile_names
from tests.report.sheet import Sheet
from tests.tiers import sampled
from tests.worlds import catalog, device, fleet, offer, scenario, shape

Document = dict[str, Any]
Golden = Callable[[str, str], None]
MARGINS = {
    "taken": [
        {"name": "confidence", "taken": "90% (pretrain-8b, assistant)", "without": "p50: as likely too slow as not"},
        {"name": "spares", "taken": "1 (assistant)", "without": "none"},
    ],
    "cost_microusd": 46_225_000_000,
    "without_microusd": 40_000_000_000,
    "together_microusd": 6_225_000_000,
    "each": [
        {"name": "confidence", "without_microusd": 46_225_000_000, "saves_microusd": 0},
        {"name": "spares", "without_microusd": None, "saves_microusd": None},
    ],
    "notes": ["each margin alone is solved without it"],
}


@pytest.fixture(scope="module")
def reports(shipped: Catalog) -> dict[str, Document]:
    from tests.report.conftest import plan_named

    options = {"contingency": 0.1, "fiscal_year_start": "april"}
    return {
        "llama": report_document(plan_named("llama"), shipped, contingency=0.1, margins=MARGINS),
        "portfolio": report_document(plan_named("portfolio"), shipped, **options),
        "infeasible": report_document(plan_named("infeasible"), shipped),
    }


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["llama", "portfolio", "infeasible"])
def test_terminal_golden(name: str, width: int, reports: dict[str, Document], golden: Golden) -> None:
    text = render_report(reports[name], "table", width=width)
    assert max(map(len, text.splitlines())) <= width
    golden(f"report-{name}-{width}.txt", text)


@pytest.mark.parametrize("form", ["md", "csv"])
@pytest.mark.parametrize("name", ["llama", "portfolio", "infeasible"])
def test_file_golden(name: str, form: str, reports: dict[str, Document], golden: Golden) -> None:
    golden(f"report-{name}.{form}", render_report(reports[name], form))


def test_a_comment_fits_where_comments_go(reports: dict[str, Document]) -> None:
    """GitHub takes 65,536 characters; the largest shipped plan stays below."""
    assert len(render_report(reports["portfolio"], "md")) < 65_536


def test_json_is_the_document(reports: dict[str, Document]) -> None:
    assert json.loads(render_report(reports["llama"], "json")) == json.loads(json.dumps(reports["llama"]))


def test_colour_only_when_asked_for(reports: dict[str, Document]) -> None:
    assert "\x1b" not in render_report(reports["llama"], "table")
    assert "\x1b" in render_report(reports["llama"], "table", colour=True)


@pytest.mark.parametrize("name", ["llama", "portfolio"])
def test_rows_of_the_long_table_add_up(name: str, reports: dict[str, Document]) -> None:
    """Amounts to the plan's total and contingencies to the contingency, in columns of their own."""
    report = reports[name]
    rows = list(csv.DictReader(io.StringIO(render_report(report, "csv"))))
    totals = report["budget"]["totals"]
    amounts = [int(row["amount_microusd"]) for row in rows if row["amount_microusd"]]
    asides = [int(row["contingency_microusd"]) for row in rows if row["contingency_microusd"]]
    assert (sum(amounts), sum(asides)) == (totals["total_microusd"], totals["contingency_microusd"])
    assert not any(row["amount_microusd"] and row["contingency_microusd"] for row in rows)
    months = {month["label"]: month["total_microusd"] for month in report["budget"]["months"]}
    for label, amount in months.items():
        assert sum(int(row["amount_microusd"] or 0) for row in rows if row["month"] == label) == amount


@pytest.mark.parametrize("name", ["llama", "portfolio"])
def test_a_reader_multiplies_what_is_metered_and_gets_the_amount(name: str, reports: dict[str, Document]) -> None:
    """Nodes × hours × price, to the cent; `hours_due` stood there alone, which spot jobs do not pay whole."""
    rows = [row for row in csv.DictReader(io.StringIO(render_report(reports[name], "csv"))) if row["amount_usd"]]
    for row in rows:
        assert bool(row["billed_hours"]) == (row["category"] not in ("egress", "storage"))
        if row["billed_hours"]:
            product = int(row["count"]) * float(row["billed_hours"]) * float(row["price_usd_per_hour"])
            assert product == pytest.approx(float(row["amount_usd"]), abs=0.005)
    charges = {(line["source"], line["payment"]): line for line in reports[name]["budget"]["lines"]}
    for source, payment in charges:
        mine = [row for row in rows if (row["source"], row["payment"]) == (source, payment) and row["billed_hours"]]
        line = charges[source, payment]
        assert not mine or sum(float(row["billed_hours"]) for row in mine) == pytest.approx(
            line["hours"] * line["part_of_price"]
        )  # every hour that is paid for is in some month, for some workload


def test_what_no_reader_can_multiply_has_no_hours() -> None:
    line: Any = {"count": 2, "hours": 10.0, "part_of_price": 0.5, "price_microusd_per_hour": 3_000_000}
    within, beyond = ({**line, "charge_microusd": 30_000_000 + off} for off in (5_000, 5_001))
    assert (metered_hours(within), metered_hours(beyond)) == (10.0, None)
    assert metered_hours({**within, "price_microusd_per_hour": None}) is None


def test_training_and_serving_are_never_summed_without_the_horizon(reports: dict[str, Document]) -> None:
    for form in ("table", "md"):
        text = render_report(reports["portfolio"], form)
        totals = [line for line in text.splitlines() if "816,752" in line and "Margin" not in line]
        assert totals
        told = ("horizon", "for 182 days", "aws")  # the last: all money of a provider in its share
        assert all(any(words in line for words in told) for line in totals)


def test_what_may_happen_is_told_month_by_month() -> None:
    """Solved in a small world: 600 requests a minute take one device, 1800 three; $1 /h each over 90 days."""
    there = catalog([device()], [shape("north/one")], [offer("north/one", 1.0)])
    busy = {"name": "busy", "probability": "30 %", "set": {"serving.one.qpm": 1800}}
    asked = scenario([], [fleet("one")], uncertainty=[busy], horizon="90 days", begin="2026-12-01")
    report = report_document(json.loads(api.solve(asked, there).to_json()), there)
    text = render_report(report, "table", width=100)
    hours = {"2026-12": 744, "2027-01": 744, "2027-02": 672}
    for month, each in hours.items():
        told = f" {month} +\\${each:,.0f} +\\${1.6 * each:,.0f} +\\${3 * each:,.0f}"
        assert re.search(told.replace(",", ",?"), text), (told, text)
    section = report["budget"]["cases"]
    assert section["expected"]["total_microusd"] == 1.6 * 2160e6
    sheet = Sheet(workbook(report))
    cells = {row[0].value: row[1].value for row in sheet.book["Summary"].iter_rows() if row[0].value}
    assert (cells["busy"], cells["expected"]) == (3 * 2160, 1.6 * 2160)
    assert sheet.named("Total") == pytest.approx(2160)


def renamed(report: Document, name: str) -> Document:
    """A report in which every text that a user gives is that name."""
    plan, budget = report["plan"], report["budget"]
    workloads = [
        {**workload, "name": name, "model": name, "because": [name],
         "allocations": [row | dict.fromkeys(("offer", "provider", "region", "device", "shape", "price_source"), name)
                         for row in workload["allocations"]]}
        for workload in plan["workloads"]
    ]  # fmt: skip
    texts = {"name": name, "title": name, "case": name, "assumed": [name], "warnings": [name], "notes": [name]}
    lines = [
        line | dict.fromkeys(("workload", "provider", "place", "item"), name) | {"category": name}
        for line in budget["lines"]
    ]
    parts = {part: [row | {key: name} for row in budget[part]] for part, key in
             (("by_workload", "workload"), ("by_provider", "provider"), ("by_category", "category"))}  # fmt: skip
    taken = [one | {"taken": name} for one in MARGINS["taken"]]
    return {
        **report,
        "plan": {**plan, **texts, "workloads": workloads, "rejected": {name: plan["rejected"]["assistant"]}},
        "budget": {**budget, **parts, "lines": lines, "notes": [name]},
        "margins": {**MARGINS, "taken": taken, "notes": [name]},
    }


def assert_no_control(text: str) -> None:
    kept = {"\n"}
    assert not [c for c in text if c not in kept and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("index", sampled(range(200), 24))
def test_hostile_names_stay_text(index: int, reports: dict[str, Document]) -> None:
    report = renamed(reports["llama"], hostile_names()[index])
    assert_no_control(render_report(report, "table"))
    assert_inert_csv(render_report(report, "csv"))
    assert_inert_markdown(render_report(report, "md"), tables=clean_tables(reports))


def assert_inert_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert_no_control(text)
    for cell in (cell for row in rows for cell in row if cell[:1] and cell[0] in "=+-@＝＋－＠\t\r\n"):
        float(cell)  # only a number may begin like a formula


def clean_tables(reports: dict[str, Document]) -> int:
    """Tables of the comment with plain names: one line of dashes each."""
    return sum(line.startswith("|---") for line in render_report(reports["llama"], "md").splitlines())


def assert_inert_markdown(text: str, *, tables: int) -> None:
    """The same tables and one heading as with plain names, and nothing that links, embeds or formats."""
    assert_no_control(text)
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    kinds = [token.type for token in tokens]
    assert (kinds.count("table_open"), kinds.count("heading_open")) == (tables, 1)
    inner = {child.type for token in tokens for child in token.children or []}
    assert not inner & {"link_open", "image", "html_inline", "s_open", "code_inline"}
    assert not {"fence", "code_block", "blockquote_open", "ordered_list_open"} & set(kinds)
    ours = {f"<details><summary>{FOLDED}</summary>", "</details>"}
    assert {token.content.strip() for token in tokens if token.type == "html_block"} <= ours
    assert "://" not in text
    assert "@" not in text
    assert "www." not in text.lower()


@pytest.mark.parametrize(
    ("setting", "text", "unit", "printed"),
    [
        ("training.a.deadline=3214917 s", "37.3 days", "s", "training.a.deadline=37.3 days"),
        ("limits.budget=$20001.13", "$20,002", "microusd", "limits.budget=$20,002"),
        ("limits.budget=$20001.13", "$20,001", "microusd", "limits.budget=$20001.13"),  # not enough: kept exact
        ("limits.power=12345 W", "12.4 kW", "mW", "limits.power=12.4 kW"),
        ("limits.max_devices=17", "17 devices", "devices", "limits.max_devices=17"),
    ],
)
def test_suggested_changes_are_round_and_enough(setting: str, text: str, unit: str, printed: str) -> None:
    change: Any = {"setting": setting, "to_text": text, "unit": unit}
    assert how(change) == f"--set '{printed}'"


@pytest.mark.parametrize(
    ("value_s", "text"), [(0.0498, "49.8 ms"), (0.9994, "999 ms"), (0.9996, "1 s"), (1.25, "1.25 s"), (None, "endless")]
)
def test_a_latency_near_a_second_is_no_power_of_ten(value_s: float | None, text: str) -> None:
    assert seconds(value_s) == text


def test_amounts_that_miss_their_sum_are_said_to_be_rounded(reports: dict[str, Document]) -> None:
    """Three of $100.40 and their sum, $301.20: printed as 100, 100, 100 and 301."""
    assert misses([100_400_000] * 3, 301_200_000)
    assert not misses([100_400_000, 100_100_000], 200_500_000)
    report = copy.deepcopy(reports["portfolio"])
    row, *others = report["budget"]["by_workload"]
    total = report["budget"]["totals"]["total_microusd"]
    row["total_microusd"] = total - sum(one["total_microusd"] for one in others)
    for one in report["budget"]["by_workload"]:
        one["total_microusd"] = round(one["total_microusd"], -6)
    report["budget"]["totals"]["total_microusd"] = sum(one["total_microusd"] for one in [row, *others])
    assert not workload_grid(report["plan"], report["budget"]).notes
    report["budget"]["totals"]["total_microusd"] += 1_000_000
    assert workload_grid(report["plan"], report["budget"]).notes == (ROUNDED,)


def test_counts_have_one_and_many_and_figures_no_exponents() -> None:
    """Told were "1 replicas carry 728.252 users", "+1.63e+03 %", and 63.8 % where only 63.9 % was enough."""
    from planner.plan.reasons import users_told
    from planner.report import explain_limits
    from planner.report.serving_words import seconds
    from planner.units import counted

    assert [counted(number, "replica") for number in (1, 2, 2000)] == ["1 replica", "2 replicas", "2,000 replicas"]
    assert [users_told(users) for users in (728.252, 1.2, 0.25)] == ["728 users", "1 user", "0.25 users"]
    assert [explain_limits._more(share) for share in (16.3, 0.0645, -0.5)] == ["+1,630 %", "+6.45 %", "-50 %"]
    shares = {0.3616: "63.9", 0.71: "29", 0.00001: "99.999", 0.98765: "1.24", 0.9999: "0.01", 0.5: "50"}
    for share, told in shares.items():
        assert explain_limits._enough(share) == told
    assert seconds(1234.5) == "1,230 s"


def test_one_of_what_was_dropped_is_not_several() -> None:
    drops: Any = [
        {"count": 1, "what": "offers", "reason": "quota"},
        {"count": 2000, "what": "layouts", "reason": "own"},
    ]
    assert counted(drops) == "1 offer (over a quota or limit), 2,000 layouts (own)"
