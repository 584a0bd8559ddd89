"""Bills by service and day: exact sums, currencies apart, each line taken or counted."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.reading.bills import cost_of, day_of
from planner.reading.kinds import Reading, kind_of, read
from planner.reading.source import Source
from tests.reading.cluster_writers import (
    FOCUS,
    aws,
    azure_bill,
    focus,
    focus_json,
    gcp,
    opencost,
    opencost_table,
    table,
)


def reading_of(folder: Path, *contents: str) -> Reading:
    paths = []
    for number, content in enumerate(contents):
        paths.append(folder / f"part-{number}")
        paths[-1].write_text(content)
    return read(Source(*paths))


def figures(reading: Reading) -> dict[str, tuple[Any, str]]:
    return {each.label: (each.value, each.unit) for each in reading.look}


def test_spend_is_exact_by_service_and_day(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, focus())
    found = figures(reading)
    assert (reading.kind, reading.taken, reading.skipped.count) == ("bill", 3, 0)
    assert found["spend"] == (0.25, "USD")  # 0.1 + 0.2 - 0.05, without the errors of binary fractions
    assert found["effective cost (of commitments too)"] == (0.4, "USD")
    assert found["service EC2"] == (0.3, "USD")
    assert found["charged as Credit"] == (-0.05, "USD")
    assert found["spend of the dearest day, 2026-05-01"] == (0.3, "USD")
    assert reading.pieces[0].text == "currency,day,service,cost\nUSD,2026-05-01,EC2,0.3\nUSD,2026-05-02,S3,-0.05\n"


def test_currencies_are_listed_apart_and_never_added(tmp_path: Path) -> None:
    rows = [("1", "USD", "Usage", "2026-05-01", "1", "A", "EC2", ""),
            ("2", "eur", "Usage", "2026-05-01", "2", "A", "EC2", ""),
            ("4", "", "Usage", "2026-05-01", "4", "A", "EC2", "")]  # fmt: skip
    reading = reading_of(tmp_path, focus(*rows))
    found = figures(reading)
    assert (found["spend in USD"], found["spend in EUR"]) == ((1.0, "USD"), (2.0, "EUR"))
    assert found["spend in no currency said"] == (4.0, "no currency said")
    assert not {3.0, 5.0, 6.0, 7.0} & {value for value, _ in found.values()}
    assert "spend" not in found
    assert "3 currencies are listed apart: they are never added" in reading.notes


def test_lines_without_a_cost_or_day_are_counted(tmp_path: Path) -> None:
    good = ("1", "USD", "Usage", "2026-05-01", "1", "A", "EC2", "")
    rows = [
        good,
        ("much", *good[1:]),
        ("1e99", *good[1:]),
        ("", *good[1:]),
        (*good[:3], "2026-02-30", *good[4:]),
        good[:4],
    ]
    reading = reading_of(tmp_path, focus(*rows))
    assert reading.taken == 1
    assert {why: count for why, (count, _) in reading.skipped.reasons.items()} == {
        "no number for a cost": 3, "no day": 1, "more or fewer cells than columns": 1,
    }  # fmt: skip
    assert reading.skipped.reasons["no day"] == (1, 6)


def test_parts_of_one_bill_may_order_their_columns_anew(tmp_path: Path) -> None:
    first = focus(("1", "USD", "Usage", "2026-05-01", "1", "A", "EC2", ""))
    second = table(list(reversed(FOCUS)), [("", "EC2", "A", "9", "2026-05-02", "Usage", "USD", "2")])
    assert figures(reading_of(tmp_path, first, second))["spend"] == (3.0, "USD")


def test_a_line_of_aws_that_stands_twice_counts_once(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, aws())
    assert figures(reading)["spend"] == (1.8, "USD")
    assert reading.skipped.reasons == {"a line that stands twice, by its id": (1, 3)}


def test_decimal_commas_and_days_first(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, azure_bill())
    found = figures(reading)
    assert found["spend"] == (1001.0, "EUR")
    assert (found["first day"][0], found["last day"][0]) == ("2026-02-03", "2026-02-13")
    assert reading.understood["days"].endswith("day/month/year")


def costs(folder: Path, separator: str, *numbers: str, second: str = "") -> Reading:
    rows = [(number, "USD", "Usage", "2026-11-01T00:00:00Z", second, "AWS", "EC2", "") for number in numbers]
    return reading_of(folder, table(FOCUS, rows, separator))


@pytest.mark.parametrize(
    ("separator", "numbers", "spend", "understood"),
    [
        (";", ("1,234.56", "2,099.50"), 3334.06, "with a decimal dot"),  # English numbers between semicolons
        (";", ("1.234,56", "2.099,50"), 3334.06, "with a decimal comma"),
        (",", ("1.234,56", "2.099"), 3333.56, "with a decimal comma"),  # the second follows the first
        (";", ("2,099", "1.5"), 2100.5, "with a decimal dot"),
        (";", ("2,099", "1,5"), 3.599, "with a decimal comma"),
        (",", ("1,234", "7"), 1241.0, "with a decimal dot: no number tells, 1,234 is taken as 1234"),
        (";", ("1,234", "7"), 8.234, "with a decimal comma: no number tells, 1,234 is taken as 1.234"),
        (";", ("1.234", "7"), 8.234, "with a decimal dot: no number tells, 1.234 is taken as 1.234"),
        (";", ("1.234.567", "0.5"), 0, ""),
        (",", ("1,234.5", "1,5"), 0, ""),
        (";", ("0,123", "1,0E-3", "1.234"), 1234.124, "with a decimal comma"),
        (",", ("5", "1.5"), 6.5, None),
        (";", ("5", "1"), 6.0, None),
    ],
)
def test_the_decimal_sign_is_that_of_the_numbers(
    separator: str, numbers: tuple[str, ...], spend: float, understood: str | None, tmp_path: Path
) -> None:
    if not spend:
        with pytest.raises(InputError, match="numbers of the cost contradict each other") as refusal:
            costs(tmp_path, separator, *numbers)
        assert refusal.value.problems[0].places[0].line == 3
        return
    reading = costs(tmp_path, separator, *numbers)
    assert figures(reading)["spend"][0] == pytest.approx(spend)
    assert reading.skipped.count == 0
    assert reading.understood.get("numbers") == understood


def test_a_column_that_says_nothing_follows_the_other(tmp_path: Path) -> None:
    found = figures(costs(tmp_path, ";", "1.234", second="1.234,50"))
    assert found["spend"][0] == 1234.0
    assert found["effective cost (of commitments too)"][0] == 1234.5


def test_the_order_of_days_is_that_of_the_whole_bill(tmp_path: Path) -> None:
    days = ["03/02/2026"] * 300 + ["13/02/2026"]
    rows = [("1", "USD", "Usage", day, "1", "AWS", "EC2", "") for day in days]
    reading = reading_of(tmp_path, focus(*rows))
    assert (reading.skipped.count, figures(reading)["first day"][0]) == (0, "2026-02-03")
    assert reading.understood["days"].endswith("; day/month/year")


def test_credits_of_google_stand_beside_the_spend(tmp_path: Path) -> None:
    found = figures(reading_of(tmp_path, gcp()))
    assert found["spend"] == (5.0, "USD")
    assert found["credits, not in the spend"] == (-0.25, "USD")


def test_allocations_add_up_by_name_and_window(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, opencost())
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("allocations", 2)
    assert found["spend"][0] == 30.5
    assert found["of it gpu"][0] == 29.0
    assert found["GPU-hours"] == (16.0, "h")
    assert found["days"][0] == 2
    assert reading.skipped.reasons == {"JSON, but no allocation": (1, 2)}
    assert "not said" in reading.understood["currency"]


def test_allocations_of_a_table_add_up_alike(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, opencost_table())
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("allocations-table", 2)
    assert (found["spend"][0], found["of it gpu"][0]) == (15.0, 13.5)
    assert reading.skipped.reasons == {"no day": (1, 4)}


def test_truncated_allocations_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not whole JSON"):
        reading_of(tmp_path, opencost()[:-9])


@pytest.mark.parametrize(
    ("text", "cost"),
    [("3.0E-6", "0.000003"), ("1,234.50", "1234.50"), ("-2", "-2"), ("1,5", None), ("NaN", None), ("inf", None),
     ("", None),  ("1e15", "1e15"), ("1.1e15", None), ("1" * 61, None), ("1_000", None), ("12,34.5", None)],
)  # fmt: skip
def test_costs_are_exact_or_none(text: str, cost: str | None) -> None:
    assert cost_of(text) == (None if cost is None else Decimal(cost))


@pytest.mark.parametrize(
    ("text", "day"),
    [("2026-05-01T00:00:00.000Z", "2026-05-01"), ("20260501", "2026-05-01"), ("5/1/2026", "2026-05-01"),
     ("01.05.2026", "2026-05-01"), ("13/1/2026", ""), ("2026-13-01", ""), ("May", "")],
)  # fmt: skip
def test_days(text: str, day: str) -> None:
    assert day_of(text) == day


@pytest.mark.parametrize(("extra", "version"), [((), "1.0"), (("SkuMeter",), "1.1"), (("InvoiceId", "SkuMeter"), "1.2"),
                                                (("ServiceProviderName", "InvoiceId"), "1.3")])  # fmt: skip
def test_versions_of_focus(extra: tuple[str, ...], version: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(table([*FOCUS, *extra], []))
    assert kind_of(Source(path))[1].version == version


def test_a_bill_of_no_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line of"):
        reading_of(tmp_path, table(FOCUS, []))


def test_a_name_that_a_spreadsheet_would_calculate_with_is_kept_still(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, focus(("1", "USD", "Usage", "2026-05-01", "1", "A", "=cmd()", "")))
    assert ",'=cmd()," in reading.pieces[0].text


def test_a_bill_of_json_lines_is_one_too(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, focus_json())
    assert (reading.kind, reading.tool, reading.taken) == ("bill", "FOCUS", 2)
    assert figures(reading)["spend"] == (0.3, "USD")
    assert reading.skipped.reasons == {"the last line, half written": (1, 3)}


def test_a_table_of_cost_explorer_has_a_column_for_each_service(tmp_path: Path) -> None:
    text = (
        '"Service","EC2-Instances($)","S3($)","EC2-Instances(Hrs)","Total costs($)"\n"Service total","3","1","9","4"\n'
        '"2026-03-01","1","0.25","3","1.25"\n"2026-03-02","2","","6","2.75"\n"2026-03-03","x","1","6","1"\n'
    )
    reading = reading_of(tmp_path, text)
    found = figures(reading)
    assert (reading.kind, reading.taken) == ("cost-explorer", 2)
    assert (found["spend"], found["service EC2-Instances"], found["service S3"]) == (
        (3.25, "USD"), (3.0, "USD"), (0.25, "USD"))  # fmt: skip
    assert {why: count for why, (count, _) in reading.skipped.reasons.items()} == {
        "the sum of the days": 1, "no number for a cost": 1}  # fmt: skip
    assert any("1 rows have another total" in note for note in reading.notes)
    alike = "Account,a-1 1($),a-11($),Total costs($)\nAccount total,1,2,3\n2026-03-01,1,2,3\n2026\n"
    reading = reading_of(tmp_path, alike)
    assert (figures(reading)["spend"], reading.skipped.count) == ((3.0, "USD"), 2)
    table_without = tmp_path / "without"
    table_without.write_text("a,b\n")
    with pytest.raises(InputError, match="no column Total costs"):
        read(Source(table_without), None, "cost-explorer-table")
    only = ",Total cost ($)\nService Total,9\n2026-01-01,4\n2026-02-01,5\n"
    reading = reading_of(tmp_path, only)
    assert figures(reading)["service all services"] == (9.0, "USD")
    assert any("31 days" in note for note in reading.notes)


def test_an_answer_of_cost_explorer_is_summed_by_group_and_day(tmp_path: Path) -> None:
    def period(day: int, *groups: tuple[str, str], total: str = "") -> dict[str, Any]:
        cost = {"BlendedCost": {"Amount": "7", "Unit": "USD"}}
        return {"TimePeriod": {"Start": f"2026-03-0{day}", "End": f"2026-03-0{day + 1}"}, "Estimated": day == 2,
                "Total": {"UnblendedCost": {"Amount": total, "Unit": "USD"}} if total else {},
                "Groups": [{"Keys": [name], "Metrics": {"UnblendedCost": {"Amount": amount, "Unit": "USD"}, **cost}}
                           for name, amount in groups]}  # fmt: skip

    periods = [period(1, ("EC2", "1.5"), ("S3", "0.5")), period(2, ("EC2", "2")), period(3, total="4"), period(4)]
    reading = reading_of(tmp_path, json.dumps({"ResultsByTime": periods, "NextPageToken": "x"}))
    found = figures(reading)
    assert (found["spend"], found["group EC2"], found["group all services"]) == (
        (8.0, "USD"), (3.5, "USD"), (4.0, "USD"))  # fmt: skip
    assert (reading.taken, reading.skipped.count, reading.understood["spend"]) == (4, 1, "UnblendedCost")
    assert [note[:22] for note in reading.notes] == ["1 of the lines are est", "further pages follow t"]
    with pytest.raises(InputError, match="no line of"):
        reading_of(tmp_path, json.dumps({"ResultsByTime": [period(4)], "Amount": 0, "Unit": 0}))


def test_a_table_of_google_s_console_says_its_currency_in_a_column_s_name(tmp_path: Path) -> None:
    columns = ["Project name", "Service description", "SKU description", "SKU ID", "Cost type", "Usage start date",
               "Unrounded cost (\N{EURO SIGN})", "Cost (\N{EURO SIGN})"]  # fmt: skip
    rows = [("p", "Compute Engine", "A2", "s", "Usage", "2026-03-01", "1.2345", "1.23"),
            ("", "", "", "", "Total", "", "", "1.23")]  # fmt: skip
    reading = reading_of(tmp_path, table(columns, rows))
    assert (figures(reading)["spend"], reading.taken, reading.skipped.count) == ((1.2345, "EUR"), 1, 1)
    assert "credits are lines of their own" in reading.understood["spend"]


def test_lines_before_the_names_of_columns_are_passed_over(tmp_path: Path) -> None:
    columns = "AccountOwnerId,Date,Product,Meter ID,Meter Category,Consumed Quantity,ExtendedCost"
    text = f"Usage Data Extract,,,,,,\n,,,,,,\n{columns}\no,03/30/2017,P,m,Virtual Machines,24,36.5\n"
    reading = reading_of(tmp_path, text)
    assert (reading.tool, reading.taken, reading.skipped.count) == ("Azure", 1, 0)
    assert figures(reading)["spend"][0] == 36.5


def test_the_number_of_an_invoice_may_stand_first(tmp_path: Path) -> None:
    head = "Invoice number,5121234567\nInvoice date,2026-03-31\nCurrency,USD\n\n"
    names = "Project ID,Service description,SKU description,Cost type,Usage start date,Unrounded cost ($),Cost ($)\n"
    rows = 'ml,Compute Engine,H100,Usage,2026-03-01,"12,672.004","12,672.00"\n,,,Total,,,"12,672.00"\n'
    reading = reading_of(tmp_path, head + names + rows)
    assert (reading.tool, reading.taken, figures(reading)["spend"]) == ("Google Cloud", 1, (12672.004, "$"))


def test_currencies_in_cells_are_never_added(tmp_path: Path) -> None:
    rows = '2026-03-01,GPU,"USD 1,234.50"\n2026-03-01,GPU,A$5.00\n2026-03-01,GPU,\u22125 €\n'
    found = figures(reading_of(tmp_path, "Date,Service,Cost\n" + rows))
    assert [found[f"spend in {unit}"][0] for unit in ("USD", "A$", "EUR")] == [1234.5, 5, -5]


def test_sets_of_allocations_are_summed(tmp_path: Path) -> None:
    def one(day: int) -> dict[str, Any]:
        return {"name": "ns", "start": f"2026-03-0{day}T00:00:00Z", "end": f"2026-03-0{day + 1}T00:00:00Z",
                "cpuCost": 1.0, "ramCost": 0.5, "totalCost": 1.5}  # fmt: skip

    sets = [{"allocations": {"ns": one(day)}, "window": {"start": "x"}} for day in (1, 2)]
    reading = reading_of(tmp_path, json.dumps({"code": 200, "data": {"sets": sets}}))
    assert (reading.taken, figures(reading)["spend"][0], figures(reading)["days"][0]) == (2, 3.0, 2)


def test_a_day_may_be_counted_since_1970() -> None:
    assert [day_of(each) for each in ("1772323200000", "1772323200", "20260301", "123", "9" * 400)] == [
        "2026-03-01", "2026-03-01", "2026-03-01", "", ""]  # fmt: skip


@pytest.mark.parametrize("table", [
    "Date,ServiceName,ServiceRegion,Quantity,Cost\n06/15/2025,Virtual Machines,US East,24,1234.56\n"
    "06/16/2025,Storage,US East,1,1.44\n",
    "UsageDate,ServiceName,Cost,CostUSD,Currency\n2025-06-15,Virtual Machines,1234.56,1300,EUR\n"
    "2025-06-16,Storage,1.44,2,EUR\n",
    "Datum;Dienstname;Kosten;Währung\n15.06.2025;Virtual Machines;1.234,56;EUR\n16.06.2025;Storage;1,44;EUR\n",
    'Date,Service,Amount\n2025-06-15,Virtual Machines,"$1,334.56"\n2025-06-15,Virtual Machines,($100.00)\n'
    "2025-06-16,Storage,$1.44\n",
    "Datum;Dienst;Kosten\n15.06.2025;Virtual Machines;1.334,56 €\n15.06.2025;Virtual Machines;-100,00 €\n"
    "16.06.2025;Storage;1,44 €\n",
])  # fmt: skip
def test_a_table_of_costs_by_day_and_service_is_a_bill_whoever_writes_it(table: str, tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(table)
    reading = read(Source(tmp_path / "costs.csv"))
    shown = {each.label: each.value for each in reading.look}
    assert (reading.kind, reading.taken, shown["first day"]) == ("bill", table.count("\n") - 1, "2025-06-15")
    assert (shown["spend"], shown["service Storage"]) == (pytest.approx(1236.0), pytest.approx(1.44))
