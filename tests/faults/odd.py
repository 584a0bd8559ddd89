"""Commands in odd surroundings: what a shell, a kernel or an administrator may do to them, and what must hold then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = "from planner.cli.main import main; main()"
SAMPLE = ROOT / "tests" / "cli" / "samples" / "llama.json"
DOCUMENTED = (0, 2, 3, 4, 5, 6, 7, 8, 9, 130)
SECONDS = 300  # after which a command counts as hung, on however busy a machine

# name: arguments, exit code where nothing is odd
COMMANDS: dict[str, tuple[str, int]] = {
    "help": ("--help", 0),
    "version": ("--version", 0),
    "nothing": ("", 0),
    "help of one": ("help catalog list", 0),
    "scenarios": ("scenarios", 0),
    "nonsense": ("nonsense", 2),
    "solve": ("solve scenario.yaml", 0),
    "solve to stdout": ("solve scenario.yaml -o json --out -", 0),
    "solve in time": ("solve scenario.yaml --out new.json --time-limit 200s", 0),
    "candidates": ("candidates scenario.yaml -o csv", 0),
    "explain": ("explain plan.json", 0),
    "verify": ("verify plan.json", 3),
    "report": ("report plan.json --allow-stale -o md", 0),
    "page": ("report plan.json --allow-stale -o html --out page.html", 0),
    "export": ("export slurm scenario.yaml --out jobs", 0),
    "compare": ("compare plan.json plan.json --no-cause", 0),
    "memory": ("memory gpt2 --batch 1 --fit 16GB", 0),
    "models": ("models list", 0),
    "model": ("models show gpt2 -o json", 0),
    "offers": ("catalog list", 0),
    "device": ("catalog show h100-sxm-80gb", 0),
    "schema": ("schema scenario", 0),
    "init": ("init mine.yaml --yes --train gpt2 --name mine", 0),
    "missing": ("solve missing.yaml", 3),
}
NEEDS_SOLVER = ("solve", "solve to stdout", "solve in time")
WRITES = ("solve", "solve in time", "page", "init")
READS = {"solve": "scenario.yaml", "candidates": "scenario.yaml", "explain": "plan.json", "verify": "plan.json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """Surroundings of a command.

    Parameters
    ----------
    shell
        What the shell does to it: COMMAND stands for the command.
    code
        Exit codes that there may be besides the usual one; None: any documented one.
    only
        The commands that it is tried with; empty: all.
    patch
        Python that runs before anything else, in the planner's and in the solver's process.
    """

    shell: str = "COMMAND"
    environment: dict[str, str | None] = field(default_factory=dict)
    codes: tuple[int, ...] | None = ()
    only: tuple[str, ...] = ()
    patch: str = ""
    ordinary: bool = False  # as a user who may read everything and write nothing here
    pipe_input: bool = False


_NO_HIGHS = "import sys\nsys.modules['highspy'] = None\n"
_NO_CBC = "import pulp\npulp.PULP_CBC_CMD.available = pulp.COIN_CMD.available = lambda self: False\n"
_BACKWARDS = """\
import itertools, time
_steps = itertools.count()
_real = time.time
time.time = lambda: _real() - 3600.0 * next(_steps)
"""
SURROUNDINGS: dict[str, Odd] = {
    "nothing odd": Odd(),
    "stdout full": Odd(shell="COMMAND >/dev/full", codes=(8,)),
    "stdout closed": Odd(shell="COMMAND >&-", codes=(8,)),
    "stdout a pipe that is closed early": Odd(shell="set -o pipefail; COMMAND | head -c 1 >/dev/null", codes=(8,)),
    "stderr full": Odd(shell="COMMAND 2>/dev/full"),
    "stderr closed": Odd(shell="COMMAND 2>&-"),
    "all closed": Odd(shell="COMMAND <&- >&- 2>&-", codes=(8,)),
    "little address space": Odd(shell="ulimit -v 250000; COMMAND", codes=(6,)),
    "just enough address space": Odd(shell="ulimit -v 560000; COMMAND", codes=None),
    "five files": Odd(shell="ulimit -n 5; COMMAND", codes=None),
    "nine files": Odd(shell="ulimit -n 9; COMMAND", codes=None),
    "sixteen files": Odd(shell="ulimit -n 16; COMMAND", codes=None),
    "no large files": Odd(shell="ulimit -f 1; COMMAND", codes=(8,)),
    "one process": Odd(shell="ulimit -u 1; exec COMMAND", codes=(5, 6, 8), ordinary=True),
    "a folder one may not write": Odd(codes=(8,), ordinary=True),
    "a pipe in place of a file": Odd(codes=(3,), only=tuple(READS), pipe_input=True),
    "no HiGHS": Odd(patch=_NO_HIGHS, codes=(6,), only=(*NEEDS_SOLVER, "explain", "report")),
    "no solver": Odd(patch=_NO_HIGHS + _NO_CBC, codes=(6,), only=NEEDS_SOLVER),
    "no CBC": Odd(patch=_NO_CBC, only=NEEDS_SOLVER),
    "a clock that goes backwards": Odd(patch=_BACKWARDS),
    "no home": Odd(environment={"HOME": None}),
    "a home that is not there": Odd(environment={"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}),
    "an odd locale": Odd(environment={"LC_ALL": "tr_TR.UTF-8", "LANG": "xx_YY", "TZ": "Etc/GMT+12"}),
    "plain ascii": Odd(environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}),
    "a terminal of one column": Odd(environment={"COLUMNS": "1", "LINES": "0", "TERM": "dumb"}),
    "no width": Odd(environment={"COLUMNS": "wide", "NO_COLOR": "1"}),
    "no place for temporary files": Odd(environment={"TMPDIR": "/nonexistent"}),
    "no path": Odd(environment={"PATH": None}),
}


def combinations() -> Iterator[tuple[str, str]]:
    """Every command in every surrounding that it is tried in."""
    for around, odd in SURROUNDINGS.items():
        for command in odd.only or COMMANDS:
            yield command, around


def possible(odd: Odd) -> bool:
    """Whether this machine can make such surroundings."""
    return not odd.ordinary or (os.geteuid() == 0 and shutil.which("setpriv") is not None)


def prepare(folder: Path) -> None:
    """A working folder with a scenario and a plan."""
    shutil.copy(ROOT / "scenarios" / "gpt2-xl.yaml", folder / "scenario.yaml")
    shutil.copy(SAMPLE, folder / "plan.json")
    folder.chmod(0o755)


def faults(command: str, around: str, folder: Path) -> list[str]:
    """What went wrong when a command ran in odd surroundings in a prepared folder; empty: nothing."""
    odd, (arguments, usual) = SURROUNDINGS[around], COMMANDS[command]
    if odd.pipe_input:
        os.mkfifo(folder / "pipe.yaml")
        os.mkfifo(folder / "pipe.json")
        arguments = arguments.replace("scenario.yaml", "pipe.yaml").replace("plan.json", "pipe.json")
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    work = folder.parent / f"{folder.name}-around"
    work.mkdir()
    (work / "sitecustomize.py").write_text(odd.patch)
    temporary = work / "tmp"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    said = work / "said"
    ran = _run(arguments, odd, folder, work, said)
    if ran is None:
        return [f"hung for {SECONDS} s"]
    text = said.read_text(errors="replace") if said.exists() else ""
    found = []
    allowed = DOCUMENTED if odd.codes is None else (usual, *odd.codes)
    if ran not in allowed:
        found.append(f"exit {ran}, not {' or '.join(map(str, allowed))}: {text[-300:]}")
    found += [f"{words!r}: {text[-300:]}" for words in ("Traceback", "internal error", "interrupted") if words in text]
    found += [f"{path.name} was left" for path in temporary.iterdir()]
    found += _left(folder, before)
    return found


def _run(arguments: str, odd: Odd, folder: Path, work: Path, said: Path) -> int | None:
    user = ""
    if odd.ordinary:
        capability = "dac_read_search"
        user = f"{shutil.which('setpriv')} --reuid=65534 --regid=65534 --clear-groups "
        user += f"--inh-caps=+{capability} --ambient-caps=+{capability} "
    python = f"{sys.executable} -c '{RUN}' {arguments}"
    line = odd.shell.replace("COMMAND", python)
    line = f"{user}{shutil.which('bash')} -c {_quoted(line)}"
    environment: dict[str, str] = {
        **os.environ,
        "PYTHONPATH": f"{work}{os.pathsep}{ROOT}",
        "TMPDIR": str(work / "tmp"),
        "PYTHONUNBUFFERED": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name, value in odd.environment.items():
        environment.pop(name, None)
        environment |= {} if value is None else {name: value}
    with said.open("wb") as stream:
        try:
            ran = subprocess.run(
                [shutil.which("bash") or "bash", "-c", line], cwd=folder, env=environment, timeout=SECONDS,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
    return ran.returncode


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _left(folder: Path, before: dict[str, int]) -> Iterator[str]:
    """Files that are torn or should not be there."""
    for name, size in before.items():
        if not (folder / name).exists() or (folder / name).stat().st_size != size:
            yield f"{name} was changed"
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.name.startswith("bug-") or path.suffix == ".tmp":
            yield f"{inner} was left"
        elif path.suffix == ".json" and path.is_file():
            try:
                json.loads(path.read_text())
            except ValueError:
                yield f"{inner} is torn"
        elif path.suffix == ".html" and not path.read_text().rstrip().endswith("</html>"):
            yield f"{inner} is torn"
