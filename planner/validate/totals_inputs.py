"""What a row of whole-run budgets says, and what is typical where it says nothing.

A table of budgets names a model by its size, a device by its product name, and often no count. Filled in:

* the shape of a preset with the same name or the same size, else one interpolated in Table 2.1 of the GPT-3 paper;
* a count from its text: the first number, of a range the power of two below its geometric mean; none stated: the
  power of two at which the rule of thumb takes nearest to a month;
* sequence length, batch and software as the paper of a named model states them (`run_settings.csv`, with sources);
* else the software that the name gives in brackets, else the faster of two tuned stacks; fp8 for models trained in it;
* else the batch of DeepSeek's scaling law, as a power of two of sequences;
* the best-connected shape of the catalog that has such devices.

Nothing here reads what was measured, or remarks, sources and keys.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache

import numpy as np

from planner.architecture.config import Config
from planner.architecture.from_config import build
from planner.architecture.load import list_presets, load_model
from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Shape
from planner.csvtable import Columns, kinds_of, read_table
from planner.equations.rules import training_hours
from planner.estimate.frameworks import FRAMEWORKS
from planner.validate.rows import HOUSE, TotalsRow

# Who trains for weeks tunes the software first, as the recipes of these stacks do.
_TUNED_ON_GPUS = ("megatron-bridge", "fsdp")
NEAR = 0.05  # sizes that differ by less are one model
MONTH_H = 730.0
LARGEST_COUNT = 16384
SMALL_MODEL = 1e9  # parameters: below it sequences are taken as short as GPT-2's
# DeepSeek-AI 2024, DeepSeek-V3 Technical Report (arXiv 2412.19437), sec. 3.3: linear products in fp8
_TRAINED_IN_FP8 = {"deepseek-v3"}
# DeepSeek LLM (arXiv 2401.02954, eq. 4): best batch in tokens from the FLOPs of a run
_BATCH_FACTOR, _BATCH_EXPONENT = 0.2920, 0.3271
# T. Brown et al. 2020, Table 2.1: parameters and width; depth follows from both
_SIZES = (0.125e9, 0.35e9, 0.76e9, 1.3e9, 2.7e9, 6.7e9, 13e9, 175e9)
_WIDTHS = (768, 1024, 1536, 2048, 2560, 4096, 5140, 12288)
_VOCABULARY = 50257
_HEAD_SIZE = 128
# Products that the catalog does not have, under what they are but for their links.
_KNOWN_AS = {"h800": "h100-sxm-80gb", "a800": "a100-sxm-80gb"}


SETTINGS_TABLE = "run_settings.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a named model was trained, as its publisher says."""

    model: str  # words of the name
    sequence_length: int  # [tokens]
    batch_tokens: float  # of an optimizer step, for most of the run  [tokens]
    framework: str | None = None  # nearest row of `frameworks.py`; None: not public
    source: str
    as_of: str
    status: str  # seen | recalled


@lru_cache(maxsize=1)
def run_settings() -> tuple[RunSettings, ...]:
    """Every row of the table."""
    needed = ("model", "sequence_length", "batch_tokens", "source", "as_of", "status")
    columns = Columns(kinds=kinds_of(RunSettings), required=needed, filled=needed)
    return tuple(RunSettings(**cells) for _, cells in read_table(HOUSE / SETTINGS_TABLE, columns))


def settings_of(row: TotalsRow) -> RunSettings | None:
    """The settings of the model that a name begins with; the longest of several."""
    name = (row.model or "").lower()
    found = [one for one in run_settings() if name.startswith(one.model)]
    return max(found, key=lambda one: len(one.model), default=None)


def device_named(text: str, catalog: Catalog) -> Device | None:
    """The device of the catalog that a product name means; None for several or for none."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    if "then" in words or "and" in words:
        return None
    known = next((_KNOWN_AS[word] for word in words if word in _KNOWN_AS), None)
    if known:
        return catalog.devices.get(known)
    ranked = [(_likeness(words, device), device) for device in catalog.devices.values()]
    best = max(likeness for likeness, _ in ranked)
    return next(device for likeness, device in ranked if likeness == best) if best[0] else None


def _likeness(words: list[str], device: Device) -> tuple[int, int, int, int]:
    """How well words agree with a device's id: chip, memory, the rest; of equals a module beats a card."""
    parts = device.id.split("-")
    chip = parts[1] if parts[0] == "tpu" else parts[0]
    if chip not in words:
        return 0, 0, 0, 0
    memory = sum(part in words for part in parts if part.endswith("gb"))
    return 1, memory, sum(part in words for part in parts), int(any(part.startswith("sxm") for part in parts))


def parameters_of(row: TotalsRow) -> tuple[float, float]:
    """All parameters of the model and those that a token uses."""
    total = (row.params_b or 0.0) * 1e9
    return total, (row.active_params_b or 0.0) * 1e9 or total


def architecture_of(row: TotalsRow) -> Architecture:
    """The shape of a row's model."""
    total, active = parameters_of(row)
    named = _preset_named(row.model or "", total)
    if named is None:
        named = _preset_of_size(total, active)
    return named if named is not None else _typical(total)


@lru_cache(maxsize=1)
def _presets() -> tuple[Architecture, ...]:
    return tuple(load_model(name) for name in list_presets())


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9.]+", re.sub(r"\(.*?\)", "", name.lower())))


def _preset_named(name: str, total: float) -> Architecture | None:
    """The preset all of whose words stand in a name; the most words win; the size must not disagree."""
    words = _words(name)
    found = [one for one in _presets() if _words(one.name) <= words and abs(one.parameters / total - 1) < 2 * NEAR]
    return max(found, key=lambda one: (len(_words(one.name)), one.name), default=None)


def _preset_of_size(total: float, active: float) -> Architecture | None:
    """The preset nearest in size, all parameters and active ones."""

    def far(one: Architecture) -> float:
        return max(abs(one.parameters / total - 1), abs(one.active_parameters / active - 1))

    nearest = min(_presets(), key=lambda one: (far(one), one.name))
    return nearest if far(nearest) < NEAR else None


@lru_cache(maxsize=64)
def _typical(total: float) -> Architecture:
    """A GPT of a size: width from Table 2.1, depth from what the width leaves."""
    width = float(np.exp(np.interp(math.log(total), np.log(_SIZES), np.log(_WIDTHS))))
    hidden = max(round(width / _HEAD_SIZE), 1) * _HEAD_SIZE
    layers = max(round((total - _VOCABULARY * hidden) / (12 * hidden**2)), 1)
    config = {
        "model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": hidden // _HEAD_SIZE,
        "vocab_size": _VOCABULARY, "n_positions": 2048,
    }  # fmt: skip
    text = json.dumps(config)
    return build(
        Config(config, "typical", text), name=f"GPT of {total / 1e9:g}B", source="Brown et al. 2020, Table 2.1"
    )


def stated_count(text: str | None) -> int | None:
    """The count that a text states: its first number, of a range the power of two below the geometric mean."""
    match = re.match(r"\s*([0-9][0-9,]*)(?:\s*-\s*([0-9][0-9,]*))?", text or "")
    if not match:
        return None
    low, high = (int(group.replace(",", "")) if group else None for group in match.groups())
    if low is None or low < 1:
        return None
    return 2 ** int(math.log2(math.sqrt(low * high)) + 1e-9) if high else low


def typical_count(row: TotalsRow, device: Device, mfu: float) -> int:
    """The power of two at which the rule of thumb takes nearest to a month.

    Parameters
    ----------
    row
        Size of the model and tokens of the run.
    device
        That it ran on.
    mfu
        Share of the dense 16-bit peak that the device's family sustains.
    """
    _, active = parameters_of(row)
    hours = float(training_hours((row.tokens_b or 0.0) * 1e9, active, 1.0, 1.0, mfu * peak_of(device)))
    return int(min(max(2 ** round(math.log2(max(hours / MONTH_H, 1.0))), 8), LARGEST_COUNT))


def precision_of(device: Device, arch: Architecture | None = None) -> str:
    """The 16-bit format that a device trains in; fp8 for a model that was trained in it."""
    if arch is not None and arch.name in _TRAINED_IN_FP8 and device.peak_flop_per_s.get("fp8"):
        return "fp8"
    return "bf16" if device.peak_flop_per_s.get("bf16") else "fp16"


def frameworks_of(row: TotalsRow, device: Device) -> tuple[str | None, ...]:
    """Software to try: what the run's name gives in brackets, or its paper, else tuned stacks of the device's kind."""
    found = re.findall(r"\(([^()]+)\)", (row.model or "").lower())
    settings = settings_of(row)
    named = next((text for text in found if text in FRAMEWORKS), settings.framework if settings else None)
    if named is not None:
        return (named,)
    return _TUNED_ON_GPUS if device.kind == "gpu" else (None,)


def sequence_length_of(row: TotalsRow, arch: Architecture) -> int:
    """As the run's paper says, else a typical sequence length, cut to what the model can hold.  [tokens]"""
    settings = settings_of(row)
    if settings is not None:
        return settings.sequence_length
    typical = 1024 if arch.parameters < SMALL_MODEL else 4096
    return min(arch.max_positions or typical, typical)


def peak_of(device: Device) -> float:
    """Dense 16-bit peak.  [FLOP/s]"""
    return float(device.peak_flop_per_s.get(precision_of(device), 0.0))


def batch_of(row: TotalsRow, sequence_length: int) -> int:
    """As the run's paper says, else a typical batch: a power of two near what scaling laws advise.  [sequences]"""
    settings = settings_of(row)
    if settings is not None:
        return max(round(settings.batch_tokens / sequence_length), 1)
    _, active = parameters_of(row)
    flop_count = 6.0 * active * (row.tokens_b or 0.0) * 1e9
    advised = _BATCH_FACTOR * flop_count**_BATCH_EXPONENT / sequence_length
    return int(2 ** max(round(math.log2(max(advised, 1.0))), 3))


def shape_for(device: Device, count: int, catalog: Catalog) -> Shape | None:
    """The best-connected shape with such devices that a run of `count` of them can be made of; None without one.

    Parameters
    ----------
    device
        That the run has.
    count
        Of such devices, all together.
    catalog
        Shapes; the smallest slice that holds the whole run goes before all others.
    """
    shapes = [shape for shape in catalog.shapes.values() if shape.device == device.id and shape.compute_share == 1.0]
    usable = [shape for shape in shapes if shape.devices <= max(count, 1)]
    whole = [shape for shape in shapes if shape.kind == "slice" and shape.devices >= count]
    if whole:
        return min(whole, key=lambda shape: (shape.devices, shape.id))
    return max(usable, key=lambda shape: (shape.inter_node_bytes_per_s_per_device or 0.0, shape.devices, shape.id),
               default=None)  # fmt: skip
