"""Random questions: no suspect price, no marketplace that nobody asked for; money of random plans in decimals."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog, Provenance, Provider
from planner.errors import InputError
from planner.scenario.schema import Scenario
from tests.tiers import cases, while_time_lasts
from tests.verified import errors
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

SHIPPED = api.load_catalog()
OFFERS = {one.id: one for one in SHIPPED.offers}
MARKETS = {name for name, one in SHIPPED.providers.items() if one.kind == "marketplace"}
MODELS = ("gpt2-xl", "llama-3.1-8b", "llama-2-13b")
DEVICES = (
    "*",
    "h100-*",
    "a100-*",
    "h200-*",
    "b200-*",
    "l4",
    "l40s",
    "t4",
    "rtx-*",
    "v100-*",
    "a10*",
    "mi300x",
    "tpu-*",
)
PRICING: tuple[list[str], ...] = (["on_demand"], ["on_demand", "spot"], ["spot"], ["on_demand", "commitment_1y"])


def random_question(draw: random.Random) -> Scenario:
    """One job or one fleet on some devices, from some sellers, on some price models; months or days."""
    hardware: dict[str, Any] = {"allow": draw.sample(DEVICES, draw.randint(1, 3)), "pricing": draw.choice(PRICING)}
    if "spot" in hardware["pricing"]:
        hardware["spot"] = {"interruptions": "0.02 /h", "restart": "10 min"}
    whom = draw.random()
    if whom < 0.2:
        hardware["providers"] = draw.sample(sorted(SHIPPED.providers), 3)
    elif whom < 0.4:
        hardware["kinds"] = draw.sample(["hyperscaler", "cloud", "marketplace"], draw.randint(1, 3))
    elif whom < 0.5:
        hardware["exclude"] = draw.sample(sorted(SHIPPED.providers), 2)
    if draw.random() < 0.6:
        work = job(model=draw.choice(MODELS), tokens=f"{draw.randint(1, 400) / 100}B",
                   deadline=f"{draw.randint(2, 60)} days")  # fmt: skip
        for name in ("recompute", "sharding", "global_batch", "sequence_length"):
            del work[name]
        return scenario([work], hardware=hardware, horizon="60 days")
    serves = {"name": "chat", "model": draw.choice(MODELS[1:]), "qpm": draw.randint(5, 600),
              "input_tokens": draw.randint(50, 2000), "output_tokens": draw.randint(20, 500)}  # fmt: skip
    return scenario([], [serves], hardware=hardware)


@pytest.mark.parametrize("part", range(5))
def test_no_suspect_price_and_no_marketplace_that_nobody_asked_for(part: int) -> None:
    """The exception that is stated: where marketplaces are the only sellers of what was allowed, the plan warns."""
    draw, solved, alone = random.Random(180 + part), 0, 0
    for _ in while_time_lasts(range(cases(3, 100))):
        asked = random_question(draw)
        try:
            document: Any = api.solve(asked, SHIPPED).document
        except InputError:  # nothing that is allowed is sold so
            continue
        rows = [row for workload in document["workloads"] for row in workload["allocations"]]
        solved += bool(rows)
        bought = {row["offer"] for row in (*rows, *document["contracts"]) if not row["offer"].startswith("reserved:")}
        assert not {OFFERS[name].quality for name in bought} - {""}
        for row in rows:
            if row["provider"] not in MARKETS:
                continue
            hardware = asked.hardware
            named = hardware.kinds is not None or row["provider"] in hardware.providers
            alone += not named
            assert any(f"{row['provider']} is a marketplace" in line for line in document["warnings"])
            if not named:
                assert not _others_sell(row, asked), row["offer"]
    assert solved


def _others_sell(row: Any, asked: Scenario) -> bool:
    """Whether anybody but a marketplace sells what one of the patterns that cover a row's device means."""
    from planner.catalog.names import device_matches

    hardware = asked.hardware
    mine = SHIPPED.devices[row["device"]]
    for pattern in hardware.allow:
        if not device_matches(mine, pattern):
            continue
        sold = [
            one for one in SHIPPED.offers
            if device_matches(SHIPPED.devices[SHIPPED.shapes[one.shape].device], pattern)
            and one.price_model in hardware.pricing and not one.quality and one.provenance.status != "recalled"
            and one.provider not in MARKETS and one.provider not in hardware.exclude
            and (hardware.providers == ("*",) or one.provider in hardware.providers)
        ]  # fmt: skip
        if not sold:
            return False
    return True


@pytest.mark.parametrize(("case", "provider"), [(None, "aws"), ("azure", "azure"), ("gcp", "gcp")])
def test_the_shipped_example_commits_where_it_pays(case: str | None, provider: str) -> None:
    """At each large cloud: what is chosen is under a commitment that was seen, and cheaper than all on demand."""
    asked = api.load_scenario("scenarios/reserve.yaml", case=case)
    document: Any = api.solve(asked, SHIPPED).document
    assert document["status"] == "optimal"
    assert errors(document, SHIPPED) == []
    assert {contract["provider"] for contract in document["contracts"]} == {provider}
    for contract in document["contracts"]:
        kept = OFFERS[contract["offer"]]
        assert kept.price_model in ("commitment_1y", "commitment_3y")
        assert kept.provenance.as_of
        assert kept.provenance.source
        assert kept.provenance.status == "seen"
    rented: Any = api.solve(asked.with_({"hardware.pricing": ["on_demand"]}), SHIPPED).document
    assert document["summary"]["cost_microusd"] < 0.8 * rented["summary"]["cost_microusd"]


def test_commitments_that_ship() -> None:
    """Of NVIDIA devices, each with source and date, of three providers and more."""
    kept = [
        one for one in SHIPPED.offers
        if one.price_model in ("commitment_1y", "commitment_3y", "block")
        and SHIPPED.devices[SHIPPED.shapes[one.shape].device].vendor == "nvidia"
    ]  # fmt: skip
    assert all(one.provenance.source and one.provenance.as_of for one in kept)
    assert len(kept) >= 150
    assert len({one.provider for one in kept}) >= 3


def test_every_offer_has_a_date_or_an_interval() -> None:
    assert [
        one.id for one in SHIPPED.offers if not one.provenance.as_of and not (one.not_before and one.not_after)
    ] == []


SEEN = Provenance(source="a page", as_of="2026-11-20", status="seen")
RATES = {"EUR": Decimal("1.0837"), "CHF": Decimal("1.1402"), "JPY": Decimal("0.006613")}


def micro(amount: Decimal) -> int:
    return int((amount * 10**6).to_integral_value(ROUND_HALF_EVEN))


class Money:
    """A random question with what each offer costs, in decimals from what was written."""

    def __init__(self, draw: random.Random) -> None:
        self.hourly: dict[str, int] = {}
        self.terms: dict[str, tuple[int, int, int] | None] = {}
        shapes = [shape("north/one", devices=2), shape("south/one", devices=1)]
        offers = [offer(one.id, round(draw.uniform(0.5, 60.0), 6)) for one in shapes]
        sellers = {}
        for one in offers:
            step, least, boot = draw.choice((1, 60, 3600)), draw.choice((0, 60, 7200)), draw.choice((0, 300, 601))
            self.hourly[one.id], self.terms[one.id] = one.price_microusd_per_hour, (step, least, boot)
            sellers[one.provider] = Provider(
                id=one.provider, kind="cloud", capacity="", billing_step_s=step, minimum_s=least, provenance=SEEN,
                boot_s=boot, boot_provenance=SEEN,
            )  # fmt: skip
        self.catalog: Catalog = replace(catalog([device()], shapes, offers), providers=sellers)
        owned = [self._owned(draw, number) for number in range(draw.randint(1, 3))]
        jobs = [job(f"job{k}", tokens=f"{draw.randint(3, 3000)}M", deadline=f"{draw.randint(8, 60)} h",
                    count=draw.randint(1, 2)) for k in range(draw.randint(1, 2))]  # fmt: skip
        serves = [fleet("chat", qpm=draw.randint(50, 1500))] if draw.random() < 0.5 else []
        self.scenario: Scenario = scenario(
            jobs, serves, hardware={"owned": owned, "share_nodes": False},
            currency={**{code: float(rate) for code, rate in RATES.items()}, "as_of": "2026-11-01"},
        )  # fmt: skip

    def _owned(self, draw: random.Random, number: int) -> dict[str, Any]:
        """A group of owned machines; its hour in decimals goes to `hourly`."""
        name = f"owned:{number}:north/one"
        code, rate = draw.choice([("", Decimal(1)), *RATES.items()])
        entry: dict[str, Any] = {"shape": "north/one", "count": draw.randint(1, 3)}
        if draw.random() < 0.3:
            price = Decimal(draw.randrange(1, 3000)) / 100
            entry["price"] = f"{price} {code}/h" if code else f"${price}/h"
            self.hourly[name], self.terms[name] = micro(price * rate), None
            return entry
        bought, sold = draw.randrange(1000, 10**6), draw.randrange(0, 1000)
        years, watts, pue = draw.choice([2, 3, 3.5, 5]), draw.randrange(100, 15000), draw.choice([1, 1.25, 1.31])
        energy, staff = Decimal(draw.randrange(20, 900)) / 1000, Decimal(draw.randrange(0, 90000)) / 100
        written = (lambda amount: f"{amount} {code}") if code else (lambda amount: f"${amount}")
        entry["capital"] = {"price": written(bought), "years": years, "residual": written(sold)}
        entry["power"] = {"watts": watts, "price": written(energy) + "/kWh", "pue": pue}
        entry["staff"] = written(staff) + "/month"
        value = micro(bought * rate) - micro(sold * rate)
        parts = [
            Decimal(value) / 10**6 / (Decimal(repr(years)) * 8760),
            Decimal(watts) / 1000 * micro(energy * rate) / 10**6 * Decimal(repr(pue)),
            staff * rate / 730,
        ]
        self.hourly[name], self.terms[name] = sum(map(micro, parts)), None
        return entry

    def cost(self, row: Any) -> int:
        """Micro-dollars of a row, in decimals of 60 digits."""
        jobs, hours, terms = row.get("jobs", 1), Decimal(repr(row["hours"])), self.terms[row["offer"]]
        seconds = 3600 * Decimal(f"{hours:.9e}")
        if terms is not None and "jobs" in row:
            step, least, boot = terms
            held = (hours * 3600 + boot) * (1 - Decimal("1e-9"))
            seconds = max((held / step).to_integral_value(ROUND_CEILING) * step, Decimal(least))
        each = seconds * (row["count"] // jobs) * self.hourly[row["offer"]] / 3600
        return int(jobs) * int(each.to_integral_value(ROUND_HALF_EVEN))


@pytest.mark.parametrize("part", range(5))
def test_money_with_currencies_increments_and_owned_machines_in_decimals(part: int) -> None:
    draw, owning, solved = random.Random(700 + part), 0, 0
    for _ in while_time_lasts(range(cases(6, 100))):
        with localcontext() as context:
            context.prec = 60
            asked = Money(draw)
            document: Any = api.solve(asked.scenario, asked.catalog).document
            if document["status"] == "infeasible":
                continue
            solved += 1
            rows = [row for workload in document["workloads"] for row in workload["allocations"]]
            for row in rows:
                assert row["price_microusd_per_hour"] == asked.hourly[row["offer"]], row["offer"]
                assert row["cost_microusd"] == asked.cost(row), row["offer"]
            assert document["summary"]["cost_microusd"] == sum(row["cost_microusd"] for row in rows)
            for hour in document.get("owned_hours", ()):
                owning += hour["cost_microusd"] > 0
                spent = sum(hour[f"{name}_microusd"] for name in ("capital", "power", "staff"))
                assert spent == hour["cost_microusd"]
            assert errors(document, asked.catalog) == []
    assert solved
    assert owning
