"""Whether a plan says of all that the scenario names whether it is used: machines owned, devices, sellers, terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from planner.catalog.load import match_devices
from planner.catalog.model import Catalog
from planner.catalog.names import provider_matches
from planner.checks.findings import Finding, cell_findings
from planner.scenario.schema import Discount, Quota, Scenario

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


def named_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Each name has one line, which says that it is used where a row is on it.

    Parameters
    ----------
    document
        A plan; one without rows uses nothing.
    scenario
        The one that the plan carries, read: what it owns, and which devices, providers, price models and contracts
        it names.
    catalog
        The devices that a pattern covers.
    """
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    due = [*_due(scenario, catalog, rows), *_due_terms(scenario, rows, document["contracts"])]
    told = document.get("named", [])
    if [one["place"] for one in told] != [one["place"] for one in due]:
        text = f"it tells what becomes of {[one['place'] for one in told]}, named are {[one['place'] for one in due]}"
        yield Finding("wrong-named", text)
        return
    for wanted, stated in zip(due, told):
        yield from cell_findings("wrong-named", wanted["place"], stated, wanted)


def _due(scenario: Scenario, catalog: Catalog, rows: Any) -> Iterator[dict[str, Any]]:
    hardware = scenario.hardware
    for index, owned in enumerate(hardware.owned):
        used = any(row["offer"].startswith(f"owned:{index}:") for row in rows)
        alike = [one.region for one in hardware.owned if (one.count, one.shape) == (owned.count, owned.shape)]
        where = owned.region if owned.region and alike.count(owned.region) == 1 else f"hardware.owned[{index}]"
        name = f"{owned.count} × {owned.shape}" + (f" ({where})" if len(alike) > 1 else "")
        yield {"place": f"hardware.owned[{index}]", "name": name, "used": used}
    devices = [(f"hardware.allow[{i}]", pattern) for i, pattern in enumerate(hardware.allow)]
    providers: list[tuple[str, str | None]] = [
        (f"hardware.providers[{i}]", pattern) for i, pattern in enumerate(hardware.providers)
    ]
    terms: dict[str, Sequence[Quota | Discount]] = {"quotas": hardware.quotas, "discounts": hardware.discounts}
    for name, some in terms.items():
        devices += [(f"hardware.{name}[{i}].device", one.device or "*") for i, one in enumerate(some)]
        providers += [(f"hardware.{name}[{i}].provider", one.provider) for i, one in enumerate(some)]
    providers += [(f"limits.sites[{i}].provider", one.provider) for i, one in enumerate(scenario.limits.sites)]
    seen: set[str] = {"*"}
    for place, pattern in devices:
        if pattern.lower() not in seen:
            meant = {device.id for device in match_devices(catalog, pattern)}
            yield {"place": place, "name": pattern.lower(), "used": any(row["device"] in meant for row in rows)}
        seen.add(pattern.lower())
    seen = {"*", "owned"}  # whose machines have lines of their own
    for place, provider in providers:
        if provider is not None and provider.lower() not in seen:
            used = any(provider_matches(row["provider"], provider) for row in rows)
            yield {"place": place, "name": provider.lower(), "used": used}
        seen.add((provider or "*").lower())


def _due_terms(scenario: Scenario, rows: Any, bought: Any) -> Iterator[dict[str, Any]]:
    """Price models beside on demand, and the scenario's own contracts; used by rows, or by what is bought ahead."""
    hardware = scenario.hardware
    for index, model in enumerate(hardware.pricing):
        if model != "on_demand":
            used = any(row["price_model"] == model for row in rows) or any(one["kind"] == model for one in bought)
            yield {"place": f"hardware.pricing[{index}]", "name": model, "used": used}
    for index, contract in enumerate(hardware.contracts):
        used = any(one["offer"].startswith(f"contract:{index}:") for one in (*rows, *bought))
        name = f"{contract.shape}, {contract.price_model}"
        yield {"place": f"hardware.contracts[{index}]", "name": name, "used": used}
