"""docs/architecture.md and its picture: the rooms of planner/, drawn from what their modules import."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

from markup import paragraphs, table

PLANNER = Path(__file__).parents[2] / "planner"
LEAVES = ("carriers", "errors", "spelling", "brief", "deadline", "dimensions", "files", "frames", "csvtable")
PICTURE = "pictures/architecture.svg"
HEAD = "<!-- made by `make docs` from the imports of planner/ and docs/generate/architecture_page.py; change those -->"
WIDTH, ROW, BOX, HIGH, ASIDE = 760, 58, 104, 30, 65  # rows stand aside in turn, so that no arrow lies under a box

INTRODUCTION = """\
Data flows one way, from the scenario, the catalog and the model's shape at the top of the picture to the command line
at its foot. An arrow says that a room imports another one, at once or within functions; where a way leads through
others, the direct arrow is left out. `tests/house/test_imports.py` holds the order, lets no modules import each other,
and lists what is imported late. Small modules that all use (errors, units of work, files, YAML) are not drawn."""

QUANTITY = """\
The time of a training step, from the file to the report. `training.pretrain.sequence_length` and its kin are read in
[`scenario/training_job.py`](../planner/scenario/training_job.py), the rates of a device in
[`catalog/devices.py`](../planner/catalog/devices.py) and their fitted shares from
[`hardware/calibration`](../hardware/calibration). [`equations/step_time.py`](../planner/equations/step_time.py) has one
function for each part; [`estimate/step.py`](../planner/estimate/step.py) adds them up, under their names, for arrays of
layouts. [`candidates/training.py`](../planner/candidates/training.py) lists the layouts that fit, with that time and
what it costs, as columns; [`optimize/build.py`](../planner/optimize/build.py) makes the program of them and a solver
process chooses. [`plan/rows/allocations.py`](../planner/plan/rows/allocations.py) writes the chosen column with each
named part and its equation; [`checks/allocation.py`](../planner/checks/allocation.py) works them out anew from the
scenario, the catalog and the same equations, and nothing else;
[`report/plan_formats.py`](../planner/report/plan_formats.py) and its like only draw what the document says."""

ADDING = (
    ("a device", "a file in `hardware/devices`, or `devices:` of a catalog of one's own; no code",
     ("hardware/devices", "hardware/shapes", "hardware/offers")),
    ("a limit on a resource", "its key and its unit, its coefficient of a column, its check; how it is told and "
     "loosened follows from the unit",
     ("planner/scenario/schema.py", "planner/candidates/limits.py", "planner/checks/limits.py")),
    ("a commitment", "its name in the catalog and in scenarios with its term, how it reads, and that `plan reserve` "
     "takes it",
     ("planner/catalog/offers.py", "planner/scenario/hardware_keys.py", "planner/report/schedule_view.py",
      "planner/cli/reserve.py")),
    ("another price model", "its name in the catalog and in scenarios; by the hour: that it is metered, and where it "
     "trains or serves; ahead: how it is bought, and what is due when",
     ("planner/catalog/offers.py", "planner/scenario/hardware_keys.py", "planner/estimate/market.py",
      "planner/candidates/contracts.py", "planner/checks/bought_ahead.py", "planner/budget/charges.py")),
    ("a flag of all commands", "its option and what it does, and its place in the help",
     ("planner/cli/frame.py", "planner/cli/help_layout.py")),
    ("a key of a scenario", "a field with its unit and description (the docs page and the JSON Schema are made of it), "
     "and the place where it acts; a key that does not act is refused",
     ("planner/scenario/training_job.py", "planner/scenario/serving_fleet.py", "planner/scenario/checks.py")),
    ("a term of the step time", "an equation with its source, its place in the sum, its title in a plan",
     ("planner/equations/step_time.py", "planner/estimate/step.py", "planner/plan/rows/crosscheck.py")),
    ("an export format", "a module that writes it, its line in the registry, its word on the command line; what its "
     "program accepts is recorded in `tests/export/recorded`; of a trainer also when it is taken, of an engine what it "
     "allows by default and whether others start it",
     ("planner/export/registry.py", "planner/cli/export.py", "planner/export/chosen_program.py",
      "planner/estimate/engines.py")),
    ("a cell of a row", "its type, its value, its check: its column in CSV, its class for the verifier and its line of "
     "the trace follow from the type, for those of `Energy`; a line of the text where it is worth one",
     ("planner/plan/model/rows.py", "planner/plan/rows/row_cells.py", "planner/checks/cells.py")),
)  # fmt: skip


def architecture_page() -> dict[str, str]:
    """Path below docs/ -> text, of the page and of its picture."""
    rows = [[f"`{room}`", _about(room), ", ".join(f"`{one}`" for one in sorted(_direct()[room]))] for room in _order()]
    adding = [[what, how, ", ".join(f"[`{one}`](../{one})" for one in where)] for what, how, where in ADDING]
    parts = [
        "# Architecture", HEAD, paragraphs(INTRODUCTION),
        f"![Rooms of the planner, each above those that use it]({PICTURE})",
        table(["Room", "What it is", "Imports"], rows),
        "## The way of one quantity", paragraphs(QUANTITY),
        "## How to add", table(["What", "What it takes", "Where"], adding),
    ]  # fmt: skip
    return {"architecture.md": "\n\n".join(parts) + "\n", PICTURE: _picture()}


@cache
def _imports() -> dict[str, frozenset[str]]:
    """Room -> rooms that its modules import."""
    rooms = {path.parent.name for path in PLANNER.glob("*/__init__.py")} - {*LEAVES, "yamlfile", "units", "_data"}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        for path in (PLANNER / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                module = node.module if isinstance(node, ast.ImportFrom) else None
                if module and module.startswith("planner."):
                    found[room].add(module.split(".")[1])
    doors = {("answers", "api")}  # methods of a plan are functions of the library (decision 0032)
    return {
        room: frozenset(one for one in used if one in rooms and one != room and (room, one) not in doors)
        for room, used in found.items()
    }


@cache
def _direct() -> dict[str, frozenset[str]]:
    """The same without what is reached by way of others."""
    found = _imports()

    @cache
    def below(room: str) -> frozenset[str]:
        return frozenset(found[room]).union(*(below(one) for one in found[room]))

    return {
        room: frozenset(one for one in used if not any(one in below(other) for other in used))
        for room, used in found.items()
    }


@cache
def _depth(room: str) -> int:
    return max((1 + _depth(one) for one in _imports()[room]), default=0)


def _order() -> list[str]:
    return sorted(_imports(), key=lambda room: (_depth(room), room))


def _about(room: str) -> str:
    text = inspect.getdoc(import_module(f"planner.{room}")) or ""
    return " ".join(text.split("\n\n")[0].split())


def _picture() -> str:
    rows: dict[int, list[str]] = defaultdict(list)
    for room in _order():
        rows[_depth(room)].append(room)
    middle = {
        room: (WIDTH * (place + 1) // (len(row) + 1) + ASIDE * (depth % 3 - 1), 20 + depth * ROW + HIGH // 2)
        for depth, row in rows.items()
        for place, room in enumerate(row)
    }
    height = 40 + max(rows) * ROW + HIGH
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="13" role="img" aria-label="Rooms of the planner, each above those that use it">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#6b7785"/></marker></defs>',
    ]
    for room, used in sorted(_direct().items()):
        for one in sorted(used):
            (x1, y1), (x2, y2) = middle[one], middle[room]
            lines.append(
                f'<line x1="{x1}" y1="{y1 + HIGH // 2}" x2="{x2}" y2="{y2 - HIGH // 2}" stroke="#6b7785" '
                'stroke-width="1.2" marker-end="url(#to)"/>'
            )
    for room, (x, y) in sorted(middle.items()):
        lines.append(
            f'<rect x="{x - BOX // 2}" y="{y - HIGH // 2}" width="{BOX}" height="{HIGH}" rx="5" fill="#eef3f8" '
            f'stroke="#33475b"/><text x="{x}" y="{y + 5}" text-anchor="middle" fill="#1c2733">{room}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"
