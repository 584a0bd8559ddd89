"""Nodes that replicas of fleets and jobs share: integers are nodes of an offer, a replica takes some of their devices.

A column of a fleet is a node full of its replicas. Beside it stands a *share*: one of these replicas on a node that
others use too. It costs nothing itself; nodes are optional columns, and of each offer

    sum over shares of (devices of a replica) u  <=  (devices of a node) n.

**That is all a packing needs** where the devices of every replica are a power of two that divides those of a node:
place replicas by falling size, each on any node with as many devices free. All that was placed before is a multiple of
its size g, and so is a node, so every node has a multiple of g free: while n nodes have g devices free in all, one of
them has. So replicas fit on n nodes exactly when their devices do (Coffman, Garey and Johnson, "Bin packing with
divisible item sizes", J. Complexity 3(4) 1987: first fit is exact there). Other sizes, which only a fixed layout has,
keep nodes of their own.

Shares are listed on offers of several devices, and on those that contracts reserve, where at least two fleets can run,
or a fleet and jobs beside it (`planner.candidates.node_parts`), not on spot. A job has no column of its own there: the
share is all that it is. An offer whose nodes cost no less than those of another of the same physics, and take no less
of any limit, is left out: what runs on its shared nodes runs as well on the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.calendar import RESERVED
from planner.candidates.limits import ColumnFacts
from planner.candidates.money import cost_microusd
from planner.candidates.offers import Site, shape_cap
from planner.candidates.program import WHOLE, IntArray, Program, Row, Task, restrict
from planner.candidates.serving import ServingTable
from planner.candidates.ties import is_undated
from planner.candidates.training_table import TrainingTable
from planner.carriers import dataclass
from planner.estimate.market import METERED
from planner.scenario.schema import Scenario, TrainingJob

NODES = "~nodes"  # the task of shared nodes; no workload's name begins so
DEVICES_OF = "shared:"  # first part of the names of the rows that say what fits on them
OWN_COLUMN = -1
LimitsOf = Callable[[Sequence[ColumnFacts]], tuple[Row, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNodes:
    """Which columns of a program stand on shared nodes; arrays are parallel to its columns."""

    sites: tuple[Site, ...]  # offers of which nodes are shared
    site: IntArray  # index into `sites` of shares and of nodes; -1: a column of its own
    devices: IntArray  # of one replica of a share; 0 for any other

    def select(self, kept: IntArray) -> SharedNodes:
        """Of a program restricted to some columns."""
        return replace(self, site=self.site[kept], devices=self.devices[kept])

    def beside(self, way: IntArray, more: int) -> SharedNodes:
        """Of a program whose columns are some of these, in some order, and others after them."""
        none = np.zeros(more, dtype=np.int64)
        return replace(
            self,
            site=np.concatenate([self.site[way], none + OWN_COLUMN]),
            devices=np.concatenate([self.devices[way], none]),
        )

    def keys(self, rows: IntArray) -> IntArray:
        """A number of each column of a workload that no other has, in every part of the program.

        Parameters
        ----------
        rows
            (columns,) row of each in its workload's table.
        """
        return np.asarray(rows * (len(self.sites) + 1) + self.site + 1, dtype=np.int64)

    def is_share(self, column: int) -> bool:
        """Whether units of a column are replicas on shared nodes."""
        return bool(self.devices[column] > 0)

    def node_at(self, column: int) -> Site | None:
        """The offer of which a column is nodes, or stands on them; None of any other column."""
        number = int(self.site[column])
        return None if number == OWN_COLUMN else self.sites[number]

    def node_of(self, site: int) -> int | None:
        """The column of the nodes of an offer; None where the program has it no more."""
        found = np.flatnonzero((self.site == site) & (self.devices == 0))
        return int(found[0]) if len(found) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """One replica of a column of a fleet, or a job on a part of a node, by itself."""

    task: int
    column: int  # of the program without shares
    devices: int
    place: object  # of the replica among the evaluated ones of its fleet; of a job where its data would have to be
    job: bool = False


def with_shared_nodes(
    scenario: Scenario,
    program: Program,
    rows_of: IntArray,
    facts: Sequence[ColumnFacts],
    tables: Mapping[str, object],
    limits_of: LimitsOf,
    carbon_mg_per_hour: Callable[[Site], float],
) -> tuple[Program, IntArray, list[ColumnFacts], SharedNodes | None]:
    """A program in which replicas of several fleets, and jobs, may share nodes.

    Parameters
    ----------
    program
        Without joint rows: columns of jobs, also on parts of nodes, and of fleets nodes full of replicas.
    rows_of
        (columns,) row of each column in its workload's table.
    facts
        What limits ask of each column.
    tables
        Of the workloads, in the order of the program's tasks.
    limits_of
        The joint rows over some columns.

    Returns
    -------
    The program, rows of its columns (-1 for nodes), what limits ask of them, and which share nodes; all as they were,
    without jobs on parts of nodes, and None where none may.
    """
    by_site = _shares(scenario, program, rows_of, facts, tables)
    sites = [facts[_of_fleet(shares)].site for shares in by_site.values()]
    hours = scenario.horizon_s / 3600.0
    nodes = [
        ColumnFacts(
            task=len(program.tasks),
            site=site,
            nodes=1,
            cost_microusd=cost_microusd(1, site.offer.price_microusd_per_hour, hours),
            carbon_mg=round(carbon_mg_per_hour(site) * hours),
        )
        for site in sites
    ]
    kept = _worth_sharing(scenario, list(by_site.values()), nodes, limits_of(nodes) if nodes else ())
    if not kept:
        whole = np.array([fact.site.whole_devices is None for fact in facts], dtype=bool)
        if whole.all():
            return program, rows_of, list(facts), None
        some, columns = restrict(program, whole)
        return some, rows_of[columns], [facts[k] for k in columns.tolist()], None
    shares = [list(by_site.values())[number] for number in kept]
    return _extended(scenario, program, rows_of, facts, shares, [nodes[number] for number in kept])


def node_rows(shared: SharedNodes) -> tuple[Row, ...]:
    """What fits on the shared nodes of each offer."""
    rows = []
    for number, site in enumerate(shared.sites):
        columns = np.flatnonzero(shared.site == number)
        taken = np.where(shared.devices[columns] > 0, shared.devices[columns], -site.shape.devices)
        name, label = f"{DEVICES_OF}{site.offer.id}", f"devices of shared nodes of {site.offer.id}"
        rows.append(Row(name=name, label=label, bound=0, columns=columns, coefficients=taken))
    return tuple(rows)


def divides(devices: int, per_node: int) -> bool:
    """Whether replicas of so many devices fill nodes without a gap, whatever else of such sizes stands there."""
    return devices < per_node and per_node % devices == 0 and devices & (devices - 1) == 0


def may_share(scenario: Scenario, site: Site) -> bool:
    """Whether nodes of an offer may be shared: they are several devices, by the hour, owned or reserved, and stay."""
    lasting = site.owned is not None or (site.offer.price_model in (*METERED, RESERVED) and not site.spot)
    return scenario.hardware.share_nodes and lasting and site.shape.devices > 1


def _shares(
    scenario: Scenario,
    program: Program,
    rows_of: IntArray,
    facts: Sequence[ColumnFacts],
    tables: Mapping[str, object],
) -> dict[str, list[_Share]]:
    """Replicas and jobs that may share nodes, by offer: where at least two workloads may stand, one of them a fleet."""
    if not scenario.hardware.share_nodes:
        return {}
    found: dict[str, list[_Share]] = {}
    sharing: dict[int, bool] = {}  # by site
    for number, (task, table) in enumerate(zip(program.tasks, tables.values())):
        if isinstance(table, TrainingTable):
            mine = [k for k in range(task.first, task.stop) if facts[k].site.whole_devices is not None]
            for one in (_of_job(scenario, number, k, facts[k].site) for k in mine):
                found.setdefault(facts[one.column].site.offer.id, []).append(one)
        if not isinstance(table, ServingTable) or table.evaluated is None or task.levels:
            continue
        devices = np.asarray(np.broadcast_to(table.evaluated.layout.devices, table.evaluated.nodes.shape))
        for column in range(task.first, task.stop):
            row, site = int(rows_of[column]), facts[column].site
            each = int(devices[table.places[row]])
            if id(site) not in sharing:
                sharing[id(site)] = may_share(scenario, site)
            if not sharing[id(site)] or table.role[row] != WHOLE or table.nodes[row] != 1:
                continue
            if divides(each, site.shape.devices) and table.replicas[row] * each == site.shape.devices:
                place = int(table.places[row]) * 1024 + int(table.mix[row])
                one = _Share(task=number, column=column, devices=each, place=place)
                found.setdefault(site.offer.id, []).append(one)
    several = {name: shares for name, shares in found.items() if len({one.task for one in shares}) > 1}
    return {name: shares for name, shares in several.items() if not all(one.job for one in shares)}


def _of_job(scenario: Scenario, task: int, column: int, site: Site) -> _Share:
    job = scenario.workloads[task]
    fixed = isinstance(job, TrainingJob) and job.data is not None
    place = (site.offer.provider, site.offer.region) if fixed else None  # a copy of the data may have to be there
    return _Share(task=task, column=column, devices=site.shape.devices, place=place, job=True)


def _of_fleet(shares: Sequence[_Share]) -> int:
    """The column of a fleet on an offer."""
    return next(one.column for one in shares if not one.job)


def _worth_sharing(
    scenario: Scenario, shares: Sequence[Sequence[_Share]], nodes: Sequence[ColumnFacts], limits: Sequence[Row]
) -> list[int]:
    """Offers that no other of the same physics makes pointless, in the order of their names."""
    uses = np.zeros((len(nodes), len(limits)), dtype=np.int64)
    for number, limit in enumerate(limits):
        uses[limit.columns, number] = limit.coefficients
    kinds: dict[object, list[int]] = {}
    for number, mine in enumerate(shares):
        kinds.setdefault(frozenset((one.task, one.place) for one in mine), []).append(number)
    kept: list[int] = []
    for same in kinds.values():
        order = sorted(same, key=lambda n: (nodes[n].cost_microusd, nodes[n].carbon_mg, is_undated(nodes[n].site.offer),
                                            nodes[n].site.offer.id))  # fmt: skip
        best: list[int] = []
        for number in order:
            if not any(_covers(scenario, nodes, uses, other, number) for other in best):
                best.append(number)
        kept += best
    return sorted(kept, key=lambda number: nodes[number].site.offer.id)


def _covers(scenario: Scenario, nodes: Sequence[ColumnFacts], uses: IntArray, first: int, second: int) -> bool:
    """Whether nodes of one offer do all that those of a second one, which cost no less, do.

    A cap of the offer itself is a limit among `uses`, which the second one does not touch.
    """
    one, other = nodes[first], nodes[second]
    if RESERVED in (one.site.offer.price_model, other.site.offer.price_model):
        return False  # contracts pay for it
    if scenario.limits.max_providers is not None and one.site.offer.provider != other.site.offer.provider:
        return False
    return one.carbon_mg <= other.carbon_mg and bool((uses[first] <= uses[second]).all())


def _extended(
    scenario: Scenario,
    program: Program,
    rows_of: IntArray,
    facts: Sequence[ColumnFacts],
    shares: Sequence[Sequence[_Share]],
    nodes: Sequence[ColumnFacts],
) -> tuple[Program, IntArray, list[ColumnFacts], SharedNodes]:
    """The program with a share beside each column that has one, and the nodes after all workloads."""
    by_task: dict[int, list[tuple[int, _Share]]] = {}
    for number, mine in enumerate(shares):
        for one in mine:
            by_task.setdefault(one.task, []).append((number, one))
    split: list[tuple[int, int, int]] = []  # column as it was, devices of a share, offer
    tasks: list[Task] = []
    for index, task in enumerate(program.tasks):
        begin, own = len(split), range(task.first, task.stop)
        split += [(column, 0, OWN_COLUMN) for column in own if facts[column].site.whole_devices is None]
        split += [(one.column, one.devices, number) for number, one in by_task.get(index, [])]
        tasks.append(replace(task, first=begin, stop=len(split)))
    tasks.append(Task(name=NODES, kind="optional", first=len(split), stop=len(split) + len(nodes)))
    source, devices, site = (np.array(values, dtype=np.int64) for values in zip(*split))
    alike = np.array([_of_fleet(mine) for mine in shares], dtype=np.int64)  # a column on the offer of each node
    most = _most(scenario, program, shares, nodes)
    shared = SharedNodes(
        sites=tuple(fact.site for fact in nodes),
        site=np.concatenate([site, np.arange(len(nodes))]),
        devices=np.concatenate([devices, 0 * alike]),
    )
    extended = replace(_columns(program, source, devices, alike, nodes, most), tasks=tuple(tasks))
    listed = [_of_share(facts[column]) if size else facts[column] for column, size, _ in split]
    return extended, np.concatenate([rows_of[source], 0 * alike - 1]), [*listed, *nodes], shared


def _of_share(whole: ColumnFacts) -> ColumnFacts:
    """A share takes nothing of any limit: its nodes do."""
    return whole._replace(nodes=0, cost_microusd=0, carbon_mg=0)


def _most(
    scenario: Scenario, program: Program, shares: Sequence[Sequence[_Share]], nodes: Sequence[ColumnFacts]
) -> list[int]:
    """Most nodes of each offer that any plan may use.

    A plan without a replica too many has, of each fleet, less than the devices of two ways to run all of it.
    """
    most = []
    for mine, node in zip(shares, nodes):
        by_task: dict[int, int] = {}
        for one in mine:
            units = int(program.max_units[one.column]) * max(int(program.replicas[one.column]), 1)
            by_task[one.task] = max(by_task.get(one.task, 0), units * one.devices)
        size = node.site.shape.devices
        needed = sum(2 * devices + size for devices in by_task.values())
        most.append(max(min(-(-needed // size), shape_cap(scenario, node.site, one_job=False)), 1))
    return most


def _columns(
    program: Program,
    source: IntArray,
    devices: IntArray,
    alike: IntArray,
    nodes: Sequence[ColumnFacts],
    most: Sequence[int],
) -> Program:
    """Columns of a program, some of them split into single replicas, and nodes.

    Parameters
    ----------
    source
        Column that each is made of.
    devices
        Of the replica that it is, 0 where it is the column itself.
    alike
        A column on the offer of each node.
    """
    share, replicas = devices > 0, np.maximum(program.replicas[source], 1)

    def arranged(values: IntArray, of_share: IntArray | int, of_nodes: IntArray | int) -> IntArray:
        return np.concatenate([np.where(share, of_share, values[source]), 0 * alike + of_nodes])

    def part(values: IntArray) -> IntArray:
        """What a node full of replicas counts, a replica counts a part of."""
        return arranged(values, values[source] // replicas, 0)

    none, capacity = 0 * program.nodes, program.capacity_micro_per_s
    of_units = np.where(share[:, None], capacity[source] // replicas[:, None], capacity[source])
    return replace(
        program,
        cost_microusd=arranged(program.cost_microusd, 0, np.array([node.cost_microusd for node in nodes])),
        finish_s=np.concatenate([program.finish_s[source], 0.0 * alike]),
        carbon_mg=arranged(program.carbon_mg, 0, np.array([node.carbon_mg for node in nodes])),
        nodes=arranged(program.nodes, 0, 1),
        replicas=arranged(program.replicas, np.minimum(program.replicas[source], 1), 0),
        capacity_micro_per_s=np.concatenate([of_units, np.zeros((len(nodes), capacity.shape[1]), dtype=np.int64)]),
        max_units=arranged(program.max_units, program.max_units[source] * replicas, np.array(most)),
        provider=arranged(program.provider, -1, program.provider[alike]),
        offer=arranged(program.offer, program.offer[source], program.offer[alike]),
        role=arranged(program.role, none[source], 0),
        place=arranged(program.place, none[source], 0),
        level=arranged(program.level, none[source], 0),
        spot=arranged(program.spot, none[source], 0),
        domain=arranged(program.domain, program.domain[source], 0),
        devices=arranged(program.devices, devices, program.devices[alike]),
        pipelined=part(program.pipelined),
        plain=part(program.plain),
        undated=arranged(program.undated, 0, program.undated[alike]),
        bounded=arranged(program.bounded, program.bounded[source], 0),
    )
