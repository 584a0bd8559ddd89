"""Latencies of fleets against their targets: each as a share of what is asked for."""

from __future__ import annotations

from planner.plan.model.fleet import ServingAllocation, Target
from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import ServingWorkload
from planner.report.escape import html
from planner.report.html.figures import QUIET, bars, key_of, labels, named, row_layout, ticks
from planner.report.html.parts import Figure
from planner.report.serving_words import pointed, seconds, target_name

TITLE = "Latency at peak against target"


def latency_figure(document: PlanDocument) -> Figure | None:
    """Predicted latency of each target at the planned peak; None where no target is set."""
    rows = _targets(document)
    if not rows:
        return None
    places = range(len(rows))
    predicted = [100 * (target["predicted_s"] or 0.0) / target["target_s"] for _, _, target in rows]
    texts = [f"predicted {seconds(target['predicted_s'])}" for _, _, target in rows]
    sure = [
        (place, value, target["target_s"])
        for place, (_, _, target) in enumerate(rows)
        if (value := target["at_confidence_s"]) is not None
    ]
    traces = [
        bars("predicted at peak", places, predicted, texts, 0),
        {
            "type": "scatter", "mode": "markers", "name": "at the confidence asked for",
            "y": [place for place, _, _ in sure], "x": [100 * value / asked for _, value, asked in sure],
            "customdata": [f"at confidence {seconds(value)}" for _, value, _ in sure],
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {"symbol": "diamond", "size": 11, "color": QUIET},
        },
        ticks("target", places, [100.0] * len(rows), [f"target {seconds(t['target_s'])}" for _, _, t in rows]),
    ]  # fmt: skip
    made, height = row_layout(
        len(rows),
        "% of the target",
        xaxis={"rangemode": "tozero"},
        annotations=labels([_label(workload, row, target) for workload, row, target in rows]),
    )
    return Figure(
        id="latency-figure",
        title=TITLE,
        summary=f"Bars of {len(rows)} predicted latencies as a share of their targets, with the figure at the "
        "confidence asked for; the table below gives seconds",
        traces=traces,
        layout=made,
        height=height,
        key=key_of(traces),
    )


def _targets(document: PlanDocument) -> list[tuple[ServingWorkload, ServingAllocation, Target]]:
    """Targets of each kind of replica, once."""
    seen: dict[tuple[str, str, str], tuple[ServingWorkload, ServingAllocation, Target]] = {}
    for workload, row, point in pointed(document):
        for target in point["targets"]:
            if target["predicted_s"] is not None and target["target_s"]:
                seen.setdefault((workload["name"], row["device"], target["name"]), (workload, row, target))
    return list(seen.values())


def _label(workload: ServingWorkload, row: ServingAllocation, target: Target) -> str:
    figures = f"{seconds(target['predicted_s'])} of {seconds(target['target_s'])}"
    return f"<b>{named(workload['name'])}</b> · {named(row['device'])} · {html(target_name(target['name']))} {figures}"
