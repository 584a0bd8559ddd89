"""The spreadsheet: its formulas give the plan's money, follow a changed price, and nothing that is text is one."""

from __future__ import annotations

import copy
import io
import json
import math
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import openpyxl
import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.report import escape
from planner.report.report_view import report_document
from planner.report.workbook import workbook
from planner.report.workbook.reserve_sheets import reserve_workbook
from tests.hostile_names import hostile_names
from tests.plan.test_given_rates import solved as given_rates_plan
from tests.plan.test_given_rates import write as write_given_rates
from tests.properties.test_random_calendars import market, question
from tests.report.sheet import Sheet
from tests.verified import follow_schema
from tests.worlds import catalog, device, fleet, offer, scenario, shape

Document = dict[str, Any]
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "scenarios" / "golden"
CENT = 0.005


def shipped_plans() -> dict[str, Document]:
    """Golden plans of the shipped scenarios; of the largest, the sample of this folder."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*.json"))}
    sample = json.loads((ROOT / "tests/report/samples/portfolio.json").read_text(encoding="utf-8"))
    whole = {name: plan for name, plan in found.items() if plan.get("workloads")} | {"portfolio": sample}
    lacking = {"solver": "", "modelling": "", "planner": ""}  # golden plans leave out what versions change
    return {
        name: {**plan, "provenance": {**lacking, **plan["provenance"]}}
        for name, plan in whole.items()
        if plan["summary"]["cost_microusd"] is not None
    }


PLANS = shipped_plans()


def book_of(plan: Document, there: Catalog, *, traced: int = 20, **options: Any) -> bytes:
    """The spreadsheet of a plan; of its trace, which money does not stand on, a few rows."""
    report = report_document(plan, there, **{"contingency": 0.1, **options})
    return workbook({**report, "trace": report["trace"][:traced]})


@pytest.fixture(scope="module")
def sheets(shipped: Catalog) -> dict[str, Sheet]:
    """Of every shipped plan, as it is; who changes a price puts it back."""
    return {name: Sheet(book_of(plan, shipped)) for name, plan in PLANS.items()}


@pytest.mark.parametrize("name", PLANS)
def test_formulas_give_what_the_plan_costs(name: str, sheets: dict[str, Sheet]) -> None:
    plan, sheet = PLANS[name], sheets[name]
    formulas = list(sheet.formulas())
    assert len(formulas) > 20
    for place in formulas:
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=CENT), place
    total = plan["summary"]["cost_usd"]
    assert sheet.named("Total") == pytest.approx(total, abs=CENT)
    assert sum(sheet.named("Cost")) == pytest.approx(total, abs=CENT)
    assert sheet.named("Contingency") == pytest.approx(0.1 * total, abs=CENT)
    assert sheet.named("Total_with_contingency") == pytest.approx(1.1 * total, abs=CENT)
    assert sheet.named("Committed") == pytest.approx(plan["spend"]["committed_microusd"] / 1e6, abs=CENT)
    assert sheet.named("Training") + sheet.named("Serving") == pytest.approx(total, abs=CENT)


@pytest.mark.parametrize("seed", range(2))
def test_formulas_of_random_calendars(seed: int) -> None:
    chance = random.Random(seed)
    there = market(chance)
    plan = json.loads(api.solve(question(chance), there).to_json())
    if plan["status"] != "optimal":
        return
    sheet = Sheet(book_of(plan, there))
    for place in sheet.formulas():
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=CENT), place
    assert sheet.named("Total") == pytest.approx(plan["summary"]["cost_usd"], abs=CENT)


@pytest.mark.parametrize("fraction", [0.0, 0.4, 1.0])
def test_a_fee_due_in_part_up_front_is_two_lines(fraction: float) -> None:
    """A year at $0.60 an hour for each node: what is due at once and what in instalments, by formula."""
    offers = [offer("north/one", 1.0), replace(offer("north/one", 0.6, price_model="commitment_1y"),
                                               upfront_fraction=fraction)]  # fmt: skip
    there = catalog([device()], [shape("north/one")], offers)
    asked = scenario([], [fleet("chat")], horizon="40 days", periods="1 day", begin="2027-01-30",
                     hardware={"pricing": ["commitment_1y"], "beyond_horizon": "full"})  # fmt: skip
    plan = json.loads(api.solve(asked, there).to_json())
    sheet, nodes = Sheet(book_of(plan, there)), plan["contracts"][0]["count"]
    parts = [part * nodes * 0.6 * 8760 for part in (fraction, 1 - fraction) if part]
    assert [cost for cost in sheet.named("Cost") if cost] == pytest.approx(parts, abs=CENT)
    assert sheet.named("Total") == pytest.approx(plan["summary"]["cost_usd"], abs=CENT)
    for place in sheet.formulas():
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=CENT), place


def test_a_fleet_of_given_rates_and_prices(tmp_path: Path, shipped: Catalog) -> None:
    """No catalog offer, no model, a horizon of an hour: the price is the scenario's own."""
    plan = given_rates_plan(write_given_rates(tmp_path, "shipped", 30))
    report = report_document(plan, shipped)
    follow_schema(report, "report")
    sheet = Sheet(workbook(report))
    assert sheet.named("Total") == pytest.approx(plan["summary"]["cost_usd"], abs=CENT)
    assert {sheet.value("Prices", f"I{row}") for row in (4, 5)} == {"rates.csv"}
    for row in report["trace"]:
        assert row["kind"] != "fact" or (row["source"] and (row["as_of"] or row["status"] in ("user", "derived"))), row


def test_what_groups_of_a_job_send_each_other_is_a_line_of_its_own(shipped: Catalog) -> None:
    """A mix between zones whose traffic costs $7: beside the nodes, with a price that may be changed too."""
    plan = copy.deepcopy(PLANS["mixed-job"])
    row = plan["workloads"][0]["allocations"][1]
    row["mix"]["traffic_microusd"] = 7_000_000
    for money in (row, plan["workloads"][0], plan["summary"]):
        money["cost_microusd"] += 7_000_000
        money["cost_usd"] += 7.0
    report = report_document(plan, shipped)
    (line,) = [line for line in report["budget"]["lines"] if line["category"] == "traffic"]
    assert (line["total_microusd"], line["commitment"]) == (7_000_000, "variable")
    sheet = Sheet(workbook(report))
    for place in sheet.formulas():
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=CENT), place
    assert sheet.named("Total") == pytest.approx(plan["summary"]["cost_usd"], abs=CENT)
    assert 7.0 in sheet.named("Prices")


@pytest.mark.parametrize("horizon", ["1 month", "13 months"])
def test_a_plan_that_costs_nothing(horizon: str) -> None:
    """Owned hardware at no price, and a catalog without a date: no line, no price, sums of nothing, no chart of it."""
    there = replace(catalog([device()], [shape("north/one")], [offer("north/one", 1.0)]), as_of="")
    owned = {"pricing": ["on_demand"], "owned": [{"shape": "north/one", "count": 4, "price": "$0/h"}]}
    asked = scenario([], [fleet("one")], hardware=owned, horizon=horizon)
    plan = json.loads(api.solve(asked, there).to_json())
    assert plan["summary"]["cost_microusd"] == 0
    sheet = Sheet(workbook(report_document(plan, there, contingency=0.1)))
    for place in sheet.formulas():
        assert sheet.value(*place) == sheet.cached(*place) == 0, place
    assert sheet.book["Allocations"]["M5"].value == "=SUM(M4:M4)"  # no sum of itself


def owned_by_parts() -> tuple[Document, Catalog]:
    """Two groups of owned machines, one with all parts of a price and one with some, and a fleet that needs both."""
    there = catalog([device()], [shape("north/one")], [offer("north/one", 90.0)])
    first = {"shape": "north/one", "count": 1, "capital": {"price": "$30k", "years": 3, "residual": "$4k"},
             "power": {"watts": 1050, "price": "$0.11/kWh", "pue": 1.35}, "staff": "$95.50/month"}  # fmt: skip
    second = {"shape": "north/one", "count": 1, "power": {"watts": "2 kW", "price": "$0.2/kWh", "pue": 1.1}}
    asked = scenario([], [fleet("chat", qpm=1200)], hardware={"owned": [first, second]})
    plan = json.loads(api.solve(asked, there).to_json())
    assert [row["cost_microusd"] > 0 for row in plan["owned_hours"]] == [True, True]
    return plan, there


def test_owned_machines_are_worked_out_from_their_parts() -> None:
    """To the cent, and by hand for another price of a kWh: it reaches the hour, the plan's total and the split."""
    plan, there = owned_by_parts()
    sheet = Sheet(book_of(plan, there))
    for place in sheet.formulas():
        assert sheet.value(*place) == pytest.approx(sheet.cached(*place), abs=CENT), place
    for line, row in zip((4, 5), plan["owned_hours"]):
        told = [row[f"{name}_microusd"] / 1e6 for name in ("cost", "capital", "power", "staff")]
        assert [sheet.value("Owned", f"{column}{line}") for column in "OPQR"] == pytest.approx(told, abs=CENT)
        assert sheet.value("Owned", f"M{line}") == pytest.approx(row["price_microusd_per_hour"] / 1e6, abs=1e-9)
    before, hours = sheet.named("Total"), plan["workloads"][0]["allocations"][0]["hours"]
    sheet.change("Owned", "H4", 0.31)
    assert sheet.named("Total") - before == pytest.approx(1.05 * 1.35 * 0.20 * hours, abs=CENT)
    sheet.change("Owned", "F4", 1.5)
    assert sheet.value("Owned", "K4") == pytest.approx(26_000 / 13_140, abs=1e-6)


@pytest.mark.parametrize("name", PLANS)
def test_every_price_leads_to_the_total(name: str, sheets: dict[str, Sheet]) -> None:
    """A dollar more on a price adds what that offer is held for, in its months, its kind and the contingency."""
    sheet = sheets[name]
    count = sheet.named("Prices")
    for row in range(4, 4 + min(4, len(count) if isinstance(count, list) else 1)):
        before, aside = sheet.named("Total"), sheet.named("Contingency")
        price, held = sheet.value("Prices", f"B{row}"), held_at(sheet, row)
        assert held > 0
        sheet.change("Prices", f"B{row}", price + 1)
        assert sheet.named("Total") - before == pytest.approx(held, abs=CENT)
        assert sheet.named("Contingency") - aside == pytest.approx(0.1 * held, abs=CENT)
        assert sheet.named("Training") + sheet.named("Serving") == pytest.approx(before + held, abs=CENT)
        sheet.change("Prices", f"B{row}", price)


def held_at(sheet: Sheet, price: int) -> float:
    """Node-hours that are paid for at a price."""
    lines = [
        line
        for line in range(4, sheet.book["Allocations"].max_row + 1)
        if sheet.book["Allocations"][f"K{line}"].value == f"=Prices!$B${price}"
    ]
    return sum(math.prod(sheet.value("Allocations", f"{column}{line}") for column in "IJL") for line in lines)


def test_fiscal_years_add_up_to_the_total(shipped: Catalog) -> None:
    report = report_document(PLANS["portfolio"], shipped, fiscal_year_start="april", contingency=0.1)
    sheet = Sheet(workbook({**report, "trace": []}))
    summary = sheet.book["Summary"]
    years = {row[0].value: sheet.value("Summary", row[3].coordinate) for row in summary.iter_rows()
             if str(row[0].value).startswith("FY")}  # fmt: skip
    told = {year["label"]: year["total_microusd"] / 1e6 for year in report["budget"]["fiscal_years"]}
    assert years == pytest.approx(told, abs=CENT)
    assert len(years) == 2


def test_the_same_report_is_the_same_file(shipped: Catalog) -> None:
    assert book_of(PLANS["llama"], shipped) == book_of(PLANS["llama"], shipped)


def test_sheets_are_set_up_for_readers_and_printers(shipped: Catalog) -> None:
    book = openpyxl.load_workbook(io.BytesIO(book_of(PLANS["llama"], shipped)))
    assert book.sheetnames == ["Summary", "Allocations", "Monthly budget", "Prices", "Assumptions", "Trace"]
    for sheet in book:
        assert sheet.freeze_panes
        assert sheet.page_setup.orientation == "landscape"
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert sheet.column_dimensions["A"].width > 10
        assert sheet.page_setup.paperSize == 9  # A4
        assert not any(row.hidden or (row.height and number > 1) for number, row in sheet.row_dimensions.items())
    prices = book["Prices"]
    assert "Change a price here" in prices["B3"].comment.text
    heads = [cell.value for cell in prices[3]]
    row = dict(zip(heads, (cell.value for cell in prices[4])))
    allocation = PLANS["llama"]["workloads"][0]["allocations"][0]
    assert row["What"] == allocation["offer"]
    assert row["Price"] == allocation["price_microusd_per_hour"] / 1e6
    assert (row["As of"], row["Status"], row["Source"]) == tuple(
        allocation[f"price_{name}"] for name in ("as_of", "status", "source")
    )
    assert {"Total", "Contingency", "Contingency_share", "Prices", "Cost", "Training", "Serving"} <= set(
        book.defined_names
    )


def test_the_first_sheet_begins_with_the_answer_its_range_and_its_months(shipped: Catalog) -> None:
    from planner.report.screen_words import decided

    plan = PLANS["portfolio"]
    book = openpyxl.load_workbook(io.BytesIO(book_of(plan, shipped)))
    summary = book["Summary"]
    assert summary["A2"].value == decided(plan)
    cells = {row[0].value: row[1].value for row in summary.iter_rows()}
    band = plan["summary"]["cost_band"]
    assert cells["p10 of the total, as solved"] == pytest.approx(band["p10"])
    assert cells["p90 of the total, as solved"] == pytest.approx(band["p90"])
    assert list(cells)[3].startswith("Contingency")
    (chart,) = summary._charts
    drawn = [series.val.numRef.f for series in chart.series]
    months = book["Monthly budget"]
    named = [months[ref.split("!")[1].split(":")[0].replace("$", "")] for ref in drawn]
    assert [months.cell(cell.row, 1).value for cell in named] == ["Training (one-off)", "Serving (recurring)"]
    one = openpyxl.load_workbook(io.BytesIO(book_of(PLANS["llama"], shipped)))
    assert one["Summary"]._charts == []  # of a single month


def test_a_report_without_a_plan_has_words_and_no_money(sample: Callable[[str], Document], shipped: Catalog) -> None:
    book = openpyxl.load_workbook(io.BytesIO(book_of(sample("infeasible"), shipped)))
    assert book.sheetnames == ["Summary", "Assumptions", "Trace"]


def hostile(plan: Document, names: list[str]) -> Document:
    """A plan in which every text that a user or a catalog gives is one of the names."""
    supply = iter(names * 1000)

    def renamed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: renamed(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [renamed(one, key) for one in value]
        kept = {"kind", "price_model", "status", "category", "schema", "sha256", "as_of", "workload", "pool"}
        return next(supply) if isinstance(value, str) and key not in kept else value

    changed = renamed({key: value for key, value in plan.items() if key not in ("scenario", "schedule")})
    return {**changed, "assumed": names, "scenario": {"training": []}, "schedule": None, "contracts": []}


def texts_of(data: bytes) -> list[str]:
    """Every text of the file's cells, as stored."""
    names = {"x": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        root = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
    return ["".join(part.text or "" for part in item.iter(f"{{{names['x']}}}t")) for item in root]


def test_two_hundred_hostile_names_are_text(sample: Callable[[str], Document], shipped: Catalog) -> None:
    names = hostile_names()
    assert len(names) == 200
    plan = hostile(sample("fleet"), names)
    data = book_of(plan, shipped, traced=10**6)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert not [name for name in archive.namelist() if "externalLink" in name or "hyperlink" in name]
        sheets = [archive.read(name).decode() for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        assert not any("<hyperlink" in text for text in sheets)
    clean = openpyxl.load_workbook(io.BytesIO(book_of(sample("fleet"), shipped)))
    book, ours = openpyxl.load_workbook(io.BytesIO(data)), 0
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                ours += cell.data_type == "f"
                if isinstance(cell.value, str) and cell.data_type != "f":
                    assert cell.data_type == "s"
    assert ours == sum(cell.data_type == "f" for sheet in clean for row in sheet.iter_rows() for cell in row)
    texts = texts_of(data)
    assert all(text == escape.terminal(text) for text in texts)  # no control character is left
    assert {escape.xlsx_cell(name) for name in names} <= set(texts)


def test_what_looks_like_a_formula_stays_text_when_it_is_edited(
    sample: Callable[[str], Document], shipped: Catalog
) -> None:
    plan = sample("llama")
    plan["workloads"][0]["name"] = "=1+1"
    book = openpyxl.load_workbook(io.BytesIO(book_of(plan, shipped)))
    cells = [cell for row in book["Allocations"].iter_rows() for cell in row if cell.value == "=1+1"]
    assert cells
    assert all(cell.data_type == "s" and cell.quotePrefix for cell in cells)


def test_characters_that_no_spreadsheet_holds_are_gone() -> None:
    assert escape.xlsx_cell("a\x00b\x1b[1mc\ud800d\ufffee\uffff") == "ab[1mcde"
    assert len(escape.xlsx_cell("x" * 40_000)) == 32_767


OFFICE = shutil.which("soffice") or shutil.which("libreoffice")
ALWAYS_CALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>
"""


@pytest.fixture(scope="module")
def calculated(tmp_path_factory: pytest.TempPathFactory, shipped: Catalog) -> Path:
    """Every shipped plan's spreadsheet as LibreOffice works it out, and one with a price doubled; one run for all."""
    if OFFICE is None:
        pytest.skip("LibreOffice is not installed")
    folder = tmp_path_factory.mktemp("office")
    profile = folder / "profile" / "user"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(ALWAYS_CALCULATE, encoding="utf-8")
    files = []
    for name, plan in PLANS.items():
        files.append(folder / f"{name}.xlsx")
        files[-1].write_bytes(book_of(plan, shipped))
    files.append(folder / "owned.xlsx")
    files[-1].write_bytes(book_of(*owned_by_parts()))
    files.append(folder / "reserving.xlsx")
    files[-1].write_bytes(reserve_workbook(reserved()))
    changed = openpyxl.load_workbook(folder / "portfolio.xlsx")
    changed["Prices"]["B4"] = 2 * changed["Prices"]["B4"].value
    files.append(folder / "changed.xlsx")
    changed.save(files[-1])  # without any stored value
    command = [OFFICE, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--convert-to", "xlsx",
               "--outdir", str(folder / "out"), *map(str, files)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    return folder / "out"


@pytest.mark.campaign
@pytest.mark.parametrize("name", PLANS)
def test_libreoffice_works_out_what_the_plan_costs(name: str, calculated: Path, sheets: dict[str, Sheet]) -> None:
    found, ours = openpyxl.load_workbook(calculated / f"{name}.xlsx", data_only=True), sheets[name]
    for sheet, cell in ours.formulas():
        assert found[sheet][cell].value == pytest.approx(ours.cached(sheet, cell), abs=CENT), (sheet, cell)
    (sheet, cell), *_ = ours.book.defined_names["Total"].destinations
    assert found[sheet][cell.replace("$", "")].value == pytest.approx(PLANS[name]["summary"]["cost_usd"], abs=CENT)


@pytest.mark.campaign
def test_libreoffice_follows_a_changed_price(calculated: Path, sheets: dict[str, Sheet]) -> None:
    found, ours = openpyxl.load_workbook(calculated / "changed.xlsx", data_only=True), sheets["portfolio"]
    before, price = ours.named("Total"), ours.value("Prices", "B4")
    ours.change("Prices", "B4", 2 * price)
    assert ours.named("Total") > before + 1
    for sheet, cell in ours.formulas():
        assert found[sheet][cell].value == pytest.approx(ours.value(sheet, cell), abs=CENT), (sheet, cell)
    ours.change("Prices", "B4", price)


def reserved() -> Any:
    """Six of ten nodes under contract, the others rented; two terms, other futures."""
    offers = [offer("north/one", 4.0), offer("north/one", 2.5, price_model="commitment_1y", max_shapes=6),
              offer("north/one", 2.1, price_model="commitment_3y")]  # fmt: skip
    there = catalog([device()], [shape("north/one")], offers)
    return api.reserve(scenario([], [fleet("chat", qpm=6000)]), there).document


@pytest.mark.campaign
def test_libreoffice_works_out_what_reserving_saves(calculated: Path) -> None:
    found = openpyxl.load_workbook(calculated / "reserving.xlsx", data_only=True)
    ours = Sheet(reserve_workbook(reserved()))
    places = list(ours.formulas())
    assert len(places) > 30
    for sheet, cell in places:
        assert found[sheet][cell].value == pytest.approx(ours.cached(sheet, cell), abs=CENT), (sheet, cell)


@pytest.mark.campaign
def test_libreoffice_works_out_what_an_owned_hour_costs(calculated: Path) -> None:
    found, (plan, there) = openpyxl.load_workbook(calculated / "owned.xlsx", data_only=True), owned_by_parts()
    ours = Sheet(book_of(plan, there))
    for sheet, cell in ours.formulas():
        assert found[sheet][cell].value == pytest.approx(ours.cached(sheet, cell), abs=CENT), (sheet, cell)
    for line, row in zip((4, 5), plan["owned_hours"]):
        assert found["Owned"][f"M{line}"].value == pytest.approx(row["price_microusd_per_hour"] / 1e6, abs=1e-6)
