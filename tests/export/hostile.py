"""200 names that try to leave the place where they stand: quotes, commands, markup, control characters, look-alikes."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from planner.export.launch import Launch
from planner.report.escape import file_stem

PIECES = (
    "it's", '"quoted"', "`id`", "$(touch pwned)", "${HOME}", "$HOME", "$$", "$$$(HF_TOKEN)", "$(HF_TOKEN)",
    "a; rm -rf /", "a && b", "a | b", "> /etc/passwd", "< in", "& bg", "!history", "~root", "*?[a-z]", "{a,b}",
    "#comment", "\\", "\\n", "\\'", "line\nbreak", "\n#SBATCH --wrap=id", "\r\nX: y", "tab\there", "nul\x00byte",
    "\x1b[31mred\x1b[0m", "\x07bell", "\x7f", "yes", "no", "null", "~", "1e3", "0x10", "010", "1:30", "2026-11-21",
    "true", "- item", "key: value", "? key", "!!python/object:os.system", "!tag", "&anchor", "*alias", "<<: *a",
    "|", "> folded", "%YAML 1.1", "---", "...", "@at", "'single", '"double', "}{", "][", ", ",
    "<script>alert(1)</script>", "=1+1", "+1", "-1", "--help", "-rf", "--config=/etc/passwd", "../../etc/passwd",
    "/abs", "C:\\x", "a/b", "name.with.dots", "UPPER", "ünïcödé", "日本", "\u202eevil", "\u200bzero", "\ufeffbom",
    "\u2028sep", "\ud800", "😀", "ａ", "", " ", "  lead", "trail  ", ".", "..", "-", "_", "a" * 300, "0", "9start",
    "EOF", "EOT", "'''", '"""', "{{ jinja }}", "<% erb %>",
)  # fmt: skip


def _names() -> tuple[str, ...]:
    chance = random.Random(6)
    names = list(PIECES)
    while len(names) < 200:
        name = "".join(chance.choice(PIECES) for _ in range(chance.randint(2, 4)))
        if name not in names:
            names.append(name)
    return tuple(names)


HOSTILE = _names()


def hostile(launch: Launch, name: str) -> Any:
    """A launch with a name in every text that could come from a file."""
    machine = replace(launch.machine, region=name, zone=name, shape_name=name, network_kind=name)
    origin = replace(launch.origin, plan_name=name, scenario_file=name, case=name, command=name, catalog=name)
    model = replace(launch.model, name=name, hf_id=name, config_path=name)
    changed: dict[str, Any] = {"workload": name, "stem": file_stem(name).lower(), "pools": (name,)} if hasattr(
        launch, "pools"
    ) else {"workload": name, "stem": file_stem(name).lower()}  # fmt: skip
    if hasattr(launch, "buckets"):
        changed["buckets"] = tuple(replace(bucket, name=name) for bucket in launch.buckets)
    return replace(launch, machine=machine, origin=origin, model=model, **changed)
