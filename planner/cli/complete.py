"""What the Tab key offers: files, cases, workloads, models, devices. Everything here answers at once.

A completion runs on every press of a key: so names of models come from file names, those of devices and cases from a
look at the lines, and nothing that plans is imported. A file that cannot be read completes to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

_LIMIT_BYTES = 16_000_000
_WORKLOADS = ("training", "serving")
_ANSWERED = (".yaml", ".yml", ".json")
_ID = re.compile(r"^\s*- (?:\{)?id: *([a-z0-9.-]+)", re.MULTILINE)
_NAME = re.compile(r"^\s*(?:- *)?\{? *name: *[\"']?([a-z0-9][a-z0-9._-]*)", re.MULTILINE)
_HOUSE = Path(__file__).parents[1]


def scenarios(incomplete: str) -> list[str]:
    """Scenario files: those of the folder being typed, and folders to go on into; and scenarios that ship, by name."""
    return [*_paths(incomplete, (".yaml", ".yml")), *shipped(incomplete)]


def shipped(incomplete: str) -> list[str]:
    """Scenarios that ship, by name."""
    return _starting(incomplete, _shipped())


def plans(incomplete: str) -> list[str]:
    """Plan files; those in .plan/ without typing its name."""
    from planner.cli.find import plans_here

    return [*(path for path in plans_here() if path.startswith(incomplete)), *_paths(incomplete, (".plan.json",))]


def plans_and_scenarios(incomplete: str) -> list[str]:
    """Files of either kind."""
    return list(dict.fromkeys([*plans(incomplete), *scenarios(incomplete)]))


def models(incomplete: str) -> list[str]:
    """Models that ship, by name."""
    folder = _HOUSE / "architecture" / "presets"
    return _starting(incomplete, (path.stem for path in folder.glob("*.json")))


def devices(ctx: typer.Context, incomplete: str) -> list[str]:
    """Devices of the catalog: --hardware, else the one that ships."""
    from planner import files
    from planner.errors import InputError

    given = ctx.params.get("hardware")
    try:
        folder = Path(given) if given else files.data_folder("hardware")
    except InputError:
        return []
    found = (_ID.findall(_text(path)) for path in sorted((folder / "devices").glob("*.yaml")))
    return _starting(incomplete, (name for names in found for name in names))


def cases(ctx: typer.Context, incomplete: str) -> list[str]:
    """Cases of the scenario that stands on the line, or of the one found here."""
    return _starting(incomplete, _keys_of(_scenario_text(ctx), "scenarios"))


def workloads(ctx: typer.Context, incomplete: str) -> list[str]:
    """Jobs and fleets of the scenario that stands on the line, or of the one found here."""
    text = _scenario_text(ctx)
    return _starting(incomplete, (name for head in _WORKLOADS for name in _names(text, head)))


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Paths that --set may begin with: top keys, and each workload's."""
    text = _scenario_text(ctx)
    named = [f"{head}.{name}." for head in _WORKLOADS for name in _names(text, head)]
    return _starting(incomplete, [*named, "limits.budget=", "limits.max_devices=", "hardware.allow=", "horizon="])


def _paths(incomplete: str, endings: tuple[str, ...]) -> list[str]:
    """Entries of the folder being typed that end so, and folders, each as far as it is typed."""
    head, _, start = incomplete.rpartition("/")
    folder = Path(head or ("/" if incomplete.startswith("/") else "."))
    prefix = f"{head}/" if "/" in incomplete else ""
    found = []
    try:
        for entry in sorted(folder.iterdir()):
            hidden = entry.name.startswith(".") and not start.startswith(".")
            if not entry.name.startswith(start) or hidden:
                continue
            if entry.is_dir():
                found.append(f"{prefix}{entry.name}/")
            elif entry.name.endswith(endings):
                found.append(f"{prefix}{entry.name}")
    except OSError:
        return []
    return found


def _shipped() -> dict[str, Path]:
    """Scenarios that ship, by name."""
    from planner import files
    from planner.errors import InputError

    try:
        return {path.stem: path for path in files.list_files(files.data_folder("scenarios"), "*.yaml")}
    except InputError:
        return {}


def _scenario_text(ctx: typer.Context) -> str:
    from planner.cli.find import plan_or_scenario
    from planner.errors import PlanError

    sources = ctx.params.get("sources") or ()
    typed = [
        ctx.params.get("scenario"),
        ctx.params.get("plan"),
        *sources,
        *ctx.args,
    ]  # in args while an option is half typed
    words = [str(word) for word in typed if word]
    given = next((word for word in words if word.endswith(_ANSWERED)), None)
    named = _shipped() if given is None else {}
    found = next((named[word] for word in words if word in named), None)
    if found is not None:
        return _text(found)
    try:
        return _text(Path(plan_or_scenario(given, anew="scenario" in ctx.params)))
    except PlanError:
        return ""


def _text(path: Path) -> str:
    from planner import files
    from planner.errors import InputError

    try:
        return files.read_text(path, limit_bytes=_LIMIT_BYTES)
    except InputError:
        return ""


def _names(text: str, head: str) -> list[str]:
    """Names of the jobs or fleets of a scenario, or of a plan document."""
    if text.lstrip().startswith("{"):
        import json

        try:
            workloads = json.loads(text)["workloads"]
            return [str(workload["name"]) for workload in workloads if workload["kind"] == head]
        except (ValueError, LookupError, TypeError):
            return []
    return _NAME.findall(_section(text, head))


def _section(text: str, head: str) -> str:
    """The lines of one key of the top level, up to the next."""
    match = re.search(rf"^{head}:(.*(?:\n(?:[ \t#-].*)?)*)", text, re.MULTILINE)
    return match.group(1) if match else ""


def _keys_of(text: str, head: str) -> Iterator[str]:
    """Keys of a mapping that is written in lines or in braces."""
    section = _section(text, head)
    if section.lstrip().startswith("{"):
        yield from re.findall(r"[{,]\s*([\w.-]+)\s*:", section)
    else:
        indents = re.findall(r"^( +)[\w.-]+:", section, re.MULTILINE)
        least = min(map(len, indents), default=0)
        yield from re.findall(rf"^ {{{least}}}([\w.-]+):", section, re.MULTILINE) if least else ()


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
