"""Prices of one's own: by file, by day, by device; exact, with a source, and recorded in plans."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced, with_device_price, with_price_file
from planner.catalog.pricing import gone_stale, price_age, stale_prices
from planner.errors import InputError, UsageError
from planner.files import outside_allowed
from planner.plan.plan_files import catalog_of_plan
from planner.units import Rates
from tests.catalog.extending import HEAD, offers_of, written
from tests.verified import errors
from tests.worlds import scenario

SCENARIO = Path(__file__).parents[2] / "scenarios" / "gpt2-xl.yaml"
STEADY, SPOT = "aws:use1-az3:p5.48xlarge:on_demand", "aws:use1-az3:p5.48xlarge:spot"
SHORT = "offer,price_usd_per_hour_per_shape,as_of\n"
LONG = "offer,provider,shape,region,price_model,price_usd_per_hour_per_shape,as_of,status,source\n"


def priced(catalog: Catalog, folder: Path, text: str, until: str = "") -> Catalog:
    (folder / "mine.csv").write_text(text, encoding="utf-8")
    return with_price_file(catalog, folder / "mine.csv", until=until)


def test_a_file_of_three_columns(catalog: Catalog, tmp_path: Path) -> None:
    mine = priced(catalog, tmp_path, SHORT + f"{STEADY},31.123456,2026-11-20\n")
    offer = offers_of(mine)[STEADY]
    fact = offer.provenance
    assert offer.price_microusd_per_hour == 31_123_456
    assert (fact.source, fact.as_of, fact.status) == ("mine.csv", "2026-11-20", "user")
    assert mine.digest != catalog.digest
    unchanged = {name for name, one in offers_of(catalog).items() if offers_of(mine)[name] == one}
    assert len(unchanged) == len(catalog.offers) - 1


def test_a_file_as_a_catalog_has_them_adds_and_replaces(catalog: Catalog, tmp_path: Path) -> None:
    rows = f"{STEADY},aws,p5.48xlarge,us-east-1,on_demand,30,2026-11-20,seen,a letter\n"
    rows += "aws:mine:p5.48xlarge:on_demand,aws,p5.48xlarge,mine,on_demand,29,2026-11-20,user,a letter\n"
    mine = priced(catalog, tmp_path, LONG + rows)
    assert len(mine.offers) == len(catalog.offers) + 1
    assert [offer.id for offer in mine.offers] == sorted(offer.id for offer in mine.offers)
    assert offers_of(mine)[STEADY].provenance.status == "seen"
    assert offers_of(mine)["aws:mine:p5.48xlarge:on_demand"].price_microusd_per_hour == 29_000_000


@pytest.mark.parametrize(
    ("until", "dollars"), [("", 33), ("2026-12-31", 33), ("2026-06-30", 32), ("2026-06-29", 31), ("2025-12-31", None)]
)
def test_the_newest_price_of_a_day_or_earlier(
    catalog: Catalog, tmp_path: Path, until: str, dollars: int | None
) -> None:
    days = {"2026-06-30": 32, "2026-01-01": 31, "2026-11-20": 33}
    text = SHORT + "".join(f"{STEADY},{price},{day}\n" for day, price in days.items())
    offer = offers_of(priced(catalog, tmp_path, text, until))[STEADY]
    assert offer.price_microusd_per_hour == (55_040_000 if dollars is None else dollars * 1_000_000)


def test_a_catalog_that_holds_prices_of_several_days(tmp_path: Path) -> None:
    rows = "".join(f"{STEADY},aws,p5.48xlarge,us-east-1,on_demand,{p},{day},seen,a page\n"
                   for p, day in ((31, "2026-01-01"), (33, "2026-11-20"), (32, "2026-06-30")))  # fmt: skip
    folder = written(tmp_path / "mine", HEAD, offers__aws_csv=LONG + rows)

    def price(until: str = "") -> int:
        return offers_of(load_catalog(folder, prices_until=until))[STEADY].price_microusd_per_hour // 1_000_000

    assert (price(), price("2026-11-20"), price("2026-11-19"), price("2026-02-01")) == (33, 33, 32, 31)
    again = LONG + rows + f"{STEADY},aws,p5.48xlarge,us-east-1,on_demand,30,2026-01-01,seen,a page\n"
    (folder / "offers/aws.csv").write_text(again, encoding="utf-8")
    with pytest.raises(InputError, match="duplicate-id"):
        load_catalog(folder)


def test_changes_and_discounts_of_a_later_day_do_not_count_yet(tmp_path: Path) -> None:
    text = HEAD + (
        f"offers: [{{offer: '{STEADY}', price_per_shape: $31/h, as_of: 2026-11-22}}]\n"
        f"discounts: [{{offer: '{SPOT}', fraction: 50 %, as_of: 2026-11-22}}]\n"
    )
    folder = written(tmp_path / "mine", text)
    before, after = (offers_of(load_catalog(folder, prices_until=day)) for day in ("2026-11-21", "2026-11-22"))
    assert (before[STEADY].price_microusd_per_hour, after[STEADY].price_microusd_per_hour) == (55_040_000, 31_000_000)
    assert before[SPOT].price_microusd_per_hour == 2 * after[SPOT].price_microusd_per_hour


FAULTS = [
    (SHORT + "aws:nowhere,1,2026-11-20\n", "unknown-offer", 2),
    (SHORT + f"{STEADY},1,2026-11-20\n{STEADY},2,2026-11-20\n", "duplicate-id", 3),
    (SHORT + f"{STEADY},0,2026-11-20\n", "bad-price", 2),
    (SHORT + f"{STEADY},nan,2026-11-20\n", "bad-price", 2),
    (SHORT + f"{STEADY},,2026-11-20\n", "bad-price", 2),
    (SHORT + f"{STEADY},1e5000,2026-11-20\n", "bad-price", 2),
    (SHORT + f"{STEADY},1,\n", "bad-date", 2),
    (SHORT + f"{STEADY},1,2026-02-30\n", "bad-date", 2),
    (SHORT + f"{STEADY},1\n", "bad-row", 2),
    ("offer,price\n", "missing-column", 1),
    (SHORT.replace("as_of", "as_of,devices") + f"{STEADY},1,2026-11-20,9\n", "unknown-column", 1),
    (LONG + f"{STEADY},aws,p9,us-east-1,on_demand,30,2026-11-20,seen,x\n", "unknown-shape", 2),
    (LONG + f"{STEADY},aws,p5.48xlarge,us-east-1,cheap,30,2026-11-20,seen,x\n", "unknown-value", 2),
]


@pytest.mark.parametrize(("text", "reference", "line"), FAULTS)
def test_mistakes_in_a_file(catalog: Catalog, tmp_path: Path, text: str, reference: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        priced(catalog, tmp_path, text)
    problem = next(one for one in caught.value.problems if one.reference == reference)
    assert (Path(problem.places[0].file).name, problem.places[0].line, problem.places[0].column) == (
        "mine.csv",
        line,
        1,
    )


def test_a_price_of_a_device_hour(catalog: Catalog) -> None:
    mine = with_device_price(catalog, "h100-sxm=$2.50/h")
    for name, offer in offers_of(mine).items():
        shape = catalog.shapes[offer.shape]
        if shape.device == "h100-sxm-80gb" and offer.price_model == "on_demand":
            assert offer.price_microusd_per_hour == 2_500_000 * shape.devices
            assert (offer.provenance.status, offer.quality) == ("user", "")
            assert offer.provenance.source == "--price h100-sxm@on_demand=$2.50 /h"
        else:
            assert offer == offers_of(catalog)[name]
    assert mine.digest != catalog.digest
    assert with_device_price(catalog, "h100-sxm@on_demand=$2.5/h").digest == mine.digest


def test_a_share_of_a_device_costs_its_share(catalog: Catalog) -> None:
    share = next(shape for shape in catalog.shapes.values() if shape.kind == "share" and shape.compute_share < 1)
    mine = with_device_price(catalog, f"{share.device}=$6/h")
    prices = {o.price_microusd_per_hour for o in mine.offers if o.shape == share.id and o.price_model == "on_demand"}
    assert prices == {round(6_000_000 * share.compute_share)}


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("h100", "bad-price"),
        ("=$2/h", "bad-price"),
        ("h100-sxm=$0/h", "bad-price"),
        ("h100-sxm=$99999999999/h", "bad-price"),
        ("h100-sxm=2", "missing-unit"),
        ("h100-sxm=EUR 2/h", "mixed-currency"),
        ("h100-sxm=$2", ""),
        ("h100-sxm@cheap=$2/h", "unknown-value"),
        ("h101=$2/h", "unknown-device"),
        ("h100-sxm@flex=$2/h", "no-offer"),
    ],
)
def test_what_is_no_price_of_a_device(catalog: Catalog, text: str, reference: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_device_price(catalog, text)
    assert caught.value.exit_code == 2
    assert caught.value.problems[0].reference == reference or not reference


def test_flags_come_back_as_they_were() -> None:
    own = OwnPrices.of(["2026-06-01", "a b.csv", "c=d.csv"], ["h100=$2/h", "x y=$1/h"])
    assert own == OwnPrices(until="2026-06-01", files=("a b.csv", "c=d.csv"), devices=("h100=$2/h", "x y=$1/h"))
    assert OwnPrices.from_flags(own.flags) == own
    with pytest.raises(UsageError, match="two-dates"):
        OwnPrices.of(["2026-06-01", "2026-06-02"], None)


@pytest.mark.parametrize("text", ["01.06.2026", "6/1/2026", "20260601", "2026-06", "today", "2026"])
def test_a_day_in_another_form_is_no_file_that_is_missing(text: str) -> None:
    with pytest.raises(UsageError, match="neither a file nor a date") as caught:
        OwnPrices.of([text], None)
    assert "2026-11-21" in caught.value.problems[0].hint


def test_before_the_first_price_its_day_is_told() -> None:
    with pytest.raises(InputError, match="no-prices") as caught:
        load_priced(None, OwnPrices.of(["2020-01-01"], None))
    assert caught.value.problems[0].hint.endswith("its oldest price is of 2024-12-01")


def solved(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "mine.csv").write_text(
        SHORT + "oci:af-casablanca-1:BM.GPU4.8:on_demand,9,2026-11-20\n", encoding="utf-8"
    )
    scenario = api.load_scenario(SCENARIO)
    catalog = api.catalog_of(scenario, prices=[str(tmp_path / "mine.csv")], price=["v100-*=$0.10/h"])
    document: dict[str, Any] = api.solve(scenario, catalog).document
    return document


def test_a_plan_records_its_prices_and_is_verified_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = solved(tmp_path)
    monkeypatch.chdir(tmp_path)
    recorded = plan["provenance"]["catalog"]
    assert recorded["own_prices"] == [f"--prices {tmp_path / 'mine.csv'}", "--price v100-*=$0.10/h"]
    assert recorded["sha256"] == catalog_of_plan(plan).digest != load_catalog().digest
    assert errors(json.loads(json.dumps(plan))) == []
    assert {problem.reference for problem in api.verify(plan, load_catalog())} > {"other-catalog"}
    other = catalog_of_plan(plan, price=["v100-*=$0.11/h"])
    assert "other-catalog" in {problem.reference for problem in api.verify(plan, other)}
    sources = {row["price_source"] for one in plan["workloads"] for row in one["allocations"]}
    assert sources <= {"--price v100-*@on_demand=$0.10 /h", "mine.csv"}
    (tmp_path / "mine.csv").write_text(SHORT + f"{STEADY},9,2026-11-20\n", encoding="utf-8")
    assert "other-catalog" in {problem.reference for problem in api.verify(plan)}  # the file was edited since


def test_recorded_prices_of_another_folder_are_read_by_whoever_names_them_again(tmp_path: Path) -> None:
    plan = solved(tmp_path)
    file = str(tmp_path / "mine.csv")
    with pytest.raises(InputError) as caught:
        catalog_of_plan(plan)
    (problem,) = caught.value.problems
    assert (problem.reference, file in problem.message) == ("unsafe-path", True)
    assert "--prices" in problem.hint
    again = catalog_of_plan(plan, prices=[file], price=["v100-*=$0.10/h"])
    assert again.digest == plan["provenance"]["catalog"]["sha256"]
    assert errors(plan, again) == []
    with outside_allowed():
        assert errors(plan) == []


@pytest.mark.parametrize("flags", [None, 7, "x", [1, None], {"a": 1}])
def test_what_a_forged_plan_records_does_no_harm(catalog: Catalog, flags: object) -> None:
    plan = {"scenario": {}, "scenario_file": "x.yaml", "provenance": {"catalog": {"own_prices": flags}}}
    assert catalog_of_plan(plan).digest == catalog.digest


def test_ages(catalog: Catalog) -> None:
    on = price_age(catalog.offers, date(2026, 11, 21))
    assert (on.prices, on.old, on.oldest, on.days) == (len(catalog.offers), 408, "2024-12-01", 720)
    assert on.unknown == 0
    later = price_age(catalog.offers, date(2027, 6, 1))
    assert later.old == later.prices - later.unknown
    problem = stale_prices(catalog, date(2026, 11, 21))
    assert problem is not None
    assert (problem.reference, problem.severity) == ("stale-prices", "warning")
    assert f"408 of {len(catalog.offers):,} prices are up to 720 days old (as of 2024-12-01)" in problem.message
    assert problem.message.endswith("run stands, totals may not")
    assert gone_stale(catalog, date(2026, 11, 21)) is None
    assert gone_stale(catalog, date(2027, 11, 21)) is not None


@pytest.mark.parametrize(("day", "told"), [(date(2027, 5, 19), False), (date(2027, 5, 20), True)])
def test_prices_are_old_after_half_a_year(tmp_path: Path, day: date, told: bool) -> None:
    rows = f"{STEADY},aws,p5.48xlarge,us-east-1,on_demand,30,2026-11-20,seen,a page\n"
    text = HEAD + "name: ours\noffers: [{offer: '*', remove: true}]\n"
    problem = stale_prices(load_catalog(written(tmp_path, text, offers__aws_csv=LONG + rows)), day)
    assert (problem is not None) == told
    if problem:
        assert problem.message.startswith("catalog ours: prices are 181 days old (as of 2026-11-20)")


def test_prices_of_the_question_are_of_no_age(catalog: Catalog) -> None:
    assert price_age(with_device_price(catalog, "*=$1/h").offers, date(2030, 1, 1)).old < len(catalog.offers)
    assert load_priced(None, OwnPrices.of(None, ["h100-sxm=$2/h"])).own_prices == ("--price h100-sxm=$2/h",)


def test_prices_change_by_a_share(catalog: Catalog) -> None:
    """Of a device on every price model, of one price model, of offers by id; the list keeps its day."""
    before = offers_of(catalog)
    for text, factor, touched in (
        ("h100-sxm=+20%", 1.2, {STEADY, SPOT}),
        ("h100-sxm@spot=-12.5 %", 0.875, {SPOT}),
        ("aws:*:on_demand=-10%", 0.9, {STEADY}),
        ("aws:p5.48xlarge@spot=-10%", 0.9, {SPOT}),
    ):
        after = offers_of(with_device_price(catalog, text))
        for name in (STEADY, SPOT, "gcp:us-east5-a:tpu-v5p-12288:on_demand"):
            full = before[name].price_microusd_per_hour
            assert after[name].price_microusd_per_hour == (round(full * factor) if name in touched else full)
        changed = after[min(touched)].provenance
        assert changed.as_of == before[min(touched)].provenance.as_of
        assert f"--price {text.replace(' ', '')}" in changed.source.replace(" ", " ")


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("h100-sxm=-100%", "out-of-range"),
        ("h100-sxm=+1001%", "out-of-range"),
        ("h100-sxm@monthly=+5%", "unknown-value"),
        ("h1000=+5%", "no-offer"),
        ("awz:*=+5%", "no-offer"),
    ],
)
def test_changes_that_leave_no_price_or_mean_nothing(catalog: Catalog, text: str, reference: str) -> None:
    with pytest.raises(UsageError, match=reference):
        with_device_price(catalog, text)


@pytest.mark.parametrize(
    ("text", "way"), [("nebius=-30%", "nebius:*=-30%"), ("Lambda=+5%", "lambda:*=+5%"), ("aws=$2/h", "aws:*=-10%")]
)
def test_the_name_of_a_provider_is_told_with_what_changes_its_prices(catalog: Catalog, text: str, way: str) -> None:
    """The list of all offers was pointed at; the way that is told works."""
    with pytest.raises(UsageError) as caught:
        with_device_price(catalog, text)
    assert f"--price '{way}'" in caught.value.problems[0].hint
    before = {one.id: one.price_microusd_per_hour for one in catalog.offers}
    after = {one.id: one.price_microusd_per_hour for one in with_device_price(catalog, way).offers}
    assert {name.partition(":")[0] for name, price in after.items() if price != before[name]} == {way.partition(":")[0]}


def test_a_price_in_another_currency_counts_at_the_rate_of_the_scenario() -> None:
    rates = Rates(dollars={"EUR": 1.08}, as_of="2026-11-01")
    own = OwnPrices.of(None, ["h100-sxm-80gb=€2.50/h"], rates)
    euros = load_priced(None, own)
    dollars = load_priced(None, OwnPrices.of(None, ["h100-sxm-80gb=$2.70/h"]))
    assert {one.id: one.price_microusd_per_hour for one in euros.offers} == {
        one.id: one.price_microusd_per_hour for one in dollars.offers
    }
    assert OwnPrices.from_flags(own.flags, rates) == own
    with pytest.raises(UsageError, match="no rate to dollars"):
        load_priced(None, OwnPrices.of(None, ["h100-sxm-80gb=€2.50/h"]))


P5 = "aws:us-east-1:p5.48xlarge:on_demand"


@pytest.mark.parametrize(
    ("text", "moved", "left"),
    [
        (f"{P5}=$31.90/h", {P5}, SPOT),
        ("aws:us-east-1:p5.48xlarge=$31.90/h", {P5}, SPOT),
        ("aws:p5.48xlarge=$31.90/h", {P5}, SPOT),
        ("aws/p5.48xlarge=$31.90/h", {P5}, SPOT),
        ("p5.48xlarge=$31.90/h", {P5}, SPOT),
        ("aws:p5.48xlarge@spot=$31.90/h", {SPOT}, P5),
        ("aws:*:p5.48xlarge:*@spot=$31.90/h", {SPOT}, P5),
        ("aws:*:p5.48xlarge:spot=$31.90/h", {SPOT}, P5),
        ("aws:p5.48xlarge=$23287/month", {P5}, SPOT),
    ],
)
def test_an_offer_or_a_machine_has_a_price_of_its_own(catalog: Catalog, text: str, moved: set[str], left: str) -> None:
    """A break-even names an offer and its price: asked with it, a file of prices was all that did."""
    after, before = offers_of(with_device_price(catalog, text)), offers_of(catalog)
    assert {after[name].price_microusd_per_hour for name in moved} == {31_900_000}  # of the machine, not of a device
    changed = {name for name, one in after.items() if one != before[name]}
    assert moved <= changed
    assert left not in changed
    assert {name.split(":")[2] for name in changed} == {"p5.48xlarge"}
    provenance = after[min(moved)].provenance
    assert (provenance.status, provenance.as_of) == ("user", "")
    assert provenance.source.endswith("=$31.90 /h a machine")


@pytest.mark.parametrize(
    ("text", "reference", "told"),
    [
        ("aws:*=$40/h", "many-machines", "--price 'aws:*=-10%'"),
        ("aws:us-east-1=$40/h", "many-machines", "name one machine"),
        ("aws:*:p5.48xlarge:*=$40/h", "many-terms", "aws:*:p5.48xlarge:*@on_demand=$40/h"),
        ("aws:p5.48xlarge@flex=$40/h", "no-offer", "write aws:p5.48xlarge@block="),
        ("aws:p5.48xlrge=$40/h", "unknown-device", "did you mean 'aws:p5.48xlarge'?"),
        ("aws:p5.48xlarge=40", "missing-unit", "$40/h"),
        ("aws:p5.48xlarge=$0/h", "bad-price", "hardware.owned"),
        ("lambda:h100-*=$2/h", "unknown-device", "--price 'lambda:*:gpu_1x_h100_pcie:*=-10%'"),
    ],
)
def test_a_price_of_several_machines_or_terms_is_asked_about(
    catalog: Catalog, text: str, reference: str, told: str
) -> None:
    with pytest.raises(UsageError, match=reference) as caught:
        with_device_price(catalog, text)
    assert told in caught.value.problems[0].hint


def test_a_plan_at_the_price_of_one_machine_is_verified_with_it() -> None:
    flag = "hyperstack:n3-H100-SXM5x8=$7.77/h"
    job = {"name": "j", "model": "llama-3.1-8b", "tokens": "1B", "deadline": "20 days"}
    asked = scenario([job], hardware={"allow": ["h100-sxm-80gb"]})
    plan = api.solve(asked, api.catalog_of(asked, price=[flag])).document
    (row,) = plan["workloads"][0]["allocations"]
    assert (row["offer"].split(":")[:3:2], row["price_source"]) == (
        ["hyperstack", "n3-H100-SXM5x8"], "--price hyperstack:n3-H100-SXM5x8=$7.77 /h a machine"
    )  # fmt: skip
    assert plan["provenance"]["catalog"]["own_prices"] == [f"--price {flag}"]
    assert errors(json.loads(json.dumps(plan))) == []
    assert "other-catalog" in {one.reference for one in api.verify(plan, load_catalog())}
    forged = json.loads(json.dumps(plan))
    forged["provenance"]["catalog"]["own_prices"] = ["--price hyperstack:n3-H100-SXM5x8=$7.78/h"]
    assert "other-catalog" in {one.reference for one in api.verify(forged)}


def test_a_quote_in_a_known_region_is_in_its_country(catalog: Catalog, tmp_path: Path) -> None:
    """Without a country it was in none: `regions: [us]` left it out, and beside offers that have one no plan held."""
    head = "offer,provider,shape,region,price_model,price_usd_per_hour_per_shape,as_of,min_term_hours,max_term_hours\n"
    rows = "aws:mine:p5.48xlarge:commitment_1y,aws,aws/p5.48xlarge,us-east-1,commitment_1y,30,2026-11-18,8760,8760\n"
    rows += "aws:far:p5.48xlarge:on_demand,aws,p5.48xlarge,nowhere-9,on_demand,30,2026-11-18,,\n"
    found = offers_of(priced(catalog, tmp_path, head + rows))
    mine = found["aws:mine:p5.48xlarge:commitment_1y"]
    assert (mine.shape, mine.country, found["aws:far:p5.48xlarge:on_demand"].country) == ("aws/p5.48xlarge", "US", "")
    fleet = {"name": "chat", "model": "llama-3.1-8b", "weights": "fp8", "qpm": 9000, "input_tokens": 500,
             "output_tokens": 200}  # fmt: skip
    hardware = {"allow": ["h100-sxm-80gb"], "providers": ["aws"], "regions": ["us"]}
    hardware["pricing"] = ["on_demand", "commitment_1y"]
    asked = scenario([], [fleet], hardware=hardware, horizon="12 months")
    plan = api.solve(asked, priced(catalog, tmp_path, head + rows))
    assert [one["offer"] for one in plan.document["contracts"]] == ["aws:mine:p5.48xlarge:commitment_1y"]


@pytest.mark.parametrize("price", ["31,50", "$31.50", "31.50 EUR"])
def test_prices_that_are_no_numbers_are_told_how_to_write_them(catalog: Catalog, tmp_path: Path, price: str) -> None:
    """ "Leave the row out when it is not sold" was said of a comma."""
    with pytest.raises(InputError) as caught:
        priced(catalog, tmp_path, SHORT + f'{STEADY},"{price}",2026-11-20\n')
    assert "write dollars as a number alone" in caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("h100-*=20%", r"write \+20% or -20%"),
        ("lambda:h100-*=+5%", r"--price 'lambda:\*:gpu_1x_h100_pcie:\*=\+5%' --price"),
    ],
)
def test_what_a_price_may_mean_is_told_and_works(catalog: Catalog, asked: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        with_device_price(catalog, asked)
    for followed in re.findall("'([^']+)'", caught.value.problems[0].hint):
        assert with_device_price(catalog, followed).digest != catalog.digest
