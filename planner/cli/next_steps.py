"""What to do next, from what lies in this folder: shown by `plan` alone and at the end of `plan init`."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from planner import __version__
from planner.cli.find import named_scenarios, newest_first, plans_here, scenarios_here

Step = tuple[str, str]  # a command line, and what it does
_GAP = 3


def next_steps(commands: Collection[str]) -> str:
    """Where one stands and which commands go on from there; only commands that exist are named."""
    scenarios = [*newest_first(named_scenarios()), *scenarios_here()]
    plans = newest_first(plans_here())
    lines = [f"plan {__version__}: which accelerators to rent for LLM training and serving, and what it costs"]
    if not scenarios and not plans:
        lines += ["", "There is no scenario in this folder yet.", *_listed(_BEGIN, commands)]
    if scenarios:
        file = shlex.quote(scenarios[0])
        lines += ["", _found("scenario", scenarios), *_listed([(c.format(file), s) for c, s in _SCENARIO], commands)]
    if plans:
        plan, launch = shlex.quote(plans[0]), _launch(plans[0])
        steps = [(c.format(plan, launch), s) for c, s in _PLAN if launch or "{1}" not in c]
        lines += ["", _found("plan", plans), *_listed(steps, commands)]
    return "\n".join([*lines, "", *_listed(_ALWAYS, commands)]) + "\n"


def after_init(file: str, schema: str) -> str:
    """What was written, and how to go on."""
    name = shlex.quote(file)
    steps = [
        (f"plan solve {name}", "the cheapest plan, proven"),
        (f"plan explain {name}", "why it is that one"),
        (f"$EDITOR {name}", "models, tokens, deadline, traffic: its comments say how"),
    ]
    return "\n".join([f"wrote {file}, and {schema} for your editor", "", *_listed(steps)]) + "\n"


_BEGIN: list[Step] = [
    ("plan init", "write one: a few questions, or flags (plan init --help)"),
    ("plan solve llama", "solve one that ships; plan scenarios lists them"),
    ("plan memory llama-3.1-8b --fit 80GB", "what a model needs, and whether it fits"),
    ("plan models list", "models known by name"),
    ("plan catalog list --group-by device", "accelerators and their prices"),
]
_SCENARIO: list[Step] = [
    ("plan solve {}", "the cheapest plan, proven"),
    ("plan candidates {}", "every way to run each workload"),
    ("plan frontier {} --over deadline", "what a later deadline saves"),
    ("plan reserve {}", "what to commit to, and what to rent"),
    ("plan live {}", "a page with its knobs; each turn is solved again"),
]
_PLAN: list[Step] = [
    ("plan explain {0}", "why it is that one, term by term"),
    ("plan report {0} -o html --out report.html", "a page to show: figures, budget, sources"),
    ("plan export {1} {0}", "files that launch it"),
    ("plan verify {0}", "checked again, without a solver"),
]
_ALWAYS: list[Step] = [
    ("plan --help", "every command; plan COMMAND --help has examples"),
    ("plan --install-completion", "names and files by the Tab key"),
]


def _launch(plan: str) -> str:
    """The format that the rows of a plan name; kubernetes, which starts both, where they train and serve; or ""."""
    import json

    from planner import files
    from planner.errors import InputError

    try:
        workloads = json.loads(files.read_text(plan))["workloads"]
        rows = [row for workload in workloads for row in workload["allocations"]]
        named = [row["software"] if "jobs" in row else [row["tier"]["engine"] or "vllm"] for row in rows]
    except (InputError, ValueError, LookupError, TypeError):
        return ""  # whose other commands say what is the matter with it
    common = [name for name in (named[0] if named else []) if all(name in names for names in named)]
    return common[0] if common else "kubernetes" if any(named) else ""


def _found(kind: str, names: list[str]) -> str:
    """ "2 scenarios here: a.yaml, b.yaml", cut where it gets long."""
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    return f"1 {kind} here: {shown}" if len(names) == 1 else f"{len(names)} {kind}s here: {shown}"


def _listed(steps: list[Step], commands: Collection[str] | None = None) -> list[str]:
    """Commands in one column, what they do in the next."""
    kept = [step for step in steps if commands is None or _command(step) in commands or _command(step)[:1] == "-"]
    width = max((len(line) for line, _ in kept), default=0) + _GAP
    return [f"  {line:<{width}}{says}" for line, says in kept]


def _command(step: Step) -> str:
    return step[0].split()[1]
