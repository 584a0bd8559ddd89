"""From a scenario and a catalog to the columns of the program: every legal way, evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.brief import brief, shown, some
from planner.candidates.calendar import Calendar, Pool
from planner.candidates.common_places import offer_ranks, ranks
from planner.candidates.contracts import pools_of
from planner.candidates.evaluated import Around, Evaluated, Fresh, Question, Table, evaluated, in_turn
from planner.candidates.holding import hold_times, of_columns
from planner.candidates.ledger import Ledger
from planner.candidates.limits import ColumnFacts, Window, joint_rows
from planner.candidates.machines import carbon_mg_per_hour
from planner.candidates.mixed_space import MixSpace
from planner.candidates.offers import Numbered
from planner.candidates.other_prices import at_other_prices
from planner.candidates.patience import Patience, Spent, endless
from planner.candidates.plainer import Plainer
from planner.candidates.program import SHARE, Program, Row, Task, restrict
from planner.candidates.prune import alone_microusd, count_pruned, prune
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.candidates.serving_question import Mixes
from planner.candidates.shared_nodes import SharedNodes, node_rows, with_shared_nodes
from planner.candidates.slots import Ways
from planner.candidates.ties import is_undated, most_tolerance_microusd, plain_serving, plain_training
from planner.candidates.timetable import Timetable, timetable
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Mixed, Switch
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.estimate.given import NO_MODEL
from planner.estimate.market import market
from planner.estimate.recall import Recall
from planner.scenario.schema import ModelRef, Scenario, ServingFleet, TrainingJob

MIXED = " + "  # between the devices of a mix
SLICES = 8  # equal parts of a class of requests, where a router cannot split it as it likes
ModelLoader = Callable[[ModelRef | None], Architecture]
Lists = Callable[[Fresh, Around, Catalog, Patience], Mapping[str, Evaluated]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Candidates:
    """Every way to run every workload that fits, with what was dropped and why."""

    scenario: Scenario
    catalog: Catalog
    questions: Mapping[str, Question]
    tables: Mapping[str, Table]
    ledgers: Mapping[str, Ledger]
    whole: Program  # every column, in the order of the tables
    whole_rows: NDArray[np.int64]  # row of each column of `whole` in its workload's table
    program: Program  # without the columns that no best plan needs
    rows: NDArray[np.int64]  # (columns,) row of each column of `program` in its workload's table
    pruned: int  # columns of which no best plan needs any, when the ways were listed
    median_tables: Mapping[str, Table]  # what would hold at the median of the error bands
    pools: tuple[Pool, ...] = ()  # what may be reserved
    calendar: Calendar | None = None  # of `program`; None: everything runs at once
    whole_calendar: Calendar | None = None  # of `whole`
    shared: SharedNodes | None = None  # which columns of `program` share nodes; None: none do
    whole_shared: SharedNodes | None = None  # of `whole`
    spaces: Mapping[str, MixSpace] = field(default_factory=dict)  # of jobs that may be mixed: what of
    ways: Mapping[str, Evaluated] = field(default_factory=dict)  # of each workload as it was evaluated
    cut: tuple[str, ...] = ()  # workloads of which only some ways were looked at, for lack of time: nothing is proven
    tie_share: float = SHARE  # of the cost, within which costs are equal
    recall: Recall = field(default_factory=Recall)  # what the estimates answered on the way
    rerated: int = 0  # columns fewer than were listed, since rates are others than they were listed with
    movable: bool = False  # its limits are put out of the way, and will be put back as numbers
    unlisted: int | None = None  # bound of the criterion for mixes that are not among the ways; None: none matters

    @property
    def more_mixes(self) -> dict[str, Mixes]:
        """Of classes of requests that fleets serve besides those that each has, by fleet."""
        asked = {n: one.more_mixes for n, one in self.questions.items() if isinstance(one, ServingQuestion)}
        return {name: mixes for name, mixes in asked.items() if mixes}

    @property
    def columns_before(self) -> int:
        """Columns before pruning, as they were listed."""
        return self.whole.column_count + self.rerated

    def to_frame(self, kind: str | None = None) -> Any:
        """One row a way to run a workload, cheapest first, as a pandas DataFrame.

        Parameters
        ----------
        kind
            ``"training"`` or ``"serving"``: the ways of those workloads alone, without columns of the other kind.

        Raises
        ------
        ValueError
            There is no such kind.
        """
        table = shown(self, "frame", kind)
        if table is None:  # who is here without the front room
            raise LookupError("nobody has said how candidates become a table: import planner.api")
        return table

    def __repr__(self) -> str:
        ways = [f"{name} {len(table):,}" for name, table in self.tables.items()]
        return brief("Candidates", self.scenario.name, f"ways: {some(ways)}", f"columns: {self.program.column_count:,}")

    def _repr_html_(self) -> Any:
        return shown(self, "html")

    def devices(self, program: Program, rows: NDArray[np.int64]) -> NDArray[np.str_]:
        """Device of each column of `program` or `whole`; of what is bought that of its shape, "" of a copy of data."""
        whole = program.column_count == self.whole.column_count
        calendar, shared = (self.whole_calendar, self.whole_shared) if whole else (self.calendar, self.shared)
        names = []
        for task in program.tasks:
            for column in range(task.first, task.stop):
                if task.kind != "optional":
                    names.append(_device_of(self.tables[task.name], int(rows[column])))
                    continue
                purchase = calendar.purchases[column] if calendar else None
                offer = purchase.offer if purchase else None
                node = shared.node_at(column) if shared else None
                names.append(self.catalog.shapes[offer.shape].device if offer else node.device.id if node else "")
        return np.array(names, dtype=np.str_)


def _device_of(table: Table, row: int) -> str:
    """Device of a row; of a mix all of them, in one name."""
    mixed = table.mixes.get(row) if isinstance(table, TrainingTable) else None
    if mixed is None:
        return table.sites[row].device.id
    return MIXED.join(sorted({group.site.device.id for group in mixed.groups}))


def enumerate_candidates(
    scenario: Scenario,
    catalog: Catalog,
    load_model: ModelLoader,
    *,
    allow_suspect: bool = False,
    every_layout: bool = False,
    pruned: bool = True,
    patience_s: float | None = None,
    known: Candidates | None = None,
    spent: Spent = endless,
    tie_share: float = SHARE,
    plainer: Plainer | None = None,
    more_mixes: Mapping[str, Mixes] | None = None,
    lists: Lists = in_turn,
) -> Candidates:
    """Every legal way to run every workload on every allowed offer.

    Parameters
    ----------
    load_model
        Turns a model reference of the scenario into an architecture (this room opens no files).
    every_layout
        Keep layouts that a faster one on the same machines dominates (for inspection).
    pruned
        Drop columns that cannot be in the optimal plan.
    patience_s
        Keep ways to train that take so long, past the deadline; windows stay those of the deadlines.
    known
        Of another scenario: the ways of a workload that is as it was, where nothing else changed that they depend
        on, are taken from there.
    spent
        Share of the time for it that is gone; which workload may use how much: `patience.Patience`. What one does
        not come to is left out, and `cut` names it.
    tie_share
        Of the cost, within which costs are equal.
    plainer
        Only what a plainer plan may be made of.
    more_mixes
        Of classes of requests that replicas of fleets may serve, by fleet, besides those that each has.
    lists
        Lists the ways of workloads of which none are known.
    """
    patience = Patience(workloads=[workload.name for workload in scenario.workloads], spent=spent)
    base, catalog = catalog, market(scenario, catalog)
    pools = pools_of(scenario, catalog, allow_suspect=allow_suspect)
    recall = known.recall if known else Recall()
    around = Around(
        recall=recall,
        scenario=scenario,
        catalog=base,
        pools=pools,
        allow_suspect=allow_suspect,
        every_layout=every_layout,
        patience_s=patience_s,
        plainer=plainer,
        more_mixes=more_mixes or {},
    )
    ways: dict[str, Evaluated] = {}
    fresh: dict[str, tuple[TrainingJob | ServingFleet, Architecture]] = {}
    for workload in scenario.workloads:
        given = isinstance(workload, ServingFleet) and workload.rates is not None
        arch = NO_MODEL if given and workload.model is None else load_model(workload.model)
        before = known.ways.get(workload.name) if known and workload.name not in known.cut else None
        if before is not None and before.answers(workload, arch, around):
            ways[workload.name] = before.asked_by(workload, around)
            continue
        known_at = before if before is not None and before.arch == arch else None
        repriced = at_other_prices(known_at, workload, around, catalog) if known_at is not None else None
        if repriced is not None:
            ways[workload.name] = repriced
        else:
            fresh[workload.name] = workload, arch
    ways |= lists(fresh, around, catalog, patience)
    ways = {workload.name: ways[workload.name] for workload in scenario.workloads}
    if (again := patience.again()) is not None:
        for workload in [one for one in scenario.workloads if one.name in patience.cut]:
            ways[workload.name] = evaluated(workload, ways[workload.name].arch, around, catalog, again)
        patience = again
    questions = {name: one.question for name, one in ways.items()}
    tables = {name: one.table for name, one in ways.items()}
    ledgers = {name: one.ledger.copy() for name, one in ways.items()}
    built = program_of(scenario, catalog, tables, questions, pools, tie_share=tie_share, movable=patience_s is not None)
    whole = built.program
    kept = prune(whole) if pruned else np.arange(whole.column_count)
    _note_pruned(whole, kept, ledgers)
    for name, ledger in ledgers.items():
        ledger.drop("dominated", "columns", built.thinned.get(name, 0))
        ledger.drop("deadline", "columns", built.late.get(name, 0), nearest="no period leaves it in time")
    return Candidates(
        scenario=scenario,
        catalog=catalog,
        questions=questions,
        tables=tables,
        ledgers=ledgers,
        whole=whole,
        whole_rows=built.rows,
        program=restrict(whole, np.isin(np.arange(whole.column_count), kept))[0],
        rows=built.rows[kept],
        pruned=whole.column_count - len(kept),
        median_tables={name: one.median for name, one in ways.items()},
        pools=pools,
        whole_calendar=built.calendar,
        calendar=built.calendar.select(kept) if built.calendar else None,
        shared=built.shared.select(kept) if built.shared else None,
        whole_shared=built.shared,
        spaces={name: one.space for name, one in ways.items() if one.space is not None},
        ways=ways,
        cut=tuple(patience.cut),
        tie_share=tie_share,
        recall=recall,
        movable=patience_s is not None,
    )


def program_of(
    scenario: Scenario,
    catalog: Catalog,
    tables: Mapping[str, Table],
    questions: Mapping[str, Question],
    pools: tuple[Pool, ...] = (),
    *,
    confidence: float | None = None,
    tie_share: float = SHARE,
    movable: bool = False,
) -> Timetable:
    """All columns of all workloads, in canonical order, with the joint rows; with starts where a calendar is asked for.

    Parameters
    ----------
    pools
        What may be reserved.
    confidence
        At which the columns of a calendar hold their machines; None: the one that each job asks for.
    tie_share
        Of the cost, within which costs are equal.
    movable
        Whether limits will be moved: those stay, too, that do not bind as they are.
    """
    tasks: list[Task] = []
    facts: list[ColumnFacts] = []
    for workload in scenario.workloads:
        table, first = tables[workload.name], len(facts)
        facts += _facts_of(len(tasks), table, catalog)
        tasks.append(_task(workload, table, questions[workload.name], first, len(facts)))
    rows = np.concatenate([np.arange(len(table), dtype=np.int64) for table in tables.values()])
    windows = [_window(workload, scenario) for workload in scenario.workloads]
    with_nodes = [*windows, Window(start_s=0.0, end_s=scenario.horizon_s)]
    whole, rows, facts, shared = with_shared_nodes(
        scenario,
        _assemble(scenario, tasks, facts, (), tables),
        rows,
        facts,
        tables,
        lambda nodes: joint_rows(scenario, with_nodes, nodes),
        lambda site: carbon_mg_per_hour(site, catalog),
    )
    if scenario.scheduled:
        held = hold_times(scenario, questions, tables, confidence)
        late = {
            name: asked.latest_s
            for name, asked in questions.items()
            if isinstance(asked, TrainingQuestion) and asked.patience_s is not None
        }
        held, tied = of_columns(held, tasks, whole.tasks, rows), _tied(whole, tie_share)
        ways = Ways(scenario=scenario, catalog=catalog, pools=pools, program=tied, rows=rows, facts=facts, **held)
        return timetable(replace(ways, shared=shared, latest_s=late, movable=movable))
    if shared is None:
        limits = joint_rows(scenario, windows, facts)
    else:
        limits = (*joint_rows(scenario, with_nodes, facts), *node_rows(shared))
    whole = _tied(replace(whole, rows=limits), tie_share)
    return Timetable(program=whole, rows=rows, calendar=None, late={}, thinned={}, shared=shared)


def select(candidates: Candidates, kept: NDArray[np.int64]) -> Candidates:
    """With these columns of `whole` in the program."""
    mask = np.zeros(candidates.whole.column_count, dtype=bool)
    mask[kept] = True
    calendar, shared = candidates.whole_calendar, candidates.whole_shared
    return replace(
        candidates,
        program=restrict(candidates.whole, mask)[0],
        rows=candidates.whole_rows[kept],
        calendar=None if calendar is None else calendar.select(kept),
        shared=None if shared is None else shared.select(kept),
    )


def places_in_whole(candidates: Candidates) -> NDArray[np.int64]:
    """Column of `whole` that each column of `program` is, where everything runs at once."""
    rows, of_whole = candidates.rows, candidates.whole_rows
    if candidates.shared is not None and candidates.whole_shared is not None:
        rows, of_whole = candidates.shared.keys(rows), candidates.whole_shared.keys(of_whole)
    places = np.empty(candidates.program.column_count, dtype=np.int64)
    for task, listed in zip(candidates.program.tasks, candidates.whole.tasks):
        mine, here = of_whole[listed.first : listed.stop], slice(task.first, task.stop)
        order = np.argsort(mine)
        places[here] = listed.first + order[np.searchsorted(mine, rows[here], sorter=order)]
    return places


def with_tables(candidates: Candidates, tables: Mapping[str, Table], tasks: Mapping[str, int]) -> Candidates:
    """The same question with other figures of some workloads, and other spare replicas of some fleets.

    Parameters
    ----------
    candidates
        The question, with all its tables.
    tables
        Other tables, by workload; the rest stay.
    tasks
        Spare replicas of fleets, by name; to be given wherever they are others than the scenario asks for.
    """
    merged = {**candidates.tables, **tables}
    at_once = not candidates.scenario.scheduled and candidates.whole_shared is None
    if at_once and all(_same_machines(candidates.tables[n], one) for n, one in tables.items()):
        rated = _tied(_with_rates(candidates.whole, merged), candidates.tie_share)
        built = Timetable(program=rated, rows=candidates.whole_rows, calendar=None, late={}, thinned={})
    else:
        built = program_of(
            candidates.scenario,
            candidates.catalog,
            merged,
            candidates.questions,
            candidates.pools,
            tie_share=candidates.tie_share,
            movable=candidates.movable,
        )
    spares = [replace(task, spare_replicas=tasks.get(task.name, task.spare_replicas)) for task in built.program.tasks]
    whole = replace(built.program, tasks=tuple(spares))
    kept = prune(whole)
    return replace(
        candidates,
        tables=merged,
        whole=whole,
        rerated=candidates.columns_before - whole.column_count,
        whole_rows=built.rows,
        program=restrict(whole, np.isin(np.arange(whole.column_count), kept))[0],
        rows=built.rows[kept],
        whole_calendar=built.calendar,
        calendar=built.calendar.select(kept) if built.calendar else None,
        shared=built.shared.select(kept) if built.shared else None,
        whole_shared=built.shared,
    )


def _same_machines(before: Table, after: Table) -> bool:
    """Whether the rows of two tables of a workload hold the same machines at the same cost: only rates differ."""
    if not isinstance(before, ServingTable) or not isinstance(after, ServingTable):
        return False
    same = before.sites == after.sites and before.cost_microusd == after.cost_microusd
    return same and all(
        np.array_equal(getattr(before, n), getattr(after, n)) for n in ("nodes", "role", "mix", "level")
    )


def _with_rates(whole: Program, tables: Mapping[str, Table]) -> Program:
    """The program where units of the fleets bring what their tables say; machines and limits are as they were."""
    fleets = [(task, one) for task in whole.tasks if isinstance(one := tables.get(task.name), ServingTable)]
    names = ("replicas", "capacity_micro_per_s", "max_units", "pipelined", "plain", "bounded")
    arrays = {name: getattr(whole, name).copy() for name in names}
    for task, table in fleets:
        mine, units = slice(task.first, task.stop), table.units()
        width = units.capacity_micro_per_s.shape[1]
        arrays["capacity_micro_per_s"][mine, :width] = units.capacity_micro_per_s
        changed = {"replicas": units.replicas, "max_units": units.max_units}
        changed |= {"pipelined": _pipelined(table), "plain": _plain(table), "bounded": _bounded(table)}
        for name, values in changed.items():
            arrays[name][mine] = values
    return replace(whole, **arrays)


def _facts_of(task: int, table: Table, catalog: Catalog) -> list[ColumnFacts]:
    """What limits may ask of each row of a table."""
    if isinstance(table, TrainingTable):
        hours = (table.finish_s / 3600.0).tolist()
    else:
        hours = [table.hours(row) for row in range(len(table))]
    per_hour = Numbered(table.sites).each(lambda site: carbon_mg_per_hour(site, catalog))
    facts = [
        ColumnFacts(task, site, nodes, cost, round(per_hour * nodes * run))
        for site, per_hour, nodes, cost, run in zip(
            table.sites, per_hour, table.nodes.tolist(), table.cost_microusd, hours
        )
    ]
    if isinstance(table, TrainingTable):
        for row, mixed in table.mixes.items():
            facts[row] = _mixed_facts(facts[row], mixed)
        for row, switch in table.switches.items():
            facts[row] = _switched_facts(facts[row], table, switch, catalog)
    return facts


def _switched_facts(whole: ColumnFacts, table: TrainingTable, switch: Switch, catalog: Catalog) -> ColumnFacts:
    phases = tuple(
        ColumnFacts(
            task=whole.task,
            site=site,
            nodes=nodes,
            cost_microusd=cost,
            carbon_mg=round(carbon_mg_per_hour(site, catalog) * nodes * hours),
        )
        for (site, nodes), cost, hours in zip(switch.rented(table), switch.cost_microusd, switch.hours)
    )
    return whole._replace(carbon_mg=sum(phase.carbon_mg for phase in phases), phases=phases)


def _mixed_facts(whole: ColumnFacts, mixed: Mixed) -> ColumnFacts:
    groups = tuple(
        ColumnFacts(whole.task, group.site, group.nodes, group.cost_microusd, group.carbon_mg) for group in mixed.groups
    )
    return whole._replace(carbon_mg=sum(group.carbon_mg for group in groups), groups=groups)


def _task(workload: TrainingJob | ServingFleet, table: Table, question: Question, first: int, stop: int) -> Task:
    if isinstance(workload, TrainingJob):
        return Task(name=workload.name, kind="training", first=first, stop=stop, count=workload.count)
    assert isinstance(table, ServingTable)
    spares = table.spares_of_any_plan(question) if isinstance(question, ServingQuestion) else workload.spare_replicas
    return Task(
        name=workload.name,
        kind="serving",
        first=first,
        stop=stop,
        demand_micro_per_s=table.demands_micro_per_s,
        levels=table.level_demands,
        max_spot_share=workload.max_spot_share,
        integer_slices=SLICES if workload.integer_slices else 0,
        spare_replicas=spares,
        min_replicas=workload.min_replicas,
        boxed=table.blended and len(table.demands_micro_per_s) > 1,
    )


def _window(workload: TrainingJob | ServingFleet, scenario: Scenario) -> Window:
    if isinstance(workload, TrainingJob):
        return Window(start_s=workload.start_s, end_s=workload.start_s + workload.deadline_s)
    return Window(start_s=0.0, end_s=scenario.horizon_s)


def _assemble(
    scenario: Scenario,
    tasks: list[Task],
    facts: list[ColumnFacts],
    rows: tuple[Row, ...],
    tables: Mapping[str, Table],
) -> Program:
    units = [
        table.units() if isinstance(table, ServingTable) else table.units(task.count)
        for task, table in zip(tasks, tables.values())
    ]
    role = _of_fleets(tables, "role")
    sites, nodes = Numbered(fact.site for fact in facts), np.concatenate([part.nodes for part in units])
    offers = sites.each(lambda site: site.offer.id)
    devices = nodes * sites.whole(lambda site: site.shape.devices)
    undated = devices * sites.whole(lambda site: is_undated(site.offer))
    for column in [number for number, fact in enumerate(facts) if fact.groups or fact.phases]:
        several = facts[column]
        devices[column], undated[column] = several.devices, several.undated
        offers[column] = " + ".join(part.site.offer.id for part in several.parts)
    starts_s = {job.name: job.start_s for job in scenario.training}
    program = Program(
        tasks=tuple(tasks),
        cost_microusd=np.array([cost for part in units for cost in part.cost_microusd], dtype=np.int64),
        finish_s=np.concatenate([part.finish_s + starts_s.get(task.name, 0.0) for task, part in zip(tasks, units)]),
        carbon_mg=np.array([fact.carbon_mg for fact in facts], dtype=np.int64),
        nodes=nodes,
        replicas=np.concatenate([part.replicas for part in units]),
        capacity_micro_per_s=_padded([part.capacity_micro_per_s for part in units]),
        max_units=np.concatenate([part.max_units for part in units]),
        spot=sites.whole(lambda site: site.spot),
        devices=devices,
        pipelined=np.concatenate([_pipelined(table) for table in tables.values()]),
        plain=np.concatenate([_plain(table) for table in tables.values()]),
        undated=undated,
        bounded=np.concatenate([_bounded(table) for table in tables.values()]),
        provider=ranks(sites.each(lambda site: site.offer.provider)),
        offer=0 * nodes,
        rows=rows,
        max_providers=scenario.limits.max_providers,
        objective=scenario.objective,
        role=role,
        place=_places(facts, role),
        level=_of_fleets(tables, "level"),
    )
    return replace(program, offer=offer_ranks(program, [fact.site for fact in facts], offers))


def _of_fleets(tables: Mapping[str, Table], name: str) -> NDArray[np.int64]:
    """An array of fleets' tables; zeros for jobs."""
    found = [getattr(one, name) if isinstance(one, ServingTable) else 0 * one.nodes for one in tables.values()]
    return np.concatenate(found)


def _places(facts: list[ColumnFacts], role: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where pools of one role lie, from 1; 0 for what serves whole requests."""
    if not role.any():
        return 0 * role
    names = Numbered(fact.site for fact in facts).each(lambda site: f"{site.offer.provider} {site.offer.region}")
    return np.where(role > 0, 1 + ranks(names), 0)


def _tied(program: Program, share: float) -> Program:
    """With the tolerance within which costs are equal."""
    most = most_tolerance_microusd(alone_microusd(program), share)
    return replace(program, tie_share=share, most_tie_microusd=most)


def _pipelined(table: Table) -> NDArray[np.int64]:
    """Devices of each row of a fleet whose replicas are cut into a pipeline."""
    if not isinstance(table, ServingTable) or table.evaluated is None:
        return 0 * table.nodes
    devices = table.nodes * table.of_machines(lambda site: site.shape.devices)
    cut = np.asarray(table.evaluated.layout.pp) > 1
    return np.asarray(devices * (cut[table.places] if cut.ndim else cut))


def _bounded(table: Table) -> NDArray[np.int64]:
    """1 + the number of each row whose rates are only bounded."""
    numbers = np.arange(1, len(table) + 1, dtype=np.int64)
    return numbers * table.open_rows if isinstance(table, ServingTable) else 0 * numbers


def _plain(table: Table) -> NDArray[np.int64]:
    """How involved the layout of each row is; of a fleet times its devices, of a mix all groups together."""
    if isinstance(table, ServingTable):
        return _plain_fleet(table)
    domain = Numbered(table.sites).whole(lambda site: site.domain)
    plain = plain_training(table.layout, domain)
    for row, switch in table.switches.items():
        assert table.late is not None
        first, place = table.late.layout.select(np.array([switch.first])), table.late.sites[switch.first].domain
        plain[row] += int(plain_training(first, place)[0])
    for row, mixed in table.mixes.items():
        plain[row] = sum(int(plain_training(group.layout, group.site.domain)[0]) for group in mixed.groups)
    return np.asarray(plain)


def _plain_fleet(table: ServingTable) -> NDArray[np.int64]:
    if table.evaluated is None:
        return 0 * table.nodes
    devices = table.nodes * table.of_machines(lambda site: site.shape.devices)
    domain = table.of_machines(lambda site: site.domain)
    made_for_it = table.of_machines(lambda site: site.made_for_replicas) > 0
    layout = table.evaluated.layout_of(table.places)
    return np.asarray(devices * plain_serving(layout, domain, made_for_it))


def _padded(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Capacities of all tasks under each other; a task with fewer buckets has none in the others."""
    columns = [part if part.ndim == 2 else part[:, None] for part in parts]
    width = max((part.shape[1] for part in columns), default=1)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in columns])


def _note_pruned(program: Program, kept: NDArray[np.int64], ledgers: Mapping[str, Ledger]) -> None:
    for name, count in count_pruned(program, kept).items():
        if name in ledgers:
            ledgers[name].drop("dominated", "columns", count)
