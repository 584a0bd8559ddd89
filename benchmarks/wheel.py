"""The wheel in clean environments, in an empty folder: does `plan solve NAME` give the plan of the checkout?

    python benchmarks/wheel.py python3.11 python3.12 python3.13

Builds the wheel, installs it with its dependencies into a new environment of each interpreter, and holds the plan
documents against those of this checkout, leaf by leaf: integers and texts are equal, floats to 1e-9 (numpy's exp and
log differ in the last bit between its versions). Versions of solver and modelling layer, and the seal over both, may
differ. Needs a package index, or PIP_NO_INDEX and PIP_FIND_LINKS.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner import api

ROOT = Path(__file__).parents[1]
NAMES = ("llama", "trace")
VERSIONS = ("sha256", "provenance.modelling", "provenance.solver")  # keys that say what it was made with


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


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def held(here: dict[str, Any], there: dict[str, Any]) -> str:
    """The same plan, or the first paths at which it is another."""
    ours, theirs = dict(leaves(here)), dict(leaves(there))
    changed = [path for path in {**ours, **theirs} if ours.get(path) != theirs.get(path) and path not in VERSIONS]
    other = [path for path in changed if not close(ours.get(path), theirs.get(path))]
    if other:
        return f"another plan: {', '.join(other[:5])}"
    return f"the same plan: {len(ours):,} leaves, {len(changed)} of them off by a last bit"


def close(one: Any, other: Any) -> bool:
    """Whether two leaves are floats that are equal to 1e-9."""
    return isinstance(one, float) and isinstance(other, float) and math.isclose(one, other, rel_tol=1e-9)


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
                print(f"{version:<8} {name:<8} {held(here[name], solved(python, wheel, own, name))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
