"""What a plan says of where its figures are from, and of all that the scenario names.

Equations go by name, facts and prices are held against the catalog; of machines owned, devices, sellers and terms it
says whether each is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planner.architecture.model import Architecture
from planner.catalog.load import match_devices
from planner.catalog.model import Catalog, Provenance
from planner.catalog.names import provider_matches
from planner.checks.facts import facts_of_row
from planner.checks.findings import Finding, cell_findings
from planner.estimate import sources as named
from planner.estimate.resolve import base_tier
from planner.estimate.serving_tiers import fleet_tier
from planner.scenario.schema import Discount, Quota, Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract
    from planner.plan.model.plan import Allocation, Fact, PlanDocument, TermSource, Workload


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


RESERVED = "reserved"


def source_findings(asked: TrainingJob | ServingFleet, arch: Architecture, stated: Workload) -> Iterator[Finding]:
    """Everything wrong with the equations that a workload names.

    Parameters
    ----------
    asked
        The workload of the scenario.
    arch
        Its model; whether its layers are known decides on the tier.
    stated
        The same workload in the plan.
    """
    estimator, equations, terms = _named(asked, arch)
    yield from cell_findings("wrong-source", asked.name, stated, {"estimator": estimator, "equations": equations})
    told = cast("Mapping[str, Mapping[str, TermSource]]", stated["term_sources"])
    for part, by_term in terms.items():
        found = {term: entry["equation"] for term, entry in told[part].items()}
        yield from cell_findings("wrong-source", asked.name, {part: found}, {part: dict(by_term)})
    short = (entry.get("source") for part in told.values() for entry in part.values())
    if set(told) != set(terms) or any(not isinstance(text, str) for text in short):
        yield Finding("wrong-source", f"{asked.name}: sources of {sorted(told)}, not of {sorted(terms)}")


def _named(
    asked: TrainingJob | ServingFleet, arch: Architecture
) -> tuple[str, list[str], Mapping[str, Mapping[str, str]]]:
    """The tier in words, all equations, and those of each term of memory and time."""
    if isinstance(asked, TrainingJob):
        base = base_tier(asked, arch)
        given = " or ".join(name for name, value in (("mfu", asked.mfu), ("step_time", asked.step_time)) if value)
        time = {**named.time_equations("rule"), **named.time_equations(base)} if asked.mfu else None
        terms = {**(time or named.time_equations(base)), **(named.MIXED_TIME if asked.mix_within_job else {})}
        estimator = f"measured where {given} is given, else {base}" if given else base
        equations = named.training_equations(base, mixed=asked.mix_within_job)
        return estimator, equations, {"memory": named.TRAINING_MEMORY, "time": terms}
    if asked.profile is not None:
        return "measured (rates given)", [], {"memory": {}, "time": {}}
    tier, given_rate = fleet_tier(asked, arch), asked.throughput_tokens_per_s_per_device is not None
    words = f"{tier} (given throughput)" if given_rate else "rule (roofline T1)" if tier == "rule" else tier
    step = {} if given_rate else named.SERVING_STEP
    equations = named.serving_equations(tier, given_throughput=given_rate, users=bool(asked.users))
    return words, equations, {"memory": named.SERVING_MEMORY, "time": step}


def fact_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """The facts behind what was chosen are those of the catalog, all of them and no others; so is their oldest date.

    Parameters
    ----------
    document
        A plan, with rows or without.
    scenario
        The one that the plan carries, read; how jobs are billed follows from it.
    catalog
        The catalog with the scenario's discounts and contracts.
    """
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    wanted: dict[tuple[str, str], Fact] = {}
    for row in rows:
        if row["price_model"] != RESERVED:  # whose price is the contract's
            _price(wanted, row)
            _billing(wanted, row, scenario, catalog)
        device, shape = catalog.devices[row["device"]], catalog.shapes[row["shape"]]
        for thing in (device, shape):
            for name, origin in thing.facts.items():
                _add(wanted, thing.id, name, _told(thing, name, dotted=thing is device), origin)
    for contract in document["contracts"]:
        _price(wanted, contract)
    for copy in document["copies"]:
        home = copy["from"].split("/")[0]
        kind = "inter-region" if home == copy["provider"] else "egress"
        for key in ((home, kind), (copy["provider"], "storage")):
            if key in catalog.transfers:
                fee = catalog.transfers[key]
                text = ", ".join(f"{price:g} USD/GB above {above:g} GB" for above, price in fee.tiers)
                _add(wanted, *key, text, fee.provenance)
    facts = [wanted[key] for key in sorted(wanted)]
    provenance = document["provenance"]
    if len(facts) != len(provenance["facts"]):
        yield Finding("wrong-fact", f"{len(provenance['facts'])} facts are told, the plan rests on {len(facts)}")
        return
    for fact, stated in zip(facts, provenance["facts"]):
        yield from cell_findings("wrong-fact", f"{fact['subject']} {fact['fact']}", stated, fact)
    dates = [row["price_as_of"] for row in (*rows, *document["contracts"]) if row["price_as_of"]]
    yield from cell_findings("wrong-fact", "provenance", provenance, {"prices_as_of": min(dates, default="")})


def _price(wanted: dict[tuple[str, str], Fact], row: Allocation | Contract) -> None:
    origin = Provenance(source=row["price_source"], as_of=row["price_as_of"], status=row["price_status"])
    _add(wanted, row["offer"], "price", f"{row['price_microusd_per_hour'] / 1e6:g} USD/h per shape", origin)


def _billing(wanted: dict[tuple[str, str], Fact], row: Allocation, scenario: Scenario, catalog: Catalog) -> None:
    """On what terms the provider of a training job is paid."""
    found = facts_of_row(row, scenario, catalog) if "billed_hours" in row else None
    for fact in found.bill.facts if found is not None and found.bill is not None else ():
        _add(wanted, row["provider"], fact.name, fact.value, fact.provenance)


def _add(wanted: dict[tuple[str, str], Fact], subject: str, fact: str, value: str, origin: Provenance) -> None:
    wanted[subject, fact] = {
        "subject": subject,
        "fact": fact,
        "value": value,
        "source": origin.source,
        "as_of": origin.as_of,
        "status": origin.status,
    }


def _told(thing: Any, name: str, *, dotted: bool) -> str:
    """A fact as text; of a device also a part of a table, "peak_flop_per_s.bf16"."""
    head, _, key = name.partition(".") if dotted else (name, "", "")
    value = getattr(thing, head, "")
    return str(value.get(key, "")) if isinstance(value, dict) and key else str(value)


def ledger_findings(document: PlanDocument) -> Iterator[Finding]:
    """No way on another kind of device is left out of those that are told, up to the most that are."""
    for workload in document["workloads"]:
        kinds, told = document["rejected"][workload["name"]]["devices"], len(workload["alternatives"])
        if told != kinds:
            yield Finding("wrong-columns", f"{workload['name']}: {told} ways are told, on {kinds} kinds of devices")
    if list(document["rejected"]) != [workload["name"] for workload in document["workloads"]]:
        yield Finding("wrong-columns", "what was left out is not told of each workload")
