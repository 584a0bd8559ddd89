"""Models as lists and as one sheet of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from planner import units
from planner.report import csv, json, lists, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.lists import Field

if TYPE_CHECKING:
    from planner.memory.model import ModelFacts

_PLAIN: Final = (
    "parameters", "active_parameters", "matmul_parameters", "hidden_size", "vocab_size", "max_positions",
)  # fmt: skip
_WORK: Final = ("forward_flop_per_token", "training_flop_per_token")
_FIELDS = (
    Field(key="name", head="Model"),
    Field(key="family", head="Family"),
    Field(key="parameters", head="Parameters", show="{:,}".format, right=True),
    Field(key="active_parameters", head="Active", show="{:,}".format, right=True),
    Field(key="layers", head="Layers", show=str, right=True),
    Field(key="hidden_size", head="Hidden", show=str, right=True),
    Field(key="vocab_size", head="Vocab", show=str, right=True),
    Field(key="max_positions", head="Context", show=str, right=True),
)


def render_models(rows: Sequence[Mapping[str, object]], form: str, *, width: int = 100, colour: bool = False) -> str:
    """The shipped models.

    Parameters
    ----------
    rows
        As `preset_summary` gives them.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    keys = [*(field.key for field in _FIELDS), "source"]
    title = f"{len(rows)} models, counts computed from their configs"
    return lists.render(rows, _FIELDS, form=form, title=title, width=width, colour=colour, keys=keys)


def render_model(facts: ModelFacts, form: str, *, width: int = 100, colour: bool = False) -> str:
    """One model.

    Parameters
    ----------
    facts
        The model, as `plan models show` tells it.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render(facts)
    if form == "csv":
        return csv.render(_flat(facts), ["name", "fact", "value", "unit"])
    blocks = _blocks(facts)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _blocks(facts: ModelFacts) -> list[Block]:
    head = f"{facts['name']} · {facts['family']} · {facts['parameters']:,} parameters"
    if facts["active_parameters"] != facts["parameters"]:
        head += f", {facts['active_parameters']:,} active"
    tied = "tied" if facts["tied_embeddings"] else "untied"
    shape = (
        f"hidden {facts['hidden_size']:,} · vocabulary {facts['vocab_size']:,} ({tied}) · "
        f"context {facts['max_positions']:,} · {facts['source']}"
    )
    parts = [
        [name, f"{count:,}", _share(count, facts["parameters"])] for name, count in facts["parts"].items() if count
    ]
    cache = [
        [name, units.format_bytes(value), units.format_bytes(value * facts["sequence_length"] + facts["state_bytes"])]
        for name, value in facts["kv_bytes_per_token"].items()
        if value is not None
    ]
    weights = [[name, units.format_bytes(value)] for name, value in facts["weight_bytes"].items()]
    sequence = f"{facts['sequence_length']:,} tokens"
    work = [
        ["forward", f"{units.format_number(facts['forward_flop_per_token'] / 1e9, 4, apart=True)} GFLOP"],
        [
            "training step (model FLOPs)",
            f"{units.format_number(facts['training_flop_per_token'] / 1e9, 4, apart=True)} GFLOP",
        ],
    ]
    state = units.format_bytes(facts["state_bytes"])
    last = [f" State      {state} a sequence of any length, counted above"] if facts["state_bytes"] else []
    return [
        Lines(lines=(head, shape), strong_first=True),
        Grid(columns=columns("Parameters in", ">count", ">share"), rows=parts),
        Grid(columns=columns("Layers", "Attention", "Feed-forward", ">Parameters of one"), rows=_layers(facts)),
        Grid(columns=columns(f"Work per token at {sequence}", ">"), rows=work),
        Grid(columns=columns("Cache format", ">per token", f">per {sequence}"), rows=cache),
        Grid(columns=columns("Weight format", ">whole model"), rows=weights),
        Lines(lines=(*last, f" Equations  {' '.join(facts['equations'])}")),
    ]


def _layers(facts: ModelFacts) -> list[list[str]]:
    rows = []
    for layer in facts["layers"]:
        kinds = ("value", "key") if layer["attention"] == "linear" else ("query", "key-value")
        heads = f"{layer['query_heads']} {kinds[0]}, {layer['kv_heads']} {kinds[1]} heads × {layer['head_size']}"
        window = f", window {layer['window_tokens']:,}" if layer["window_tokens"] else ""
        feed = f"{layer['experts']} experts of {layer['expert_width']:,}, {layer['experts_per_token']} a token"
        dense = f"dense {layer['mlp_width']:,}" if layer["mlp_width"] else "no feed-forward"
        feed = feed if layer["experts"] else dense
        rows.append([str(layer["count"]), f"{layer['attention']} {heads}{window}", feed, f"{layer['parameters']:,}"])
    return rows


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _flat(facts: ModelFacts) -> list[dict[str, object]]:
    name = facts["name"]
    rows: list[dict[str, object]] = [{"name": name, "fact": key, "value": facts[key], "unit": ""} for key in _PLAIN]
    rows += [{"name": name, "fact": key, "value": facts[key], "unit": "FLOP"} for key in _WORK]
    rows.append({"name": name, "fact": "state_bytes", "value": facts["state_bytes"], "unit": "B"})
    for group in ("kv_bytes_per_token", "weight_bytes"):
        rows += [
            {"name": name, "fact": f"{group} {key}", "value": value, "unit": "B"} for key, value in facts[group].items()
        ]
    return rows
