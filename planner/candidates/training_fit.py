"""Layouts that fit the memory of machines, and the seconds of a step: what neither tokens nor deadlines change.

A scenario that is asked again with other tokens, deadlines, prices or limits finds here what was looked at before
(`Looked`, kept by a `Recall`), machine by machine and count by count, and adds the counts that are missing. What a
question finds does not depend on what was asked before it.

Beside layouts of the usual sizes that come near the fastest on as many shapes, those of sizes between are looked at
(`layouts.finer_layouts`). Which these are follows from the machine, the count and the seconds of a step alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.candidates.layouts import (
    enumerate_layouts,
    finer_layouts,
    laid_out,
    offered,
    split_numbers,
    tried_around,
    unadvised,
)
from planner.candidates.offers import Site
from planner.candidates.ties import plain_training
from planner.candidates.training_choice import least_by, least_policies, nearest, policy_runs
from planner.candidates.training_looked import Fit, Fitting, Level, Looked, Misses, Search
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.estimate.frameworks import named_framework
from planner.estimate.layout import Layout
from planner.estimate.recall import MOST_BYTES, figures_of
from planner.estimate.resolve import host_bytes_per_device
from planner.estimate.software import programs_of
from planner.estimate.software_layouts import on_gpus, open_advised, open_can
from planner.estimate.step_distinct import Ways
from planner.estimate.terms import Terms
from planner.estimate.training import is_analytic, pace_s, step_seconds, training_memory, training_times
from planner.estimate.training_memory import family_alike, host_bytes

Rows = NDArray[np.int64]

Out: TypeAlias = Callable[[Callable[[], bool]], bool]  # whether no time is left, if there is a way already
AT_ONCE = 1 << 17  # layouts on machines that are timed at once
MOST_KEPT_BYTES = MOST_BYTES // 2  # of one job's layouts, beyond which those that were not asked for are forgotten
AS_FAST = 1e-4  # relative, of times: what is slower by more is never chosen, nor told as equal (`ties.six_digits`)
_SIZES = 1 << 10  # room for a micro-batch
_NONE: Rows = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    """Layouts for any machine and their memory, which depends on the device by its software alone."""

    layout: Layout
    devices: Rows
    memory: dict[str, Terms]  # by `family_alike` of the machines that were asked for
    runs: Rows  # of rows that differ in recomputation alone
    ways: Ways | None
    by_count: Mapping[int, Rows]  # ascending, of each count of devices
    splits: Rows  # a number of each split
    launched: NDArray[np.bool_] | None  # whether some program has it on GPUs; None: each, or nobody knows
    unadvised: tuple[Rows, Rows] = (_NONE, _NONE)  # devices and tensor ranks of those that nobody advises
    aside: dict[int, Rows] = field(default_factory=dict)  # how many these are by devices, of each fast domain
    able: dict[str, NDArray[np.bool_] | None] = field(default_factory=dict)  # what programs have, by family of devices
    origin: tuple[Rows, Rows] | None = None  # of finer ones: the first and the last number beside which each lies


def look(
    question: TrainingQuestion, searches: Sequence[Search], out: Out, *, every_layout: bool
) -> tuple[Looked, list[Fitting]]:
    """What fits each of some machines on its counts of shapes.

    Parameters
    ----------
    question
        The job.
    searches
        Machines and counts.
    out
        Whether there is no time left, once there is a layout that is on time. Machines that were not looked at by
        then have no layouts; those that compute for the least money come first.
    every_layout
        Also layouts that take longer than another one for no less memory, and nothing between the usual sizes; the
        seconds of a step are left out.
    """
    job = question.job
    which = (
        programs_of(job, question.arch, "gpu"),
        question.spec.critical_batch_tokens,
        question.involved,
        every_layout,
        job.framework,
        tuple(job.offload or ()),
    )
    key = ("looked at", question.physics, which)
    levels = [_levels(question, search.group[0]) for search in searches]
    told = [_figures_of(question, search, its) for search, its in zip(searches, levels)]
    looked: Looked = question.recall.known(key) or _nothing()
    missing: dict[bytes, tuple[Search, list[Level]]] = {}
    for search, its, at in zip(searches, levels, told):
        known = looked.on[at].seen if at in looked.on else {}
        counts = {count for count in search.counts if count not in known}
        if counts:
            before = missing[at][0].counts if at in missing else ()
            missing[at] = replace(search, counts=tuple(sorted({*before, *counts}))), its
    if missing:
        looked = _grown(question, looked, missing, out, every_layout=every_layout)
        if looked.nbytes > MOST_KEPT_BYTES:  # machines at other confidences, or of another time, go
            looked = _with(question, _nothing(), looked, {at: looked.on[at] for at in told if at in looked.on})
        if not out(lambda: True):
            question.recall.keep(key, looked, nbytes=looked.nbytes)
    return looked, [_asked_for(looked, *each) for each in zip(searches, levels, told)]


def _levels(question: TrainingQuestion, site: Site) -> list[Level]:
    """The confidence asked for, then the median; one when they are the same on this machine."""
    band = question.band(site)
    levels = [
        Level(confidence=share, time_margin=band.time_margin(share), memory_margin=band.memory_margin(share))
        for share in question.confidences
    ]
    same = (levels[0].time_margin, levels[0].memory_margin) == (levels[-1].time_margin, levels[-1].memory_margin)
    return levels[:1] if same else levels


def _figures_of(question: TrainingQuestion, search: Search, levels: Sequence[Level]) -> bytes:
    """Everything on a machine that its layouts and the seconds of their steps follow from, but the counts."""
    room, analytic, site = _room(search, levels), float(is_analytic(search.spec)), search.group[0]
    return figures_of(question.machine_figures(site), *room, analytic, question.power_figures(site), texts=True)


def _room(search: Search, levels: Sequence[Level]) -> tuple[str | int | float | None, ...]:
    """What of a machine and its confidences decides which layouts of some counts fit it."""
    site = search.group[0]
    host = host_bytes_per_device(site.shape) if search.spec.offload else None
    kind = site.device.kind, search.family, site.shape.devices, search.domain
    return *kind, site.usable_bytes, host, *(level.memory_margin for level in levels)


def _nothing() -> Looked:
    none: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    return Looked(layout=Layout(**dict.fromkeys(Layout.__slots__, none)), memory={}, ways=None, on={})


def _asked_for(looked: Looked, search: Search, levels: list[Level], told: bytes) -> Fitting:
    """Of what fits a machine the counts that are asked for."""
    fit = looked.on.get(told)
    if fit is None:
        none, steps = np.zeros(0, dtype=np.int64), np.zeros(0)
        nothing = [none] * len(levels)
        return Fitting(
            search=search, levels=levels, rows=none, nodes=none, places=nothing, stands=nothing, step_s=steps
        )
    if set(search.counts) != set(fit.seen):  # more than are there where time ran out
        asked = np.zeros(max(*fit.seen, *search.counts) + 1, dtype=bool)
        asked[list(search.counts)] = True
        fit = fit.select(np.flatnonzero(asked[fit.nodes]))
    places = [np.flatnonzero(some) for some in fit.fits]
    stands = [many[some] for many, some in zip(fit.stands, places)]
    return Fitting(
        search=search,
        levels=levels,
        rows=fit.rows,
        nodes=fit.nodes,
        places=places,
        stands=stands,
        step_s=fit.step_s,
        fit=fit,
    )


def _grown(
    question: TrainingQuestion,
    known: Looked,
    missing: Mapping[bytes, tuple[Search, list[Level]]],
    out: Out,
    *,
    every_layout: bool,
) -> Looked:
    """With machines and counts that are missing."""
    coarse = _evaluated(question, [search for search, _ in missing.values()])
    known_fits = dict(_fits(question, coarse, missing, out, {}, every_layout=every_layout))
    fits = {told: known_fits[told] for told in missing if told in known_fits}
    if every_layout:
        return _with(question, known, coarse, fits)
    paces = {told: _pace_s(question, coarse, missing[told][0], fit) for told, fit in fits.items()}
    found = [(coarse, fits, paces)]
    if not out(lambda: True):
        near = {told: _near(coarse, fit, paces[told]) for told, fit in fits.items()}
        finer, numbers = _finer(question, [missing[told][0] for told in fits], coarse, near)
        if finer is not None:
            there = {told: missing[told] for told in fits}
            between = dict(_fits(question, finer, there, out, numbers, every_layout=False))
            paces = {told: _pace_s(question, finer, missing[told][0], fit) for told, fit in between.items()}
            found.append((finer, between, paces))
    for evaluated, its, paces in found:
        kinds = _kinds(question, evaluated, [(missing[told][0], fit) for told, fit in its.items()])
        fastest = {
            told: _rivals(missing[told][0], fit, paces[told], kind) for (told, fit), kind in zip(its.items(), kinds)
        }
        known = _with(question, known, evaluated, fastest)
    return known


def _pace_s(question: TrainingQuestion, evaluated: _Evaluated, search: Search, fit: Fit) -> NDArray[np.float64]:
    """Seconds for equally much of each layout that fits a machine."""
    return np.asarray(pace_s(question.arch, evaluated.layout, search.on(fit.rows), fit.step_s))


def _kinds(question: TrainingQuestion, evaluated: _Evaluated, found: Sequence[tuple[Search, Fit]]) -> Iterator[Rows]:
    """For each machine a number of each layout, of those among which only the fastest may be chosen there."""
    counts = [len(fit.rows) for _, fit in found]
    machine = np.repeat(np.arange(len(found)), counts)
    rows, nodes = (np.concatenate([_NONE, *(getattr(fit, name) for _, fit in found)]) for name in ("rows", "nodes"))
    power = question.powers([search.group[0] for search, _ in found], machine, nodes, evaluated.layout, rows)
    kind = _apart(nodes, power)
    if question.involved is not None:
        domain = np.array([search.domain for search, _ in found], dtype=np.int64)[machine]
        kind = _apart(kind, plain_training(evaluated.layout.select(rows), domain))
    return iter(np.split(kind, np.cumsum(counts)[:-1]))


def _rivals(search: Search, fit: Fit, pace: NDArray[np.float64], kind: Rows) -> Fit:
    """Without layouts that are slower than another one of as many shapes and as wide a band, whatever is asked.

    Time beyond the steps follows from that of the steps and the shapes alone, so that the slower stays the slower. The
    fastest of each kind stands for those left out.
    """
    if not is_analytic(search.spec):
        return fit
    kept, stands, kinds = np.zeros(len(fit.rows), dtype=bool), [], int(kind.max(initial=0)) + 1
    for fits in fit.fits:
        mine = np.flatnonzero(fits)
        least = least_by(kind[mine], pace[mine], kinds)
        rivals = mine[~(pace[mine] > least[kind[mine]] * (1 + AS_FAST))]  # what is not known is no slower
        order = rivals[np.lexsort((pace[rivals], kind[rivals]))]
        of = kind[order]
        first = np.flatnonzero(np.diff(of, prepend=-1))
        many = np.zeros(len(fit.rows), dtype=np.int64)
        many[rivals] = 1
        left = np.bincount(kind[mine], minlength=kinds) - np.bincount(kind[rivals], minlength=kinds)
        many[order[first]] += left[of[first]]
        kept[rivals] = True
        stands.append(many)
    return replace(fit, stands=tuple(stands)).select(np.flatnonzero(kept))


def _apart(kind: Rows, key: NDArray[Any]) -> Rows:
    """Kinds, those of another key apart."""
    if not len(key) or (key == key[0]).all():
        return kind
    values, own = np.unique(key, return_inverse=True)
    return kind * len(values) + own.reshape(-1)


def _with(
    question: TrainingQuestion, known: Looked, evaluated: _Evaluated | Looked, fits: Mapping[bytes, Fit]
) -> Looked:
    """With other layouts, of which those that fit nowhere are left out."""
    fitting = np.zeros(np.size(evaluated.layout.devices), dtype=bool)
    for fit in fits.values():
        fitting[fit.rows] = True
    used, place = np.flatnonzero(fitting), np.cumsum(fitting) - 1
    on, first = dict(known.on), np.size(known.layout.devices)
    for told, fit in fits.items():
        moved = replace(fit, rows=first + place[fit.rows])
        on[told] = on[told].beside(moved) if told in on else moved
    ways = evaluated.ways and evaluated.ways.select(used)
    memory = {family: terms.select(used) for family, terms in evaluated.memory.items()}
    chosen = Looked(layout=evaluated.layout.select(used), memory=memory, ways=ways, on=on)
    return Looked(
        layout=Layout.concatenate([known.layout, chosen.layout]),
        memory={
            family: Terms.concatenate([_memory(question, some, family) for some in (known, chosen)])
            for family in {**known.memory, **evaluated.memory}
        },
        ways=known.ways.and_(ways) if known.ways and ways else ways,
        on=on,
    )


def _memory(question: TrainingQuestion, looked: _Evaluated | Looked, family: str) -> Terms:
    """What the layouts take on a family of devices, worked out once."""
    if family not in looked.memory:
        looked.memory[family] = training_memory(question.arch, question.spec, looked.layout, family)
    return looked.memory[family]


def _evaluated(question: TrainingQuestion, searches: Sequence[Search]) -> _Evaluated:
    """Layouts for all counts of devices in the largest fast domain that has them, and their memory."""
    largest: dict[int, int] = {}
    for search in searches:
        for count in search.device_counts:
            largest[count] = max(largest.get(count, 1), search.domain)
    switched = {search.domain for search in searches if search.group[0].device.kind == "gpu"}
    rules = replace(question.rules, domain_devices=max(largest.values(), default=1), domains=tuple(sorted(switched)))
    every = enumerate_layouts(question.arch, sorted(largest), rules)
    layout, aside = offered(question.job, rules, every), unadvised(question.job, rules, every)
    devices = np.asarray(layout.devices, dtype=np.int64)
    domains = np.zeros(int(devices.max(initial=0)) + 1, dtype=np.int64)
    for count in {count for count in largest if count < len(domains)}:
        domains[count] = largest[count]
    able = np.asarray(layout.tp) <= domains[devices]
    if question.involved is not None:  # no machine finds a layout less involved than that of the smallest domain
        smallest = min((search.domain for search in searches), default=1)
        able &= plain_training(layout, smallest) <= question.involved
    found = _with_memory(question, layout.select(np.flatnonzero(able)))
    none = found.launched is not None and not found.launched.any()  # a split that was asked for, and nobody exports
    left = np.asarray(every.devices, dtype=np.int64)[aside], np.asarray(every.tp, dtype=np.int64)[aside]
    return replace(found, launched=None if none else found.launched, unadvised=left)


def _with_memory(question: TrainingQuestion, layout: Layout) -> _Evaluated:
    devices = np.asarray(layout.devices, dtype=np.int64)
    order = np.argsort(devices, kind="stable")
    counts, starts = np.unique(devices[order], return_index=True)
    return _Evaluated(
        layout=layout,
        devices=devices,
        memory={},
        splits=split_numbers(layout, layout),
        runs=policy_runs(layout),
        ways=Ways.of(layout),
        by_count=dict(zip(counts.tolist(), np.split(order, starts[1:]))),
        launched=on_gpus(question.job, question.arch, layout),
    )


def _near(evaluated: _Evaluated, fit: Fit, pace: NDArray[np.float64]) -> Rows:
    """The fastest micro-batch of each split that comes near the fastest of as many shapes, at each confidence."""
    if not len(fit.rows):
        return fit.rows
    some = {mask.tobytes(): np.flatnonzero(mask) for mask in fit.fits}.values()
    found = [nearest(evaluated.layout, evaluated.splits, fit.rows[at], fit.nodes[at], pace[at]) for at in some]
    return np.unique(np.concatenate(found))


def _finer(
    question: TrainingQuestion, searches: Sequence[Search], coarse: _Evaluated, near: Mapping[bytes, Rows]
) -> tuple[_Evaluated | None, dict[bytes, Rows]]:
    """Layouts of sizes between those tried, beside the layouts that come near the fastest on any machine.

    Returns
    -------
    The layouts, and for each machine, ascending, numbers of split and micro-batch of those beside which it looks.
    """
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *near.values()]))
    if not len(rows):
        return None, {}
    beside = coarse.layout.select(rows)
    splits, number = np.unique(split_numbers(beside, beside), return_inverse=True)
    number = number.reshape(-1) * _SIZES + np.asarray(beside.micro_batch)
    numbers = {told: np.unique(number[np.searchsorted(rows, some)]) for told, some in near.items()}
    layout = offered(question.job, question.rules, finer_layouts(question.arch, beside, question.rules))
    if question.involved is not None:
        smallest = min(search.domain for search in searches)
        layout = layout.select(np.flatnonzero(plain_training(layout, smallest) <= question.involved))
    if not np.size(layout.devices):
        return None, {}
    split = np.searchsorted(splits, split_numbers(layout, beside)) * _SIZES
    before, after = tried_around(layout, np.asarray(layout.micro_batch), question.arch, question.rules)
    found = _with_memory(question, layout)
    launched = None if coarse.launched is None else found.launched
    return replace(found, launched=launched, origin=(split + before, split + after)), numbers


def _fits(
    question: TrainingQuestion,
    evaluated: _Evaluated,
    missing: Mapping[bytes, tuple[Search, list[Level]]],
    out: Out,
    near: Mapping[bytes, Rows],
    *,
    every_layout: bool,
) -> Iterator[tuple[bytes, Fit]]:
    """What fits each machine, with the seconds of a step, some machines at once; none after time is up."""

    def done() -> Iterable[tuple[bytes, Fit]]:
        if every_layout:  # each is told term by term
            return waiting.items()
        return _with_steps(question, evaluated, missing, waiting)

    on_time, unsure = bool(near), dict[bytes, Fit]()

    def found() -> bool:
        nonlocal on_time
        on_time = on_time or any(_on_time(question, evaluated, *missing[told], fit) for told, fit in unsure.items())
        unsure.clear()
        return on_time

    waiting: dict[bytes, Fit] = {}
    listed: dict[object, Rows] = {}
    alike: dict[object, Fit] = {}  # of machines that differ in nothing that memory follows from
    for told, (search, levels) in sorted(missing.items(), key=lambda one: one[1][0].microusd_per_flop):
        if out(found):
            break
        which = (tuple(search.device_counts), search.domain)
        if which not in listed:
            listed[which] = _rows_on(evaluated, search, question.involved)
        same = search.counts, *_room(search, levels), told if near else b""
        if same not in alike:
            rows = _beside(evaluated, listed[which], near[told]) if near else listed[which]
            alike[same] = _fit(question, search, levels, evaluated, rows, every_layout=every_layout)
        unsure[told] = waiting[told] = alike[same]
        if sum(len(one.rows) for one in waiting.values()) >= AT_ONCE:
            yield from done()
            waiting = {}
    yield from done()


def _on_time(
    question: TrainingQuestion, evaluated: _Evaluated, search: Search, levels: Sequence[Level], fit: Fit
) -> bool:
    """Whether some layout that fits a machine at the confidence asked for is known to be on time there."""
    if search.group[0].spot or not len(fit.rows):
        return False
    (timed,) = training_times(question.arch, evaluated.layout, evaluated.ways, [search.on(fit.rows)])
    finish_s = timed.terms.total[timed.first : timed.first + len(fit.rows)] * question.time_margins(
        search.group[0], levels[0].confidence, fit.nodes, evaluated.layout, fit.rows
    )
    return bool((finish_s[fit.fits[0]] <= question.latest_s).any())


def _rows_on(evaluated: _Evaluated, search: Search, involved: int | None) -> Rows:
    """Ascending rows of the layouts for the counts and the fast domain of some machines; `involved` at most."""
    some = [evaluated.by_count[count] for count in search.device_counts if count in evaluated.by_count]
    rows = np.sort(np.concatenate(some), kind="stable") if some else np.zeros(0, dtype=np.int64)
    rows = np.asarray(rows[laid_out(np.asarray(evaluated.layout.tp)[rows], search.domain)])
    if involved is None:
        return rows
    return np.asarray(rows[plain_training(evaluated.layout.select(rows), search.domain) <= involved])


def _beside(evaluated: _Evaluated, rows: Rows, near: Rows) -> Rows:
    """Of finer layouts those that lie beside the ones that a machine is fast with."""
    assert evaluated.origin is not None
    first, last = (some[rows] for some in evaluated.origin)
    return np.asarray(rows[np.searchsorted(near, last, side="right") > np.searchsorted(near, first, side="left")])


def _fit(
    question: TrainingQuestion,
    search: Search,
    levels: Sequence[Level],
    evaluated: _Evaluated,
    rows: Rows,
    *,
    every_layout: bool,
) -> Fit:
    """Rows that fit the memory of a machine at any confidence, without those that another memory policy makes idle."""
    usable, per_shape = search.group[0].usable_bytes, search.group[0].shape.devices
    aside, nodes = _aside(evaluated, search), evaluated.devices[rows] // per_shape
    looked_at = np.bincount(nodes, minlength=max(search.counts) + 1)
    seen = {count: int(looked_at[count]) + aside.get(count, 0) for count in search.counts}
    missed: dict[int, Misses] = {count: (("unadvised", many, np.inf),) for count, many in aside.items()}
    launched = _launched(question, search, evaluated, rows)
    if not launched.all():
        _note(missed, "no-program", nodes[~launched])
        rows, nodes = rows[launched], nodes[launched]
    over = _over_hosts(question, search, evaluated.layout, rows)
    if over is not None:
        _note(missed, "host-memory", nodes[over > 0], over[over > 0])
        rows, nodes = rows[over <= 0], nodes[over <= 0]
    memory = _memory(question, evaluated, family_alike(question.spec, search.family))
    needed, fits = np.asarray(memory.total)[rows], []
    for level in levels:
        lacking = needed * level.memory_margin - usable
        mine = lacking <= 0
        if level is levels[0]:  # what the median drops is not told
            _note(missed, "memory", nodes[~mine], lacking[~mine])
        if not every_layout and "activations" not in question.spec.offload:  # recomputing may beat moving
            kept = np.zeros(len(rows), dtype=bool)
            kept[np.searchsorted(rows, least_policies(evaluated.layout, evaluated.runs, rows[mine]))] = True
            if level is levels[0]:
                _note(missed, "slower", nodes[mine], idle=nodes[kept])
            mine = kept
        fits.append(mine)
    union = np.flatnonzero(np.logical_or.reduce(fits))
    return Fit(
        rows=rows[union],
        nodes=nodes[union],
        fits=tuple(mine[union] for mine in fits),
        stands=tuple(mine[union].astype(np.int64) for mine in fits),
        step_s=np.full(len(union), np.nan),
        seen=seen,
        missed=missed,
    )


def _aside(evaluated: _Evaluated, search: Search) -> dict[int, int]:
    """Layouts that nobody advises for a machine, by count of shapes; of counts that have any."""
    known, (devices, tensors) = evaluated.aside, evaluated.unadvised
    if search.domain not in known:
        known[search.domain] = np.bincount(devices[laid_out(tensors, search.domain)])
    many, per_shape = known[search.domain], search.group[0].shape.devices
    found = ((count, count * per_shape) for count in search.counts)
    return {count: int(many[place]) for count, place in found if place < len(many) and many[place]}


def _note(
    missed: dict[int, Misses],
    reason: str,
    nodes: Rows,
    miss: NDArray[np.float64] | None = None,
    idle: Rows | None = None,
) -> None:
    """Drops by count of shapes: how many, but for the kept ones in `idle`, and how far off the nearest is."""
    if not len(nodes):
        return
    many = np.bincount(nodes)
    least = np.full(len(many), np.inf)
    if miss is not None:
        np.minimum.at(least, nodes, miss)
    if idle is not None:
        many = many - np.bincount(idle, minlength=len(many))
    for count in np.flatnonzero(many).tolist():
        missed[count] = (*missed.get(count, ()), (reason, int(many[count]), float(least[count])))


def _launched(question: TrainingQuestion, search: Search, evaluated: _Evaluated, rows: Rows) -> NDArray[np.bool_]:
    """Of some rows those that a program of the device's kind has."""
    job, kind, per_shape = question.job, search.group[0].device.kind, search.group[0].shape.devices
    if kind == "gpu":
        return np.full(len(rows), True) if evaluated.launched is None else evaluated.launched[rows]
    if named_framework(job.framework) and kind != "tpu":
        return np.full(len(rows), True)
    if search.family not in evaluated.able:
        evaluated.able[search.family] = open_can(job, question.arch, evaluated.layout, kind, search.family)
    able, layout = evaluated.able[search.family], evaluated.layout
    dp, ep, pp = (np.asarray(degree)[rows] for degree in (layout.dp, layout.ep, layout.pp))
    mine = None if able is None else able[rows]
    return np.asarray(open_advised(job, mine, dp, ep, pp, evaluated.devices[rows], kind, per_shape))


def _over_hosts(question: TrainingQuestion, search: Search, layout: Layout, rows: Rows) -> NDArray[np.float64] | None:
    """Bytes that offloaded states and activations need beyond what the hosts hold; None where nothing is offloaded."""
    most = host_bytes_per_device(search.group[0].shape)
    if not question.spec.offload or most is None:
        return None
    return np.asarray(host_bytes(question.arch, question.spec, layout.select(rows), search.family).total) - most


def _with_steps(
    question: TrainingQuestion,
    evaluated: _Evaluated,
    missing: Mapping[bytes, tuple[Search, list[Level]]],
    fits: Mapping[bytes, Fit],
) -> Iterator[tuple[bytes, Fit]]:
    """With the seconds of a step, where they are put together: all machines at once."""
    asked = {
        told: missing[told][0].on(fit.rows)
        for told, fit in fits.items()
        if len(fit.rows) and is_analytic(missing[told][0].spec)
    }
    steps = {}
    if asked and evaluated.ways is not None:
        steps = dict(zip(asked, step_seconds(question.arch, evaluated.layout, evaluated.ways, list(asked.values()))))
    for told, fit in fits.items():
        yield told, replace(fit, step_s=steps[told].copy()) if told in steps else fit
