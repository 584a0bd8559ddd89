"""Everything that a plan pays for, one by one: what, to whom, how much, and when it falls due.

Read from the plan document; the sum of all charges is the plan's total, to the micro-dollar. Charges that are metered
are nodes × hours × price, as a reader multiplies them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from planner.budget.model import BudgetLine, Commitment, Payment, WorkloadKind
from planner.candidates.money import significant_hours
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.plan.model.bought import Contract
from planner.plan.model.plan import Allocation, PlanDocument
from planner.plan.parts import rows_of, workloads_asked

Span = tuple[Fraction, Fraction, int]  # from, until [h] after the plan's begin, units at work

COMMITTED: Final = "committed"
VARIABLE: Final = "variable"
BY_USE: Final = "by use"
UPFRONT: Final = "up front"
INSTALMENTS: Final = "instalments"
PAID_AHEAD = {"block": Fraction(1)}  # share of a fee due when it starts, where the catalog does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One thing that is paid for, with the quantity and the price that its cost is the product of."""

    source: str  # path in the plan document: "workloads[0].allocations[1]"
    workload: str  # "" where several share it
    kind: WorkloadKind | None  # None where several share it
    pool: str | None  # pool whose users share it
    provider: str
    place: str
    item: str  # id of the offer, or what is paid for
    category: str  # on_demand | spot | commitment_1y | block | owned | egress | storage | traffic ...
    commitment: Commitment  # committed: due whether used or not; variable: by use
    payment: Payment
    cost_microusd: int
    count: int  # nodes
    hours: float  # that each is paid for  [h]
    price_microusd_per_hour: int | None  # of one node; None: the cost is no product of nodes, hours and price
    share: Fraction  # of count × hours × price that this charge is
    spans: tuple[Span, ...]  # when it falls due: evenly over these, or where they are a moment, at once


def charges_of(document: PlanDocument, catalog: Catalog) -> list[Charge]:
    """All charges of a plan in the order of its document; those that cost nothing are left out.

    Parameters
    ----------
    document
        A plan with allocations.
    catalog
        Says which part of a contract's fee is due when it starts.
    """
    found = [*_allocations(document), *_contracts(document, catalog), *_copies(document)]
    return [charge for charge in found if charge.cost_microusd]


def _allocations(document: PlanDocument) -> Iterator[Charge]:
    shared = {nodes["offer"]: nodes for nodes in document.get("shared_nodes", [])}
    there = [row for workload in document["workloads"] for row in rows_of(workload) if "shared" in row]
    used = {offer: sum(_use_of(row) for row in there if row["offer"] == offer) for offer in shared}
    for w, workload in enumerate(document["workloads"]):
        for a, row in enumerate(rows_of(workload)):
            sent = row["mix"]["traffic_microusd"] if "mix" in row else 0
            nodes = shared.get(row["offer"]) if "shared" in row else None
            rented = Charge(
                source=f"workloads[{w}].allocations[{a}]",
                workload=workload["name"],
                kind=workload["kind"],
                pool=None,
                provider=row["provider"],
                place=row["zone"] or row["region"],
                item=row["offer"],
                category=row["price_model"],
                commitment=VARIABLE,
                payment=BY_USE,
                cost_microusd=row["cost_microusd"] - sent,
                count=row["count"] if nodes is None else nodes["count"],
                hours=nodes["hours"] if nodes else row["billed_hours"] if "billed_hours" in row else row["hours"],
                price_microusd_per_hour=row["price_microusd_per_hour"],
                share=Fraction(1) if nodes is None else _use_of(row) / used[row["offer"]],
                spans=_spans(row) if nodes is None else ((Fraction(0), _exact(nodes["hours"]), 1),),
            )
            yield rented
            yield replace(
                rented,
                item=f"traffic of {row['offer']}",
                category="traffic",
                cost_microusd=sent,
                count=1,
                hours=0.0,
                price_microusd_per_hour=None,
            )


def _use_of(row: Allocation) -> Fraction:
    """Device-hours of a row, by which the users of shared nodes bear what they cost, as long as those are there."""
    return row["devices"] * _exact(row["hours"])


def _spans(row: Allocation) -> tuple[Span, ...]:
    """When a row runs; of a job that pauses its running periods."""
    runs = row["runs"] or [{"start_hours": row["start_hours"], "end_hours": row["end_hours"], "jobs": 1}]
    return tuple((_exact(run["start_hours"]), _exact(run["end_hours"]), int(run["jobs"])) for run in runs)


def _exact(hours: float) -> Fraction:
    return Fraction(float(hours))


def _contracts(document: PlanDocument, catalog: Catalog) -> Iterator[Charge]:
    ahead = {offer.id: offer.upfront_fraction for offer in catalog.offers if offer.upfront_fraction is not None}
    for c, contract in enumerate(document.get("contracts") or ()):
        kind, begin = contract["kind"], _exact(contract["start_hours"])
        hours = contract["end_hours"] - contract["start_hours"] if contract["prorated"] else contract["term_hours"]
        share = _upfront_share(contract, ahead)
        first = round(contract["cost_microusd"] * share)
        ahead_of_use = Charge(
            source=f"contracts[{c}]",
            workload="",
            kind=None,
            pool=contract["pool"],
            provider=contract["provider"],
            place=contract["zone"] or contract["region"],
            item=contract["offer"],
            category=kind,
            commitment=VARIABLE if kind == "on_demand" else COMMITTED,
            payment=UPFRONT,
            cost_microusd=first,
            count=contract["count"],
            hours=hours,
            price_microusd_per_hour=contract["price_microusd_per_hour"],
            share=share,
            spans=((begin, begin, 1),),
        )
        yield ahead_of_use
        yield replace(
            ahead_of_use,
            payment=BY_USE if kind == "on_demand" else INSTALMENTS,
            cost_microusd=contract["cost_microusd"] - first,
            share=1 - share,
            spans=((begin, begin + _exact(hours), 1),),
        )


def _upfront_share(contract: Contract, ahead: Mapping[str, float]) -> Fraction:
    """Share of a contract's fee that is due when it starts: as the catalog says, else as its kind is sold."""
    if contract["kind"] == "on_demand":
        return Fraction(0)
    told = ahead.get(contract["offer"])
    return PAID_AHEAD.get(contract["kind"], Fraction(0)) if told is None else Fraction(repr(told))


def _copies(document: PlanDocument) -> Iterator[Charge]:
    """Copies of data: sent before the first job that reads them starts, kept until the last deadline."""
    schedule = document.get("schedule")
    jobs = {job["workload"]: job["release_hours"] for job in schedule["jobs"]} if schedule else {}
    for c, copy in enumerate(document.get("copies") or ()):
        begin = min((jobs[name] for name in _readers(document, copy["data"]) if name in jobs), default=0.0)
        sender = str(copy["from"]).partition("/")[0]
        start, kept = _exact(begin), _exact(copy["kept_hours"])
        sent = Charge(
            source=f"copies[{c}]",
            workload=copy["data"],
            kind="training",
            pool=None,
            provider=sender,
            place=copy["region"],
            item=f"egress of {copy['data']}",
            category="egress",
            commitment=VARIABLE,
            payment=BY_USE,
            cost_microusd=copy["egress_microusd"],
            count=1,
            hours=0.0,
            price_microusd_per_hour=None,
            share=Fraction(1),
            spans=((start, start, 1),),
        )
        yield sent
        yield replace(
            sent,
            provider=copy["provider"],
            item=f"storage of {copy['data']}",
            category="storage",
            cost_microusd=copy["storage_microusd"],
            spans=((start, start + kept, 1),),
        )


def _readers(document: PlanDocument, data: str) -> list[str]:
    """Jobs that read a data set."""
    names = []
    for job in workloads_asked(document, "training"):
        held = job.get("data")
        if isinstance(held, Mapping) and (held.get("name") or f"{job['name']}:data") == data:
            names.append(str(job["name"]))
    return names


_HALF_A_CENT_MICROUSD = 5_000


def metered_hours(line: BudgetLine) -> float | None:
    """Hours that each node of a charge is paid for; None where the charge is no product of them and of a price.  [h]"""
    hours, price = float(significant_hours(line["hours"])), line["price_microusd_per_hour"]
    if price is None:
        return None
    product = line["count"] * hours * line["part_of_price"] * price
    return hours if abs(product - line["charge_microusd"]) <= _HALF_A_CENT_MICROUSD else None
