"""Joint limits as integer rows: who runs at the same time, and what they share.

Jobs whose start-deadline windows are disjoint do not share capacity; overlapping ones are
concurrent. Windows are intervals, so the sets of tasks that run together are the maximal
cliques of an interval graph: those found at the starts. A fleet runs from the beginning to
the end of the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from planner.candidates.machines import power_w
from planner.candidates.offers import Site, is_at, quota_matches
from planner.candidates.program import Row
from planner.candidates.ties import is_undated
from planner.carriers import dataclass
from planner.estimate.market import METERED, cap_name
from planner.scenario.schema import Quota, Scenario, SiteLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When a task may hold capacity, in seconds after the plan begins."""

    start_s: float
    end_s: float


class ColumnFacts(NamedTuple):
    """What a limit may ask of a column; thousands are made for a question, in a tenth of a dataclass's time."""

    task: int
    site: Site
    nodes: int  # shapes of one unit
    cost_microusd: int
    carbon_mg: int
    groups: tuple[ColumnFacts, ...] = ()  # of a mix: each group by itself, with its part of cost and carbon
    phases: tuple[ColumnFacts, ...] = ()  # of a switch: what it holds before and after, one of them at any time

    @property
    def parts(self) -> tuple[ColumnFacts, ...]:
        """Everything that it rents, whenever."""
        return self.groups or self.phases or (self,)

    @property
    def devices(self) -> int:
        """The most that it holds at any moment."""
        return self.takes(lambda part: part.nodes * part.site.shape.devices)

    @property
    def undated(self) -> int:
        """Devices at a price of an unknown day; of a mix all or none, by its first group."""
        if self.phases:
            return max(phase.undated for phase in self.phases)
        return self.devices * is_undated(self.site.offer)

    def takes(self, coefficient: Coefficient) -> int:
        """What it takes of a limit that holds at every moment."""
        if self.phases:
            return max(coefficient(phase) for phase in self.phases)
        return sum(coefficient(group) for group in self.groups) if self.groups else coefficient(self)


Coefficient = Callable[[ColumnFacts], int]


def concurrent_sets(windows: Sequence[Window]) -> list[frozenset[int]]:
    """Maximal sets of tasks that run at the same time, in order of their first start."""
    starts = sorted({window.start_s for window in windows})
    sets = [frozenset(i for i, w in enumerate(windows) if w.start_s <= start < w.end_s) for start in starts]
    maximal = [one for one in sets if one and not any(one < other for other in sets)]
    return list(dict.fromkeys(maximal))


def joint_rows(scenario: Scenario, windows: Sequence[Window], columns: Sequence[ColumnFacts]) -> tuple[Row, ...]:
    """All joint limits of a scenario over the columns; rows that can never bind are left to the optimiser.

    Parameters
    ----------
    scenario
        Its limits, quotas and owned machines.
    windows
        (tasks,) when each task may hold capacity.
    columns
        (n,) what limits ask of each; `task` in it is a place in `windows`.
    """
    cliques = concurrent_sets(windows)
    rows = [*whole_plan_rows(scenario, columns)]
    for number, clique in enumerate(cliques):
        suffix = f"@{number}" if len(cliques) > 1 else ""
        rows += [
            _row(name + suffix, label, bound, clique, columns, partial(ColumnFacts.takes, coefficient=coefficient))
            for name, label, bound, coefficient in peak_limits(scenario)
        ]
        rows += _caps(suffix, clique, columns)
    return tuple(row for row in rows if len(row.columns))


def whole_plan_rows(scenario: Scenario, columns: Sequence[ColumnFacts]) -> Iterator[Row]:
    """Limits on the plan as a whole: budget and carbon, everywhere and at a site."""
    limits = scenario.limits
    everyone = frozenset(column.task for column in columns)
    if limits.budget_microusd is not None:
        yield _row("limits.budget", "budget", limits.budget_microusd, everyone, columns, lambda c: c.cost_microusd)
    if limits.carbon_g is not None:
        yield _row("limits.carbon", "carbon", _milligrams(limits.carbon_g), everyone, columns, lambda c: c.carbon_mg)
    for index, place in enumerate(limits.sites):
        if place.carbon_g is not None:
            name, bound = f"limits.sites[{index}].carbon", _milligrams(place.carbon_g)
            label = f"carbon at {_named(place)}"
            yield _row(name, label, bound, everyone, columns, partial(_emitted_at, place))


def _milligrams(grams: float) -> int:
    return math.floor(grams * 1000)


def _named(place: SiteLimit) -> str:
    return " ".join(part for part in (place.provider, place.region) if part)


def _emitted_at(place: SiteLimit, column: ColumnFacts) -> int:
    return sum(part.carbon_mg for part in column.parts if is_at(part.site, place))


def _at(place: SiteLimit, coefficient: Coefficient) -> Coefficient:
    """A coefficient of the columns at a site, 0 elsewhere."""
    return lambda column: coefficient(column) if is_at(column.site, place) else 0


def peak_limits(scenario: Scenario) -> Iterator[tuple[str, str, int, Coefficient]]:
    """Limits that hold at every moment: name, label, bound, and what a column takes, in proportion to its nodes."""
    limits, hardware = scenario.limits, scenario.hardware
    if limits.max_devices is not None:
        yield "limits.max_devices", f"at most {limits.max_devices} devices", limits.max_devices, _devices
    if limits.power_w is not None:
        yield "limits.power", "power", math.floor(limits.power_w * 1000), _power
    for index, place in enumerate(limits.sites):
        if place.power_w is not None:
            name, bound = f"limits.sites[{index}].power", math.floor(place.power_w * 1000)
            yield name, f"power at {_named(place)}", bound, _at(place, _power)
    if limits.spend_microusd_per_hour is not None:
        yield "limits.spend", "spend per hour", limits.spend_microusd_per_hour, _spend
    for index, quota in enumerate(hardware.quotas):
        yield from _quota_limits(index, quota)
    for index, owned in enumerate(hardware.owned):
        yield f"hardware.owned[{index}]", f"{owned.count} owned {owned.shape}", owned.count, _owned_by(index)


def offer_caps(sites: Iterable[Site]) -> Iterator[tuple[str, str, int, Coefficient]]:
    """Of each metered offer that is sold up to so many shapes: all that is held of it at one time, as `peak_limits`.

    What is owned is a limit of the scenario, what is bought ahead has rows of its own (`timetable_rows`).
    """
    for site in {site.offer.id: site for site in sites}.values():
        offer = site.offer
        if offer.max_shapes is not None and offer.price_model in METERED:
            yield cap_name(offer), _cap_label(site), offer.max_shapes, _of_offer(offer.id)


def _cap_label(site: Site) -> str:
    return f"at most {site.offer.max_shapes} shapes of {site.offer.id}"


def _of_offer(identifier: str) -> Coefficient:
    return lambda column: column.nodes if column.site.offer.id == identifier else 0


def _caps(suffix: str, tasks: frozenset[int], columns: Sequence[ColumnFacts]) -> Iterator[Row]:
    """Rows of `offer_caps`, in one pass over the columns however many offers are capped."""
    sites: dict[str, Site] = {}
    held: dict[str, dict[int, int]] = {}  # by offer: shapes of one unit of each column
    for number, column in enumerate(columns):
        for part in column.parts if column.task in tasks else ():
            offer = part.site.offer
            if offer.max_shapes is not None and offer.price_model in METERED:
                sites[offer.id], mine = part.site, held.setdefault(offer.id, {})
                mine[number] = mine.get(number, 0) + part.nodes
    for identifier, site in sorted(sites.items()):
        mine = held[identifier]
        yield Row(
            name=cap_name(site.offer) + suffix,
            label=_cap_label(site),
            bound=site.offer.max_shapes or 0,
            columns=np.array(list(mine), dtype=np.int64),
            coefficients=np.array(list(mine.values()), dtype=np.int64),
        )


def _quota_limits(index: int, quota: Quota) -> Iterator[tuple[str, str, int, Coefficient]]:
    name = f"hardware.quotas[{index}]"
    scope = " ".join(part for part in (quota.provider, quota.device, quota.region, quota.price_model) if part) or "all"
    if quota.max_devices is not None:
        yield name, f"at most {quota.max_devices} devices of {scope}", quota.max_devices, _counted(quota, _devices)
    if quota.max_shapes is not None:
        yield (
            name,
            f"at most {quota.max_shapes} shapes of {scope}",
            quota.max_shapes,
            _counted(quota, lambda c: c.nodes),
        )


def _power(column: ColumnFacts) -> int:
    """Milliwatts keep fractional ratings exact."""
    return math.ceil((power_w(column.site) or 0.0) * 1000) * column.nodes


def _devices(column: ColumnFacts) -> int:
    return column.nodes * column.site.shape.devices


def _spend(column: ColumnFacts) -> int:
    return column.nodes * column.site.offer.price_microusd_per_hour


def _counted(quota: Quota, coefficient: Coefficient) -> Coefficient:
    counts: dict[str, bool] = {}  # by offer: thousands of columns share it

    def counted(column: ColumnFacts) -> int:
        offer = column.site.offer.id
        if offer not in counts:
            counts[offer] = quota_matches(column.site, quota)
        return coefficient(column) if counts[offer] else 0

    return counted


def _owned_by(index: int) -> Coefficient:
    return lambda column: column.nodes if column.site.owned == index else 0


def _row(
    name: str,
    label: str,
    bound: int,
    tasks: frozenset[int],
    columns: Sequence[ColumnFacts],
    coefficient: Coefficient,
) -> Row:
    values = np.array(
        [coefficient(column) if column.task in tasks else 0 for column in columns],
        dtype=np.int64,
    )
    used = np.flatnonzero(values)
    return Row(name=name, label=label, bound=int(bound), columns=used, coefficients=values[used])
