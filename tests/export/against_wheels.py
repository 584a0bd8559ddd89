"""Holds exported training jobs against the code of torchtitan and Megatron-Core themselves; not part of the suite.

    pip download --no-deps torchtitan==0.2.2 megatron-core==0.16.1 && pip install tyro packaging
    python -m tests.export.against_wheels FOLDER

FOLDER holds both wheels, unpacked. PyTorch is replaced by stand-ins (a gigabyte that no check here needs): the
configuration manager of torchtitan reads job files and command lines, and Megatron-Core's `TransformerConfig` checks
every combination of sizes as it does before training.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import json
import shlex
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from planner.architecture.load import list_presets
from planner.catalog.load import load_catalog
from planner.export import NotExpressible, TrainingLaunch, launches_of
from planner.export.megatron import megatron_command
from planner.export.torchtitan import files, torchtitan_command
from planner.export.trainer import Command
from tests.export.conftest import GOLDEN, whole_plan
from tests.export.scripts import BLANKS, recorded_parser

ABSENT = ("torch", "torchao", "torchdata", "datasets", "tokenizers", "einops", "safetensors")


class _Kind(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stand_in(name)


def _stand_in(name: str) -> Any:
    """A class to inherit from where a name looks like one, else an object that takes everything."""
    if not name[:1].isupper():
        return MagicMock(name=name)
    return _Kind(name, (), {"__init__": lambda self, *_, **__: None})


class _Absent(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "2.9.0"
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _stand_in(name))
        return getattr(self, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stand-ins for what is absent; packages of Megatron-Core without what their `__init__` would load."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        inside = self.folder / name.replace(".", "/")
        bare = name.startswith("megatron") and inside.is_dir()
        if not bare and name.split(".")[0] not in ABSENT and name != "torchtitan.components.quantization":
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [str(inside)] if bare else []
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing of it is run."""


def varied() -> Iterator[tuple[str, TrainingLaunch]]:
    """Jobs of the shipped scenarios, every shipped model, and layouts around that of the llama scenario."""
    for path in sorted(GOLDEN.glob("*.json")):
        if "workloads" in path.read_text(encoding="utf-8"):
            yield from _jobs(path.stem, whole_plan(path))
    for model in list_presets():
        yield from _llama(model, {"sharding": "zero-1"}, {"model": model})
    for model in ("mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b"):
        for tp in (1, 2, 4):
            split = {"sharding": "zero-1", "tp": tp, "dp": 16 // tp, "micro_batches": 31 * tp, "ep": 4}
            yield from _llama(f"{model} tp{tp} ep4", split, {"model": model})
    for pp, vpp in ((2, 1), (4, 2), (8, 2), (16, 1)):
        split = {"sharding": "zero-1", "pp": pp, "vpp": vpp, "dp": 16 // pp, "micro_batches": 32 * pp}
        yield from _llama(f"pp{pp} v{vpp}", {**split, "global_batch_sequences": 512, "recompute": "full"}, {})
    for sharding in ("none", "zero-1", "zero-2", "zero-3"):
        for precision in ("bf16", "fp8", "fp32"):
            yield from _llama(f"{sharding} {precision}", {"sharding": sharding}, {"precision": precision})


def _llama(name: str, layout: dict[str, Any], job: dict[str, Any]) -> Iterator[tuple[str, TrainingLaunch]]:
    document = copy.deepcopy(whole_plan(GOLDEN / "llama.json"))
    document["workloads"][0]["allocations"][0]["layout"].update(layout)
    document["scenario"]["training"][0].update(job)
    yield from _jobs(name, document)


def _jobs(name: str, document: dict[str, Any]) -> Iterator[tuple[str, TrainingLaunch]]:
    for launch in launches_of(document, load_catalog(), command="plan export"):
        if isinstance(launch, TrainingLaunch):
            yield f"{name}: {launch.stem}", launch


def _words(command: Command) -> list[str]:
    line = " ".join(" ".join(option) for option in command.options)
    for blank, value in BLANKS.items():
        line = line.replace(f"${blank}", value)
    return shlex.split(line)


def check_titan(launch: TrainingLaunch) -> None:
    """The job file, and the command line without one, through torchtitan's own manager."""
    manager = importlib.import_module("torchtitan.config.manager").ConfigManager
    toml, _ = files(launch)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, toml.name)
        path.write_text(toml.text, encoding="utf-8")
        by_file = manager().parse_args(["--job.config_file", str(path)])
    by_words = manager().parse_args(_words(torchtitan_command(launch)))
    assert dataclasses.asdict(by_file.parallelism) == dataclasses.asdict(by_words.parallelism)
    assert by_file.training.steps == by_words.training.steps == launch.steps


def check_megatron(launch: TrainingLaunch) -> None:
    """The arguments as a `TransformerConfig`, in the way of `core_transformer_config_from_args`."""
    config = importlib.import_module("megatron.core.transformer.transformer_config")
    functional = importlib.import_module("torch").nn.functional
    given = vars(recorded_parser("megatron").parse_args(_words(megatron_command(launch))))
    kind = config.MLATransformerConfig if given["multi_latent_attention"] else config.TransformerConfig
    known = {field.name for field in dataclasses.fields(kind)}
    values = {name: value for name, value in given.items() if name in known and value not in (None, False)}
    biases = not given["disable_bias_linear"]
    values |= {
        "num_query_groups": given["num_query_groups"] if given["group_query_attention"] else None,
        "num_moe_experts": given["num_experts"],
        "num_layers_in_first_pipeline_stage": given["decoder_first_pipeline_num_layers"],
        "num_layers_in_last_pipeline_stage": given["decoder_last_pipeline_num_layers"],
        "virtual_pipeline_model_parallel_size": given["num_virtual_stages_per_pipeline_rank"],
        "add_bias_linear": biases,
        "bias_activation_fusion": biases or given["swiglu"],
        "activation_func": functional.silu if given["swiglu"] else functional.gelu,
        "gated_linear_unit": given["swiglu"],
        # the fused kernel itself is not there; latent attention has a rule of its own for it
        "apply_rope_fusion": given["multi_latent_attention"] and not given["no_rope_fusion"],
        "pipeline_dtype": MagicMock(),
    }
    kind(**values)


CHECKS: dict[str, Callable[[TrainingLaunch], None]] = {"torchtitan": check_titan, "Megatron-Core": check_megatron}


def main(folder: str) -> int:
    """Print what each program takes, turns down, or was not asked; the number turned down."""
    sys.meta_path.insert(0, _Finder(Path(folder)))
    sys.path.insert(0, folder)
    counts = {name: {"taken": 0, "told": 0, "turned down": 0} for name in CHECKS}
    for job, launch in varied():
        for name, check in CHECKS.items():
            try:
                check(launch)
                counts[name]["taken"] += 1
            except NotExpressible:
                counts[name]["told"] += 1
            except (Exception, SystemExit) as error:
                counts[name]["turned down"] += 1
                print(f"{name} turns down {job}: {type(error).__name__}: {error}")
    print(json.dumps(counts, indent=1))
    return sum(count["turned down"] for count in counts.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
