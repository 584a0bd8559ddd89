"""`plan memory`: how much a model needs, what fits, and what other tools would say."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import complete, flags
from planner.cli.frame import Form, Frame, command, usage

if TYPE_CHECKING:
    from planner.memory.cards import Card
    from planner.memory.model import MemoryDocument


class Attention(StrEnum):
    """How attention is computed."""

    flash = "flash"
    eager = "eager"


class Precision(StrEnum):
    """Formats to train in."""

    fp32 = "fp32"
    fp16 = "fp16"
    bf16 = "bf16"
    fp8 = "fp8"


class Sharding(StrEnum):
    """What data-parallel ranks share."""

    none = "none"
    zero_1 = "zero-1"
    zero_2 = "zero-2"
    zero_3 = "zero-3"


class Recompute(StrEnum):
    """What is computed again in the backward pass."""

    none = "none"
    selective = "selective"
    full = "full"


class LoraBase(StrEnum):
    """Formats of frozen weights."""

    bf16 = "bf16"
    fp16 = "fp16"
    int8 = "int8"
    nf4 = "nf4"


class Goal(StrEnum):
    """What --fit can be solved for."""

    batch = "batch"
    context = "context"
    devices = "devices"
    bits = "bits"


def _count(flag: str, help_text: str, most: int = flags.MOST_COUNT) -> Any:
    """A count as scenarios have it: 8192, 128k."""

    def read(text: str | int) -> int:
        from planner import units

        try:
            number = units.parse_count(text, field=flag)
        except units.UnitError as error:
            raise typer.BadParameter(f"{error.message}; {error.hint}") from None
        if not 1 <= number <= most:
            raise typer.BadParameter(f"{text} is not in the range from 1 to {most:,}.")
        return number

    return typer.Option(flag, parser=read, metavar="COUNT", help=help_text)


def memory(
    frame: Frame,
    model: flags.Model,
    train: Annotated[bool, typer.Option("--train", help="Memory of training (the default).")] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Memory of serving.")] = False,
    batch: Annotated[int | None, _count("--batch", "Sequences of one pass of one model copy.")] = None,
    sequence: Annotated[int | None, _count("--sequence", "Tokens of a sequence.", flags.MOST_LENGTH)] = None,
    optimizer: Annotated[str | None, typer.Option("--optimizer", help="As in a scenario; default adamw.")] = None,
    precision: Annotated[Precision | None, typer.Option("--precision", help="To train in; default bf16.")] = None,
    attention: Annotated[Attention | None, typer.Option("--attention", help="Default: both, side by side.")] = None,
    recompute: Annotated[Recompute | None, typer.Option("--recompute", help="Default: none and full.")] = None,
    sharding: Annotated[Sharding | None, typer.Option("--sharding", help="Over the data-parallel ranks.")] = None,
    lora: Annotated[int | None, _count("--lora", "Rank of adapters; default: all weights are trained.")] = None,
    lora_base: Annotated[LoraBase | None, typer.Option("--lora-base", help="Frozen weights; default bf16.")] = None,
    devices: Annotated[int | None, _count("--devices", "In all; data parallelism takes what is left.")] = None,
    dp: Annotated[int | None, _count("--dp", "Data parallel.")] = None,
    tp: Annotated[int, _count("--tp", "Tensor parallel.")] = 1,
    pp: Annotated[int, _count("--pp", "Pipeline stages.")] = 1,
    cp: Annotated[int | None, _count("--cp", "Context parallel.")] = None,
    ep: Annotated[int, _count("--ep", "Expert parallel.")] = 1,
    context: Annotated[
        int | None, _count("--context", "Serving: tokens that each request fills.", flags.MOST_LENGTH)
    ] = None,
    concurrency: Annotated[int | None, _count("--concurrency", "Serving: requests at once.")] = None,
    weights: Annotated[str | None, typer.Option("--weights", help="Serving: fp8, int4 …; default three.")] = None,
    kv_cache: Annotated[str | None, typer.Option("--kv-cache", help="Serving: cache format; default bf16.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="Serving: vllm, sglang …; default vllm.")] = None,
    fit: Annotated[
        list[str] | None,
        typer.Option(
            "--fit",
            metavar="SIZE|DEVICE",
            help="A card: 32GB or h100-sxm-80gb; repeatable.",
            autocompletion=complete.devices,
        ),
    ] = None,
    solve_for: Annotated[Goal | None, typer.Option("--solve-for", help="What --fit is solved for.")] = None,
    per_layer: Annotated[bool, typer.Option("--per-layer", help="One line a kind of layer, too.")] = False,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
) -> None:
    """Memory that a model needs per device, part by part, and what fits on which card."""
    from planner.report.memory_view import render_memory

    given = {
        key: value for key, value in locals().items() if key in _OWN["train"] | _OWN["serve"] and value is not None
    }
    kind = _kind(train, serve, given)
    if solve_for is not None and not fit:
        raise usage("no-card", f"--solve-for {solve_for.value} needs a card", "add --fit 80GB")
    cards = tuple(_card(text) for text in fit or ()) or _catalog_cards("serving" if kind == "serve" else "training")
    asked = {"tp": tp, "pp": pp, "ep": ep, "devices": devices, "dp": dp} | given
    ask = _ask_serving if kind == "serve" else _ask_training
    document = ask(model, asked, cards, solve_for.value if solve_for else None, per_layer)
    frame.emit(render_memory(document, output.value, **frame.view(out)), out)


_OWN = {
    "train": {
        "batch", "sequence", "optimizer", "precision", "attention", "recompute", "sharding", "lora", "lora_base", "dp",
        "cp",
    },
    "serve": {"context", "concurrency", "weights", "kv_cache", "engine"},
}  # fmt: skip


def _kind(train: bool, serve: bool, given: dict[str, Any]) -> str:
    """Training or serving: as said, else as the other flags imply."""
    if train and serve:
        raise usage("two-questions", "--train and --serve are two questions", "ask one at a time")
    kind = "serve" if serve or (not train and given.keys() & _OWN["serve"]) else "train"
    strange = sorted(given.keys() & _OWN["train" if kind == "serve" else "serve"])
    if strange:
        wrong = ", ".join("--" + name.replace("_", "-") for name in strange)
        raise usage(
            "wrong-flag",
            f"{wrong} is no part of a question about {kind[:-1] + 'ing' if kind == 'serve' else 'training'}",
        )
    return kind


def _ask_training(
    model: str, asked: dict[str, Any], cards: tuple[Card, ...], solve_for: str | None, per_layer: bool
) -> MemoryDocument:
    from planner.architecture.load import load_model
    from planner.equations.memory import OPTIMIZERS
    from planner.memory.question import TrainingQuestion, training_document, variants

    optimizer = asked.get("optimizer", "adamw")
    if optimizer not in OPTIMIZERS:
        raise usage("unknown-optimizer", f"no optimizer '{optimizer}'", ", ".join(OPTIMIZERS))
    if asked.get("lora_base") and not asked.get("lora"):
        raise usage("no-adapters", "--lora-base says what adapters stand on, and there are none", "add --lora 16")
    arch = load_model(model)
    attention, recompute = asked.get("attention"), asked.get("recompute")
    question = TrainingQuestion(
        arch=arch,
        batch=asked.get("batch", 1),
        sequence_length=asked.get("sequence", min(arch.max_positions or 4096, 4096)),
        optimizer=optimizer,
        precision=str(asked.get("precision", "bf16")),
        dp=_data_parallel(asked),
        tp=asked["tp"],
        pp=asked["pp"],
        cp=asked.get("cp", 1),
        ep=asked["ep"],
        sharding=str(asked.get("sharding", "none")),
        lora_rank=asked.get("lora"),
        lora_base=str(asked.get("lora_base", "bf16")),
        variants=variants(str(attention) if attention else None, str(recompute) if recompute else None),
    )
    return training_document(question, cards=cards, solve_for=solve_for, per_layer=per_layer)


def _data_parallel(asked: dict[str, Any]) -> int:
    """Data parallelism: as given, else what the devices leave."""
    split = asked["tp"] * asked["pp"] * asked.get("cp", 1)
    devices, dp = asked.get("devices"), asked.get("dp")
    if devices is None:
        return int(dp or 1)
    if devices % split or (dp is not None and dp * split != devices):
        raise usage("wrong-split", f"--devices {devices} is not dp × tp × pp × cp = {dp or '?'} × {split}")
    return int(devices // split)


def _ask_serving(
    model: str, asked: dict[str, Any], cards: tuple[Card, ...], solve_for: str | None, per_layer: bool
) -> MemoryDocument:
    from planner.architecture.load import load_model
    from planner.estimate.engines import DEFAULT_ENGINE, ENGINES, engine_rules
    from planner.estimate.serving_formats import FORMATS
    from planner.memory.serving import DEFAULT_FORMATS, ServingQuestion, serving_document
    from planner.spelling import closest

    for name in (asked.get("weights"), asked.get("kv_cache")):
        if name is not None and name not in FORMATS:
            raise usage("unknown-format", f"no format '{name}'", ", ".join(FORMATS))
    rules = engine_rules(asked.get("engine") or DEFAULT_ENGINE)
    if rules is None:
        near = closest(asked["engine"], ENGINES)
        hint = f"did you mean {near[0]}?" if near else ", ".join(ENGINES)
        raise usage("unknown-engine", f"no engine '{asked['engine'][:60]}'", hint)
    served = rules.formats or tuple(name for name in FORMATS if not name.startswith(("q", "iq")))
    if asked.get("engine") and asked.get("weights") and asked["weights"] not in served:
        raise usage("unknown-format", f"{rules.name} serves no {asked['weights']}", ", ".join(served))
    formats = tuple(name for name in (*DEFAULT_FORMATS, "q8_0", "q4_k_m") if name in served)
    if asked.get("devices") and asked["devices"] != asked["tp"] * asked["pp"]:
        raise usage("wrong-split", f"--devices {asked['devices']} is not tp × pp = {asked['tp'] * asked['pp']}")
    question = ServingQuestion(
        arch=load_model(model),
        context=asked.get("context", 4096),
        concurrency=asked.get("concurrency", 1),
        formats=(asked["weights"],) if asked.get("weights") else formats,
        engine=rules.name,
        kv_cache=asked.get("kv_cache"),
        tp=asked["tp"],
        pp=asked["pp"],
        ep=asked["ep"],
    )
    return serving_document(question, cards=cards, solve_for=solve_for, per_layer=per_layer)


def _card(text: str) -> Card:
    """A card by size or by name: "32 GB" as sold (32 × 2^30 bytes), "30 GiB" exactly, or a device of the catalog."""
    from planner import units
    from planner.memory.cards import card, marketed_card

    try:
        size = units.parse_bytes(text, field="--fit")
    except units.UnitError as error:
        if error.reference in ("missing-unit", "ambiguous-suffix") or text[:1].isdigit():
            raise usage(error.reference, error.message, error.hint) from None
        return _device_card(text)
    if size < 1e9:
        raise usage("out-of-range", f"--fit {text} is less than 1 GB", "write 32GB")
    return card(text, size) if "i" in text else marketed_card(size / 1e9)


def _device_card(name: str) -> Card:
    from planner.catalog.load import find_device, load_catalog
    from planner.memory.cards import device_card

    return device_card(find_device(load_catalog(), name))


def _catalog_cards(use: str) -> tuple[Card, ...]:
    from planner.catalog.load import load_catalog
    from planner.memory.cards import catalog_cards

    return catalog_cards(load_catalog(), use)


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan memory gpt2-xl --batch 32 --sequence 1000 --precision fp16 --fit 32GB --solve-for batch",
        "plan memory llama-3.1-70b --serve --context 8192 --concurrency 32 --tp 4",
    )
    command(app, "memory", examples=examples)(memory)
