"""Recipes of model states: how many bytes one parameter takes as weight, gradient and optimizer state."""

from __future__ import annotations

from planner.carriers import dataclass
from planner.equations.registry import FloatOrArray, as_float, equation


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecipe:
    """Bytes of one trained parameter as weight, gradient and optimizer state, and where that is written."""

    name: str
    weight: float
    gradient: float
    optimizer: float  # master weight and moments
    source: str

    @property
    def total(self) -> float:
        """Bytes of one parameter before sharding.  [B]"""
        return self.weight + self.gradient + self.optimizer


_ZERO = "Rajbhandari et al. 2020, sec. 3.1"
_MEGATRON = "NVIDIA/Megatron-LM:megatron/training/theoretical_memory_usage.py"
_BRIDGE = "NVIDIA-NeMo/Megatron-Bridge:src/megatron/bridge/recipes/moonlight: bf16 gradients and moments, fp32 master"
_FP8_WEIGHTS = "NVIDIA-NeMo/Megatron-Bridge:training/mixed_precision.py: fp8_param_gather, a weight and its transpose"
_DEEPSPEED = "deepspeedai/DeepSpeed, memory needs of ZeRO: 2 + 2 + 4 fp32 gradients + 4 + 8"
_DERIVED = "arithmetic: bytes of each stored tensor"
RECIPES: dict[str, StateRecipe] = {
    recipe.name: recipe
    for recipe in (
        StateRecipe(name="adam-fp32", weight=4, gradient=4, optimizer=8, source=_DERIVED),
        StateRecipe(name="adam-mixed", weight=2, gradient=2, optimizer=12, source=_ZERO),
        StateRecipe(name="adam-megatron", weight=2, gradient=4, optimizer=12, source=_MEGATRON),
        StateRecipe(name="adam-fsdp", weight=4, gradient=4, optimizer=8, source="PyTorch FSDP: shards stay in fp32"),
        StateRecipe(name="adam-pure-bf16", weight=2, gradient=2, optimizer=4, source="mosaicml/llm-foundry, PURE rows"),
        StateRecipe(name="adam-fp8", weight=4, gradient=4, optimizer=12, source="Transformer Engine (recalled)"),
        StateRecipe(name="adam-fp8-weights", weight=2, gradient=4, optimizer=12, source=_FP8_WEIGHTS),
        StateRecipe(name="adam-bf16-moments", weight=2, gradient=4, optimizer=8, source="DeepSeek-V3 (recalled)"),
        StateRecipe(name="adam-bf16-states", weight=2, gradient=2, optimizer=8, source=_BRIDGE),
        StateRecipe(name="adam-deepspeed", weight=2, gradient=2, optimizer=16, source=_DEEPSPEED),
        StateRecipe(name="adam-8bit", weight=2, gradient=2, optimizer=6, source="Dettmers et al. 2022; fp32 master"),
        StateRecipe(name="adam-8bit-no-master", weight=2, gradient=2, optimizer=2, source="Dettmers et al. 2022"),
        StateRecipe(name="adafactor", weight=2, gradient=2, optimizer=4, source="Shazeer and Stern 2018; fp32 master"),
        StateRecipe(name="adafactor-momentum", weight=2, gradient=2, optimizer=8, source="Shazeer and Stern 2018"),
        StateRecipe(name="adafactor-fp32", weight=4, gradient=4, optimizer=0, source="Shazeer and Stern 2018"),
        StateRecipe(name="sgd", weight=2, gradient=2, optimizer=4, source=_DERIVED),
        StateRecipe(name="sgd-momentum", weight=2, gradient=2, optimizer=8, source=_DERIVED),
        StateRecipe(name="sgd-fp32", weight=4, gradient=4, optimizer=0, source=_DERIVED),
        StateRecipe(name="sgd-momentum-fp32", weight=4, gradient=4, optimizer=4, source=_DERIVED),
        StateRecipe(name="muon", weight=2, gradient=4, optimizer=8, source="one fp32 moment and fp32 master"),
        StateRecipe(name="muon-fp32", weight=4, gradient=4, optimizer=4, source="one fp32 moment"),
    )
}

_FP32_RECIPES = {
    **dict.fromkeys(("adamw", "adam", "adamw-fsdp", "adamw-megatron", "adamw-deepspeed"), "adam-fp32"),
    "sgd": "sgd-fp32",
    "sgd-momentum": "sgd-momentum-fp32",
    "adafactor": "adafactor-fp32",
    "muon": "muon-fp32",
}
_RECIPES = {
    **dict.fromkeys(("adamw", "adam"), "adam-mixed"),
    "adamw-megatron": "adam-megatron",
    "adamw-fsdp": "adam-fsdp",
    "adamw-deepspeed": "adam-deepspeed",
    "adamw-pure-bf16": "adam-pure-bf16",
    "adamw-bf16-moments": "adam-bf16-moments",
    "adamw-8bit": "adam-8bit",
    "adamw-8bit-no-master": "adam-8bit-no-master",
    "adafactor": "adafactor",
    "adafactor-momentum": "adafactor-momentum",
    "sgd": "sgd",
    "sgd-momentum": "sgd-momentum",
    "muon": "muon",
}
OPTIMIZERS: tuple[str, ...] = tuple(_RECIPES)
_FRAMEWORK_ADAM = {"megatron": "adamw-megatron", "fsdp": "adamw-fsdp", "deepspeed": "adamw-deepspeed"}


def state_recipe(optimizer: str, precision: str, framework: str | None = None) -> StateRecipe:
    """The recipe of an optimizer at a precision; a framework may keep other copies of Adam's states.

    fp8 keeps the 16-bit weights and up to two cached 8-bit copies of them, with fp32 main gradients.

    Parameters
    ----------
    optimizer
        One of `OPTIMIZERS`.
    precision
        ``fp32`` has recipes of its own, ``fp8`` one for plain Adam and Megatron's; else it is that of 16 bits.
    framework
        Sets the recipe of plain Adam if it is ``megatron``, ``fsdp`` or ``deepspeed``; None = none of them.

    Raises
    ------
    KeyError
        There is no such optimizer.
    """
    name = _FRAMEWORK_ADAM.get(framework or "", optimizer) if optimizer in ("adam", "adamw") else optimizer
    if precision == "fp32":
        return RECIPES[_FP32_RECIPES.get(name, _RECIPES[name])]
    if precision == "fp8" and name in ("adam", "adamw", "adamw-megatron"):
        return RECIPES["adam-fp8"]
    return RECIPES[_RECIPES[name]]


@equation("EQ-MEM-9")
def quantized_bits_per_parameter(
    bits: FloatOrArray = 4,
    block_size: FloatOrArray = 64,
    scale_bits: FloatOrArray = 8,
    second_block_size: FloatOrArray = 256,
    second_scale_bits: FloatOrArray = 32,
) -> FloatOrArray:
    """Stored bits of one block-quantised weight, scales of scales included (QLoRA's double quantisation).

    Parameters
    ----------
    bits
        Bits of one value; 4 for NF4.  [bit]
    block_size
        Values that share one scale.  [count]
    scale_bits
        Bits of that scale; 32 without double quantisation.  [bit]
    second_block_size
        Scales that share one second scale.  [count]
    second_scale_bits
        Bits of the second scale; 0 without double quantisation.  [bit]

    Returns
    -------
    Bits per parameter.  [bit]

    Notes
    -----
    Eq. (1):  bits + s_1 / B_1 + s_2 / (B_1 B_2)

    References
    ----------
    [1] T. Dettmers et al., arXiv 2305.14314, sec. 3, "Double Quantization".

    Examples
    --------
    >>> round(float(quantized_bits_per_parameter()), 3)
    4.127
    """
    first = as_float(block_size)
    return bits + scale_bits / first + second_scale_bits / (first * second_block_size)
