"""What becomes of all that a scenario names: owned machines, devices, sellers, terms; used, or why not, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, prod
from typing import TYPE_CHECKING, cast

from planner.candidates.calendar import RESERVED
from planner.candidates.ledger import Drop
from planner.candidates.offers import OWNED, Site, owned_key, provider_key, remembered_offers
from planner.candidates.search import Candidates
from planner.candidates.sellers import is_seller
from planner.candidates.serving import ServingTable
from planner.carriers import dataclass
from planner.catalog.load import device_matches, find_shape, match_devices
from planner.catalog.model import Offer, Shape
from planner.catalog.names import provider_matches
from planner.estimate.market import OWN_CONTRACT
from planner.estimate.ownership import hourly_of
from planner.estimate.resolve import inter_node_rate
from planner.plan.parts import INSIDE_ONE, NOT_NEEDED
from planner.plan.reasons import cheapest_by, left_out_by, passing_groups
from planner.plan.rows.calendar import date_after, owned_periods, owned_window_s
from planner.scenario.hardware_keys import COMMITMENT_HOURS
from planner.units import counted, format_duration, format_money
from planner.units.dimensions import MONTH_S

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract
    from planner.plan.model.others import Named
    from planner.plan.model.plan import Allocation, Workload
    from planner.scenario.schema import Hardware

SAID = {  # of offers that the scenario itself leaves out
    "not-allowed": "not in hardware.allow",
    "kind": "not of hardware.kinds",
    "marketplace": "sold on marketplaces, which promise nothing (hardware.kinds)",
    "provider": "its sellers are left out by hardware.providers or exclude",
    "recalled-price": "its prices are from memory (hardware.allow_recalled)",
    "price-model": "sold on other price models than hardware.pricing",
    "region": "not in hardware.regions",
    "place": "not in the regions of the workload",
    "suspect-price": "its prices look wrong (--allow-suspect)",
    "flex": "one queues for it, and a fleet cannot wait",
    "spot": "no fleet stands on spot that has no max_spot_share",
}
WORDS = frozenset({"deadline", "failures", "latency", "memory", "precision", "quota"})  # reasons that people read
UNTOLD = {  # of ways of which nothing nearer is known
    "dominated": "another way is no worse in anything",
    "network-unknown": "the network between its machines is unknown",
    "slower": "on as many devices another layout is faster",
    "too-slow": "too slow to plan with",
}
PARTS = "are parts of hosts, whose network cards they share with others"
TOGETHER = "over several of them more may fit, once their network is known: hardware.assume_inter_node: 400 Gbit/s, say"
MENDED = "the rate of one machine, one way, mends that: hardware.assume_inter_node: 400 Gbit/s, say"
ASKED = "ask for that (a placement policy, a block)"  # of nodes of one rack
HELD = "a fleet holds its machines for the whole plan"
IDLE = 0.1  # of the time that owned machines are there: more of it is worth a warning
RIVALS = 3  # shapes that a warning names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thing:
    """Something that a scenario names, and how to tell what belongs to it."""

    place: str  # in the scenario
    name: str
    uses: Callable[[Allocation], bool]
    holds: Callable[[Site], bool]
    keys: tuple[str, ...]  # names that ledgers keep of it
    missing: str  # what to say when nothing of it is offered
    owned: int | None = None
    terms: Callable[[Offer], bool] | None = None  # of what is bought ahead, which is on its terms; None: nothing is


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """The cheapest way of a workload on an offer, alone."""

    workload: str
    site: Site
    shapes: int
    cost_microusd: int
    row: int  # of its table
    chosen_microusd: int | None  # cost of the workload in the plan; None where contracts pay for it
    chosen: Sequence[Allocation]  # its rows in the plan
    bounded: bool

    @property
    def ratio(self) -> float:
        """To what was chosen; infinite where that costs nothing."""
        if not self.chosen_microusd:
            return float("inf") if self.cost_microusd else 1.0
        return self.cost_microusd / self.chosen_microusd


def named_of(
    candidates: Candidates, workloads: Sequence[Workload], bought: Sequence[Contract], *, has_plan: bool
) -> list[Named]:
    """A line for each group of owned machines, each device, provider, price model and contract that the scenario names.

    Parameters
    ----------
    candidates
        The ways, with their scenario and catalog.
    workloads
        As they stand in the plan.
    bought
        Contracts of the plan.
    has_plan
        Whether their rows are a plan; without one it is told what could run.
    """
    ways = [way for workload in workloads for way in _ways(candidates, workload)]
    offers = {offer.id: offer for pool in candidates.pools for offer in pool.contracts}
    remembered = remembered_offers(candidates.scenario, candidates.catalog)
    found: list[Named] = []
    for thing in _things(candidates):
        rows = [(one["name"], row) for one in workloads for row in one["allocations"] if thing.uses(row)]
        gone = "" if thing.owned is None else _never_there(candidates, thing.owned)
        away = [] if thing.owned is None or gone else fleets_kept_out(candidates, thing.owned)
        mine = [way for way in ways if thing.holds(way.site) and way.workload not in away]
        held = [one for one in bought if thing.terms and one["offer"] in offers and thing.terms(offers[one["offer"]])]
        if gone:
            text = f"not used: {gone}"
        elif held:
            text = f"used: {', '.join(_held(one) for one in held)}"
        elif rows:
            renting = any(row["price_model"] != OWNED for one in workloads for row in one["allocations"])
            text = _used(candidates, thing, rows, renting=renting)
        elif thing.terms is not None and (ahead := _ahead(candidates, thing.terms)):
            text = _unbought(candidates, ahead, has_plan)
        elif mine:
            text = _dearer(candidates, mine) if has_plan else _able(mine)
        else:
            text = "" if away else _too_few(candidates, thing, has_plan) or _impossible(candidates, thing)
        if away and thing.owned is not None:
            kept = f"{', '.join(away)}: {_outlasted(candidates, thing.owned)}"
            text = f"{text}; not for {kept}" if text else f"not used: {kept}"
        if thing.terms is not None and (more := sum(map(thing.terms, remembered))):
            text += f"; {more:,} offer{'s' * (more != 1)} more at prices from memory (hardware.allow_recalled)"
        found.append({"place": thing.place, "name": thing.name, "used": bool(rows or held), "text": text})
    return found


def _things(candidates: Candidates) -> Iterator[_Thing]:
    scenario, catalog = candidates.scenario, candidates.catalog
    hardware = scenario.hardware
    for index, owned in enumerate(hardware.owned):
        shape = find_shape(catalog, owned.shape)
        prefix = f"owned:{index}:"
        yield _Thing(
            place=owned_key(index),
            name=owned_name(hardware, index),
            uses=lambda row, prefix=prefix: row["offer"].startswith(prefix),  # type: ignore[misc]
            holds=lambda site, index=index: site.owned == index,  # type: ignore[misc]
            keys=(owned_key(index),),
            missing=f"nothing runs on {shape.device}",
            owned=index,
        )
    for place, pattern in _device_patterns(hardware):
        ids = tuple(device.id for device in match_devices(catalog, pattern))
        yield _Thing(
            place=place,
            name=pattern,
            uses=lambda row, ids=ids: row["device"] in ids,  # type: ignore[misc]
            holds=lambda site, ids=ids: site.device.id in ids,  # type: ignore[misc]
            keys=ids,
            missing="no offer of the catalog: own it (hardware.owned), or give a price (hardware.contracts)",
        )
    known = sorted({offer.provider for offer in catalog.offers})
    for place, pattern in _provider_patterns(hardware, scenario.limits.sites):
        names = tuple(name for name in known if provider_matches(name, pattern))
        yield _Thing(
            place=place,
            name=pattern,
            uses=lambda row, names=names: row["provider"] in names,  # type: ignore[misc]
            holds=lambda site, names=names: site.offer.provider in names,  # type: ignore[misc]
            keys=tuple(map(provider_key, names)),
            missing="no offer of the catalog is from there",
        )
    kept_off = not scenario.training and not any(fleet.max_spot_share for fleet in scenario.serving)
    for index, model in enumerate(hardware.pricing):
        if model != "on_demand":
            yield _Thing(
                place=f"hardware.pricing[{index}]",
                name=model,
                uses=lambda row, model=model: row["price_model"] == model,  # type: ignore[misc]
                holds=lambda site, model=model: site.offer.price_model == model,  # type: ignore[misc]
                keys=(),
                missing=SAID["spot"] if model == "spot" and kept_off else "nothing that may be used is sold so",
                terms=lambda offer, model=model: offer.price_model == model,  # type: ignore[misc]
            )
    for index, contract in enumerate(hardware.contracts):
        prefix = f"{OWN_CONTRACT}{index}:"
        yield _Thing(
            place=f"hardware.contracts[{index}]",
            name=f"{contract.shape}, {contract.price_model}",
            uses=lambda row, prefix=prefix: row["offer"].startswith(prefix),  # type: ignore[misc]
            holds=lambda site, prefix=prefix: site.offer.id.startswith(prefix),  # type: ignore[misc]
            keys=(),
            missing="no workload may run on it",
            terms=lambda offer, prefix=prefix: offer.id.startswith(prefix),  # type: ignore[misc]
        )


def owned_name(hardware: Hardware, index: int) -> str:
    """A group of owned machines by number and shape; where several are of one shape, with where or at what price.

    Parameters
    ----------
    hardware
        Of the scenario.
    index
        Of its `owned`.
    """
    owned = hardware.owned[index]
    name = f"{owned.count} × {owned.shape}"
    alike = [one for one in hardware.owned if (one.count, one.shape) == (owned.count, owned.shape)]
    if len(alike) < 2:
        return name
    if owned.region is not None and [one.region for one in alike].count(owned.region) == 1:
        return f"{name} ({owned.region})"
    return f"{name} ({owned_key(index)})"


def _device_patterns(hardware: Hardware) -> Iterator[tuple[str, str]]:
    """Patterns of devices, each once, where the scenario names them first; all devices are nobody's name."""
    named = [(f"hardware.allow[{index}]", pattern) for index, pattern in enumerate(hardware.allow)]
    named += [(f"hardware.quotas[{index}].device", one.device or "*") for index, one in enumerate(hardware.quotas)]
    named += [
        (f"hardware.discounts[{index}].device", one.device or "*") for index, one in enumerate(hardware.discounts)
    ]
    return _once(named)


def _provider_patterns(hardware: Hardware, sites: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Patterns of providers, each once, where the scenario names them first."""
    named = [(f"hardware.providers[{index}]", pattern) for index, pattern in enumerate(hardware.providers)]
    listed = (("hardware.quotas", hardware.quotas), ("hardware.discounts", hardware.discounts), ("limits.sites", sites))
    named += [
        (f"{place}[{index}].provider", getattr(one, "provider", None) or "*")
        for place, some in listed
        for index, one in enumerate(some)
    ]
    return _once([(place, pattern) for place, pattern in named if pattern.lower() != OWNED])  # they have their lines


def _once(named: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    first: dict[str, str] = {}
    for place, pattern in named:
        if pattern != "*":
            first.setdefault(pattern.lower(), place)
    yield from ((place, pattern) for pattern, place in first.items())


def _ways(candidates: Candidates, workload: Workload) -> Iterator[_Way]:
    """The cheapest way of a workload on each offer."""
    task = next(one for one in candidates.program.tasks if one.name == workload["name"])
    table = candidates.tables[task.name]
    paid = any(row["price_model"] == RESERVED for row in workload["allocations"])
    for way in cheapest_by(candidates, task, lambda site: site.offer.id).values():
        yield _Way(
            workload=task.name,
            site=table.sites[way.row],
            shapes=way.shapes,
            cost_microusd=way.cost_microusd,
            row=way.row,
            chosen_microusd=None if paid else workload["cost_microusd"],
            chosen=workload["allocations"],
            bounded=way.unsure,
        )


def _used(candidates: Candidates, thing: _Thing, rows: Sequence[tuple[str, Allocation]], *, renting: bool) -> str:
    names = ", ".join(dict.fromkeys(name for name, _ in rows))
    if thing.owned is None:
        counts: dict[str, int] = {}
        for _, row in rows:
            counts[row["device"]] = counts.get(row["device"], 0) + row["devices"]
        return f"used: {', '.join(f'{count:,} {device}' for device, count in counts.items())} for {names}"
    there = candidates.scenario.hardware.owned[thing.owned].count
    if candidates.calendar is not None:
        return f"used for {names}"
    own = sum(row["count"] for _, row in rows if "shared" not in row)
    held = own + len({one["node"] for _, row in rows if "shared" in row for one in row["shared"]})
    idle = "more of them would not lower the cost" if renting else NOT_NEEDED
    return f"used: {held:,} of {there:,} for {names}" + (f"; {idle}" if held < there else "")


def _dearer(candidates: Candidates, ways: Sequence[_Way]) -> str:
    """What the way that comes nearest to being chosen costs."""
    way = min(ways, key=lambda one: (one.ratio, one.cost_microusd, one.workload, one.site.offer.id))
    where = f"{way.shapes:,} × {way.site.shape.id} for {way.workload}"
    cost = ("at least " if way.bounded else "") + format_money(way.cost_microusd)
    if way.chosen_microusd is None:
        return f"not used: {where} would cost {cost} alone"
    if way.ratio > 1:
        more = f" ({way.ratio - 1:+.0%})" if way.chosen_microusd and way.ratio < 100 else ""
        fleet = isinstance(candidates.tables[way.workload], ServingTable)  # of several offers it may cost less
        return f"not used: the cheapest way{' on one offer' * fleet}, {where}, costs {cost} alone{more}"
    if way.ratio == 1:
        return f"not used: {where} is as cheap; the rule for ties sets it aside"
    task = next(one for one in candidates.program.tasks if one.name == way.workload)
    return f"not used: {where} would cost {cost} alone; {left_out_by(candidates, task, way.row, way.chosen)}"


def _ahead(candidates: Candidates, terms: Callable[[Offer], bool]) -> list[Offer]:
    """What may be bought ahead on some terms."""
    return [offer for pool in candidates.pools for offer in pool.contracts if terms(offer)]


def _held(contract: Contract) -> str:
    """A contract of the plan, with its begin."""
    return f"{contract['count']:,} × {contract['shape']} from {contract['start_date'] or 'the begin'}"


def _unbought(candidates: Candidates, offers: Sequence[Offer], has_plan: bool) -> str:
    """Why nothing is bought ahead on some terms."""
    scenario = candidates.scenario
    if not has_plan:
        return "could be bought; there is no plan for all that is asked"
    terms_h = [offer.min_term_hours or COMMITMENT_HOURS.get(offer.price_model, 0.0) for offer in offers]
    least, term_h = min((offer.price_microusd_per_hour * hours, hours) for offer, hours in zip(offers, terms_h))
    fee = f"{format_money(round(least))} a shape for {_time(term_h)}"
    if min(terms_h) * 3600.0 <= scenario.horizon_s or scenario.hardware.beyond_horizon == "prorate":
        return f"not used: no plan with it that costs less was found (from {fee})"
    return (
        f"not used: from {fee}, paid for as a whole, and the plan is for {_time(scenario.horizon_s / 3600.0)}: "
        "a longer horizon, or hardware.beyond_horizon: prorate"
    )


def _time(hours: float) -> str:
    """Whole months as such, as terms are sold."""
    months = hours * 3600.0 / MONTH_S
    if months < 1 or abs(months - round(months)) > 1e-9:
        return format_duration(hours * 3600.0)
    return f"{months:.0f} month{'s' * (round(months) != 1)}"


def _able(ways: Sequence[_Way]) -> str:
    """Without a plan: what could run there."""
    names = ", ".join(dict.fromkeys(way.workload for way in ways))
    return f"could run {names} alone; there is no plan for all that is asked"


def _too_few(candidates: Candidates, thing: _Thing, has_plan: bool) -> str:
    """That fleets or jobs alike could run there, and it is too few for any of them; "" where none could."""
    several = {task.name for task in candidates.program.tasks if task.kind == "serving" or task.count > 1}
    tables = {name: table for name, table in candidates.tables.items() if name in several}
    names = [name for name, table in tables.items() if any(thing.holds(site) for site in table.sites)]
    if not names:
        return ""
    rest = "a part of it there would not lower the cost" if has_plan else "there is no plan for all that is asked"
    return f"not used: too few for {' or '.join(names)} alone; {rest}"


def _impossible(candidates: Candidates, thing: _Thing) -> str:
    """What came nearest to running there."""
    furthest: tuple[tuple[int, bool, bool, bool, float], str, Drop] | None = None
    left_out: dict[str, list[str]] = {}  # workloads by what the scenario says of offers there
    for name, ledger in candidates.ledgers.items():
        for key in thing.keys:
            drop = ledger.nearest_on.get(key)
            if drop is not None and drop.reason in SAID:
                left_out.setdefault(drop.reason, []).append(name)
            if drop is not None and (furthest is None or drop.nearness > furthest[0]):
                furthest = (drop.nearness, name, drop)
    if furthest is None:
        return f"not used: {thing.missing}"
    _, name, drop = furthest
    name = ", ".join(dict.fromkeys(left_out.get(drop.reason, [name])))
    told = SAID.get(drop.reason) or _missed(drop)
    if thing.owned is not None:  # that there are no more of one's own is no quota
        told = told.removeprefix("quota: ")
    text = f"not used: {name}: {told}" if len(candidates.ledgers) > 1 else f"not used: {told}"
    return text + ("; " + TOGETHER if thing.owned is not None and _alone(candidates, thing.owned) else "")


def _missed(drop: Drop) -> str:
    """What a way lacked, in words; of other reasons than those that are words themselves, what is told of them."""
    if drop.reason in WORDS or not drop.nearest:
        return f"{UNTOLD.get(drop.reason, drop.reason)}: {drop.nearest}".removesuffix(": ")
    return drop.nearest


def _alone(candidates: Candidates, index: int) -> bool:
    """Whether owned machines cannot work together, for want of a known network."""
    scenario = candidates.scenario
    owned = scenario.hardware.owned[index]
    shape = find_shape(candidates.catalog, owned.shape)
    if owned.count == 1 or shape.kind in ("mig", "share"):  # parts of a device join over no network
        return False
    return inter_node_rate(shape, candidates.catalog, scenario.hardware.assume_inter_node_bytes_per_s) is None


def fleets_kept_out(candidates: Candidates, index: int) -> list[str]:
    """Fleets that could run on a group of owned machines, were it there for the whole plan; none where it is."""
    if index not in passing_groups(candidates):
        return []
    tables = {name: table for name, table in candidates.tables.items() if isinstance(table, ServingTable)}
    return [name for name, table in tables.items() if any(site.owned == index for site in table.sites)]


def kept_off(candidates: Candidates, index: int, workload: str) -> str:
    """Why the dates of a group of owned machines keep a workload off them; "" where they do not.

    Parameters
    ----------
    candidates
        The ways, with their scenario.
    index
        Of what is owned.
    workload
        Its name.
    """
    away = workload in fleets_kept_out(candidates, index)
    gone = _never_there(candidates, index) or (_outlasted(candidates, index) if away else "")
    return gone or _not_in_time(candidates, index, workload)


def _not_in_time(candidates: Candidates, index: int, workload: str) -> str:
    """That owned machines, which could run a job, are there in no periods that leave it in time; "" where they are."""
    scenario, table, calendar = candidates.scenario, candidates.tables[workload], candidates.whole_calendar
    task = next(one for one in candidates.whole.tasks if one.name == workload)
    job = next((one for one in scenario.training if one.name == workload), None)
    rows = candidates.whole_rows[task.first : task.stop].tolist()
    mine = [task.first + place for place, row in enumerate(rows) if table.sites[row].owned == index]
    if calendar is None or job is None or not any(site.owned == index for site in table.sites):
        return ""
    there = [bool(one) for one in owned_periods(scenario, scenario.hardware.owned[index], calendar.edges_s().tolist())]
    if any(all(there[calendar.start[column] : calendar.stop[column]]) for column in mine):
        return ""
    hours = job.start_s / 3600.0, (job.start_s + job.deadline_s) / 3600.0
    first, last = (date_after(scenario, one) or f"{one:,.4g} h" for one in hours)
    window = _window(candidates, index)
    return (f"these are there {window}, and " if window else "") + f"no period from {first} to {last} leaves it in time"


def _outlasted(candidates: Candidates, index: int) -> str:
    return f"{HELD}, and these are there {_window(candidates, index)}"


def _never_there(candidates: Candidates, index: int) -> str:
    """That owned machines are there for no whole period of the plan; "" where they are for one."""
    scenario, calendar = candidates.scenario, candidates.calendar
    if calendar is None or any(owned_periods(scenario, scenario.hardware.owned[index], calendar.edges_s().tolist())):
        return ""
    first, last = date_after(scenario, 0.0), date_after(scenario, scenario.horizon_s / 3600.0)
    period = format_duration(calendar.period_s)
    return f"there {_window(candidates, index)}, and so for no whole period of {period} of the plan, {first} to {last}"


def _window(candidates: Candidates, index: int) -> str:
    owned = candidates.scenario.hardware.owned[index]
    dates = ("from", owned.from_date), ("until", owned.until_date)
    return " ".join(f"{word} {date}" for word, date in dates if date)


def idle_warnings(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """Owned machines that are there for a part of the plan and mostly idle, where a fleet pays more for others."""
    scenario = candidates.scenario
    for index, owned in enumerate(scenario.hardware.owned):
        away, shape = fleets_kept_out(candidates, index), find_shape(candidates.catalog, owned.shape)
        begin_s, end_s = owned_window_s(scenario, owned)
        hours = owned.count * shape.devices * (end_s - begin_s) / 3600.0
        rows = [(one["name"], row) for one in workloads for row in one["allocations"]]
        used = sum(row["device_hours"] for _, row in rows if row["offer"].startswith(f"owned:{index}:"))
        price = hourly_of(owned).price_microusd / shape.devices
        paying = [
            name for name, row in rows
            if name in away and row["price_microusd_per_hour"] > price * row["devices_per_shape"]
        ]  # fmt: skip
        if not paying or used >= (1 - IDLE) * hours:
            continue
        begin = f"begin: {date_after(scenario, begin_s / 3600.0)}, " if begin_s else ""
        days = f"{(end_s - begin_s) / 86400.0:.10g} days"
        yield (
            f"{owned_key(index)}: {owned.count} × {owned.shape} are idle for {1 - used / hours:.0%} of their time, "
            f"{_window(candidates, index)}: {HELD}, so that {', '.join(dict.fromkeys(paying))} rents "
            f"dearer ones; what may move is planned once for those days ({begin}horizon: {days}) and once for the rest"
        )


def rack_warnings(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """Jobs and replicas on several nodes that count on the links of a rack, which nobody has without asking."""
    for workload in workloads:
        told: set[str] = set()
        for row in workload["allocations"]:
            shape = candidates.catalog.shapes.get(row["shape"])
            if shape is None or shape.domain_shapes == 1:
                continue
            rack, nodes = shape.domain_shapes, _nodes_of_one(workload, row, shape)
            if nodes > 1:
                what = f"the {nodes} nodes of {_one_of(workload)}"
                where = f"one rack of {rack}" if nodes <= rack else f"as few racks of {rack} as hold them"
                told.add(f"{workload['name']}: {what} must stand in {where}, whose links join their devices: {ASKED}")
        yield from sorted(told)


def _nodes_of_one(workload: Workload, row: Allocation, shape: Shape) -> int:
    """Nodes over which one job or one replica is spread."""
    layout, sizes = cast("Mapping[str, int]", row["layout"]), ["dp", "tp", "pp"]
    of_job = ["cp"] if workload["kind"] == "training" else []
    return ceil(prod(layout[name] for name in (*sizes, *of_job)) / shape.devices)


def _one_of(workload: Workload) -> str:
    return "the job" if workload["kind"] == "training" else "each replica"


def host_warnings(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """Jobs and replicas over rented parts of hosts, on a network that nobody but the scenario says is between them."""
    stated = candidates.scenario.hardware.assume_inter_node_bytes_per_s
    if stated is None:
        return
    for workload in workloads:
        sites = candidates.tables[workload["name"]].sites
        parts = {site.shape.id: site.shape for site in sites if site.part_of_host and site.on_stated_network}
        told = {
            f"{workload['name']}: the {nodes} × {row['shape']} of {_one_of(workload)} {PARTS}: nobody was seen to sell "
            f"{8e-9 * stated:g} Gbit/s between them, which hardware.assume_inter_node says"
            for row in workload["allocations"]
            if row["shape"] in parts and (nodes := _nodes_of_one(workload, row, parts[row["shape"]])) > 1
        }
        yield from sorted(told)


def network_warnings(candidates: Candidates) -> Iterator[str]:
    """Machines that cannot work together for want of a known network, and the line that mends it."""
    scenario = candidates.scenario
    for index, owned in enumerate(scenario.hardware.owned):
        if _alone(candidates, index):
            yield (
                f"{owned_key(index)}: the network between machines is unknown for {owned.shape}, so that a job or a "
                f"replica stays inside one; {MENDED}"
            )
    if scenario.hardware.assume_inter_node_bytes_per_s is not None:
        return
    patterns = [pattern for pattern in scenario.hardware.allow if pattern != "*"]
    dropped = {drop.reason for ledger in candidates.ledgers.values() for drop in ledger}
    if not patterns or "network-unknown" not in dropped:
        return
    catalog = candidates.catalog
    unknown = {
        shape.id
        for shape in map(catalog.shapes.__getitem__, {offer.shape for offer in catalog.offers})
        if shape.inter_node_bytes_per_s_per_device is None
        and any(device_matches(catalog.devices[shape.device], pattern) for pattern in patterns)
    }
    sold = (offer for offer in catalog.offers if offer.shape in unknown and is_seller(offer, scenario.hardware))
    shapes = sorted({offer.shape for offer in sold})
    if shapes:
        more = f" and {len(shapes) - RIVALS} more" if len(shapes) > RIVALS else ""
        yield (
            f"{INSIDE_ONE} {counted(len(shapes), 'shape')} whose network is unknown: hardware.assume_inter_node: "
            f"400 Gbit/s, say, of one machine, one way, mends that ({', '.join(shapes[:RIVALS])}{more})"
        )
