"""Plan files that were changed at random, each put to one command: words and an exit code, never a traceback or a hang.

python -m tests.faults.mutated [COUNT [SEED]]
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from planner.plan.document import digest_of
from tests.tiers import while_time_lasts

ROOT = Path(__file__).parents[2]
SEEDS = ("gpt2-xl", "old-cards", "trace")
CPU_S = 5.0  # of one command
DOCUMENTED = (0, 2, 3, 4, 5, 6, 7, 8, 9)
DEEP: Any = []
for _ in range(60):
    DEEP = [DEEP, {"a": DEEP}] if len(json.dumps(DEEP)) < 2000 else [DEEP]
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, -0.0, 1e-320, 1e308, -1e308,
    math.nan, math.inf, -math.inf, "", " ", "1", "0", "-1", "1e999", "x" * 5000, "=1+1", "<script>", "\x1b[31mred",
    "\x00",
    "\ud800", "🦆", "../../etc/passwd", "/dev/zero", "2026-02-31", "2026-11-21", "10 days", [], {}, [None], [[]], [{}],
    {"": ""}, {"a": 1}, [1, 2, 3], ["a"], [0.1] * 200, {"schema": "plan/result/v1"}, DEEP,
)  # fmt: skip
FORMATS = ("torchrun", "torchtitan", "deepspeed", "slurm", "vllm", "sglang", "skypilot", "kubernetes")
COMMANDS = {
    "verify": lambda dice: ["verify", "p.json"],
    "explain": lambda dice: ["explain", "p.json", *dice.choice(([], ["-o", "json"], ["-o", "csv"], ["-v"]))],
    "report": lambda dice: _report(dice),
    "export": lambda dice: ["export", dice.choice(FORMATS), "p.json", "--out", "jobs", *_stale(dice)],
    "compare": lambda dice: ["compare", *dice.sample(["p.json", "real.json"], 2), "--no-cause", *_form(dice)],
}


def _stale(dice: random.Random) -> list[str]:
    return ["--allow-stale"] if dice.random() < 0.8 else []


def _form(dice: random.Random) -> list[str]:
    return ["-o", dice.choice(("table", "json", "csv", "md"))]


def _report(dice: random.Random) -> list[str]:
    form = dice.choice(("table", "md", "csv", "json", "html", "xlsx"))
    return ["report", "p.json", "-o", form, "--out", f"out.{form}", *_stale(dice)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A command that ended in a traceback or not at all."""

    number: int
    command: str
    changed: str
    what: str


def run(count: int, seed: int = 0) -> tuple[Counter[tuple[str, int]], list[Crash]]:
    """Exit codes by command over so many changed plans, and what crashed; the same for the same seed."""
    codes: Counter[tuple[str, int]] = Counter()
    crashes: list[Crash] = []
    listed: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="plan-mutated-") as folder, contextlib.chdir(folder), _quick():
        shutil.copytree(ROOT / "scenarios", "scenarios")
        for number in while_time_lasts(range(count)):
            dice = random.Random(f"{seed}:{number}")
            real = plan_of(dice.choice(SEEDS))
            changed, data = mutated(real, dice)
            Path("real.json").write_text(real, encoding="utf-8")
            Path("p.json").write_bytes(data)
            if real not in listed:  # its columns, once and outside the limit of a command
                _ran(["verify", "real.json"], cpu_s=10 * CPU_S)
                listed.add(real)
            command = dice.choice(sorted(COMMANDS))
            code, what = _ran(COMMANDS[command](dice))
            codes[command, code] += 1
            if what or code not in DOCUMENTED:
                crashes.append(Crash(number=number, command=command, changed=changed, what=what or f"exit {code}"))
    return codes, crashes


@cache
def plan_of(name: str) -> str:
    """The plan file of a shipped scenario, solved where it is read."""
    from planner import api

    return api.solve(api.load_scenario(f"scenarios/{name}.yaml")).to_json()


def mutated(text: str, dice: random.Random) -> tuple[str, bytes]:
    """What was changed, and the file."""
    if dice.random() < 0.1:
        return _broken_bytes(text.encode(), dice)
    document = json.loads(text)
    said = [_change(document, dice) for _ in range(dice.choice((1, 1, 1, 2, 3)))]
    if dice.random() < 0.7:
        with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
            document["sha256"] = digest_of(document)
            said.append("sealed")
    return ", ".join(said), json.dumps(document).encode()


def _broken_bytes(data: bytes, dice: random.Random) -> tuple[str, bytes]:
    at, length = dice.randrange(len(data)), dice.choice((1, 2, 40, 4000))
    way = dice.choice(("cut", "flip", "drop", "double", "noise"))
    changed = {
        "cut": data[:at],
        "flip": data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :],
        "drop": data[:at] + data[at + length :],
        "double": data[:at] + data[at : at + length] + data[at:],
        "noise": data[:at] + dice.randbytes(length) + data[at:],
    }[way]
    return f"{way} at byte {at}", changed


def _change(document: Any, dice: random.Random) -> str:
    """Change one place; where and how."""
    holder, key, path = dice.choice(list(_places(document, "")))
    value = holder[key]
    way = dice.choice(("junk", "junk", "delete", "insert", "twist", "twist", "rename", "swap"))
    if way == "delete":
        del holder[key]
    elif way == "insert":
        _insert(value if isinstance(value, (dict, list)) else holder, dice)
    elif way == "rename" and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif way == "swap":
        other, place, _ = dice.choice(list(_places(document, "")))
        holder[key] = copy.deepcopy(other[place])
    elif way == "twist":
        holder[key] = _twisted(value, dice)
    else:
        holder[key] = copy.deepcopy(dice.choice(JUNK))
    return f"{way} {path}"


def _insert(holder: Any, dice: random.Random) -> None:
    junk = copy.deepcopy(dice.choice(JUNK))
    if isinstance(holder, dict):
        holder[dice.choice(("", "extra", "name", "0", "x" * 300))] = junk
    else:
        holder.insert(dice.randrange(len(holder) + 1), dice.choice([junk, *copy.deepcopy(holder[:1])]))


def _twisted(value: Any, dice: random.Random) -> Any:
    """A value of the same type that says something else."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return dice.choice((value * 2, -value, value * 1.01, value + 1, value * 10**12, int(value) if value else 1))
    if isinstance(value, str):
        return dice.choice((value[:-1], value + value, value.upper(), value[::-1], value + "\n", f"{value}-x"))
    if isinstance(value, list):
        return dice.choice(
            (value[:-1], value + copy.deepcopy(value), value[::-1], {str(k): v for k, v in enumerate(value)})
        )
    if isinstance(value, dict):
        return dice.choice(({}, list(value.values()), {**value, **copy.deepcopy(value)}))
    return 0


def _places(value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """Every place of a document: what holds it, its key there, its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        here = f"{path}.{key}" if path else str(key)
        yield value, key, here
        yield from _places(inner, here)


class HungError(BaseException):
    """A command used more time of a processor than any should."""


def _ran(arguments: list[str], cpu_s: float | None = None) -> tuple[int, str]:
    """Exit code of a command, and the end of the traceback where there was one."""
    from planner.cli import bugs
    from planner.cli.main import main

    found: list[str] = []

    def report(error: BaseException) -> str:
        found.append("".join(traceback.format_exception(error)[-4:]))
        return ""

    def ring(*_: object) -> None:
        raise HungError

    streams = io.StringIO(), io.StringIO()
    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        with (
            mock.patch.object(sys, "argv", ["plan", *arguments]),
            mock.patch.object(bugs, "report_bug", report),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
        ):
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S if cpu_s is None else cpu_s)
            main()
        code: Any = 0
    except SystemExit as ended:
        code = ended.code
    except HungError:
        return -1, f"more than {CPU_S:g} s: {''.join(traceback.format_exc().splitlines(True)[-6:])}"
    except BaseException:
        return -1, "".join(traceback.format_exc().splitlines(True)[-8:])
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
    said = found[0] if found else ""
    return (code if isinstance(code, int) else int(code is not None)), said


@contextlib.contextmanager
def _quick() -> Iterator[None]:
    """The packaged catalog is read once, the columns of a scenario are listed once, and nothing waits for the end."""
    import atexit

    from planner.api import checking
    from planner.catalog import load, own_prices

    listing, ways = checking.enumerate_candidates, {}

    def listed(scenario: Any, catalog: Any, load_model: Any, **asked: Any) -> Any:
        key = (json.dumps(scenario.resolved, sort_keys=True), scenario.file, catalog.digest, repr(asked))
        if key not in ways:
            ways[key] = listing(scenario, catalog, load_model, **asked)
        return ways[key]

    real = load.load_catalog

    @cache
    def shipped(prices_until: str) -> Any:
        return real(None, prices_until=prices_until)

    def known(path: Any = None, *, prices_until: str = "") -> Any:
        return real(path, prices_until=prices_until) if path is not None else shipped(prices_until)

    with (
        mock.patch.object(own_prices, "load_catalog", known),
        mock.patch.object(checking, "enumerate_candidates", listed),
        mock.patch.object(atexit, "register"),
    ):
        yield


def told(count: int, codes: Counter[tuple[str, int]], crashes: list[Crash]) -> str:
    """One line of counts, and one for each kind of crash."""
    by_code = Counter(code for (_, code), number in codes.items() for _ in range(number))
    what = f"exit codes {dict(sorted(by_code.items()))}, {len(crashes)} crashes"
    lines = [f"mutated plans: {sum(by_code.values()):,} of {count:,}, {what}"]
    kinds: dict[str, list[Crash]] = {}
    for crash in crashes:
        kinds.setdefault("\n".join(crash.what.strip().splitlines()[-3:]), []).append(crash)
    for what, same in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        first = same[0]
        lines.append(f"{len(same)} × {what}\n    first: number {first.number}, {first.command}, {first.changed}")
    return "\n".join(lines)


if __name__ == "__main__":
    COUNT, SEED = (int(text) for text in (sys.argv[1:] + ["300", "0"][len(sys.argv) - 1 :])[:2])
    os.environ.setdefault("PYTHONHASHSEED", "0")
    print(told(COUNT, *run(COUNT, SEED)))
