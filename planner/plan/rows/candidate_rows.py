"""Candidates as plain rows, for inspection: what the optimiser chose from."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.candidates.layouts import RECOMPUTE, SHARDING
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingTable
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.estimate.bands import ErrorBand
from planner.plan.rows.bands import spread, tie
from planner.plan.rows.row_cells import usd

Cells = dict[str, Any]  # of a row of a data frame, by _COLUMNS
_ONLY = {
    "training": ("vpp", "micro_batch", "sharding", "recompute", "global_batch_sequences", "hours_p10", "hours_p90"),
    "serving": ("replicas", "requests_per_s"),
}
_COLUMNS = (
    "workload", "offer", "provider", "region", "device", "count", "devices",
    "dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "sharding", "recompute", "global_batch_sequences",
    "hours", "hours_p10", "hours_p90", "replicas", "requests_per_s", "needed_bytes", "usable_bytes",
    "cost_usd", "cost_microusd", "tie",
)  # fmt: skip
_SPLIT = ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "sharding", "recompute", "global_batch_sequences")


def candidate_rows(candidates: Candidates) -> list[Cells]:
    """One row a column of every workload's table, cheapest first within a workload.

    A table may have a million rows: each row costs the same, whatever their number.
    """
    rows: list[Cells] = []
    for name, table in candidates.tables.items():
        question = candidates.questions[name]
        if isinstance(table, TrainingTable) and isinstance(question, TrainingQuestion):
            mine = _training(table, question)
        else:
            assert isinstance(table, ServingTable)
            mine = _serving(table)
        placed = [_place(name, table, index) | row for index, row in enumerate(mine)]
        rows += sorted(placed, key=lambda row: (row["cost_microusd"], row["offer"], row["devices"]))
    return rows


def candidates_frame(candidates: Candidates, kind: str | None) -> Any:
    """The rows as a pandas DataFrame; of one kind of workload without the columns that it never has.

    Raises
    ------
    ValueError
        There is no such kind.
    """
    from planner.frames import pandas

    if kind not in (None, *_ONLY):
        raise ValueError(f"kind is 'training', 'serving' or left out, not {kind!r}")
    names = {task.name for task in candidates.program.tasks if kind in (None, task.kind)}
    rows = [row for row in candidate_rows(candidates) if row["workload"] in names]
    others = {column for other, columns in _ONLY.items() if kind not in (None, other) for column in columns}
    columns = [column for column in _COLUMNS if column not in others]
    pd = pandas("to_frame")
    columns += ["users"] if any("users" in row for row in rows) else []
    frame = pd.DataFrame(rows, columns=columns).replace("", None)  # what a way has not
    numbers = [column for column in columns if column in ("vpp", "micro_batch", "global_batch_sequences")]
    return frame.assign(**{column: pd.to_numeric(frame[column]) for column in numbers})


def _place(name: str, table: TrainingTable | ServingTable, index: int) -> Cells:
    site, nodes = table.sites[index], int(table.nodes[index])
    return {
        "workload": name,
        "offer": site.offer.id,
        "provider": site.offer.provider,
        "region": site.offer.region,
        "device": site.device.id,
        "count": nodes,
        "devices": nodes * site.shape.devices,
    }


def _training(table: TrainingTable, question: TrainingQuestion) -> list[Cells]:
    if not len(table):
        return []
    bands = _bands(table, question)
    cheapest = min(range(len(table)), key=lambda row: table.cost_microusd[row])
    best, least = bands[cheapest], usd(table.cost_microusd[cheapest])
    layout = table.layout
    names = {"global_batch_sequences": "global_batch"}
    split = {key: np.asarray(getattr(layout, names.get(key, key)), dtype=np.int64).tolist() for key in _SPLIT}
    split["sharding"] = [SHARDING[stage] for stage in split["sharding"]]
    split["recompute"] = [RECOMPUTE[level] for level in split["recompute"]]
    needed = np.broadcast_to(table.memory.total, (len(table),)).tolist()
    hours = (table.finish_s / 3600.0).tolist()
    return [
        {
            **dict(zip(_SPLIT, parts, strict=True)),
            "hours": hours[index],
            **_hours_band(bands[index], hours[index]),
            "replicas": 0,
            "requests_per_s": 0.0,
            "needed_bytes": needed[index],
            "usable_bytes": table.sites[index].usable_bytes,
            **_cost(table.cost_microusd[index]),
            "tie": index != cheapest and tie(least, best, usd(table.cost_microusd[index]), bands[index]),
        }
        for index, parts in enumerate(zip(*split.values(), strict=True))
    ]


def _bands(table: TrainingTable, question: TrainingQuestion) -> list[ErrorBand]:
    """The error of every row."""
    powers = question.row_powers(table.sites, table.nodes, table.layout).tolist()
    known: dict[tuple[str, float], ErrorBand] = {}
    for site, power in zip(table.sites, powers, strict=True):
        if (site.device.id, power) not in known:
            known[site.device.id, power] = question.band(site).widened(power)
    return [known[site.device.id, power] for site, power in zip(table.sites, powers, strict=True)]


def _hours_band(band: ErrorBand, hours: float) -> Cells:
    ends = spread(band.time, hours, 1.0)
    return {"hours_p10": ends["p10"], "hours_p90": ends["p90"]}


def _serving(table: ServingTable) -> list[Cells]:
    rows = []
    for index in range(len(table)):
        terms, usable = table.memory_row(index)
        layout = table.layout_row(index)
        rows.append(
            {
                **{key: layout.get(key, "") for key in _SPLIT},
                "hours": table.horizon_hours,
                "hours_p10": None,
                "hours_p90": None,
                "replicas": int(table.replicas[index]),
                **_load(table, index),
                "needed_bytes": sum(terms.values()),
                "usable_bytes": usable,
                **_cost(table.cost_microusd[index]),
                "tie": False,
            }
        )
    return rows


def _load(table: ServingTable, index: int) -> Cells:
    """What a replica serves at most within the latency targets: requests, or users."""
    load = float(table.requests_per_s[index])
    return {"requests_per_s": None, "users": load} if table.of_users else {"requests_per_s": load}


def _cost(microusd: int) -> Cells:
    return {"cost_usd": usd(microusd), "cost_microusd": microusd}
