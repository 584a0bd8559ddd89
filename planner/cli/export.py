"""`plan export`: launch files from a plan, for the programs that run it."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import flags
from planner.cli.frame import Frame, command, usage
from planner.cli.stale import AllowStale, as_proven, fresh

if TYPE_CHECKING:
    from planner.catalog.model import Catalog
    from planner.export import Export, Refusal
    from planner.plan.model.plan import PlanDocument


class Target(StrEnum):
    """The formats of planner/export/registry.py, which a test holds against these."""

    torchrun = "torchrun"
    torchtitan = "torchtitan"
    deepspeed = "deepspeed"
    trl = "trl"
    axolotl = "axolotl"
    maxtext = "maxtext"
    slurm = "slurm"
    vllm = "vllm"
    sglang = "sglang"
    trtllm = "trt-llm"
    llamacpp = "llama.cpp"
    skypilot = "skypilot"
    kubernetes = "kubernetes"


def export(
    frame: Frame,
    form: Annotated[
        Target,
        typer.Argument(
            metavar="FORMAT",
            help="Of training: torchrun (Megatron-LM), torchtitan, deepspeed, trl, axolotl, maxtext, slurm. "
            "Of serving: vllm, sglang, trt-llm, llama.cpp. Of both: skypilot, kubernetes.",
        ),
    ],
    plan: flags.PlanOrScenario = None,
    workload: flags.Workload = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE|DIR", help="Write there: a folder where there are several files."),
    ] = None,
    allow_stale: AllowStale = False,
    settings: flags.Settings = None,
    case: flags.Case = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
) -> None:
    """Write the files that launch a plan: one for each workload and place that it rents."""
    from planner.cli.find import is_scenario, plan_or_scenario

    asked = {"settings": settings, "case": case}
    given = {"hardware": hardware, "prices": prices, "price": price}
    plan = plan_or_scenario(plan, anew=bool(settings or case or allow_suspect))
    if is_scenario(plan):
        document, catalog = _solved(frame, plan, allow_suspect, {**asked, **given})
    else:
        if settings or case or allow_suspect:
            raise usage("not-a-scenario", "--set, --case and --allow-suspect want a scenario file")
        document, catalog = _read(frame, plan, given, allow_stale)
    made = _command(form, plan, workload, allow_stale=allow_stale, allow_suspect=allow_suspect, **asked, **given)
    from planner import api

    result = api.export_plan(api.Plan(document=document), form.value, catalog, workload=workload, command=made)
    _tell(frame, form, result)
    _emit(frame, result, out)


def _solved(frame: Frame, scenario: str, allow_suspect: bool, asked: dict[str, Any]) -> tuple[PlanDocument, Catalog]:
    """The plan of a scenario that is solved first."""
    from planner.cli.find import load

    question, catalog = load(scenario, **asked, frame=frame)
    from planner import api

    with frame.progress(f"solving {question.name}"):
        return api.solve(question, catalog, allow_suspect=allow_suspect).document, catalog


def _read(frame: Frame, plan: str, given: dict[str, Any], allow_stale: bool) -> tuple[PlanDocument, Catalog]:
    """A plan file that still answers its scenario and its catalog."""
    from planner.plan.plan_files import read_plan

    document = read_plan(plan)
    catalog = fresh(frame, document, allow_stale=allow_stale, **given)[1]
    return as_proven(frame, document, catalog), catalog


def _command(form: Target, plan: str, workload: str | None, **asked: Any) -> str:
    """The command that makes these files again."""
    words = ["plan", "export", form.value, plan]
    words += ["--workload", workload] if workload else []
    several = {"--set": asked["settings"], "--prices": asked["prices"], "--price": asked["price"]}
    words += [word for flag, values in several.items() for value in values or () for word in (flag, value)]
    words += [word for name in ("case", "hardware") if asked[name] for word in (f"--{name}", asked[name])]
    words += [f"--{name.replace('_', '-')}" for name in ("allow_stale", "allow_suspect") if asked[name]]
    return shlex.join(words)


def _tell(frame: Frame, form: Target, result: Export) -> None:
    """What could not be written, and why; an error when that is everything."""
    if result.files:
        for refusal in result.refusals:
            frame.say(f"not exported: {_sentence(refusal)}")
        return
    from planner.errors import Problem, UsageError

    raise UsageError(
        *(
            Problem(
                reference="not-expressible",
                message=f"{refusal.stem} cannot be launched with {form.value}: {refusal.reason}",
                hint=refusal.instead,
            )
            for refusal in result.refusals
        )
    )


def _sentence(refusal: Refusal) -> str:
    from planner.report.escape import terminal

    return terminal(f"{refusal.stem}: {refusal.reason}" + (f"; {refusal.instead}" if refusal.instead else ""))


def _emit(frame: Frame, exported: Export, out: str | None) -> None:
    """To stdout, each under its name where there are several; or into a file, or into a folder."""
    if out is None or out == "-":
        many = len(exported.files) > 1
        # several files of YAML are several documents of one stream: without its mark the second continues the first
        marks = ["---\n" if file.name.endswith((".yaml", ".yml")) else "" for file in exported.files]
        heads = [f"{mark}# ==> {file.name} <==\n" if many else "" for file, mark in zip(exported.files, marks)]
        frame.emit("".join(head + file.text for head, file in zip(heads, exported.files)))
        if many:
            frame.say(
                f"{len(exported.files)} files: --out DIR writes them, --workload NAME takes those of one workload"
            )
        return
    if len(exported.files) == 1 and not out.endswith(("/", "\\")) and not Path(out).is_dir():
        frame.emit(exported.files[0].text, out)
        return
    for path in exported.write(out):
        frame.say(f"wrote {path}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan export torchrun .plan/llama.plan.json",
        "plan export slurm scenarios/llama.yaml --workload pretrain-8b --out jobs/",
    )
    command(app, "export", examples=examples, folder=True)(export)
