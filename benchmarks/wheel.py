"""The wheel in clean environments, in an empty folder: does `plan solve NAME` give the plan of the checkout?

    python benchmarks/wheel.py python3.11 python3.12 python3.13

Builds the wheel, installs it with its dependencies into a new environment of each interpreter, and holds the plan
documents against those of this checkout, key by key. Needs a package index, or PIP_NO_INDEX and PIP_FIND_LINKS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from planner import api
from planner.plan.stale import changed_keys

ROOT = Path(__file__).parents[1]
NAMES = ("llama", "trace")


def ran(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its complaints, when it fails."""
    answer = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if answer.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{answer.stdout}{answer.stderr}")
    return answer.stdout


def solved(python: str, wheel: Path, folder: Path, name: str) -> dict[str, Any]:
    """The plan of a shipped scenario by the installed command, in an empty folder."""
    environment = folder / "env"
    if not environment.exists():
        ran(python, "-m", "venv", environment, cwd=folder)
        ran(environment / "bin" / "pip", "install", "--quiet", wheel, cwd=folder)
    away = folder / name
    away.mkdir()
    document: dict[str, Any] = json.loads(ran(environment / "bin" / "plan", "solve", name, "-o", "json", cwd=away))
    ran(environment / "bin" / "llm-capacity-planner", "verify", f".plan/{name}.plan.json", cwd=away)
    return document


def main(interpreters: list[str]) -> None:
    """A line an interpreter and scenario: the same plan, or which keys differ."""
    here = {name: api.solve(name).document for name in NAMES}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ran(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=ROOT)
        wheel = next(folder.glob("*.whl"))
        for number, python in enumerate(interpreters):
            own = folder / str(number)
            own.mkdir()
            version = ran(python, "-c", "import sys; print(sys.version.split()[0])", cwd=own).strip()
            for name in NAMES:
                keys = changed_keys(here[name], solved(python, wheel, own, name))
                told = "the same plan, verified" if not keys else "another plan: " + ", ".join(keys)
                print(f"{version:<8} {name:<8} {told}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
