"""Recipes in Python (NeMo, Megatron-Bridge, torchtitan, Hugging Face): looked through as text, never run.

What is set by name counts: arguments of calls, defaults of functions, attributes, where they are numbers, words or
names that the file itself sets to one. What is worked out is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

PYTHON = re.compile(r"(?m)^(?:from [\w.]+ import |import [\w.]+|def \w+\(|@)")
# trainer -> marks of its recipes
MARKS: Mapping[str, tuple[str, ...]] = {
    "NeMo": (r"(?m)^\s*(?:from|import) (?:nemo|megatron\.bridge)|\brun\.(?:Partial|Config)\(",
             r"\bparallel(?:ism|_size)\s*=|_parallel(?:ism|_size)\s*=", r"\b(?:micro|global)_batch_size\s*="),
    "torchtitan": (r"(?m)^\s*from torchtitan|\bTrainingConfig\(", r"\blocal_batch_size\s*=", r"\bseq_len\s*="),
    "Hugging Face Trainer": (r"\b(?:TrainingArguments|\w{2,8}Config)\(", r"\bper_device_train_batch_size\s*=",
                             r"\bfrom_pretrained\(|\bTrainer\(|\w+Trainer\("),
}  # fmt: skip
_OTHER = re.compile(r"finetune|lora|peft|performance|test")  # functions of a file that also pre-trains
_SAID = re.compile(r"\b(?:llm\.|recipes import |recipes\.\w+ import )?(\w+?)"
                   r"(?:\.(?:pretrain|finetune)_recipe|_(?:pretrain|finetune|sft)_config)\b")  # fmt: skip
_CLASS = re.compile(r"\b([A-Z][A-Za-z]+?)(\d*)Config(\d+(?:x\d+)?B)\b")  # Llama31Config70B
_PRECISION = re.compile(r"\b\w*(?:bf16|fp16|fp8)\w*\b", re.I)


def settings_of(text: str, tool: str) -> tuple[dict[str, Any], list[str]]:
    """Settings by name, those of a part with its name and a point before, and what is to be said of them.

    Raises
    ------
    ValueError
        It is no Python of this version, or nested too deep.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no Python that is whole: {str(error)[:120]}") from None
    notes = []
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    left = [each for each in functions if _OTHER.search(each.name)]
    if tool == "torchtitan":
        left = functions[1:]
    if left and len(left) < len(functions):
        notes.append(f"Functions that are not read: {', '.join(each.name for each in left)[:200]}.")
        tree.body = [node for node in tree.body if node not in left]
    names: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name, value, assigned in _said(tree, names):
        if assigned or name not in found:
            found[name] = value
    if model := _model_in(text):
        found.setdefault("model_name", model)
    if tool == "NeMo" and (mixed := _PRECISION.search(text)):
        found.setdefault("precision", " ".join({mixed.group(), *(["fp8"] if re.search("fp8", text) else [])}))
    return found, notes


def _said(tree: ast.AST, names: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Name, value and whether it is assigned, in the order of the file; constants fill `names`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for argument, default in [
                *zip(given, node.args.defaults),
                *zip(node.args.kwonlyargs, node.args.kw_defaults),
            ]:
                value = _value(default, names)
                if value is not None:
                    names.setdefault(argument.arg, value)
                    yield argument.arg, value, False
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = _path(node.targets[0])
            value = _value(node.value, names)
            if name and value is not None:
                names[name] = value
                yield name.partition(".")[2] or name, value, True
        if isinstance(node, ast.Call):
            yield from _called(node, "", names)
        else:
            yield from _said(node, names)


def _called(call: ast.Call, before: str, names: dict[str, Any], depth: int = 0) -> Iterator[tuple[str, Any, bool]]:
    """What a call is given by name, and what calls among that are given, with the name before a point."""
    if _path(call.func).endswith("from_pretrained") and call.args and (value := _value(call.args[0], names)):
        yield "model_name", value, False
    for each in call.keywords:
        value = _value(each.value, names)
        if each.arg and value is not None:
            yield f"{before}{each.arg}", value, False
        elif each.arg and isinstance(each.value, ast.Call) and depth < 8:
            yield from _called(each.value, f"{each.arg}.", names, depth + 1)
    for part in (*call.args, call.func):
        yield from _called(part, before, names, depth + 1) if isinstance(part, ast.Call) and depth < 8 else ()


def _path(node: ast.AST) -> str:
    """recipe.trainer.max_steps, of what stands so; "" of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _value(node: ast.AST | None, names: Mapping[str, Any]) -> Any:
    """A number, word or switch that is written, or a name that is set to one; None for what is worked out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    return names.get(_path(node)) if isinstance(node, ast.Name | ast.Attribute) else None


def _model_in(text: str) -> str:
    """The model of a recipe by the names of its module, its functions or its classes: llama31_70b, Llama3Config8B."""
    said = _SAID.search(text)
    if said and re.search(r"\d", said.group(1)):
        return re.sub(r"^(llama)3(\d)(?=-)", r"\g<1>3.\2", said.group(1).replace("_", "-"))
    made = _CLASS.search(text)
    if not made:
        return ""
    version = re.sub(r"^3(\d)$", r"3.\1", made.group(2))
    return f"{made.group(1)}-{version}-{made.group(3)}".replace("--", "-")
