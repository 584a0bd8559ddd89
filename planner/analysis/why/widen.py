"""Ways out by a wider choice: another device, region, or seller beside those allowed; by less load, or in memory.

One search with the choice wide open; then, for each further one, the columns of those allowed and of it are solved. The
cheapest that gives a plan is told; when no single one does, whether all of them together would.

A fleet that contradicts a limit is asked for less: as much as all other limits carry.

A workload that fits no memory is searched again as people make it fit: recomputation, shards, narrower states or
weights, adapters; a job on devices without its number format in another one. Of each kind the first that gives a plan
is told, and nothing of those that give none.

A job that is late in a batch that nobody chose is told a larger one, as far as it suits the run's compute.

A fleet whose targets not even an idle replica keeps is told what the nearest one would keep and, where that costs far
less, what it would keep with time to spare: close to the idle latency replicas stand idle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.analysis.tighten import cheapest_within_targets, on_exact_rates, tightens
from planner.analysis.why.least import least_from_below, least_that_works
from planner.candidates.offers import Site
from planner.candidates.program import Program, restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.candidates.sellers import is_brought
from planner.candidates.serving_question import ServingQuestion
from planner.candidates.training_question import TrainingQuestion
from planner.catalog.load import device_matches
from planner.catalog.model import Catalog
from planner.catalog.names import provider_matches, region_matches
from planner.catalog.offers import GIVEN
from planner.errors import InputError
from planner.estimate.engines import ENGINES, ONE_MACHINE_ENGINES
from planner.estimate.market import is_own_contract
from planner.estimate.resolve import MOST_BATCH_TOKENS, larger_batches_tokens
from planner.estimate.serving_formats import FORMATS
from planner.estimate.serving_tiers import fleet_engine
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution
from planner.optimize.status import Status
from planner.plan.rows.row_cells import usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.others import WayOut

Search = Callable[..., Candidates]
MOST = 60  # further choices that are tried one by one
RANK = 16  # of adapters that are tried
SPARE_TIMES = 2  # the latency of an idle replica: a target that leaves it time to work
FAR_LESS = 0.5  # of the cost of the tightest target: only then a looser one is told beside it
PRECISIONS = ("bf16", "fp16", "fp32")  # that are tried where a device has not the one asked for
DAY_S = 86_400
# Where everything else of a way was right: it fits, and its machines and layout are ones that somebody takes
FITTED = ("latency", "deadline", "too-slow")
EVERY = "*"


class _Load(NamedTuple):
    """What a fleet is asked for: its key, in whole units, and what a setting has behind the number."""

    key: str
    unit: str
    asked: int
    per: str


class _Choice(NamedTuple):
    """A list of the scenario that may be wider."""

    name: str
    stated: tuple[str, ...]
    every: tuple[str, ...]  # what it says where it is as wide as it gets
    key: Callable[[Site, Catalog], str]  # of an offer; "" where it may be used whatever the list says
    matches: Callable[[Site, Catalog, str], bool]


class Texts(NamedTuple):
    """A change as people read it: what is moved, how, from what, to what, and by how much."""

    limit: str
    setting: str
    before: str
    after: str
    more: str


def wider_choices(scenario: Scenario, search: Search, asker: Asker) -> Iterator[WayOut]:
    """At most one way out for each list that says what may be used: devices, regions, providers and kinds of them.

    Parameters
    ----------
    scenario
        Says which are allowed; where all are, there is no wider choice.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    for choice in _lists(scenario):
        if choice.stated != choice.every:
            yield from _wider(scenario, choice, search, asker)


def _lists(scenario: Scenario) -> Iterator[_Choice]:
    """What a scenario may use, by devices, places and sellers."""
    hardware, all_of_them = scenario.hardware, (EVERY,)
    yield _Choice("hardware.allow", hardware.allow, all_of_them, _device_of, _allowed)
    yield _Choice("hardware.regions", hardware.regions, all_of_them, _region_of, _in_regions)
    if EVERY not in hardware.exclude:  # else nothing is rented, whoever is named
        yield _Choice("hardware.providers", hardware.providers, all_of_them, _provider_of, _of_providers)
    if hardware.kinds is not None:
        few = {"hyperscaler", "cloud"}.difference(hardware.kinds)  # marketplaces promise nothing: they come last
        wide = dict.fromkeys((*hardware.kinds, "hyperscaler", "cloud", *(() if few else ("marketplace",))))
        yield _Choice("hardware.kinds", hardware.kinds, tuple(wide), _kind_of, _of_kinds)


def in_another_form(candidates: Candidates, search: Search, asker: Asker) -> Iterator[WayOut]:
    """Ways out by keeping less on each device, or computing in a format that it has.

    Where one workload has no way to run, and memory or the format is why.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    scenario, empty = candidates.scenario, _without_a_way(candidates)
    reasons = {drop.reason for name in empty for drop in candidates.ledgers[name]}
    if len(empty) != 1 or reasons.isdisjoint(("memory", "precision")) or not reasons.isdisjoint(FITTED):
        return
    (name,) = empty
    question = candidates.questions[name]
    asked: TrainingJob | ServingFleet
    of_kind: Sequence[TrainingJob | ServingFleet]
    if isinstance(question, TrainingQuestion):
        kind, asked, kinds, of_kind = "training", question.job, _of_job(question.job, reasons), scenario.training
    else:
        kind, asked, kinds, of_kind = "serving", question.fleet, _of_fleet(question), scenario.serving
    path = f"{kind}[{[one.name for one in of_kind].index(name)}]"
    for changes in kinds:
        for key, before, after, written in changes:
            if asker.spent:
                return
            setting = f"{kind}.{name}.{key}={written}"
            held = choices(getattr(asked, key)), written.count(",") + 1 if written.startswith("[") else 1
            texts = Texts(limit=f"{path}.{key}", setting=setting, before=before, after=after, more=after)
            if way := tried(scenario, texts, "choices", held, search, asker):
                yield way
                break


def _without_a_way(candidates: Candidates) -> list[str]:
    """Workloads that must run and have no column."""
    return [task.name for task in candidates.program.tasks if task.kind != "optional" and task.first == task.stop]


def looser_targets(candidates: Candidates, search: Search, asker: Asker) -> Iterator[WayOut]:
    """Ways out by looser latency targets, where one fleet has no way to run and targets are why.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    scenario, empty = candidates.scenario, _without_a_way(candidates)
    fleets = [(index, fleet) for index, fleet in enumerate(scenario.serving) if [fleet.name] == empty and fleet.slo]
    late = [drop for name in empty for drop in candidates.ledgers[name] if drop.reason == "latency"]
    if not fleets or not late or not math.isfinite(late[0].miss):
        return
    ((index, fleet),) = fleets
    assert fleet.slo is not None
    for key, asked_s in sorted(fleet.slo.given_s.items(), key=lambda one: not late[0].nearest.startswith(one[0])):
        idle_s, dearest = asked_s * (1 + late[0].miss), math.inf
        for loosened_s in (idle_s, SPARE_TIMES * idle_s):
            if asker.spent:
                return
            limit, to_us = f"serving[{index}].slo.{key}", rounded_up_us(loosened_s)
            setting = f"serving.{fleet.name}.slo.{key}={_milliseconds(to_us)}"
            held = round(1e6 * asked_s), to_us
            before, after, more = (_milliseconds(each) for each in (*held, to_us - held[0]))
            texts = Texts(limit=limit, setting=setting, before=before, after=after, more=more)
            way = tried(scenario, texts, "us", held, search, asker)
            if way and way["cost_microusd"] is not None:
                if way["cost_microusd"] <= FAR_LESS * dearest:
                    yield way
                dearest = way["cost_microusd"]
        if dearest < math.inf:  # the target that is missed most is the one in the way
            return


def larger_batch(candidates: Candidates, search: Search, asker: Asker) -> Iterator[WayOut]:
    """A way out by a larger batch, where the one job without a way is late in a batch that nobody chose.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    scenario, empty = candidates.scenario, _without_a_way(candidates)
    jobs = [(index, job) for index, job in enumerate(scenario.training) if [job.name] == empty]
    for index, job in jobs:
        question, reasons = candidates.questions[job.name], {drop.reason for drop in candidates.ledgers[job.name]}
        if reasons.isdisjoint(("deadline", "too-slow")):
            return
        for tokens in larger_batches_tokens(job, question.arch):
            if asker.spent:
                return
            after = f"{tokens / 1e6:g}M tokens"
            before, setting = f"{MOST_BATCH_TOKENS / 1e6:g}M tokens", f"training.{job.name}.global_batch={after}"
            texts = Texts(f"training[{index}].global_batch", setting, before, after, after)
            if way := tried(scenario, texts, "choices", (0, 1), search, asker):
                yield way
                return


def other_terms(candidates: Candidates, search: Search, asker: Asker) -> Iterator[WayOut]:
    """Ways out by terms on which more is sold: on demand beside others; spot of a fleet that may stand on none.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    scenario, empty = candidates.scenario, _without_a_way(candidates)
    pricing = scenario.hardware.pricing
    if empty and "on_demand" not in pricing and not asker.spent:
        before, after = ", ".join(pricing), ", ".join((*pricing, "on_demand"))
        texts = Texts("hardware.pricing", f"hardware.pricing=[{after}]", before, after, "on_demand")
        if way := tried(scenario, texts, "choices", (len(pricing), len(pricing) + 1), search, asker):
            yield way
    for index, fleet in enumerate(scenario.serving):
        if "spot" in pricing and [fleet.name] == empty and fleet.max_spot_share is None and not asker.spent:
            setting = f"serving.{fleet.name}.max_spot_share=1"
            texts = Texts(f"serving[{index}].max_spot_share", setting, "none", "all of it", "all of it")
            if way := tried(scenario, texts, "choices", (0, 1), search, asker):
                yield way


def tried(
    scenario: Scenario, texts: Texts, unit: str, held: tuple[int, int], search: Search, asker: Asker
) -> WayOut | None:
    """A setting as a way out, with what the cheapest plan costs under it; None where there is no plan."""
    try:
        found = search(with_settings(scenario, [texts.setting]))
    except InputError:  # it does not go with what else the scenario says
        return None
    answer = cheapest_within_targets(found, asker)
    if not answer.has_plan:
        return None
    place = scenario.places.get(texts.limit) or scenario.places.get(texts.limit.partition(".")[0])
    return {
        "limit": texts.limit,
        "place": str(place) if place else "",
        "unit": unit,
        "from": held[0],
        "to": held[1],
        "from_text": texts.before,
        "to_text": texts.after,
        "more_text": texts.more,
        "setting": texts.setting,
        "cost_microusd": answer.cost_microusd,
        "cost_usd": usd(answer.cost_microusd),
        "proven": answer.status is Status.OPTIMAL and not found.cut,
    }


def rounded_up_us(latency_s: float) -> int:
    """The next latency of three digits that is longer, in whole microseconds.

    Examples
    --------
    >>> rounded_up_us(0.10131), rounded_up_us(2.2282), rounded_up_us(0.002)
    (102000, 2230000, 2010)
    """
    step = int(10 ** max(math.floor(math.log10(latency_s * 1e6)) - 2, 0))
    return step * math.ceil(latency_s * 1e6 / step + 1e-6)


def _milliseconds(latency_us: int) -> str:
    return f"{latency_us / 1000:.12g} ms"


def less_to_carry(candidates: Candidates, conflict: Sequence[str], search: Search, asker: Asker) -> Iterator[WayOut]:
    """The most that a fleet in conflict with limits may be asked for, all else as it is; nothing where none would do.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    conflict
        Names of the limits and workloads that contradict each other.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    for index, fleet in enumerate(candidates.scenario.serving):
        load = load_of(fleet)
        if fleet.name not in conflict or load is None:
            continue
        way = _less_of(candidates, f"serving[{index}].{load.key}", fleet.name, load, search, asker)
        if way is not None:
            yield way


def _less_of(candidates: Candidates, limit: str, name: str, load: _Load, search: Search, asker: Asker) -> WayOut | None:
    scenario, answers = candidates.scenario, dict[int, Solution]()

    def setting(fewer: int) -> str:
        return f"serving.{name}.{load.key}={load.asked - fewer}{load.per}"

    def works(fewer: int) -> bool:
        if fewer not in answers:
            found = search(with_settings(scenario, [setting(fewer)]))
            answers[fewer] = cheapest_within_targets(found, asker)
        return answers[fewer].has_plan

    found: int | None = 0

    def listed(ways: Candidates) -> int | None:  # which carry less the more of their rates are exact
        nonlocal found
        found = None if found is None else _fewer(ways.program, name, load.asked, asker, found)
        return found

    on_exact_rates(candidates, listed)
    fewer = least_that_works(found, works, load.asked - 1) if found and not asker.spent else None
    if fewer is None or asker.spent:
        return None
    cost, place = answers[fewer].cost_microusd, scenario.places.get(limit)
    return {
        "limit": limit,
        "place": str(place) if place else "",
        "unit": load.unit,
        "from": load.asked,
        "to": load.asked - fewer,
        "from_text": f"{load.asked:,} {load.unit}",
        "to_text": f"{load.asked - fewer:,} {load.unit}",
        "more_text": f"{fewer:,} {load.unit} fewer",
        "setting": setting(fewer),
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "proven": all(one.status in (Status.OPTIMAL, Status.INFEASIBLE) for one in answers.values()),
    }


def load_of(fleet: ServingFleet) -> _Load | None:
    """What a fleet is asked for, where a number says so; None of a trace, or where it is less than two of its unit."""
    if fleet.requests_per_minute is not None:
        found = _Load("qpm", "requests/min", math.floor(fleet.requests_per_minute), "")
    elif fleet.requests_per_s is not None:
        found = _Load("requests", "requests/day", math.floor(round(fleet.requests_per_s * DAY_S, 3)), " /day")
    else:
        found = _Load("users", "users", fleet.users or 0, "")
    return found if found.asked > 1 else None


def _fewer(program: Program, name: str, asked: int, asker: Asker, guess: int) -> int | None:
    """How much less of what a fleet is asked for the ways that were listed carry; they follow the load nearly.

    From a guess of it, 0 where there is none.
    """

    def works(fewer: int) -> bool:
        def scaled(demand: Sequence[int]) -> tuple[int, ...]:
            return tuple(one * (asked - fewer) // asked for one in demand)

        tasks = [
            task
            if task.name != name
            else replace(
                task,
                demand_micro_per_s=scaled(task.demand_micro_per_s),
                levels=tuple(scaled(level) for level in task.levels),
            )
            for task in program.tasks
        ]
        return asker.any_plan(replace(program, tasks=tuple(tasks))).has_plan

    return least_that_works(guess, works, asked - 1) if guess else least_from_below(works, asked - 1)


def choices(value: object) -> int:
    """How many a scenario names to choose from."""
    return 0 if value is None else len(value) if isinstance(value, tuple) else 1


_Changes = Iterator[tuple[str, str, str, str]]  # key, from, to, and as the scenario has it


def _of_job(job: TrainingJob, reasons: Collection[str]) -> Iterator[_Changes]:
    """What people try, the least first; of one kind until the first that does."""
    if "precision" in reasons:
        others = [name for name in PRECISIONS if name != job.precision]
        yield (("precision", job.precision, name, name) for name in others)
    if "memory" not in reasons:
        return

    def listed(key: str, most: str) -> _Changes:
        had = getattr(job, key)
        if most not in had:
            yield key, ", ".join(had), f"+ {most}", f"[{', '.join((*had, most))}]"

    def adapters() -> _Changes:
        for base in ("bf16", "nf4"):
            if job.lora is None:
                yield "lora", "all weights", f"adapters of rank {RANK} on {base}", f"{{rank: {RANK}, base: {base}}}"
            elif base == "nf4" != job.lora.base:
                yield "lora", job.lora.base, f"{base} under the adapters", f"{{rank: {job.lora.rank}, base: {base}}}"

    yield listed("recompute", "full")
    yield listed("sharding", "zero-3")
    if job.lora is None and job.optimizer.startswith("adam") and "8bit" not in job.optimizer:
        yield iter([("optimizer", job.optimizer, "adamw-8bit", "adamw-8bit")])
    if job.lora is None and "optimizer" not in (job.offload or ()):
        yield iter([("offload", "nothing", "the optimizer, on the host", "optimizer")])
    yield adapters()


def _of_fleet(question: ServingQuestion) -> Iterator[_Changes]:
    """Weights as they are published, or of 8 and of 4 bits; a cache of 8 bits."""
    fleet, stored = question.fleet, question.stored
    own = fleet_engine(fleet) in ONE_MACHINE_ENGINES  # which has formats of its own
    published = stored in ENGINES[fleet_engine(fleet)].formats
    narrower = (stored * published, "q8_0", "q4_k_m") if own else (stored, "fp8", "int4")
    for key, names in (("weights", narrower), ("kv_cache", ("q8_0",) if own else ("fp8",))):
        had = str(getattr(fleet, key))
        fewer = [name for name in names if name and FORMATS[name].bits < FORMATS[had].bits]
        yield iter([(key, had, name, name) for name in dict.fromkeys(fewer)])


def device_of(site: Site) -> str:
    """Id of the device of a site."""
    return site.device.id


def allowed(site: Site, pattern: str) -> bool:
    """Whether a pattern of hardware.allow names the device of an offer; what is owned needs no name there."""
    return device_matches(site.device, pattern)


def in_regions(site: Site, pattern: str) -> bool:
    """Whether a pattern of hardware.regions has the place of an offer."""
    return region_matches(site.offer, pattern)


def _device_of(site: Site, _: Catalog) -> str:
    return device_of(site)


def _allowed(site: Site, _: Catalog, pattern: str) -> bool:
    return allowed(site, pattern)


def _region_of(site: Site, _: Catalog) -> str:
    return site.offer.region


def _in_regions(site: Site, _: Catalog, pattern: str) -> bool:
    return in_regions(site, pattern)


def _provider_of(site: Site, _: Catalog) -> str:
    """Of an offer; contracts of one's own and machines whose price was given are with whoever sold them."""
    return "" if is_own_contract(site.offer) or site.offer.provider == GIVEN else site.offer.provider


def _of_providers(site: Site, _: Catalog, pattern: str) -> bool:
    return provider_matches(site.offer.provider, pattern)


def _kind_of(site: Site, catalog: Catalog) -> str:
    seller = None if is_brought(site.offer) else catalog.providers.get(site.offer.provider)
    return seller.kind if seller else ""


def _of_kinds(site: Site, catalog: Catalog, kind: str) -> bool:
    return _kind_of(site, catalog) == kind


def _wider(scenario: Scenario, choice: _Choice, search: Search, asker: Asker) -> Iterator[WayOut]:
    if asker.spent:  # to list the ways may take longer than to solve them: what is there is not known
        yield _way_out(scenario, choice, {})
        return
    wide, asker = search(with_settings(scenario, [_setting(choice, EVERY)])), replace(asker, exact=True)
    catalog = wide.catalog

    def key(site: Site) -> str:
        return choice.key(site, catalog) if site.owned is None else ""  # what is owned is there anyway

    keys = column_keys(wide, key)
    rented = [site for site in _sites(wide) if key(site)]
    inside = {key(site): any(choice.matches(site, catalog, one) for one in choice.stated) for site in rented}
    open_already = np.array([one == "" or inside[one] for one in keys], dtype=bool)
    others = sorted(one for one, allowed in inside.items() if not allowed)[:MOST]
    answers: dict[str, Solution] = {}
    for other in others:
        opened = open_already | (keys == other)
        wide, answers[other] = on_exact_rates(wide, partial(_solved, opened=opened, asker=asker))
    if len(others) > 1 and not any(answer.has_plan for answer in answers.values()):
        opened = np.ones(len(keys), dtype=bool)
        wide, answers[EVERY] = on_exact_rates(wide, partial(_solved, opened=opened, asker=asker))
    if tightens(scenario):
        answers = _confirmed(scenario, choice, answers, search, replace(asker, exact=False))
    if others or wide.cut:
        way = _way_out(scenario, choice, answers)
        way["proven"] = way["proven"] and not wide.cut  # what was not listed in time may be a way, or a cheaper one
        yield way


def _sites(candidates: Candidates) -> Iterator[Site]:
    for table in candidates.tables.values():
        yield from table.sites


def column_keys(candidates: Candidates, key: Callable[[Site], str]) -> NDArray[np.str_]:
    """A key of the site of each column of `whole`; empty for columns that stand nowhere."""
    keys = [""] * candidates.whole.column_count
    for task in candidates.whole.tasks:
        if task.kind != "optional":
            table = candidates.tables[task.name]
            for column in range(task.first, task.stop):
                keys[column] = key(table.sites[int(candidates.whole_rows[column])])
    return np.array(keys, dtype=np.str_)


def _solved(candidates: Candidates, opened: NDArray[np.bool_], asker: Asker) -> Solution:
    small = restrict(replace(candidates.whole, objective=("cost",)), opened)[0]
    return asker.cheapest(restrict(small, np.isin(np.arange(small.column_count), prune(small)))[0])


def _confirmed(
    scenario: Scenario, choice: _Choice, answers: dict[str, Solution], search: Search, asker: Asker
) -> dict[str, Solution]:
    """The choices with the first of them, from the cheapest on, that gives a plan of the whole question."""
    without = {key: one for key, one in answers.items() if not one.has_plan}
    for key in sorted(answers.keys() - without.keys(), key=lambda key: (answers[key].cost_microusd, key)):
        found = cheapest_within_targets(search(with_settings(scenario, [_setting(choice, key)])), asker)
        if found.has_plan:
            return {**without, key: found}
        without[key] = found
    return without


def _setting(choice: _Choice, chosen: str) -> str:
    written = ", ".join(f'"{one}"' for one in _named(choice, chosen))
    return f"{choice.name}=[{written}]"


def _named(choice: _Choice, chosen: str) -> tuple[str, ...]:
    return choice.every if chosen == EVERY else (*choice.stated, chosen)


def _way_out(scenario: Scenario, choice: _Choice, answers: dict[str, Solution]) -> WayOut:
    """The cheapest choice that gives a plan."""
    place = scenario.places.get(choice.name)
    with_plan = [(one.cost_microusd, key) for key, one in answers.items() if one.has_plan]
    cost, chosen = min(with_plan) if with_plan else (None, "")
    return {
        "limit": choice.name,
        "place": str(place) if place else "",
        "unit": "choices",
        "from": len(choice.stated),
        "to": len(_named(choice, chosen)) if chosen else None,  # as many as the setting names
        "from_text": ", ".join(choice.stated),
        "to_text": "+ several others" if chosen == EVERY else f"+ {chosen}" if chosen else "",
        "more_text": chosen,
        "setting": _setting(choice, chosen) if chosen else "",
        "cost_microusd": cost,
        "cost_usd": None if cost is None else usd(cost),
        "proven": bool(answers) and all(one.status in (Status.OPTIMAL, Status.INFEASIBLE) for one in answers.values()),
    }
