"""Rows of a mix: one for each group of a job that shares its batch among several offers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.candidates.mixed_walk import MOST_GROUPS
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import Group, Mixed
from planner.equations.mixed import FARTHEST_LATENCY_S
from planner.estimate.binding import bound_by
from planner.plan.rows.bands import row_band
from planner.plan.rows.place import memory_document, place_document, usd
from planner.plan.rows.run import run_cells_of, split_document
from planner.units import format_money

if TYPE_CHECKING:
    from planner.plan.model.rows import MixedRow, Speed, Timing, TrainingAllocation


def mixed_rows(question: TrainingQuestion, mixed: Mixed, jobs: int, hours: float, timing: Timing) -> list[MixedRow]:
    """The cells of each group, in the order of the groups; speed and energy are added by who knows the catalog.

    Parameters
    ----------
    question
        The job.
    mixed
        Its groups.
    jobs
        Identical jobs that run so.
    hours
        Wall time that the groups share.  [h]
    timing
        When they run, and who pays.
    """
    return [_row(question, mixed, group, jobs, hours, timing) for group in mixed.groups]


def mix_name(mixed: Mixed) -> str:
    """What tells one mix of a job from another: "2 × offer-a + 1 × offer-b"."""
    return " + ".join(f"{group.nodes} × {group.site.offer.id}" for group in mixed.groups)


def _row(question: TrainingQuestion, mixed: Mixed, group: Group, jobs: int, hours: float, timing: Timing) -> MixedRow:
    site, shapes, terms = group.site, group.nodes * jobs, group.time.row(0)
    cost, all_devices = group.cost_microusd * jobs, sum(one.nodes * one.site.shape.devices for one in mixed.groups)
    memory = memory_document(group.memory.row(0), site.usable_bytes)
    figures = {"hours": hours, "cost_usd": usd(cost), "needed_bytes": memory["needed_bytes"]}
    confidence = question.spec.confidence
    bands = [question.mix_band(one.site) for one in mixed.groups]
    slowest = max(bands, key=lambda one: one.time_margin(confidence))
    job = question.job
    return {
        **place_document(site, shapes),
        "jobs": jobs,
        "layout": split_document(group.layout, 0),
        "hours": hours,
        **timing,  # type: ignore[typeddict-item]  # no switch
        "funding": site.offer.price_model,
        "finish_hours": timing["end_hours"],
        "deadline_hours": (job.start_s + job.deadline_s) / 3600.0,
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "memory": memory,
        "time_terms_s": terms,
        "binds": bound_by(terms),
        "run": run_cells_of(question, mixed.run, terms, all_devices, jobs),
        "step_time_ratio": question.step_time_ratio(site),
        "mix": {
            "name": mix_name(mixed),
            "groups": len(mixed.groups),
            "share": group.share / mixed.batch,
            "sequences": group.share,
            "batch_sequences": mixed.batch,
            "group_step_s": group.step_s,
            "compute_s": mixed.compute_s,
            "synchronisation_s": mixed.synchronisation_s,
            "traffic_microusd": group.traffic_microusd * jobs,
        },
        "error_band": row_band(replace(question.band(site), time=slowest.time), confidence, figures),
        "device_hours": shapes * site.shape.devices * hours,
    }


def shared_speed(speed: Speed, share: float) -> Speed:
    """Speed and work of a group from those of a job that would do all of it."""
    achieved, work = speed["mfu_source"].startswith("analytic"), speed["work"]
    return {
        **speed,
        "mfu": speed["mfu"] * share if achieved else speed["mfu"],
        "work": {
            "flop_per_token": work["flop_per_token"],
            "tokens": work["tokens"] * share,
            "flop_count": work["flop_count"] * share,
            "flop_per_s_per_device": work["flop_per_s_per_device"] * share,
        },
        "rule_hours": speed["rule_hours"] * share,
    }


def mix_assumptions(question: TrainingQuestion) -> Iterator[str]:
    """What mixes within a job are planned with."""
    name, between = question.job.name, question.scenario.hardware.assume_between_zones
    yield (
        f"{name}: groups of up to {MOST_GROUPS} offers share a batch in whole micro-batches and reduce gradients "
        "after the slowest of them, nothing of it hidden; deadline and memory hold at the widest band of the groups"
    )
    if between is None:
        yield f"{name}: groups of one job stand in one zone (no assume_between_zones)"
        return
    latency_s = FARTHEST_LATENCY_S if between.latency_s is None else between.latency_s
    yield (
        f"{name}: between zones {between.bandwidth_bytes_per_s * 8 / 1e9:g} Gbit/s of each shape, {1e3 * latency_s:g} "
        f"ms and ${between.price_usd_per_gb:g}/GB of what a group sends (assume_between_zones)"
    )


def mixed_reasons(rows: Sequence[TrainingAllocation], alone_microusd: int | None) -> list[str]:
    """Why a job runs on several offers: what each takes of a batch, and what one offer alone would cost."""
    parts = ", ".join(f"{row['count']} × {row['shape']} {row['mix']['share']:.1%}" for row in rows)
    mix, cost = rows[0]["mix"], sum(row["cost_microusd"] for row in rows)
    lines = [
        f"shares each batch of {mix['batch_sequences']} sequences by speed: {parts}; a step takes "
        f"{mix['compute_s']:.4g} s and {mix['synchronisation_s']:.3g} s to reduce gradients among them"
    ]
    if alone_microusd is None:
        return [*lines, "no offer alone meets the deadline within the limits"]
    return [*lines, f"one offer alone would cost {format_money(alone_microusd - cost)} more at least"]
