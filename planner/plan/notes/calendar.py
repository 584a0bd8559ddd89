"""What a calendar takes for granted, and the facts behind what is bought ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.candidates.search import Candidates
from planner.catalog.model import Catalog, Provenance, Transfer
from planner.units import format_duration

if TYPE_CHECKING:
    from planner.plan.model.bought import BoughtParts


def calendar_assumptions(candidates: Candidates, bought: BoughtParts) -> Iterator[str]:
    """What was not in the scenario and shaped the schedule; nothing without a calendar."""
    scenario, calendar = candidates.scenario, candidates.calendar
    if calendar is None:
        return
    if calendar.periods > 1:
        period = format_duration(calendar.period_s)
        yield (
            f"a job starts with a period of {period} and holds its machines in every period that it touches, "
            "its time margin included; fleets hold theirs all the time"
        )
    if calendar.pools:
        yield "nodes on demand beside contracted ones are taken for whole periods"
    if any(contract["full_microusd"] != contract["prorated_microusd"] for contract in bought["contracts"]) and (
        "beyond_horizon" not in scenario.hardware.model_fields_set
    ):
        yield "fees of contracts that reach beyond the horizon count whole (hardware.beyond_horizon)"
    if bought["copies"]:
        yield (
            "a copy of data is kept from the first start to the last deadline of the jobs that read them, and is there "
            "when they start"
        )


def bought_warnings(bought: BoughtParts) -> Iterator[str]:
    """Prices of contracts that were not seen, or have no date."""
    for contract in bought["contracts"]:
        if contract["price_status"] == "date-unknown":
            yield f"{contract['offer']}: the price has no date of its own (transcribed {contract['price_as_of']})"
        if contract["price_status"] == "recalled":
            yield f"{contract['offer']}: the price was recalled, not seen"


def bought_facts(candidates: Candidates, bought: BoughtParts) -> Iterator[tuple[str, str, str, Provenance]]:
    """Subject, fact, value and origin of every price behind contracts and copies."""
    for contract in bought["contracts"]:
        origin = Provenance(
            source=contract["price_source"], as_of=contract["price_as_of"], status=contract["price_status"]
        )
        yield contract["offer"], "price", f"{contract['price_microusd_per_hour'] / 1e6:g} USD/h per shape", origin
    for copy in bought["copies"]:
        home = copy["from"].partition("/")[0]
        keys = [(home, "inter-region" if home == copy["provider"] else "egress"), (copy["provider"], "storage")]
        for provider, kind in keys:
            found = _transfer(candidates.catalog, provider, kind)
            if found is not None:
                yield provider, kind, _tiers(found.tiers), found.provenance


def _transfer(catalog: Catalog, provider: str, kind: str) -> Transfer | None:
    return catalog.transfers.get((provider, kind))


def _tiers(tiers: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{price:g} USD/GB above {above:g} GB" for above, price in tiers)
