"""Everything that a plan pays for, one by one: what, to whom, how much, and when it falls due.

Read from the plan document; the sum of all charges is the plan's total, to the micro-dollar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from planner.catalog.model import Catalog

Document = dict[str, Any]
Span = tuple[Fraction, Fraction, int]  # from, until [h] after the plan's begin, units at work

COMMITTED, VARIABLE = "committed", "variable"
BY_USE, UPFRONT, INSTALMENTS = "by use", "up front", "instalments"
PAID_AHEAD = {"block": Fraction(1)}  # share of a fee due when it starts, where the catalog does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One thing that is paid for, with the quantity and the price that its cost is the product of."""

    source: str  # path in the plan document: "workloads[0].allocations[1]"
    workload: str  # "" where several share it
    kind: str  # training | serving; "" where several share it
    pool: str | None  # pool whose users share it
    provider: str
    place: str
    item: str  # id of the offer, or what is paid for
    category: str  # on_demand | spot | commitment_1y | block | owned | egress | storage | traffic ...
    commitment: str  # committed: due whether used or not; variable: by use
    payment: str  # by use | up front | instalments
    cost_microusd: int
    count: int  # nodes
    hours: float  # that each is paid for  [h]
    price_microusd_per_hour: int | None  # of one node; None: the cost is no product of nodes, hours and price
    share: Fraction  # of count × hours × price that this charge is
    spans: tuple[Span, ...]  # when it falls due: evenly over these, or where they are a moment, at once


def charges_of(document: Mapping[str, Any], catalog: Catalog) -> list[Charge]:
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


def _allocations(document: Mapping[str, Any]) -> Iterator[Charge]:
    for w, workload in enumerate(document["workloads"]):
        for a, row in enumerate(workload["allocations"]):
            whole = row["cost_microusd"]
            sent = row["mix"]["traffic_microusd"] if "mix" in row else 0
            cells: dict[str, Any] = {
                "source": f"workloads[{w}].allocations[{a}]",
                "workload": workload["name"],
                "kind": workload["kind"],
                "pool": None,
                "provider": row["provider"],
                "place": row["zone"] or row["region"],
                "commitment": VARIABLE,
                "payment": BY_USE,
                "share": Fraction(1),
                "spans": _spans(row),
            }
            yield Charge(
                **cells,
                item=row["offer"],
                category=row["price_model"],
                cost_microusd=whole - sent,
                count=row["count"],
                hours=row["hours"],
                price_microusd_per_hour=row["price_microusd_per_hour"],
            )
            yield Charge(
                **cells, item=f"traffic of {row['offer']}", category="traffic", **_sum_of_its_own(sent)
            )  # fmt: skip


def _sum_of_its_own(microusd: int) -> dict[str, Any]:
    """Cells of a charge that is a sum, no product of nodes, hours and price."""
    return {"cost_microusd": microusd, "count": 1, "hours": 0.0, "price_microusd_per_hour": None}


def _spans(row: Mapping[str, Any]) -> tuple[Span, ...]:
    """When a row runs; of a job that pauses its running periods."""
    runs = row["runs"] or [{"start_hours": row["start_hours"], "end_hours": row["end_hours"], "jobs": 1}]
    return tuple((_exact(run["start_hours"]), _exact(run["end_hours"]), int(run["jobs"])) for run in runs)


def _exact(hours: float) -> Fraction:
    return Fraction(float(hours))


def _contracts(document: Mapping[str, Any], catalog: Catalog) -> Iterator[Charge]:
    ahead = {offer.id: offer.upfront_fraction for offer in catalog.offers if offer.upfront_fraction is not None}
    for c, contract in enumerate(document.get("contracts") or ()):
        kind, begin = contract["kind"], _exact(contract["start_hours"])
        hours = contract["end_hours"] - contract["start_hours"] if contract["prorated"] else contract["term_hours"]
        share = _upfront_share(contract, ahead)
        cells: dict[str, Any] = {
            "source": f"contracts[{c}]",
            "workload": "",
            "kind": "",
            "pool": contract["pool"],
            "provider": contract["provider"],
            "place": contract["zone"] or contract["region"],
            "item": contract["offer"],
            "category": kind,
            "commitment": VARIABLE if kind == "on_demand" else COMMITTED,
            "count": contract["count"],
            "hours": hours,
            "price_microusd_per_hour": contract["price_microusd_per_hour"],
        }
        first = round(contract["cost_microusd"] * share)
        yield Charge(**cells, payment=UPFRONT, cost_microusd=first, share=share, spans=((begin, begin, 1),))
        rest = {"cost_microusd": contract["cost_microusd"] - first, "share": 1 - share}
        payment = BY_USE if kind == "on_demand" else INSTALMENTS
        yield Charge(**cells, payment=payment, **rest, spans=((begin, begin + _exact(hours), 1),))


def _upfront_share(contract: Mapping[str, Any], ahead: Mapping[str, float]) -> Fraction:
    """Share of a contract's fee that is due when it starts: as the catalog says, else as its kind is sold."""
    if contract["kind"] == "on_demand":
        return Fraction(0)
    told = ahead.get(contract["offer"])
    return PAID_AHEAD.get(contract["kind"], Fraction(0)) if told is None else Fraction(repr(told))


def _copies(document: Mapping[str, Any]) -> Iterator[Charge]:
    """Copies of data: sent before the first job that reads them starts, kept until the last deadline."""
    jobs = {job["workload"]: job["release_hours"] for job in (document.get("schedule") or {}).get("jobs", [])}
    for c, copy in enumerate(document.get("copies") or ()):
        begin = min((jobs[name] for name in _readers(document, copy["data"]) if name in jobs), default=0.0)
        sender = str(copy["from"]).partition("/")[0]
        cells: dict[str, Any] = {
            "source": f"copies[{c}]",
            "workload": copy["data"],
            "kind": "training",
            "pool": None,
            "place": copy["region"],
            "commitment": VARIABLE,
            "payment": BY_USE,
            "share": Fraction(1),
        }
        start, kept = _exact(begin), _exact(copy["kept_hours"])
        sent = _sum_of_its_own(copy["egress_microusd"]) | {"spans": ((start, start, 1),)}
        yield Charge(**cells, provider=sender, item=f"egress of {copy['data']}", category="egress", **sent)
        stored = _sum_of_its_own(copy["storage_microusd"]) | {"spans": ((start, start + kept, 1),)}
        yield Charge(
            **cells, provider=copy["provider"], item=f"storage of {copy['data']}", category="storage", **stored
        )


def _readers(document: Mapping[str, Any], data: str) -> list[str]:
    """Jobs that read a data set."""
    jobs = [job for job in document["scenario"].get("training", []) if job.get("data")]
    return [job["name"] for job in jobs if (job["data"].get("name") or f"{job['name']}:data") == data]
