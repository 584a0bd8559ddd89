"""The rules of the house about imports: one direction, pure rooms, heavy packages behind doors."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANNER = ROOT / "planner"

# rooms from the bottom to the top; a room imports from its own level's row or from rows before it
LEVELS = [
    {"carriers"},
    {"errors", "spelling", "brief", "deadline"},
    {"units", "dimensions", "files", "frames"},
    {"yamlfile", "csvtable"},
    {"equations", "architecture", "catalog", "traffic", "scenario"},
    {"estimate"},
    {"candidates", "simulate"},
    {"optimize"},
    {"plan"},
    {"checks", "budget", "memory"},
    {"analysis"},
    {"validate"},
    {"calibrate"},
    {"reading"},
    {"sweeps"},
    {"report", "export"},
    {"answers"},
    {"api"},
    {"live"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# rooms of one level know nothing of each other, with the exceptions written here
SIDEWAYS = {
    ("architecture", "equations"): "parameter counts are equations too",
    ("traffic", "equations"): "moments and burstiness are equations too",
    ("scenario", "architecture"): "a fleet serves what its model is published in (docs/decisions/0066-as-published.md)",
    ("scenario", "traffic"): "a fleet carries its traffic (docs/decisions/0010-traffic.md)",
    ("export", "report"): "the one escape of visible text (docs/decisions/0025-exports.md)",
}
# the one way up, within functions
DOORS = {
    ("answers", "planner.api"): "methods of a plan are functions of the library (docs/decisions/0032-front-door.md)",
}
# what is imported within a function, and why not at once; a room, and the module or room that waits
LATE = {
    ("cli", "planner"): "a command imports what it needs, and `plan --help` nothing of it",
    ("answers", "planner"): "an answer is drawn, swept or asked further only when somebody wants that",
    ("api", "planner"): "a question imports what answers it: solving needs no sweeps, no exports, no comparisons",
    ("live", "planner.api.frontiers"): "the trade-off is drawn after the first answer",
    ("catalog", "planner.frames"): "pandas takes longer to import than a plan to be made",
    ("plan", "planner.frames"): "pandas",
    ("plan", "planner.plan.model"): "types of documents take longer to make than a plan of one job",
    ("reading", "planner.frames"): "pandas",
    ("optimize", "planner.optimize.improve"): "large programs alone are solved in parts",
    ("optimize", "planner.optimize.worker"): "a process of its own imports it beside the planner, a copy takes it over",
    ("sweeps", "planner.sweeps.plugin"): "needs the extra `cluster`",
    ("report", "planner.report.markdown"): "problems are drawn when there are some",
    ("report", "planner.report.text"): "problems are drawn when there are some",
}
PURE = {"equations", "estimate", "candidates"}
IMPURE_MODULES = {"os", "pathlib", "random", "time", "datetime", "io", "shutil", "tempfile", "subprocess", "socket"}
EQUATIONS_MAY = {
    "numpy",
    "planner",
    "math",
    "collections",
    "typing",
    "functools",
    "__future__",
    "dataclasses",
    "statistics",
}


def modules() -> list[Path]:
    return sorted(path for path in PLANNER.rglob("*.py") if path.parent != PLANNER or path.name != "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PLANNER).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def looked_at(path: Path) -> tuple[list[ast.Call], list[ast.AST]]:
    """Calls and imports of a module, which is walked through once."""
    calls, imports = [], []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            calls.append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
    return calls, imports


def calls_of(path: Path) -> list[ast.Call]:
    return looked_at(path)[0]


@cache
def imports_of(path: Path) -> set[str]:
    return imported(looked_at(path)[1], path)


def imports_at_once(path: Path) -> set[str]:
    """What a module imports when it is imported itself."""
    return imported(tree_of(path).body, path)


def imported(nodes: Iterable[ast.AST], path: Path) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "planner"}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PLANNER)))
def test_imports_point_down_the_house(path: Path) -> None:
    room = room_of(path)
    assert room in LEVEL, f"{room} has no place in the house: add it to LEVELS with a decision note"
    for name in imports_of(path):
        if not name.startswith("planner."):
            continue
        other = name.split(".")[1]
        if other == room or other.startswith("__"):
            continue
        assert other in LEVEL, name
        if any(room == ours and name.startswith(theirs) for ours, theirs in DOORS):
            assert name not in imports_at_once(path), f"{path.relative_to(ROOT)} imports {name} before it is looked at"
            continue
        down = LEVEL[other] < LEVEL[room]
        assert down or (room, other) in SIDEWAYS, f"{path.relative_to(ROOT)} imports {name}: up or sideways"


def imported_late(path: Path) -> Iterator[str]:
    """What a module imports of ours within functions, name by name."""
    for function in ast.walk(tree_of(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PLANNER)))
def test_what_is_imported_late_stands_in_the_list(path: Path) -> None:
    allowed = [there for room, there in LATE if room == room_of(path)]
    for name in imported_late(path):
        if name.split(".")[0] == "planner":
            assert any(f"{name}.".startswith(f"{there}.") for there in allowed), f"{path.relative_to(ROOT)}: {name}"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def targets_of(path: Path, known: set[str]) -> set[str]:
    """Modules that a module imports, within functions and for types too, but for doors."""
    found = set()
    for node in looked_at(path)[1]:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & known) or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    through = [theirs for ours, theirs in DOORS if ours == room_of(path)]
    return {name for name in found & known if not any(name.startswith(theirs) for theirs in through)}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Not even through imports within functions, or for types: what belongs together is one module, or has a floor."""
    paths = {name_of(path): path for path in modules()}
    above = {name: targets_of(path, set(paths)) - {name} for name, path in paths.items()}
    while leaves := {name for name, targets in above.items() if not targets & set(above)}:
        above = {name: targets for name, targets in above.items() if name not in leaves}
    while roofs := set(above) - {target for targets in above.values() for target in targets}:
        above = {name: targets for name, targets in above.items() if name not in roofs}
    assert not sorted(above)


@pytest.mark.parametrize(
    "path", [p for p in modules() if room_of(p) in PURE], ids=lambda p: str(p.relative_to(PLANNER))
)
def test_physics_is_pure(path: Path) -> None:
    names = {name.split(".")[0] for name in imports_of(path)}
    assert not names & IMPURE_MODULES
    assert not imports_of(path) & {"planner.files", "planner.deadline"}
    if room_of(path) == "equations":
        assert names <= EQUATIONS_MAY


def test_solvers_live_in_optimize_only() -> None:
    users = {
        room_of(path) for path in modules() for name in imports_of(path) if name.split(".")[0] in ("pulp", "highspy")
    }
    assert users == {"optimize"}


def test_only_files_opens_files() -> None:
    for path in modules():
        if path.name == "files.py":
            continue
        calls = calls_of(path)
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        attributes = {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
        assert "open" not in names, path
        assert not attributes & {"read_text", "write_text", "read_bytes", "write_bytes"} or uses_files(path), path


def uses_files(path: Path) -> bool:
    """`files.read_text(...)` and `write_text(...)` of our own module are the one way in and out."""
    return any(name.startswith("planner.files") or name == "planner.files" for name in imports_of(path))


VERIFIER = sorted((PLANNER / "checks").glob("*.py"))
VERIFIER_MAY = {
    *("equations", "estimate", "architecture", "catalog", "traffic", "scenario", "units", "errors", "simulate"),
    "carriers",
}
BUILDER = [
    *(PLANNER / "plan").rglob("*.py"),
    *(PLANNER / "analysis" / "why").glob("*.py"),
    *(PLANNER / "analysis" / "others").glob("*.py"),
    *(PLANNER / "analysis" / name for name in ("tighten.py", "uncertain.py")),
]


def test_verify_shares_nothing_with_the_program() -> None:
    """Equations, estimates and facts, and the types of documents; nothing that searches, solves or writes a plan."""
    for path in VERIFIER:
        for name in sorted(name for name in imports_of(path) if name.startswith("planner.")):
            room = name.split(".")[1]
            own = name.startswith(("planner.checks", "planner.plan.model"))
            assert own or room in VERIFIER_MAY, f"{path.relative_to(ROOT)} imports {name}"


def test_what_writes_a_plan_asks_nothing_of_what_verifies_it() -> None:
    for path in BUILDER:
        names = [name for name in imports_of(path) if name.startswith("planner.checks")]
        assert not names, f"{path.relative_to(ROOT)} imports {names}"


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['plan', *{arguments!r}]\n"
        "from planner.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'pandas', 'pulp', 'highspy', 'scipy'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "HEAVY []" in answer.stdout, answer.stdout + answer.stderr


# over pipes between a process and those that it began itself, as concurrent.futures does; no file is ever read so
PICKLES = {"planner/api/listing.py"}


def test_no_unsafe_calls() -> None:
    for path in modules():
        for call in calls_of(path):
            assert not (isinstance(call.func, ast.Name) and call.func.id in ("eval", "exec")), path
            for keyword in call.keywords:
                assert not (keyword.arg == "shell" and getattr(keyword.value, "value", False)), path
        unsafe = imports_of(path) & {"pickle", "marshal", "shelve"}
        assert unsafe <= ({"pickle"} if path.relative_to(ROOT).as_posix() in PICKLES else set()), path


def test_no_module_is_longer_than_600_lines() -> None:
    longer = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in PLANNER.rglob("*.py")}
    assert {name: lines for name, lines in longer.items() if lines > 600} == {}


def test_folders_of_tests_are_packages() -> None:
    """Two files of one name (`conftest.py`) would otherwise be one module: their folders not nameable in one call."""
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").is_file()]
