"""The answer: a document that was verified, and ways to read it, to ask it and to hand it on.

`COLUMNS` are those of `Plan.to_frame`: where each stands in a row of the plan document. No number is computed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from planner.answers.shown import Figure, Solved
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.files import StrPath, write_text

if TYPE_CHECKING:
    from planner.answers.asked import Comparison, Explanation, Report
    from planner.catalog.model import Catalog
    from planner.errors import Problem
    from planner.export import Export
    from planner.plan.model.plan import PlanDocument


Kind = Literal["training", "serving"]
Columns = dict[str, str]  # name -> path in the row

_WHERE: Columns = {
    name: name
    for name in ("offer", "provider", "region", "zone", "device", "shape", "price_model", "funding", "count", "devices")
}
_COST: Columns = {
    name: name
    for name in ("price_microusd_per_hour", "hours", "device_hours", "start_hours", "end_hours", "cost_microusd")
} | {"cost_usd": "cost_usd"}
_SPLIT: Columns = {name: f"layout.{name}" for name in ("dp", "tp", "pp", "cp", "ep")}
_MEMORY: Columns = {f"memory_{name}_bytes": f"memory.{name}_bytes" for name in ("needed", "usable", "free")}
_ENDS = ("p10", "p50", "p90")

_TRAINED: Columns = {
    "finish_hours": "finish_hours",
    "deadline_hours": "deadline_hours",
    **{f"hours_{end}": f"error_band.hours.{end}" for end in _ENDS},
    **{f"cost_usd_{end}": f"error_band.cost_usd.{end}" for end in _ENDS},
    **{f"memory_needed_bytes_{end}": f"error_band.needed_bytes.{end}" for end in _ENDS},
}
_SERVED: Columns = {
    "replicas": "replicas",
    "planned_requests_per_s": "planned_requests_per_s",
    "load_at_peak": "load_at_peak",
    **{f"ttft_{end}_s": f"point.ttft_s.{end}" for end in ("p50", "p95")},
    **{f"tpot_{end}_s": f"point.tpot_s.{end}" for end in ("p50", "p95")},
}
_BOTH: Columns = {"workload": "workload", "kind": "kind", **_WHERE, **_SPLIT, **_MEMORY, **_COST}

COLUMNS: Mapping[Kind | None, Columns] = {
    None: {**_BOTH, **_TRAINED, **_SERVED},
    "training": {
        **_BOTH,
        "jobs": "jobs",
        "vpp": "layout.vpp",
        **{
            name: f"layout.{name}"
            for name in ("micro_batch", "micro_batches", "global_batch_sequences", "sharding", "recompute")
        },
        **_TRAINED,
        "confidence": "error_band.confidence",
        "tier": "error_band.tier",
        "mfu": "mfu",
        "goodput": "run.goodput",
        "mix": "mix.name",
        "mix_share": "mix.share",
    },
    "serving": {
        **_BOTH,
        "role": "role",
        "level": "level",
        **_SERVED,
        "replicas_needed": "replicas_needed",
        "devices_per_replica": "devices_per_replica",
        "batch": "batch",
        "e2e_p95_s": "point.e2e_s.p95",
        "itl_p99_s": "point.itl_p99_s",
        "sized_by": "point.sized_by",
        # the error band of a latency: measured over predicted
        **{f"{name}_band_{end}": f"tier.{name}.{end}" for name in ("ttft", "tpot") for end in _ENDS},
        "confidence": "tier.confidence",
        "tier": "tier.tier",
        "output_tokens_per_s_per_replica": "output_tokens_per_s_per_replica",
        "usd_per_million_output_tokens_mean": "usd_per_million_output_tokens_mean",
        "usd_per_million_output_tokens_full": "usd_per_million_output_tokens_full",
    },
}


def rows_of(document: Mapping[str, Any], kind: Kind | None) -> Iterator[dict[str, Any]]:
    """One row for each thing that is rented, of one kind of workload or of all; what a row has not is None."""
    for workload in document["workloads"]:
        if kind in (None, workload["kind"]):
            for row in workload["allocations"]:
                told = {**row, "workload": workload["name"], "kind": workload["kind"]}
                yield {name: _at(told, path) for name, path in COLUMNS[kind].items()}


def _at(row: Any, path: str) -> Any:
    for key in path.split("."):
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Solved):
    """A plan document and what it says.

    Parameters
    ----------
    read_from
        The file that it was read from; empty: it was solved here. What comes from a file is shown as far as it is
        proven, whatever it says itself.
    """

    document: PlanDocument

    read_from: str = field(default="", compare=False)

    @classmethod
    def read(cls, path: StrPath) -> Plan:
        """The plan of a file that `plan solve` or `write` wrote; whether it holds, `verify` says.

        Raises
        ------
        InputError
            The file is no plan.
        """
        from planner.plan.plan_files import read_plan

        return cls(document=read_plan(path), read_from=os.fspath(path))

    def write(self, path: StrPath) -> None:
        """The plan as a file, whole or not at all.

        Raises
        ------
        OutputError
            It cannot be written there.
        """
        write_text(path, self.to_json())

    @property
    def cost_usd(self) -> float | None:
        """Total cost, training plus serving over the horizon; None without a plan.  [USD]"""
        return self.document["summary"]["cost_usd"]

    def verify(self, catalog: Catalog | None = None) -> list[Problem]:
        """Every way in which the plan contradicts its scenario, its catalog or itself: `planner.verify`."""
        from planner.api.checking import verify

        return verify(self, catalog)

    def explain(self, workload: str | None = None, *, rejected: bool = False) -> Explanation:
        """What stands behind the plan, term by term: `planner.explain`."""
        from planner.api.asking import explain

        return explain(self, workload, rejected=rejected)

    def report(self, catalog: Catalog | None = None, **asked: Any) -> Report:
        """The plan with its budget and its sources, to show or to write as a page, a workbook or a comment.

        Parameters
        ----------
        asked
            As `planner.api.report` takes them: margins, each, frontier, fiscal_year_start, contingency and others.
        """
        from planner.answers.asked import Report
        from planner.api.reporting import report

        return Report(document=report(self, catalog, **asked))

    def plot(self, *names: str, catalog: Catalog | None = None) -> Figure:
        """Drawings of the plan: `plan.plot("memory")` in a notebook, `plan.plot().write("plan.svg")` as a file.

        Parameters
        ----------
        names
            ``"deadline"`` (cost against the finish of each job alone), ``"schedule"``, ``"latency"``, ``"memory"``,
            ``"bands"`` (how far measurements lay from predictions); none: all that the plan has.
        catalog
            That the plan was made with; default as the plan says.

        Raises
        ------
        UsageError
            There is no drawing of that name, or the plan has nothing to draw under it.
        """
        from planner.report.notebook import DEADLINE, PLOTS, plots_of

        if unknown := [name for name in names if name not in PLOTS]:
            raise UsageError.of(
                "unknown-plot", f"there is no drawing {unknown[0]!r}", hint=f"there are {', '.join(PLOTS)}"
            )
        wanted = names or PLOTS
        tradeoffs = self.report(catalog).document["tradeoffs"] if DEADLINE in wanted else []
        charts = plots_of(self._to_show(), wanted, tradeoffs)
        if not charts:
            raise UsageError.of(
                "nothing-to-draw", f"the plan has nothing to draw for {', '.join(wanted)}", hint="print it"
            )
        return Figure(charts=charts)

    def export(self, form: str, catalog: Catalog | None = None, *, workload: str | None = None) -> Export:
        """Files that launch the plan: `planner.export_plan`; `export("slurm").write("launch")` writes them.

        Parameters
        ----------
        form
            Name of the program that they are for: torchrun, slurm, vllm, kubernetes and others.
        catalog
            That the plan was made with; default as the plan says.
        workload
            Only this one; None: all.

        Raises
        ------
        UsageError
            There is no such format or workload.
        InfeasibleError, StoppedError
            There is no plan in it.
        InputError
            It is not a whole plan.
        """
        from planner.api.asking import export_plan

        return export_plan(self, form, catalog, workload=workload)

    def compare(self, *others: Any, **asked: Any) -> Comparison:
        """What sets other plans, scenarios or files of either apart from this plan: `planner.compare`."""
        from planner.api.comparing import compare

        return compare(self, *others, **asked)

    def to_frame(self, kind: Kind | None = None) -> Any:
        """One row for each thing that is rented, as a pandas DataFrame.

        Parameters
        ----------
        kind
            ``"training"`` or ``"serving"``: those rows alone, with all that is known of them. Left out: all rows, with
            where they are, layout (dp, tp, pp, cp, ep), memory, time, cost and latency; what a kind has not is empty.

        Raises
        ------
        ValueError
            There is no such kind.
        """
        from planner.frames import pandas

        if kind not in COLUMNS:
            raise ValueError(f"kind is 'training', 'serving' or left out, not {kind!r}")
        return pandas("to_frame").DataFrame(list(rows_of(self.document, kind)), columns=list(COLUMNS[kind]))

    def __str__(self) -> str:
        from planner.report.plan_formats import render_plan

        return render_plan(self._to_show(), "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import plan_html

        return plan_html(self._to_show())

    def _to_show(self) -> PlanDocument:
        """The document, as far as it is proven where it is from a file."""
        from planner.api.checking import to_show

        return to_show(self)
