"""Which of several equally cheap plans is the answer: one written rule, as whole numbers of each column.

Two plans cost the same when their costs differ by no more than a millionth, or a cent where that is more
(`tolerance_microusd`): hours and rates are rounded floats, and nobody buys 96 machines instead of 32 to save ten
micro-dollars. What else the scenario's objective names is settled after that; then, most important first:

=========  =======================================================================
devices    fewer devices
pipelined  fleets: fewer of them in replicas that are cut into a pipeline; more than
           what is asked for is not worth one
capacity   fleets that carry more requests, each by its own demand
finish     jobs that end earlier; one that may pause runs as early as it can
replicas   more replicas: no single point of failure
plain      the plainer layout: what guides do not advise against, then fewer kinds of
           parallelism; then data before tensor and experts, those before context, it
           before pipeline
bought     fewer purchases ahead: who does not commit can still do so
undated    prices of a known day
=========  =======================================================================

and last, among offers that are alike in all of this, a place that does for several workloads
(`planner.candidates.common_places`), then names (`planner.candidates.prune.canonical_order`). Times and rates are told
apart by six significant digits. Every weight is >= 0 and less is better: what is to be large is counted from the most
that a device brings, which orders plans of equally many devices in the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program, Task, optional_columns, tolerance_microusd
from planner.catalog.model import Offer
from planner.estimate.layout import Layout
from planner.estimate.serving import ReplicaLayout

TIE_RULE = ("devices", "pipelined", "capacity", "finish", "replicas", "plain", "bought", "undated")
GAINED = ("capacity", "replicas")  # more is better
NAMES = {  # for people
    "devices": "fewer devices",
    "pipelined": "no pipeline",
    "capacity": "more capacity",
    "finish": "an earlier finish",
    "replicas": "more replicas",
    "plain": "a plainer layout",
    "undated": "prices of a known day",
    "bought": "fewer purchases",
    "offers": "names",
}
AMPLE = 4  # times what every workload costs alone: plans that cost more have the tolerance of that
MILLION = 1e6
KIND = 16  # weighs more than any order among kinds
VIRTUAL = KIND // 2  # virtual stages of a pipeline over machines
RUN_STAGES = 16  # of pipelines of published runs
DEEP = 2 * KIND  # more stages than that
INSIDE = 8 * KIND  # more than all kinds together: a pipeline within a machine; a replica beyond one
SHARED_OUT = 4 * INSIDE  # gradients or weights shared out under a pipeline; a replica over a network not made for it
UNDATED = ("date-unknown", "recalled")


def most_tolerance_microusd(alone_microusd: int, share: float) -> int:
    """The most that costs may differ by: of a plan that costs `AMPLE` times what every workload costs alone.

    Dominance has to know it before any plan is known (`planner.candidates.prune`).
    """
    return tolerance_microusd(AMPLE * alone_microusd, share)


def tie_weights(program: Program, criterion: str) -> IntArray:
    """Integer weight >= 0 of one unit of each column in a criterion of the rule; less is better."""
    if criterion in ("devices", "pipelined", "plain", "undated"):
        return np.asarray(getattr(program, criterion), dtype=np.int64)
    if criterion == "finish":  # of a job that may pause all its periods count, not the ends of each
        return six_digits(np.where(optional_columns(program), program.delay_ms, program.finish_s * 1e3))
    if criterion in GAINED:
        gained, devices = gained_of(program, criterion), program.devices
        most = int((-(-gained // np.maximum(devices, 1))).max(initial=0))  # that a device brings
        return np.asarray(most * np.maximum(devices, gained > 0) - gained, dtype=np.int64)
    return optional_columns(program).astype(np.int64)


def gained_of(program: Program, criterion: str) -> IntArray:
    """What one unit of each column adds to what is to be large."""
    if criterion == "replicas":
        return np.asarray(program.replicas, dtype=np.int64)
    carried = np.zeros(program.column_count, dtype=np.int64)
    for task in program.tasks:
        if task.kind == "serving":
            carried[task.first : task.stop] = _share_carried(program, task)
    return carried


def _share_carried(program: Program, task: Task) -> IntArray:
    """Of a fleet's own traffic what one unit carries, in millionths to six digits."""
    demand = np.asarray(task.demands[-1], dtype=np.float64)
    each = program.capacity_micro_per_s[task.first : task.stop, : len(demand)].astype(np.float64)
    able = (each > 0) & (demand > 0)
    whole = max(float(demand.sum()), 1.0)
    if task.boxed:
        return six_digits(MILLION * np.where(able, each, 0.0).sum(axis=1) / whole)
    load = np.where(able, demand / np.maximum(each, 1.0), 0.0).sum(axis=1)
    served = np.where(able, demand, 0.0).sum(axis=1)
    return six_digits(np.where(load > 0, MILLION * served / np.where(load > 0, load, 1.0) / whole, 0.0))


def six_digits(values: NDArray[np.float64]) -> IntArray:
    """Whole numbers of six significant digits; what is larger than any of 64 bits as the largest.

    >>> six_digits(np.array([0.4, 2592000123.0, 999999.7, 1e30])).tolist()
    [0, 2592000000, 1000000, 9000000000000000000]
    """
    known = np.minimum(np.where(np.isfinite(values), values, 0.0), 9e18)
    step = 10.0 ** np.maximum(np.floor(np.log10(np.maximum(known, 1.0))) - 5.0, 0.0)
    return np.asarray(np.rint(np.rint(known / step) * step), dtype=np.int64)


def plain_training(layout: Layout, domain: IntArray | int) -> IntArray:
    """How involved a split of a job is: what guides advise against, then kinds of parallelism beside data.

    Data parallelism is where guides begin and what they keep as much of as fits: it makes no split more involved, or
    the deepest pipeline, with one replica, would pass for plain. Runs and recipes have up to 16 stages (Llama 3 405B;
    Megatron Bridge; DeepSeek-V3), tables of a paper 64.

    Parameters
    ----------
    domain
        Devices that fast links join, of the machine of each layout: a pipeline that does not leave them, and virtual
        stages there, are worse than any other kind; gradients or weights that are shared out under a pipeline worst.
    """
    tp, pp, cp, ep = (np.asarray(getattr(layout, name)) for name in ("tp", "pp", "cp", "ep"))
    cut, inside = pp > 1, pp * np.maximum(tp * cp, ep) <= domain  # a copy of the experts lies on `ep` ranks of a stage
    advised = np.where(cut & inside, INSIDE, 0) + np.where(cut & (np.asarray(layout.sharding) >= 2), SHARED_OUT, 0)
    virtual = np.where(np.asarray(layout.vpp) > 1, np.where(inside, INSIDE, VIRTUAL), 0)
    order = {"tp": 1, "ep": 1, "cp": 2, "pp": 3}
    deep = np.where(pp > RUN_STAGES, DEEP, 0)
    return np.asarray(_involved(order, layout) + advised + virtual + deep, dtype=np.int64)


def plain_serving(layout: ReplicaLayout, domain: IntArray | int, made_for_it: NDArray[np.bool_] | bool) -> IntArray:
    """How involved a replica is: what guides advise against, then kinds of parallelism, tensor before pipeline.

    Parameters
    ----------
    domain
        Devices that fast links join, of the machine of each replica: one within them is plainer than one beyond, and
        tensor parallelism does not leave them.
    made_for_it
        Whether the network between machines is one to stretch a replica over (`Site.made_for_replicas`).
    """
    devices, tp, pp = (np.asarray(getattr(layout, name)) for name in ("devices", "tp", "pp"))
    beyond = devices > domain
    stretched = np.where(beyond, INSIDE, 0) + np.where(tp > domain, 2 * INSIDE, 0)
    machines = np.ceil(devices / np.asarray(domain))  # a pipeline has a stage on each, and tensors are split within
    advised = np.where(pp > machines, 2 * KIND, 0) + np.where(beyond & ~np.asarray(made_for_it), SHARED_OUT, 0)
    order = {"tp": 1, "ep": 1, "dp": 2, "cp": 2, "pp": 3}
    return np.asarray(_involved(order, layout) + stretched + advised, dtype=np.int64)


def _involved(order: dict[str, int], layout: Layout | ReplicaLayout) -> IntArray:
    parts = [np.where(np.asarray(getattr(layout, name)) > 1, KIND + place, 0) for name, place in order.items()]
    return np.asarray(sum(parts), dtype=np.int64)


def is_undated(offer: Offer) -> bool:
    """Whether nobody knows from which day the price of an offer is."""
    return offer.provenance.status in UNDATED
