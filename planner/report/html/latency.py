"""Latencies of fleets against their targets: each as a share of what is asked for."""

from __future__ import annotations

from planner.plan.model.fleet import ServingAllocation, Target
from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import ServingWorkload
from planner.report.chart.model import Chart, bars, chart, marks, rows_panel, ticks
from planner.report.chart.scale import linear
from planner.report.serving_words import pointed, seconds, target_name

TITLE = "Latency at peak against target"


def latency_figure(document: PlanDocument) -> Chart | None:
    """Predicted latency of each target at the planned peak; None where no target is set."""
    rows = _targets(document)
    if not rows:
        return None
    predicted, sure, asked = [], [], []
    for number, (_, _, target) in enumerate(rows):
        unit = target["target_s"] / 100
        seconds_ = target["predicted_s"] or 0.0
        predicted.append((number, 0.0, seconds_ / unit, f"predicted {seconds(seconds_)}"))
        if (value := target["at_confidence_s"]) is not None:
            sure.append((number, value / unit, f"at confidence {seconds(value)}"))
        asked.append((number, 100.0, f"target {seconds(target['target_s'])}"))
    most = max(100.0, *(end for _, _, end, _ in predicted), *(end for _, end, _ in sure))
    series = [
        bars("predicted at peak", 0, predicted),
        marks("at the confidence asked for", "diamond", sure),
        ticks("target", asked),
    ]
    return chart(
        id="latency-figure",
        title=TITLE,
        summary=f"Bars of {len(rows)} predicted latencies as a share of their targets, with the figure at the "
        "confidence asked for; the table below gives seconds",
        panels=[rows_panel(linear(0.0, most, "% of the target"), series, [_label(*row) for row in rows])],
    )


def _targets(document: PlanDocument) -> list[tuple[ServingWorkload, ServingAllocation, Target]]:
    """Targets of each kind of replica, once."""
    seen: dict[tuple[str, str, str], tuple[ServingWorkload, ServingAllocation, Target]] = {}
    for workload, row, point in pointed(document):
        for target in point["targets"]:
            if target["predicted_s"] is not None and target["target_s"]:
                seen.setdefault((workload["name"], row["device"], target["name"]), (workload, row, target))
    return list(seen.values())


def _label(workload: ServingWorkload, row: ServingAllocation, target: Target) -> tuple[str, str]:
    figures = f"{target_name(target['name'])} {seconds(target['predicted_s'])} of {seconds(target['target_s'])}"
    return f"{workload['name']} · {row['device']}", figures
