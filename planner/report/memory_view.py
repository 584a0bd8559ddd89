"""The answer to a question about memory, and models as lists and as one sheet of facts, in every output format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from planner import units
from planner.estimate.engines import DEFAULT_ENGINE
from planner.report import csv, json, lists, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.lists import Field
from planner.report.plan_words import spaced

if TYPE_CHECKING:
    from planner.memory.model import AnswerRow, CardFit, Column, Fits, Layer, MemoryDocument, ModelFacts, TrainingMemory


_BAR = 48
_TRAINED: Final = ("states_bytes", "eager_bytes", "flash_bytes", "stored_input_bytes")
_SERVED: Final = ("weight_bytes", "kv_bytes_per_token", "kv_bytes_per_request")
_NONE = "none do"
_STATES = ("weights", "gradients", "optimizer")


def render_memory(document: MemoryDocument, form: str, *, width: int = 100, colour: bool = False) -> str:
    """A memory document as table, json, csv or md.

    Parameters
    ----------
    document
        The answer of `plan memory`.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
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
        *_ways_out(document),
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
        requests = f"{units.counted(held['concurrency'], 'request')} of {held['context']:,} tokens"
        token = units.format_bytes(document["kv_bytes_per_token"])
        spread = _spread(held["devices"], [f"{axis}{held[axis]}" for axis in ("tp", "pp", "ep") if held[axis] > 1])
        by = "" if held["engine"] == DEFAULT_ENGINE else f" in {held['engine']}"
        return f"serving{by} {requests} · cache {held['kv_cache']}, {token} a token · {spread}"
    asked = document["asked"]
    precision = {"fp32": "fp32"}.get(asked["precision"], f"{asked['precision']} mixed precision")
    size = f"batch {asked['batch']} × {asked['sequence_length']:,} tokens per device"
    sharding = "not sharded" if asked["sharding"] == "none" else asked["sharding"]
    axes = [f"{axis}{asked[axis]}" for axis in ("dp", "tp", "pp", "cp", "ep") if asked[axis] > 1]
    spread = _spread(asked["devices"], axes)
    rank = asked["lora_rank"]
    method = "" if rank is None else f" of LoRA adapters, rank {rank} on frozen {asked['lora_base']}"
    return f"training{method} with {asked['optimizer']}, {precision} · {size} · {spread}, {sharding}"


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
    if document["kind"] == "training" and document["asked"]["lora_rank"] is None:
        recipe = document["per_parameter_bytes"]
        for state in ("weights", "gradients", "optimizer"):
            if state == name:
                return f"{recipe[state]:g} B/param"
    if name == "workspace" and len(document["cards"]) != 1:  # of one that is named it is its own
        return "80 GB and up"
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
    shown = [one for one in document["cards"] if _is_shown(one)]
    rows: list[list[str]] = []
    for run, holds in _runs(shown, names):
        if holds or len(run) == 1:
            rows += [_card_row(one, names) for one in run]
            continue
        rows.append([f"{_size(run[0])} to {_size(run[-1])}: {_devices(run)}", "", *("no" for _ in names)])
    others = [one for one in document["cards"] if not _is_shown(one)]
    notes = (f"and {_devices(others)} that none here rents out: --fit NAME, or -o json for all",) if others else ()
    heads = columns(f"Fits? largest {what} on", ">usable", *(f">{name}" for name in names))
    return Grid(columns=heads, rows=rows, notes=notes)


def _is_shown(one: CardFit) -> bool:
    """What was asked for, and what can be rented."""
    return bool(one["offers"]) or (len(one["devices"]) < 2 and ":" not in one["label"])


def _runs(cards: Sequence[CardFit], names: Sequence[str]) -> list[tuple[list[CardFit], bool]]:
    """Cards in order: those that hold nothing in one run, but for the largest of them."""
    empty = [one for one in cards if not any(one["columns"][name]["largest_batch"] for name in names)]
    nearest = max(empty, key=lambda one: one["usable_bytes"], default=None)
    runs: list[tuple[list[CardFit], bool]] = []
    for one in cards:
        holds = one is nearest or one not in empty
        if runs and runs[-1][1] == holds:
            runs[-1][0].append(one)
        else:
            runs.append(([one], holds))
    return runs


def _card_row(one: CardFit, names: Sequence[str]) -> list[str]:
    return [one["label"], units.format_bytes(one["usable_bytes"]), *(_verdict(one["columns"][name]) for name in names)]


def _size(one: CardFit) -> str:
    return one["label"].partition(":")[0]


def _devices(cards: Sequence[CardFit]) -> str:
    count = sum(max(1, len(one["devices"])) for one in cards)
    return f"{count} device{'s' * (count > 1)}"


def _ways_out(document: MemoryDocument) -> list[Block]:
    """Where nothing fits as asked: more devices of a kind, or something changed on as many."""
    ways = document["ways_out"]
    if ways is None:
        return []
    shown = {one["label"] for one in document["cards"] if _is_shown(one)}
    kinds = [one for one in ways["more_devices"] if one["card"] in shown]
    names = list(ways["more_devices"][0]["devices"])
    rows = [
        [one["card"], *(_NONE if (count := one["devices"][name]) is None else f"{count:,}" for name in names)]
        for one in kinds
    ]
    if document["kind"] == "training":
        note = f"in all, data parallel, with {ways['column']}: --devices N --sharding zero-3"
    else:
        note = "a replica, tensor parallel: --tp N"
    heads = columns("Way out: devices, the fewest", *(f">{name}" for name in names))
    enough = [row for row in rows if any(cell != _NONE for cell in row[1:])]
    short = [row[0] for row in rows if row not in enough]
    smaller = " and smaller" if len(short) > 1 else ""
    never = (f"of {short[-1]}{smaller} no number is enough",) if short else ()
    more = Grid(columns=heads, rows=enough, notes=(note, *never) if enough else never)
    changes = [
        [one["change"], _gb(one["total_bytes"]), _fits_from(one["fits_on"], shown), one["flags"]]
        for one in ways["changes"]
    ]
    other = Grid(columns=columns("Way out: one change", ">per device", "Fits then on", "Ask with"), rows=changes)
    return [more, other] if kinds else [other]


def _fits_from(fits_on: Sequence[str], shown: Collection[str]) -> str:
    """The smallest card of those that fit, which can be rented where one can."""
    if not fits_on:
        return "none of these"
    smallest = next((label for label in fits_on if label in shown), fits_on[0])
    return smallest + (", larger" if len(fits_on) > 1 else "")


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
        return csv.render(_model_rows(facts), ["name", "fact", "value", "unit"])
    blocks = _model_blocks(facts)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def _model_blocks(facts: ModelFacts) -> list[Block]:
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
        Grid(columns=columns("Layers", "Attention", "Feed-forward", ">Parameters of one"), rows=_layer_rows(facts)),
        Grid(columns=columns(f"Work per token at {sequence}", ">"), rows=work),
        Grid(columns=columns("Cache format", ">per token", f">per {sequence}"), rows=cache),
        Grid(columns=columns("Weight format", ">whole model"), rows=weights),
        Lines(lines=(*last, f" Equations  {' '.join(facts['equations'])}")),
    ]


def _layer_rows(facts: ModelFacts) -> list[list[str]]:
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


def _model_rows(facts: ModelFacts) -> list[dict[str, object]]:
    name = facts["name"]
    rows: list[dict[str, object]] = [{"name": name, "fact": key, "value": facts[key], "unit": ""} for key in _PLAIN]
    rows += [{"name": name, "fact": key, "value": facts[key], "unit": "FLOP"} for key in _WORK]
    rows.append({"name": name, "fact": "state_bytes", "value": facts["state_bytes"], "unit": "B"})
    for group in ("kv_bytes_per_token", "weight_bytes"):
        rows += [
            {"name": name, "fact": f"{group} {key}", "value": value, "unit": "B"} for key, value in facts[group].items()
        ]
    return rows
