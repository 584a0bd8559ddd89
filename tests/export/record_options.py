"""Writes the lists of options in tests/export/recorded from the wheels of the engines; not run by the tests.

    python tests/export/record_options.py vllm vllm-0.33.0-*.whl > tests/export/recorded/vllm-0.33.0.csv
    python tests/export/record_options.py sglang sglang-0.5.23-*.whl > tests/export/recorded/sglang-0.5.23.csv

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


if __name__ == "__main__":
    engine, file = sys.argv[1:]
    with zipfile.ZipFile(file) as opened:
        rows = sorted(set((vllm_options if engine == "vllm" else sglang_options)(opened)))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("option", "type", "nargs", "choices"))
    out.writerows(rows)
