"""Whole training runs: device hours predicted by the coarse and by the analytic tier, against published budgets.

The coarse (`rule`) tier knows a share of the peak for each device family. The analytic tier searches the layouts of the
row's count of devices, as a plan does, and takes the fastest that fits the memory, with failures and checkpoints at
their defaults on top.

What size costs a whole run is the one constant that budgets of whole runs decide. Predicted hours are those without it
times 1 + loss (hosts - 1) / hosts: failures and checkpoints scale with the steps. It is fitted and cross-validated; a
publisher weighs one, however many runs it has published.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from planner.architecture.model import Architecture
from planner.candidates.layouts import enumerate_layouts
from planner.candidates.offers import Site
from planner.candidates.training_question import TrainingQuestion, resolve_training
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape
from planner.equations.reliability import scale_loss_factor
from planner.equations.rules import training_hours
from planner.errors import InputError
from planner.estimate.frameworks import FRAMEWORKS, framework_can
from planner.estimate.layout import Layout
from planner.estimate.resolve_run import devices_per_host
from planner.estimate.training import training_memory, training_time
from planner.scenario.load import parse_scenario
from planner.validate import totals_inputs as inputs
from planner.validate.model import CoverageRow, Quantity, RowLabel, RowValidated
from planner.validate.result import Validation, refused_row, row_document, summary_row
from planner.validate.rows import MeasuredRow, TotalsRow
from planner.validate.score import Scored, summaries

TIERS = ("rule", "analytic")
_NO_PRICE = Offer(
    id="validation", provider="", region="", zone="", country="", shape="", price_model="owned",
    price_microusd_per_hour=0, provenance=Provenance(source="", as_of="", status="user"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsPrediction:
    """What a tier says about one run; `skipped` says why it says nothing."""

    device_hours: float | None = None
    skipped: str | None = None
    family: str = ""
    devices: int | None = None
    hosts: int | None = None
    count_source: str = ""  # stated | typical
    model: str = ""  # whose shape was taken
    layout: Mapping[str, int] = field(default_factory=dict)
    terms: Mapping[str, float] = field(default_factory=dict)  # device hours by term


def predict_totals(rows: Sequence[TotalsRow], catalog: Catalog, tier: str = "analytic") -> list[TotalsPrediction]:
    """Device hours of whole runs, one prediction a row.

    Parameters
    ----------
    rows
        Runs; measured cells, remarks and sources are not read.
    tier
        rule | analytic.

    Returns
    -------
    Predictions in the order of the rows.  [device hours]
    """
    return [_predict(row, catalog, tier) for row in rows]


def _predict(row: TotalsRow, catalog: Catalog, tier: str) -> TotalsPrediction:
    if not row.tokens_b or not row.params_b:
        return TotalsPrediction(skipped="no tokens" if not row.tokens_b else "no parameters")
    device = inputs.device_named(row.accelerator or "", catalog)
    if device is None or not inputs.peak_of(device):
        return TotalsPrediction(skipped=f"no single device of the catalog is '{row.accelerator}'")
    try:
        return _by_rule(row, catalog, device) if tier == "rule" else _by_search(row, catalog, device, tier)
    except InputError as error:  # a size, or a number of tokens, that no model and no job has
        return TotalsPrediction(skipped=f"the run is not possible: {error.problems[0].message}")


def _by_rule(row: TotalsRow, catalog: Catalog, device: Device) -> TotalsPrediction:
    """Six FLOP a token and active parameter, at the family's share of the peak."""
    _, active = inputs.parameters_of(row)
    sustained = catalog.efficiencies[device.family].mfu * inputs.peak_of(device)
    hours = float(training_hours((row.tokens_b or 0.0) * 1e9, active, 1.0, 1.0, sustained))
    return TotalsPrediction(device_hours=hours, family=device.family, terms={"compute": hours})


def _by_search(row: TotalsRow, catalog: Catalog, device: Device, tier: str) -> TotalsPrediction:
    """The fastest layout that fits, on the row's count of devices or the nearest below that can be split."""
    asked = inputs.stated_count(row.n_accel)
    count = asked or inputs.typical_count(row, device, catalog.efficiencies[device.family].mfu)
    arch = inputs.architecture_of(row)
    for devices in _nearby(count):
        shape = inputs.shape_for(device, devices, catalog)
        if shape is None:
            return TotalsPrediction(skipped=f"no shape of the catalog has {device.id}")
        question = _question(row, arch, device, catalog, tier)
        found = [_fastest(question, device, shape, devices, name) for name in inputs.frameworks_of(row, device)]
        ways = [way for way in found if way is not None]
        if ways:
            return replace(
                min(ways, key=lambda way: way.device_hours or 0.0),
                family=device.family,
                devices=devices,
                hosts=math.ceil(devices / devices_per_host(shape)),
                model=arch.name,
                count_source="stated" if asked else "typical",
            )
    return TotalsPrediction(skipped=f"no layout on {count} {device.id} fits", family=device.family)


def _nearby(count: int) -> list[int]:
    """The count itself, its multiple of 8 and the power of two below."""
    return list(dict.fromkeys(n for n in (count, count // 8 * 8, 2 ** (count.bit_length() - 1)) if n >= 1))


def _question(row: TotalsRow, arch: Architecture, device: Device, catalog: Catalog, tier: str) -> TrainingQuestion:
    """The run as a job of a scenario, so that the same defaults hold as in a plan."""
    length = inputs.sequence_length_of(row, arch)
    job = {
        "name": "run",
        "model": {"parameters": round(inputs.parameters_of(row)[0])},  # stands for `arch`
        "tokens": (row.tokens_b or 0.0) * 1e9,
        "deadline": "1200 months",
        "sequence_length": length,
        "global_batch": f"{inputs.batch_of(row, length)} sequences",
        "precision": inputs.precision_of(device, arch),
    }
    scenario = parse_scenario(json.dumps({"schema": "plan/v1", "name": "totals", "training": [job]}))
    asked = scenario.training[0]
    asked._tier = tier  # type: ignore[assignment]
    return resolve_training(asked, arch, scenario, catalog)


def _fastest(
    question: TrainingQuestion, device: Device, shape: Shape, devices: int, framework: str | None
) -> TotalsPrediction | None:
    site = Site(
        offer=_NO_PRICE, shape=shape, device=device, inter_node_bytes_per_s=shape.inter_node_bytes_per_s_per_device
    )
    rules = replace(question.rules, domain_devices=max(shape.devices, shape.scale_up_devices))
    layout = enumerate_layouts(question.arch, [devices], rules)
    if framework is not None:
        layout = layout.select(np.flatnonzero(framework_can(FRAMEWORKS[framework], layout)))
    spec = replace(question.spec_on(site), framework=framework)
    needed = np.asarray(training_memory(question.arch, spec, layout, device.family).total)
    fits = np.flatnonzero(needed <= site.usable_bytes)
    if not len(fits):
        return None
    layout = layout.select(fits)
    time = training_time(question.arch, spec, layout, question.machine(site))
    wall = np.asarray(time.total)
    if not np.isfinite(wall).any():
        return None
    best = int(np.nanargmin(np.where(np.isfinite(wall), wall, np.nan)))
    hours = {name: seconds * devices / 3600.0 for name, seconds in time.row(best).items()}
    return TotalsPrediction(device_hours=sum(hours.values()), layout=_split(layout, best), terms=hours)


def _split(layout: Layout, row: int) -> dict[str, int]:
    names = ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "sharding", "recompute", "global_batch")
    return {name: int(np.asarray(getattr(layout, name))[row]) for name in names}


TRIED = np.round(np.arange(0.0, 0.505, 0.01), 2)  # hundredths: runs of nine publishers decide no finer


class Run(NamedTuple):
    """One run with a measured figure."""

    name: str
    publisher: str
    hosts: int
    bare: float  # predicted over measured device hours, without what size costs

    def ratio(self, loss: float) -> float:
        """Predicted over measured at a loss."""
        return self.bare * float(scale_loss_factor(loss, self.hosts))


def runs_of(rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction]) -> list[Run]:
    """Runs of which hours are both predicted and measured."""
    found = []
    for row, said in zip(rows, predictions, strict=True):
        if row.device_hours and said.device_hours and said.hosts:
            lost = said.terms.get("scale_loss", 0.0)
            steps = sum(hours for name, hours in said.terms.items() if name not in _BEYOND_STEPS)
            bare = said.device_hours * steps / (steps + lost) / row.device_hours
            found.append(Run(row.name, publisher_of(row), said.hosts, bare))
    return found


_BEYOND_STEPS = ("scale_loss", "stragglers", "checkpoints", "lost_work", "restarts")


def publisher_of(row: TotalsRow) -> str:
    """Who published a figure: the owner of a repository, so that cards of one house count as one source."""
    head = (row.source or row.file).split(":")[0]
    return head.split("/")[0] if "/" in head else head


def fitted_scale_loss(runs: Sequence[Run]) -> float:
    """The loss with the least squares of the logarithm of predicted over measured, in the mean of publishers' means."""
    counts = Counter(run.publisher for run in runs)
    errors = [sum(np.log(run.ratio(loss)) ** 2 / counts[run.publisher] for run in runs) for loss in TRIED]
    return float(TRIED[int(np.argmin(errors))])


def left_out_errors(runs: Sequence[Run]) -> dict[str, float]:
    """Absolute relative error of every run, the loss fitted without its publisher."""
    errors: dict[str, float] = {}
    for publisher in sorted({run.publisher for run in runs}):
        loss = fitted_scale_loss([run for run in runs if run.publisher != publisher])
        errors |= {run.name: abs(run.ratio(loss) - 1.0) for run in runs if run.publisher == publisher}
    return errors


_GROUPS = ("all", "family")


def why_no_budget(row: TotalsRow) -> str | None:
    """Why a run counts in no error figure; None when it counts."""
    if "recalled" in (row.evidence or ""):
        return "recalled"
    return "no device hours" if row.device_hours is None else None


def score_totals(rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction]) -> list[Scored]:
    """Every run that counts and has both predicted and published device hours [h]."""
    return [
        Scored(
            row=_as_run(row),
            family=said.family,
            constants=said.family,
            predicted=said.device_hours,
            measured=row.device_hours,
            target=row.device_hours,
        )
        for row, said in zip(rows, predictions, strict=True)
        if said.device_hours is not None and row.device_hours is not None and why_no_budget(row) is None
    ]


def _as_run(row: TotalsRow) -> MeasuredRow:
    """The cells that views show of any row."""
    return MeasuredRow(
        id=row.id,
        model=row.model,
        accelerator=row.accelerator,
        n_accel=row.devices,
        n_params_b=row.params_b,
        source_key=_source_key(row),
        line=row.line,
    )


def _source_key(row: TotalsRow) -> str:
    return (row.source or "").split(":")[0]


def validate_totals(
    rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction], *, refused: Mapping[str, str] | None = None
) -> Validation:
    """Hold predictions against the runs that they were made for.

    Parameters
    ----------
    rows, predictions
        A table in its order, and what `predict_totals` says of it.
    refused
        Rows of the same file that could not be read, and why.
    """
    scored, unread = score_totals(rows, predictions), refused or {}
    return Validation(
        kind="totals",
        rows=[
            *(_row(row, said) for row, said in zip(rows, predictions, strict=True)),
            *(refused_row(name, why) for name, why in unread.items()),
        ],
        summary=[
            _coverage(rows, predictions, unread),
            *(summary_row("device_hours", summary) for summary in summaries(scored) if summary.group in _GROUPS),
        ],
        labels=[
            *(_label(row, said) for row, said in zip(rows, predictions, strict=True)),
            *(RowLabel(model="", device="", family=None, source="", left_out="refused") for _ in unread),
        ],
        targets=[("device_hours", item) for item in scored],
        own_rows=False,
    )


def _row(row: TotalsRow, said: TotalsPrediction) -> RowValidated:
    measured: dict[Quantity, float] = {} if row.device_hours is None else {"device_hours": row.device_hours}
    return row_document(row.name, ("device_hours",), said, measured, said.skipped)


def _coverage(
    rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction], unread: Mapping[str, str]
) -> CoverageRow:
    refusals: dict[str, list[str]] = {}
    for name, why in unread.items():
        refusals.setdefault(why, []).append(name)
    for row, said in zip(rows, predictions, strict=True):
        if said.device_hours is None:
            refusals.setdefault(said.skipped or "no reason given", []).append(row.name)
    refused = sum(map(len, refusals.values()))
    return {
        "quantity": "coverage",
        "group": "coverage",
        "name": "runs",
        "rows": len(rows) + len(unread),
        "predicted": len(rows) + len(unread) - refused,
        "skipped": refused,
        "share": 1 - refused / (len(rows) + len(unread)) if rows or unread else 1.0,
        "refusals": refusals,
        "left_out_rows": sum(why_no_budget(row) is not None for row in rows),
    }


def _label(row: TotalsRow, said: TotalsPrediction) -> RowLabel:
    return {
        "model": row.model or "",
        "device": f"{row.devices or '?'} × {row.accelerator or '?'}",
        "family": said.family,
        "source": _source_key(row),
        "left_out": why_no_budget(row) or "",
    }
