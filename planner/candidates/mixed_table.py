"""Mixes as rows of a job's table: what each group of a chosen split takes, in memory, time and money."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.ledger import Ledger
from planner.candidates.mixed import facts_of
from planner.candidates.mixed_search import Mix, cheapest
from planner.candidates.mixed_space import MixSpace, mix_space
from planner.candidates.mixed_walk import ROUNDING, Choice, Prices
from planner.candidates.offers import Site
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Group, Mixed, TrainingTable
from planner.carriers import dataclass
from planner.equations.mixed import FARTHEST_LATENCY_S, mixed_step_s
from planner.errors import InputError, Problem
from planner.estimate.bands import MEDIAN
from planner.estimate.layout import Layout
from planner.estimate.mixed import Between, group_step_terms, joined_run, large_batch_factor, steps_left
from planner.estimate.run import TERMS as RUN_TERMS
from planner.estimate.run import run_overheads
from planner.estimate.terms import Terms
from planner.estimate.training import training_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixing:
    """Tables of a job with its mixes, and what else may be mixed."""

    table: TrainingTable
    median: TrainingTable
    space: MixSpace | None


def add_mixes(
    question: TrainingQuestion, sites: Sequence[Site], ledger: Ledger, table: TrainingTable, median: TrainingTable
) -> Mixing:
    """The tables of a job with the mix that costs least, and that of least carbon where carbon counts.

    These are all that a job needs which shares no limit with others; `planner.optimize.mixing` finds the rest.

    Parameters
    ----------
    question
        The job, at the confidence of `table`.
    sites
        Offers that it may run on.
    ledger
        Is told of offers that join no other.
    table
        Ways on one offer at the confidence asked for.
    median
        The same at the median; `table` itself where both are the same.

    Raises
    ------
    InputError
        The scenario also asks for what mixes are not planned with.
    """
    _check(question)
    between = between_of(question)
    space = mix_space(question, sites, ledger, between, question.spec.confidence)
    found = _least(space)
    if space is None:
        return Mixing(table=table, median=median, space=None)
    asked = with_mixes(table, space, found)
    if median is table:
        return Mixing(table=asked, median=asked, space=space)
    often = mix_space(question, sites, Ledger(workload=ledger.workload), between, MEDIAN)
    more = with_mixes(with_mixes(median, space, found), often, _least(often)) if often else median
    return Mixing(table=asked, median=more, space=space)


def between_of(question: TrainingQuestion) -> Between | None:
    """The network between zones as the scenario gives it."""
    given = question.scenario.hardware.assume_between_zones
    if given is None:
        return None
    return Between(
        bytes_per_s_per_shape=given.bandwidth_bytes_per_s,
        latency_s=FARTHEST_LATENCY_S if given.latency_s is None else given.latency_s,
        usd_per_byte=given.price_usd_per_gb / 1e9,
    )


def _check(question: TrainingQuestion) -> None:
    scenario, name = question.scenario, question.job.name
    reason = hint = ""
    if scenario.scheduled:
        reason = "a calendar (periods, contracts, owned from/until, after, data or schedule: elastic)"
        hint = "write mix_within_job: false, or leave the calendar out"
    elif scenario.objective[0] == "time":
        reason, hint = "objective: time", "put cost or carbon first, or write mix_within_job: false"
    if reason:
        index = [job.name for job in scenario.training].index(name)
        place = scenario.places.get(f"training[{index}].mix_within_job")
        message = f"{name}: mixes within a job are not planned together with {reason}"
        raise InputError(
            Problem(reference="not-together", message=message, places=(place,) if place else (), hint=hint)
        )


def _least(space: MixSpace | None) -> list[Mix]:
    if space is None:
        return []
    scenario, job = space.question.scenario, space.job
    prices = [Prices.of_cost(job)]
    if scenario.limits.carbon_g is not None or "carbon" in scenario.objective:
        prices.append(Prices(cost=1e-9, carbon=1.0, node=np.zeros(len(job.sources))))
    found = [cheapest(job, one, math.inf)[0] for one in prices]
    return [mix for mix in found if mix is not None]


def choices_of(table: TrainingTable) -> set[tuple[tuple[str, int], ...]]:
    """Offers and shapes of each mix of a table."""
    return {tuple(sorted((g.site.offer.id, g.nodes) for g in mixed.groups)) for mixed in table.mixes.values()}


def name_of(space: MixSpace, choice: Choice) -> tuple[tuple[str, int], ...]:
    """Offers and shapes of a choice."""
    sources = space.job.sources
    return tuple(sorted((sources[s].name, sources[s].blocks[b].nodes) for s, b in choice))


def with_mixes(table: TrainingTable, space: MixSpace, mixes: Iterable[Mix]) -> TrainingTable:
    """A table with more rows at its end, one for each mix that it does not have.

    Parameters
    ----------
    table
        Of the job; it stays as it is.
    space
        What may be mixed for the job.
    mixes
        Evaluated ones; of two on the same offers and shapes the first counts.
    """
    known, rows = choices_of(table), dict(table.mixes)
    fresh: list[tuple[Mix, Mixed]] = []
    for mix in mixes:
        name = name_of(space, mix.choice)
        if name not in known:
            known.add(name)
            fresh.append((mix, mixed_of(space, mix)))
    if not fresh:
        return table
    firsts = [mixed.groups[0] for _, mixed in fresh]
    rows |= {len(table) + k: mixed for k, (_, mixed) in enumerate(fresh)}
    nodes = [sum(group.nodes for group in mixed.groups) for _, mixed in fresh]
    return replace(
        table,
        sites=(*table.sites, *(group.site for group in firsts)),
        nodes=np.concatenate([table.nodes, np.array(nodes, dtype=np.int64)]),
        layout=Layout.concatenate([table.layout, *(group.layout for group in firsts)]),
        memory=Terms.concatenate([table.memory, *(group.memory for group in firsts)]),
        time=Terms.concatenate([table.time, *(group.time for group in firsts)]),
        finish_s=np.concatenate([table.finish_s, np.array([mix.wall_s for mix, _ in fresh])]),
        cost_microusd=(*table.cost_microusd, *(sum(mix.cost_microusd) for mix, _ in fresh)),
        mixes=rows,
    )


def mixed_of(space: MixSpace, mix: Mix) -> Mixed:
    """The groups of a mix, term by term."""
    job, question, split = space.job, space.question, mix.split
    chosen = [(job.sources[s], job.sources[s].blocks[b]) for s, b in mix.choice]
    run = joined_run(facts_of(chosen))
    busy_s, devices = mix.busy_s, sum(block.devices for _, block in chosen)
    zeros = dict.fromkeys(RUN_TERMS, np.zeros(()))
    overheads = run_overheads(busy_s, devices, job.checkpoint_bytes, run) if run else Terms(zeros)
    groups = []
    for k, (source, block) in enumerate(chosen):
        site, layout = space.sites[source.site], space.layout_of(split.paces[k], split.units[k])
        time = _group_time(question, site, layout, mix)
        carbon = round(source.carbon_mg_per_hour * block.nodes * mix.wall_s / 3600.0)
        step_s = split.paces[k].step_s(split.units[k])
        own = {name: np.array([value]) for name, value in time.items()}
        terms = {**own, **{name: np.reshape(value, 1) for name, value in overheads.items()}}
        groups.append(
            Group(
                site=site, nodes=block.nodes, layout=layout, step_s=step_s, time=Terms(terms), carbon_mg=carbon,
                memory=training_memory(question.arch, question.spec, layout, site.device.family),
                cost_microusd=mix.cost_microusd[k], traffic_microusd=mix.traffic_microusd[k],
            )
        )  # fmt: skip
    return Mixed(
        groups=tuple(sorted(groups, key=lambda group: (-group.cost_microusd, group.site.offer.id))),
        batch=split.batch,
        compute_s=split.compute_s,
        synchronisation_s=split.synchronisation_s,
        time_margin=max(source.time_margin for source, _ in chosen),
        run=run,
    )


def _group_time(question: TrainingQuestion, site: Site, layout: Layout, mix: Mix) -> dict[str, float]:
    """Terms of the steps of a run that a group spends: its own, waiting, reducing gradients, and a large batch."""
    spec, split = question.spec_on(site), mix.split
    own = group_step_terms(question.arch, spec, layout, question.machine(site))
    steps, factor = steps_left(spec, split.batch), large_batch_factor(spec, split.batch)
    one = {name: float(value[0]) * steps for name, value in own.items()}
    step_s = float(mixed_step_s(split.compute_s, split.synchronisation_s))
    wait_s = split.compute_s - float(own.total[0])
    return {
        **one,
        "group_wait": wait_s * steps if wait_s > ROUNDING * split.compute_s else 0.0,
        "group_synchronisation": split.synchronisation_s * steps,
        "large_batch": (factor - 1.0) * step_s * steps,
    }
