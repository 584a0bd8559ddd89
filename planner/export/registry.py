"""The formats: a module under `planner.export` writes each, by its function `files(launch) -> list[ExportFile]`.

A module is imported when its format is asked for. To add a format, write the module and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from planner.brief import brief, some
from planner.carriers import dataclass
from planner.estimate.software import SOFTWARE
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch
from planner.export.skypilot_names import rents
from planner.files import StrPath, contained_path, write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format: its name on the command line, its module, and the workloads that it launches."""

    name: str
    module: str
    title: str
    kinds: tuple[str, ...] = ("training", "serving")


FORMATS = {
    entry.name: entry
    for entry in (
        Format(
            name="torchrun", module="megatron", kinds=("training",), title="torchrun script with Megatron-LM arguments"
        ),
        Format(name="torchtitan", module="torchtitan", kinds=("training",), title="torchtitan job file (TOML)"),
        Format(name="deepspeed", module="deepspeed", kinds=("training",), title="DeepSpeed configuration (JSON)"),
        Format(name="trl", module="trl", kinds=("training",), title="TRL script for adapters"),
        Format(name="axolotl", module="axolotl", kinds=("training",), title="Axolotl configuration (YAML) and script"),
        Format(name="maxtext", module="maxtext", kinds=("training",), title="MaxText script for TPUs"),
        Format(name="slurm", module="slurm", kinds=("training",), title="Slurm batch script"),
        Format(name="vllm", module="vllm", kinds=("serving",), title="vllm serve script"),
        Format(name="sglang", module="sglang", kinds=("serving",), title="SGLang server script"),
        Format(name="trt-llm", module="trtllm", kinds=("serving",), title="trtllm-serve script of TensorRT-LLM"),
        Format(name="llama.cpp", module="llamacpp", kinds=("serving",), title="llama-server script"),
        Format(name="skypilot", module="skypilot", title="SkyPilot task (YAML)"),
        Format(name="kubernetes", module="kubernetes", title="Kubernetes manifests (YAML)"),
    )
}


STARTERS = ("slurm", "kubernetes")  # which start programs on machines that somebody has


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One allocation that a format cannot launch."""

    workload: str
    stem: str
    reason: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Export:
    """What came of it: files, and what could not be written with the reason."""

    files: tuple[ExportFile, ...]
    refusals: tuple[Refusal, ...]

    def write(self, folder: StrPath) -> list[Path]:
        """The files, in a folder; where they are now.

        Raises
        ------
        OutputError
            One of them cannot be written.
        InputError
            A link in the folder leads out of it.
        """
        written = []
        for file in self.files:
            write_text(contained_path(folder, file.name), file.text)
            written.append(Path(folder, file.name))
        return written

    def __repr__(self) -> str:
        refused = f"{len(self.refusals)} that could not be written" if self.refusals else ""
        return brief("Export", some([file.name for file in self.files]) or "no files", refused)


def export(form: str, launches: Sequence[Launch]) -> Export:
    """Files of every launch that a format has words for.

    Parameters
    ----------
    form
        A name of FORMATS.
    launches
        Allocations of one plan.
    """
    entry = FORMATS[form]
    files: list[ExportFile] = []
    refusals = []
    for launch in launches:
        try:
            files += _files_of(entry, launch)
        except NotExpressible as error:
            instead = _instead(entry, launch, error.instead)
            refusals.append(Refusal(workload=launch.workload, stem=launch.stem, reason=error.reason, instead=instead))
    names = [file.name.lower() for file in files]
    assert len(set(names)) == len(names), "two files of one name"
    return Export(files=tuple(files), refusals=tuple(refusals))


def launching(launch: Launch) -> tuple[str, ...]:
    """Formats that have words for an allocation, the program itself before what starts it on machines.

    Parameters
    ----------
    launch
        The allocation.
    """
    return tuple(entry.name for entry in FORMATS.values() if _takes(entry, launch))


def suggested(launches: Sequence[Launch]) -> str | None:
    """The format to launch a plan with: one that takes all of it, else most; None where nothing takes any.

    SkyPilot where it rents the very machines; then the programs themselves, the engine that was planned and the trainer
    that the prediction is of before others, a whole program before settings of one's own script; then what starts them
    on machines that are there.

    Parameters
    ----------
    launches
        Allocations of one plan.
    """
    rented = all(map(rents, launches))
    engines = {launch.engine for launch in launches if isinstance(launch, ServingLaunch)}
    names = [name for name in FORMATS if name != "skypilot" or rented]
    found, most = None, 0
    planned = {launch.software for launch in launches if isinstance(launch, TrainingLaunch)}

    def order(name: str) -> tuple[bool, ...]:
        trainer = SOFTWARE.get({"torchrun": "megatron"}.get(name, name))
        other = name not in engines and (trainer is None or not planned.intersection(trainer.predicted))
        return name != "skypilot", name in STARTERS, other, name == "deepspeed"

    for name in sorted(names, key=order):
        mine = [launch for launch in launches if _kind(launch) in FORMATS[name].kinds]
        taken = sum(_takes(FORMATS[name], launch) for launch in mine) if len(mine) > most else 0
        if taken > most:
            found, most = name, taken
    return found


def _takes(entry: Format, launch: Launch) -> bool:
    try:
        return bool(_files_of(entry, launch))
    except NotExpressible:
        return False


def _instead(entry: Format, launch: Launch, way: str) -> str:
    """What launches it, found by asking all others; where none does, that, and what of the scenario to change.

    SkyPilot only where it rents the very machines: its file for others takes another cloud, or wants a pool set up.
    """
    able = [name for name in launching(launch) if name != entry.name]
    others = [name for name in able if name != "skypilot" or rents(launch)] or able
    if others:
        return f"use {', '.join(others)}"
    return f"no format of plan export launches it{': ' + way if way else ''}"


def _files_of(entry: Format, launch: Launch) -> list[ExportFile]:
    kind = _kind(launch)
    if kind not in entry.kinds:
        raise NotExpressible(f"{entry.name} launches {entry.kinds[0]}, and this is {kind}")
    write: Callable[[Launch], list[ExportFile]] = import_module(f"planner.export.{entry.module}").files
    return write(launch)


def _kind(launch: Launch) -> str:
    return "training" if isinstance(launch, TrainingLaunch) else "serving"
