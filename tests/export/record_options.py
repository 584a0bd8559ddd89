"""Writes the lists of options in tests/export/recorded from the wheels of the engines; not run by the tests.

    python tests/export/record_options.py vllm vllm-0.33.0-*.whl > tests/export/recorded/vllm-0.33.0.csv
    python tests/export/record_options.py sglang sglang-0.5.23-*.whl > tests/export/recorded/sglang-0.5.23.csv
    python tests/export/record_options.py trl trl-1.16.0-*.whl transformers-5.23.0-*.whl > tests/export/recorded/trl.csv
    python tests/export/record_options.py axolotl axolotl-*.whl transformers-*.whl > tests/export/recorded/axolotl.csv
    python tests/export/record_options.py maxtext maxtext-0.2.5-*.whl > tests/export/recorded/maxtext.csv

The engines need a GPU build of PyTorch to be imported, so their sources are read: names, kinds and choices of options.
"""

from __future__ import annotations

import ast
import csv
import sys
import zipfile
from collections.abc import Iterator

Option = tuple[str, str, str, str]  # name, type (flag | int | float | str), nargs, choices separated by spaces
VLLM_ARGUMENTS = ("vllm/engine/arg_utils.py", "vllm/entrypoints/common/cli_args.py")
VLLM_CHOICES = {
    "--dtype": ("vllm/config/model.py", "ModelDType"),
    "--kv-cache-dtype": ("vllm/config/cache.py", "CacheDType"),
    "--quantization": ("vllm/model_executor/layers/quantization/__init__.py", "QuantizationMethods"),
}
SGLANG_FIELDS = "sglang/srt/arg_groups/fields/"
SGLANG_CHOICES = "sglang/srt/arg_groups/choices.py"


def kind_of(annotation: str) -> str:
    plain = annotation.replace("Optional[", "").replace(" | None", "").rstrip("]").strip("'\"")
    return {"bool": "flag", "int": "int", "float": "float"}.get(plain, "str")


def literals(tree: ast.Module, name: str) -> str:
    """Strings of `name = Literal[...]` or `name = [...]`."""
    for node in tree.body:
        named = isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        if named:
            inner = ast.walk(node.value)
            return " ".join(n.value for n in inner if isinstance(n, ast.Constant) and isinstance(n.value, str))
    raise SystemExit(f"no list {name}")


def vllm_options(wheel: zipfile.ZipFile) -> Iterator[Option]:
    def parsed(path: str) -> ast.Module:
        return ast.parse(wheel.read(path))

    kinds: dict[str, str] = {}
    names: set[str] = set()
    for path in VLLM_ARGUMENTS:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Args"):
                fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
                kinds |= {ast.unparse(item.target): kind_of(ast.unparse(item.annotation)) for item in fields}
                if node.name.endswith("FrontendArgs"):
                    names |= {f"--{ast.unparse(item.target).replace('_', '-')}" for item in fields}
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                given = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                names |= {name for name in given if str(name).startswith("--")}
    kinds |= {"headless": "flag"}
    for name in sorted(names):
        chosen = literals(parsed(VLLM_CHOICES[name][0]), VLLM_CHOICES[name][1]) if name in VLLM_CHOICES else ""
        yield name, kinds.get(name[2:].replace("-", "_"), "str"), "", chosen


def sglang_options(wheel: zipfile.ZipFile) -> Iterator[Option]:
    lists = ast.parse(wheel.read(SGLANG_CHOICES))
    for path in sorted(name for name in wheel.namelist() if name.startswith(SGLANG_FIELDS) and name.endswith(".py")):
        for node in ast.walk(ast.parse(wheel.read(path))):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith("A["):
                yield from _sglang_field(node, lists)


def _sglang_field(node: ast.AnnAssign, lists: ast.Module) -> Iterator[Option]:
    assert isinstance(node.annotation, ast.Subscript)
    inner = node.annotation.slice
    annotation, *rest = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    said = {word.arg: word.value for part in rest if isinstance(part, ast.Call) for word in part.keywords}
    if "no_cli" in said:
        return
    chosen = said.get("choices")
    text = ""
    if isinstance(chosen, ast.Name):
        text = literals(lists, chosen.id)
    elif isinstance(chosen, ast.List):
        text = " ".join(str(item.value) for item in chosen.elts if isinstance(item, ast.Constant))
    named = said.get("cli_name")
    first = named.value if isinstance(named, ast.Constant) else f"--{ast.unparse(node.target).replace('_', '-')}"
    aliases = [ast.literal_eval(item) for item in getattr(said.get("aliases"), "elts", [])]
    for name in (str(first), *aliases):
        yield name, kind_of(ast.unparse(annotation)), "", text


TRL_CLASSES = {
    "trl/trainer/sft_config.py": "SFTConfig",
    "trl/trainer/model_config.py": "ModelConfig",
    "trl/scripts/utils.py": "ScriptArguments",
    "transformers/training_args.py": "TrainingArguments",
}
TRL_ENUMS = {"--optim": ("transformers/training_args.py", "OptimizerNames"),
             "--save_strategy": ("transformers/trainer_utils.py", "SaveStrategy")}  # fmt: skip


def enumerated(tree: ast.Module, name: str) -> str:
    """Values of `class name(Enum)`."""
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    values = (item.value for item in found.body if isinstance(item, ast.Assign))
    return " ".join(str(value.value) for value in values if isinstance(value, ast.Constant) and value.value != "")


def trl_options(*wheels: zipfile.ZipFile) -> Iterator[Option]:
    """Fields of the dataclasses that the script parses: a bool takes True or False."""
    held = {name: wheel for wheel in wheels for name in wheel.namelist()}
    for path, kind in TRL_CLASSES.items():
        tree = ast.parse(held[path].read(path))
        (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
        for item in found.body:
            if not isinstance(item, ast.AnnAssign) or not isinstance(item.value, ast.Call):
                continue
            name, text = f"--{ast.unparse(item.target)}", ast.unparse(item.annotation)
            chosen = " ".join(_choices(item.value))
            if name in TRL_ENUMS:
                place, enum = TRL_ENUMS[name]
                chosen = enumerated(ast.parse(held[place].read(place)), enum)
            plain = kind_of(text)
            kind = plain if plain in ("int", "float") else "str"
            yield name, kind, "*" if "list" in text else "", chosen or "True False" * (plain == "flag")


def _choices(call: ast.Call) -> list[str]:
    """The `choices` of a field's metadata."""
    metadata = next((word.value for word in call.keywords if word.arg == "metadata"), None)
    if not isinstance(metadata, ast.Dict):
        return []
    for key, value in zip(metadata.keys, metadata.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "choices" and isinstance(value, ast.List):
            return [str(item.value) for item in value.elts if isinstance(item, ast.Constant)]
    return []


def maxtext_options(wheel: zipfile.ZipFile) -> Iterator[Option]:
    """Fields of the models that the configuration is checked by, and the names of the models that ship."""
    tree = ast.parse(wheel.read("maxtext/configs/types.py"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    listed = [node.name for node in classes if any("Enum" in ast.unparse(base) for base in node.bases)]
    enums = {name: enumerated(tree, name) for name in listed}
    shipped = [name for name in wheel.namelist() if name.startswith("maxtext/configs/models/")]
    names = (name.rpartition("/")[2].partition(".yml") for name in shipped)
    models = " ".join(sorted(name for name, dot, _ in names if dot))
    for node in classes:
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.value, ast.Call):
                name, text = ast.unparse(item.target), ast.unparse(item.annotation).removesuffix(" | None")
                chosen = enums.get(text, "")
                if name in ("model_name", "remat_policy"):
                    chosen = models if name == "model_name" else enums["RematPolicy"]
                kind = {"bool": "flag", "int": "int", "float": "float", "int | float": "float"}.get(text, "str")
                yield name, "int" if text.endswith("Int") else "float" if text.endswith("Float") else kind, "", chosen


AXOLOTL = "axolotl/utils/schemas/"
AXOLOTL_CLASSES = {
    "config.py": ("AxolotlInputConfig",), "model.py": ("ModelInputConfig", "ModelOutputConfig"),
    "peft.py": ("LoraConfig",), "training.py": ("HyperparametersConfig",),
}  # fmt: skip


def axolotl_options(wheel: zipfile.ZipFile, transformers: zipfile.ZipFile) -> Iterator[Option]:
    """Keys of the configuration: fields of the models that check it; optimizers of transformers too."""
    enums = ast.parse(wheel.read(f"{AXOLOTL}enums.py"))
    for path, names in AXOLOTL_CLASSES.items():
        for node in ast.parse(wheel.read(AXOLOTL + path)).body:
            if isinstance(node, ast.ClassDef) and node.name in names:
                for item in node.body:
                    if isinstance(item, ast.AnnAssign):
                        yield from _axolotl_field(item, enums)
    listed = enumerated(ast.parse(transformers.read("transformers/training_args.py")), "OptimizerNames")
    yield "optimizer", "str", "", listed + " " + enumerated(enums, "CustomSupportedOptimizers")


def _axolotl_field(item: ast.AnnAssign, enums: ast.Module) -> Iterator[Option]:
    name, text = ast.unparse(item.target), ast.unparse(item.annotation).replace("(", "").replace(")", "")
    if name == "optimizer":
        return
    chosen = [node.value for node in ast.walk(item.annotation) if isinstance(node, ast.Constant) and node.value]
    if name == "attn_implementation":
        (found,) = (node for node in enums.body if isinstance(node, ast.Assign)
                    and ast.unparse(node.targets[0]) == "CANONICAL_ATTN_IMPLS")  # fmt: skip
        chosen = [node.value for node in ast.walk(found) if isinstance(node, ast.Constant)]
    parts = {part.strip() for part in text.split("|")} - {"None"}
    kind = "flag" if "bool" in parts else "int" if parts == {"int"} else "float" if "float" in parts else "str"
    kind = "dict" if any(part.startswith("dict") for part in parts) else kind
    yield name, kind, "", " ".join(sorted(str(one) for one in chosen if isinstance(one, str))) if kind == "str" else ""


READERS = {
    "axolotl": axolotl_options,
    "vllm": vllm_options,
    "sglang": sglang_options,
    "trl": trl_options,
    "maxtext": maxtext_options,
}

if __name__ == "__main__":
    program, *files = sys.argv[1:]
    rows = sorted(set(READERS[program](*map(zipfile.ZipFile, files))))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("option", "type", "nargs", "choices"))
    out.writerows(rows)
