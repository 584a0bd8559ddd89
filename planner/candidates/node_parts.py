"""Jobs on a part of one node: ways beside those that fill nodes, for nodes that fleets share.

A fleet holds its nodes all the time, and devices of them stand idle. A job may take some: a power of two that divides
those of the node, so that whatever stands there packs without a gap (`planner.candidates.shared_nodes`). It is
searched as on a shape of so many devices, one shape a job, with its part of the host. By itself such a way would pay
for the whole node, and be no better than one on all of its devices: it is a column only where nodes may be shared.

The devices are the job's own for the whole plan, which is why its window must lie within the horizon: were they
another's after it, devices of several jobs might be free on different nodes, and a packing would have to be searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.ledger import Ledger
from planner.candidates.offers import Site
from planner.candidates.shared_nodes import divides, may_share
from planner.candidates.training_table import TrainingTable
from planner.estimate.layout import Layout
from planner.estimate.terms import Terms
from planner.scenario.schema import Scenario, TrainingJob

Tables = tuple[TrainingTable, TrainingTable]


def with_parts(
    job: TrainingJob,
    scenario: Scenario,
    sites: Sequence[Site],
    tables: Tables,
    tables_of: Callable[[Sequence[Site], Ledger], Tables],
) -> Tables:
    """Tables with more rows at their ends, one job on a part of a node each.

    Parameters
    ----------
    sites
        Where the job may run.
    tables
        Its ways, at the confidence asked for and at the median.
    tables_of
        Searches other sites for both.
    """
    parts = [part for site in sites for part in parts_of(site, scenario)] if may_stand_beside(job, scenario) else []
    if not parts:
        return tables
    found = tables_of(parts, Ledger(workload=job.name))
    asked = _joined(tables[0], found[0])
    return asked, asked if tables[1] is tables[0] and found[1] is found[0] else _joined(tables[1], found[1])


def may_stand_beside(job: TrainingJob, scenario: Scenario) -> bool:
    """Whether a job may stand on nodes of fleets: it runs through, as it comes, while those are there."""
    beside = bool(scenario.serving) and scenario.hardware.share_nodes
    return beside and job.step_time is None and job.start_s + job.deadline_s <= scenario.horizon_s * (1 + 1e-12)


def parts_of(site: Site, scenario: Scenario) -> list[Site]:
    """A site as machines of 1, 2, 4, ... of its devices; none where nodes are not shared or have no such parts."""
    size = site.shape.devices
    if not may_share(scenario, site) or site.offer.price_model == "flex" or site.shape.torus:
        return []
    return [part_of(site, devices) for devices in range(1, size) if divides(devices, size)]


def part_of(site: Site, devices: int) -> Site:
    """Some devices of one node, with their part of its host."""
    shape, size = site.shape, site.shape.devices
    part = replace(
        shape,
        devices=devices,
        scale_up_devices=devices,
        vcpus=None if shape.vcpus is None else shape.vcpus * devices // size,
        host_memory_bytes=None if shape.host_memory_bytes is None else shape.host_memory_bytes * devices // size,
        max_shapes_per_job=1,
    )
    drawn_w = None if site.drawn_w is None else site.drawn_w * devices / size
    return replace(site, shape=part, drawn_w=drawn_w, inter_node_bytes_per_s=None, whole_devices=size)


def _joined(table: TrainingTable, parts: TrainingTable) -> TrainingTable:
    if not len(parts):
        return table
    return replace(
        table,
        sites=(*table.sites, *parts.sites),
        nodes=np.concatenate([table.nodes, parts.nodes]),
        layout=Layout.concatenate([table.layout, parts.layout]),
        memory=Terms.concatenate([table.memory, parts.memory]),
        time=Terms.concatenate([table.time, parts.time]),
        finish_s=np.concatenate([table.finish_s, parts.finish_s]),
        cost_microusd=(*table.cost_microusd, *parts.cost_microusd),
    )
