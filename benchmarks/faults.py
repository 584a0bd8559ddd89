"""A fault in each function of the builder, one at a time: does a verifier without it find what it does to a plan?

The functions are found by themselves: all that `planner.candidates`, `planner.optimize`, `planner.plan`,
`planner.analysis` and `planner.simulate` define, without the verifier's own. A first run of each shipped scenario notes
which functions it calls and what they return; each function is then asked in the cheapest scenario that calls it. What
it returns is changed in one of these ways: every number scaled by 1.07 (whole numbers at least by one), the first
element dropped, a flag negated, a word replaced. The scenario is planned with the fault, in a process of its own, and
the plan given to `planner.verify` without it.

    python benchmarks/faults.py                    # a sample of 300 faults, the same each time
    python benchmarks/faults.py --all              # each of them
    python benchmarks/faults.py rows.serving bound # those whose names have one of these in them
    python benchmarks/faults.py --all --further    # what changes nothing in one scenario is asked in the next, too

What becomes of a fault: *no matter*: the plan is as it was, save for what is only told; *refused*: the planner gives
no plan, or says that its solver failed; *found* by the verifier; *claims less*: the plan is called not proven, by
itself or by the verifier; *as good*: another plan or proof, which the verifier finds true and proven; *solve*: found
by ``plan verify --solve`` alone; *missed*.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import math
import os
import pickle
import pkgutil
import random
import resource
import signal
import sys
import time
import types
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
ROOMS = ("planner.candidates", "planner.optimize", "planner.plan", "planner.analysis", "planner.simulate")
VERIFIER = (
    *("standing", "proof", "listed", "again", "supports", "cover"),
    *("plan_files", "document_schemas", "compare", "model"),
)  # of planner.plan and planner.analysis: what makes no plan, or is asked by the verifier only
SOLVER = ("process", "child", "worker", "question", "wire", "highs", "pulp_adapter")  # of planner.optimize
ASKED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{
        name: (name, {}) for name in ("gpt2-xl", "mixed-job", "a100-rules", "trace", "infeasible", "old-cards", "llama")
    },
    **{name: (name, {}) for name in ("chat-fleet", "disaggregated", "tpu", "under-way", "portfolio", "fleet")},
    "gpt2-xl with others": ("gpt2-xl", {"best": 2, "within": 0.02}),
    "trace simulated": ("trace", {"simulate": True}),
}
SCALE, DEPTH, SEEN = 1.07, 3, 40
SAMPLE = 300
LIMIT_S = 60  # of CPU of one faulty plan; it gives no plan then
MODES = ("scaled", "dropped", "negated", "renamed")
TRACE, FAULT = "PLAN_FAULTS_TRACE", "PLAN_FAULTS_FAULT"
BOOT = "import sys; sys.path[:] = sys.argv[1:]; import faults; faults.work()"


class Fault(NamedTuple):
    """A function by module and name, and what is done to what it returns."""

    function: str
    mode: str

    def __str__(self) -> str:
        return f"{self.function} {self.mode}"


class Asked(NamedTuple):
    """A scenario without any fault: its plan, what it costs, which functions it calls, and what the solver said."""

    document: Any
    cpu_s: float
    calls: Mapping[str, frozenset[str]]  # function -> what can be done to what it returns
    answers: Mapping[str, Any]
    versions: Mapping[str, str]


# ---- the functions, and what is put into them


@functools.cache
def functions() -> dict[str, types.FunctionType]:
    """Every function of the rooms by its name."""
    found: dict[str, types.FunctionType] = {}
    for room in ROOMS:
        package = importlib.import_module(room)
        if not hasattr(package, "__path__"):  # a room of one module
            found |= _of_module(package)
            continue
        for entry in pkgutil.walk_packages(package.__path__, f"{room}."):
            parts = entry.name.split(".")
            if room in ("planner.plan", "planner.analysis") and parts[2] in VERIFIER:
                continue
            if parts[-1] != "__main__":
                found |= _of_module(importlib.import_module(entry.name))
    return found


def _of_module(module: types.ModuleType) -> Iterator[tuple[str, types.FunctionType]] | dict[str, types.FunctionType]:
    found: dict[str, types.FunctionType] = {}
    for name, thing in vars(module).items():
        members = vars(thing).items() if inspect.isclass(thing) and thing.__module__ == module.__name__ else ()
        for inner, member in [("", thing), *members]:
            function = _function_in(member)
            if function is None or function.__module__ != module.__name__ or function.__code__.co_freevars:
                continue
            if inner.startswith("__") or function.__code__.co_filename != module.__file__:
                continue
            found[f"{module.__name__.removeprefix('planner.')}.{name}{'.' * bool(inner)}{inner}"] = function
    return found


def _function_in(member: Any) -> types.FunctionType | None:
    for name in ("fget", "func", "__func__"):
        member = getattr(member, name, None) or member
    member = inspect.unwrap(member) if callable(member) else member
    return member if isinstance(member, types.FunctionType) else None


def hooked(name: str, hook: Callable[[Any], Any]) -> None:
    """Put a hook on what a function returns, wherever the function is known by."""
    function = functions()[name]
    original = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    HOOKS[name] = lambda arguments, options: hook(original(*arguments, **options))
    text = f"def wrapper(*arguments, **options):\n    return __import__('faults').HOOKS[{name!r}](arguments, options)"
    made: dict[str, Any] = {}
    exec(text, made)
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = made["wrapper"].__code__


HOOKS: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {}


def modes_of(value: Any) -> Iterator[str]:
    """What can be done to a value."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, np.ndarray) and value.dtype == np.bool_):
        yield "negated"
    elif isinstance(value, str):
        yield "renamed"
    elif _has_numbers(value, DEPTH):
        yield "scaled"
    if isinstance(value, types.GeneratorType):
        yield from ("scaled", "dropped")
    elif isinstance(value, np.ndarray):
        yield from ("dropped",) * bool(np.ndim(value) and len(value))
    elif isinstance(value, list | dict | tuple | set | frozenset) and value and not hasattr(value, "_fields"):
        yield "dropped"


def _has_numbers(value: Any, depth: int) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | float | np.number):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "if" and value.size > 0
    return depth > 0 and any(_has_numbers(inner, depth - 1) for inner in _inner(value))


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value) if field.init]
    return []


def changed(value: Any, mode: str) -> Any:
    """A value with a fault."""
    if isinstance(value, types.GeneratorType):
        return _changed_items(value, mode)
    if mode == "scaled":
        return _scaled(value, DEPTH)
    if mode == "negated" and isinstance(value, bool | np.bool_ | np.ndarray):
        return np.logical_not(value) if isinstance(value, np.ndarray) else not value
    if mode == "renamed" and isinstance(value, str):
        return value + "x"
    if mode == "dropped":
        return _dropped(value)
    return value


def _changed_items(items: Iterator[Any], mode: str) -> Iterator[Any]:
    for number, item in enumerate(items):
        if mode == "scaled":
            yield _scaled(item, DEPTH)
        elif number or mode != "dropped":
            yield item


def _dropped(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(list(value.items())[1:])
    if isinstance(value, set | frozenset):
        return type(value)(sorted(value, key=repr)[1:])
    if isinstance(value, list | np.ndarray) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        return value[1:] if np.ndim(value) or not isinstance(value, np.ndarray) else value
    return value


def _scaled(value: Any, depth: int) -> Any:
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return type(value)(value + max(1, round(abs(int(value)) * (SCALE - 1))))
    if isinstance(value, float | np.floating):
        return type(value)(value * SCALE if value else SCALE - 1)
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            return value * SCALE
        if value.dtype.kind != "i":
            return value
        return value + np.maximum(1, np.rint(np.abs(value) * (SCALE - 1))).astype(value.dtype)
    if depth <= 0:
        return value
    if isinstance(value, dict):
        return {key: _scaled(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_scaled(inner, depth - 1) for inner in value]
    if isinstance(value, tuple):
        parts = [_scaled(inner, depth - 1) for inner in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **{name: _scaled(inner, depth - 1) for name, inner in fields.items()})
    return value


# ---- one plan, in a process of its own


def traced(file: Path) -> None:
    """Note in a file which functions are called, and what can be done to what they return."""
    seen: dict[str, list[Any]] = defaultdict(lambda: [0, set()])

    def note(name: str, value: Any) -> Any:
        count, modes = seen[name]
        if count < SEEN:
            seen[name][0] += 1
            new = set(modes_of(value)) - modes
            if new or not count:
                modes |= new
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(" ".join([name, *sorted(new)]) + "\n")
        return value

    for name in functions():
        hooked(name, functools.partial(note, name))


def work() -> None:
    """The solver process, with the fault or the trace of the one that asks."""
    if os.environ.get(FAULT):
        fault = Fault(*os.environ[FAULT].split())
        hooked(fault.function, lambda value: changed(value, fault.mode))
    elif os.environ.get(TRACE):
        traced(Path(os.environ[TRACE]))
    from planner.optimize import worker

    worker.main()


def solved(which: str) -> Any:
    """The document of a scenario."""
    from planner import api

    name, options = ASKED[which]
    with contextlib.chdir(ROOT):
        return json.loads(api.solve(api.load_scenario(f"scenarios/{name}.yaml"), **options).to_json())


def remembered(answers: dict[str, Any], versions: Mapping[str, str]) -> None:
    """Ask the solver nothing twice: what it said of a question is said of it again."""
    from planner.optimize import process
    from planner.optimize.wire import arrays_of, header_of

    process._versions.update(versions)
    ask = process.Talk.ask

    def once(self: Any, what: str, model: Any, threads: int, settings: Any, more: Any = None) -> Any:
        digest = hashlib.sha256(repr((what, header_of(model), threads, settings)).encode())
        for name, array in sorted({**arrays_of(model), **(more or {})}.items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        key = digest.hexdigest()
        if key not in answers:
            answers[key] = ask(self, what, model, threads, settings, more), self.point, self.ending
        message, self.point, self.ending = answers[key]
        return message

    process.Talk.ask = once  # type: ignore[method-assign]


def forked(made: Callable[[], Any]) -> Any:
    """What a function gives in a process of its own, or the words of what ended it."""
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(here)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 1))
        signal.alarm(10 * LIMIT_S)
        warnings.simplefilter("ignore")
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            from planner.optimize import child

            child._current.clear()  # the solver process of the one that asks is not ours
            answer = made()
        except BaseException as error:
            answer = Refused(f"{type(error).__name__} {str(error)[:200]}")
        with contextlib.suppress(BaseException):
            child.end()
        with contextlib.suppress(BaseException), os.fdopen(there, "wb") as out:
            pickle.dump(answer, out)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as read:
        data = read.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else Refused("it did not come back")


class Refused(str):
    """Why there is no plan."""

    __slots__ = ()


def asked(which: str, folder: Path) -> Asked:
    """A scenario without any fault: once as it is, once with its functions counted."""
    before = _cpu_s()

    def plain() -> Any:
        from planner.optimize import process

        answers: dict[str, Any] = {}
        remembered(answers, {})
        document = solved(which)
        return document, answers, dict(process._versions)

    found = forked(plain)
    assert not isinstance(found, Refused), f"{which}: {found}"
    document, answers, versions = found
    cpu_s = _cpu_s() - before
    file = folder / "calls.txt"
    file.unlink(missing_ok=True)

    def counted() -> Any:
        _with_worker(TRACE, str(file))
        traced(file)
        return solved(which)

    again = forked(counted)
    assert not isinstance(again, Refused), f"{which}: {again}"
    calls: dict[str, set[str]] = defaultdict(set)
    for line in file.read_text(encoding="utf-8").splitlines():
        name, *modes = line.split()
        calls[name] |= set(modes)
    return Asked(document, cpu_s, {name: frozenset(modes) for name, modes in calls.items()}, answers, versions)


def _with_worker(name: str, value: str) -> None:
    """Let the solver process do what this one does."""
    from planner.optimize import child

    os.environ[name] = value
    command = child.command()
    child.command = lambda: [*command[: command.index("-c") + 1], BOOT, str(Path(__file__).parent), *command[4:]]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def faulty(which: str, fault: Fault, without: Asked) -> Any:
    """The document of a scenario with a fault."""

    def made() -> Any:
        if (
            fault.function.startswith("optimize.") and fault.function.split(".")[1] in SOLVER
        ) or fault.function not in (name for name in without.calls):
            _with_worker(FAULT, f"{fault.function} {fault.mode}")
        else:
            remembered(dict(without.answers), without.versions)
        hooked(fault.function, lambda value: changed(value, fault.mode))
        return solved(which)

    return forked(made)


# ---- what becomes of it


class Judge:
    """Holds faulty plans against those without a fault."""

    def __init__(self) -> None:
        from planner.api import checking

        self._known: dict[str, tuple[str, str]] = {}
        listed: dict[str, Any] = {}
        enumerate_candidates = checking.enumerate_candidates

        def once(scenario: Any, *others: Any, **options: Any) -> Any:
            key = json.dumps(scenario.resolved, sort_keys=True, default=str)
            if key not in listed:
                listed[key] = enumerate_candidates(scenario, *others, **options)
            return listed[key]

        checking.enumerate_candidates = once  # the same each time

    def verdict(self, document: Any, base: Any) -> tuple[str, str]:
        """What became of a fault, and why."""
        if isinstance(document, Refused):
            return "refused", document
        if document["status"] == "failed":
            return "refused", "the solver failed"
        key = json.dumps(document, sort_keys=True, default=str)
        if key not in self._known:
            self._known[key] = self._verdict(document, base)
        return self._known[key]

    def _verdict(self, document: Any, base: Any) -> tuple[str, str]:
        from planner import api
        from planner.analysis.again import differences
        from planner.errors import PlanError

        paths = differing(document, base)
        if not paths:
            return "no matter", ""
        with contextlib.chdir(ROOT):
            try:
                problems = api.verify(document)
            except PlanError as error:
                problems = list(error.problems)
        wrong = [problem for problem in problems if problem.severity == "error"]
        if wrong:
            return "found", f"{wrong[0].reference}: {wrong[0].message}"
        if problems:
            return "claims less", problems[0].message
        if differences(document, base)[0]:
            return "solve", f"{len(paths)} leaves: {', '.join(paths[:3])}"
        if all(path.startswith("certificate") for path in paths) or _choices(document) != _choices(base):
            return "as good", paths[0]
        return "missed", f"{len(paths)} leaves: {', '.join(paths[:5])}"


def differing(one: Any, other: Any) -> list[str]:
    """Leaves that two plans do not have alike, of those that are not only told."""
    from planner.checks.leaves import TOLD, read, spelled

    first, second = (
        {spelled(path): value for path, leaf, value in read(each) if leaf is None or leaf.kind != TOLD}
        for each in (one, other)
    )
    missing = object()
    names = [*first, *(name for name in second if name not in first)]
    return [
        name for name in names if name != "sha256" and not _alike(first.get(name, missing), second.get(name, missing))
    ]


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def _choices(document: Any) -> Any:
    """What a plan rents, and how it is used."""
    told = ("offer", "count", "jobs", "layout", "role", "level", "start_hours", "routed_requests_per_s")
    rows = [
        {name: row.get(name) for name in told} for workload in document["workloads"] for row in workload["allocations"]
    ]
    held = [(one["offer"], one["count"], one["start_hours"], one["end_hours"]) for one in document["contracts"]]
    return json.dumps([rows, held], sort_keys=True)


def faults_of(known: Mapping[str, Asked]) -> dict[Fault, list[str]]:
    """Every fault with the scenarios that call its function, the cheapest to ask first."""
    found: dict[Fault, list[str]] = {}
    for which, one in sorted(known.items(), key=lambda pair: pair[1].cpu_s):
        for name, modes in one.calls.items():
            for mode in MODES:
                if mode in modes:
                    found.setdefault(Fault(name, mode), []).append(which)
    return dict(sorted(found.items()))


def main(words: Sequence[str] | None = None) -> int:
    """Print what becomes of each fault, and how many of each kind there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="faults of functions that have one of these in their names")
    parser.add_argument("--all", action="store_true", help="every fault, not a sample")
    parser.add_argument("--scenario", action="append", help="ask these only")
    parser.add_argument("--further", action="store_true", help="what does not matter in one is asked in the next, too")
    parser.add_argument("--json", type=Path, help="write down what becomes of each, too")
    options = parser.parse_args(words)
    import tempfile

    sys.modules.setdefault("faults", sys.modules[__name__])
    begun, functions_of = _cpu_s(), functions()
    with tempfile.TemporaryDirectory() as folder:
        known = {which: asked(which, Path(folder)) for which in options.scenario or ASKED}
    todo = faults_of(known)
    called = {fault.function for fault in todo}
    used = {name for one in known.values() for name in one.calls}
    print(f"{len(functions_of)} functions, {len(used)} called by {len(known)} plans, {len(called)} return something; "
          f"{len(todo)} faults; {_cpu_s() - begun:.0f} CPU s so far", flush=True)  # fmt: skip
    chosen = [fault for fault in todo if not options.names or any(name in str(fault) for name in options.names)]
    if not options.names and not options.all:
        chosen = sorted(random.Random(20261122).sample(chosen, min(SAMPLE, len(chosen))))
    judge, counts, written = Judge(), Counter[str](), {}
    for fault in chosen:
        for which in todo[fault] if options.further else todo[fault][:1]:
            document = faulty(which, fault, known[which])
            verdict, why = judge.verdict(document, known[which].document)
            if verdict != "no matter":
                break
        counts[verdict] += 1
        written[str(fault)] = verdict, why
        print(f"{verdict:12} {fault} [{which}] {why[:160]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(written), encoding="utf-8")
    used_s = _cpu_s() - begun + time.process_time()
    print(f"{len(chosen)} faults: {dict(counts.most_common())}; {used_s:.0f} CPU s")
    return int(bool(counts["missed"]))


if __name__ == "__main__":
    sys.modules["faults"] = sys.modules["__main__"]
    raise SystemExit(main())
