"""The answer to a question about memory, in every output format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner import units
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.plan_words import spaced

if TYPE_CHECKING:
    from planner.plan.memory.model import AnswerRow, Column, Fits, Layer, MemoryDocument, TrainingMemory

_BAR = 48
_TRAINED: Final = ("states_bytes", "eager_bytes", "flash_bytes", "stored_input_bytes")
_SERVED: Final = ("weight_bytes", "kv_bytes_per_token", "kv_bytes_per_request")
_STATES = ("weights", "gradients", "optimizer")


def render_memory(document: MemoryDocument, form: str, *, width: int = 100, colour: bool = False) -> str:
    """A memory document as table, json, csv or md."""
    if form == "json":
        return json.render(document)
    if form == "csv":
        return csv.render(_flat(document), ["model", "kind", "column", "term", "bytes"])
    blocks = _blocks(document)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _flat(document: MemoryDocument) -> list[dict[str, object]]:
    head = {"model": document["model"]["name"], "kind": document["kind"]}
    return [
        head | {"column": column["name"], "term": term, "bytes": value}
        for column in document["columns"]
        for term, value in (column["terms_bytes"] | {"total": column["total_bytes"]}).items()
    ]


def _blocks(document: MemoryDocument) -> list[Block]:
    return [
        _header(document),
        _terms(document),
        Lines(lines=tuple(_bars(document)) if document["kind"] == "training" else ()),
        Lines(lines=tuple(_minimum(document)) if document["kind"] == "training" else ()),
        _answer(document),
        _cards(document),
        _layers(document),
        _rules(document),
        Lines(lines=(f" Equations  {' '.join(document['equations'])}",)),
    ]


def _header(document: MemoryDocument) -> Block:
    model = document["model"]
    active = "" if model["active_parameters"] == model["parameters"] else f", {model['active_parameters']:,} active"
    heads = f"{model['query_heads']} heads" + (
        "" if model["kv_heads"] == model["query_heads"] else f", {model['kv_heads']} key-value heads"
    )
    first = (
        f"{model['name']} · {model['parameters']:,} parameters{active} · {model['layers']} layers, "
        f"hidden {model['hidden_size']}, {heads}"
    )
    return Lines(lines=(first, _asked(document)), strong_first=True)


def _asked(document: MemoryDocument) -> str:
    if document["kind"] == "serving":
        held = document["asked"]
        requests = f"{held['concurrency']:,} requests of {held['context']:,} tokens"
        token = units.format_bytes(document["kv_bytes_per_token"])
        spread = _spread(held["devices"], [f"{axis}{held[axis]}" for axis in ("tp", "pp", "ep") if held[axis] > 1])
        return f"serving {requests} · cache {held['kv_cache']}, {token} a token · {spread}"
    asked = document["asked"]
    precision = {"fp32": "fp32"}.get(asked["precision"], f"{asked['precision']} mixed precision")
    size = f"batch {asked['batch']} × {asked['sequence_length']:,} tokens per device"
    sharding = "not sharded" if asked["sharding"] == "none" else asked["sharding"]
    axes = [f"{axis}{asked[axis]}" for axis in ("dp", "tp", "pp", "cp", "ep") if asked[axis] > 1]
    spread = _spread(asked["devices"], axes)
    return f"training with {asked['optimizer']}, {precision} · {size} · {spread}, {sharding}"


def _spread(devices: int, axes: list[str]) -> str:
    return f"{devices} devices: {' '.join(axes)}" if devices > 1 else "one device"


def _terms(document: MemoryDocument) -> Block:
    shown: Sequence[Column] = document["columns"]
    names = [name for name in shown[0]["terms_bytes"] if any(column["terms_bytes"][name] for column in shown)]
    rows = [
        [spaced(name), _note(document, name), *(_gb(column["terms_bytes"][name]) for column in shown)] for name in names
    ]
    rows.append(["total", "", *(_gb(column["total_bytes"]) for column in shown)])
    heads = columns("Per device", "", *(f">{column['name']}" for column in shown))
    notes = [
        f"{column['name']}: {_gb(stored)} layer inputs + one live layer {_gb(column['live_layer_bytes'] or 0.0)}"
        for column in (document["columns"] if document["kind"] == "training" else ())
        if (stored := column["stored_inputs_bytes"]) is not None
    ]
    return Grid(columns=heads, rows=rows, notes=tuple(notes))


def _gb(size_bytes: float) -> str:
    """Gigabytes with two decimals, so that columns line up and sums can be checked."""
    return f"{size_bytes / 1e9:,.2f} GB"


def _note(document: MemoryDocument, name: str) -> str:
    if document["kind"] == "training":
        recipe = document["per_parameter_bytes"]
        for state in ("weights", "gradients", "optimizer"):
            if state == name:
                return f"{recipe[state]:g} B/param"
    return {"fragmentation": "of the dynamic part", "kv_cache": "pages filled", "libraries": "workspaces"}.get(name, "")


def _bars(document: TrainingMemory) -> list[str]:
    """One stacked bar a column: states, activations, the rest."""
    shown = document["columns"]
    most = max(column["total_bytes"] for column in shown)
    names = max(len(column["name"]) for column in shown)
    lines = [" ████ states   ░░░░ activations   ···· other"]
    for column in shown:
        terms = column["terms_bytes"]
        states = sum(terms[name] for name in _STATES)
        ends = [states, states + terms["activations"], column["total_bytes"]]
        first, second, third = (round(_BAR * end / most) for end in ends)
        bar = "█" * first + "░" * (second - first) + "·" * (third - second)
        lines.append(f" {column['name']:<{names}}  {bar} {_gb(column['total_bytes'])}")
    return lines


def _minimum(document: TrainingMemory) -> list[str]:
    least = document["minimum"]
    alone = f"; one sequence at a time: {_gb(least['one_sequence_bytes'])}" if document["asked"]["batch"] > 1 else ""
    return [f" Minimum of these  {_gb(least['total_bytes'])} with {least['column']}{alone}"]


def _cards(document: MemoryDocument) -> Block:
    names = [column["name"] for column in document["columns"]]
    what = "batch" if document["kind"] == "training" else "requests"
    rows = [
        [one["label"], units.format_bytes(one["usable_bytes"]), *(_verdict(one["columns"][name]) for name in names)]
        for one in document["cards"]
    ]
    return Grid(columns=columns(f"Fits? largest {what} on", ">usable", *(f">{name}" for name in names)), rows=rows)


def _verdict(fit: Fits) -> str:
    if fit["fits"]:
        return f"yes, up to {fit['largest_batch']:,}"
    return f"no, up to {fit['largest_batch']:,}" if fit["largest_batch"] else "no"


def _answer(document: MemoryDocument) -> Block:
    if not document["answer"]:
        return Items(title="", items=())
    items = tuple(_answer_line(entry) for entry in document["answer"])
    goal = document["answer"][0]["solve_for"]
    titles = {"devices": "Fewest devices that do", "bits": "Weight formats that fit"}
    return Items(title=titles.get(goal, f"Largest {goal} that fits"), items=items, tone="good")


def _answer_line(entry: AnswerRow) -> str:
    value = "none" if entry["value"] is None else f"{entry['value']:,} {entry['unit']}"
    note = f" ({entry['note']})" if entry["note"] else ""
    column = f", {entry['column']}" if entry["column"] else ""
    return f"{entry['card']}{column}: {value}{note}"


def _layers(document: MemoryDocument) -> Block:
    if not document["layers"]:
        return Lines(lines=())
    if document["kind"] == "training":
        return _layer_grid(document["layers"], _TRAINED, [[row[key] for key in _TRAINED] for row in document["layers"]])
    return _layer_grid(document["layers"], _SERVED, [[row[key] for key in _SERVED] for row in document["layers"]])


def _layer_grid(rows: Sequence[Layer], keys: Sequence[str], sizes: Sequence[Sequence[float]]) -> Block:
    heads = columns("One layer", ">Layers", ">Parameters", *(f">{spaced(key.replace('_bytes', ''))}" for key in keys))
    cells = [
        [row["name"], str(row["count"]), f"{row['parameters']:,.0f}", *map(units.format_bytes, mine)]
        for row, mine in zip(rows, sizes)
    ]
    return Grid(columns=heads, rows=cells)


def _rules(document: MemoryDocument) -> Block:
    rows = [
        [
            rule["rule"],
            _gb(rule["bytes"]),
            " — ".join(part for part in (rule["of"], rule["note"]) if part),
            rule["equation"],
        ]
        for rule in document["rules"]
    ]
    return Grid(columns=columns("Other rules, same model", ">", "", "Equation"), rows=rows)
