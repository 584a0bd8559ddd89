"""Which catalog another one extends: `default`, or a folder or frozen file inside its own or beside it."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.reading import Problems
from planner.errors import InputError
from planner.files import contained_path, data_folder
from planner.yamlfile import Node

Chain = tuple[Path, ...]  # catalogs from the one that was asked for to the one being read, links followed

LONGEST = 200  # characters of a name that is looked for; no file system takes one much longer
MOST_LAYERS = 8
_HINT = "write default, a folder inside this one such as base, or one beside it such as ../base"


def base_of(node: Node, folder: Path, chain: Chain, problems: Problems) -> Path | None:
    """The catalog that the text of a node names, seen from a folder; None after a problem was noted.

    Parameters
    ----------
    node
        What stands after `extends:`; a text is `default`, or a path within the folder or within that around it.
    folder
        Folder of the catalog that extends another.
    chain
        Catalogs from the one that was asked for to that of `folder`; one that stands there already makes a circle.
    problems
        Where mistakes go.
    """
    if not isinstance(node.value, str):
        problems.add("wrong-type", "'extends' wants the name of a catalog", node.place, _HINT)
        return None
    if len(node.value) > LONGEST:
        problems.add("no-catalog", f"'{node.value[:40]}…' is no catalog", node.place, _HINT)
        return None
    try:
        found = _resolved(node.value, folder)
    except InputError as error:
        problems.add(error.problems[0].reference, error.problems[0].message, node.place, _HINT)
        return None
    if found in chain:
        circle = " -> ".join(path.name for path in (*chain[chain.index(found) :], found))
        problems.add("circular-extends", f"the catalog extends itself: {circle}", node.place, "leave one 'extends' out")
    elif len(chain) >= MOST_LAYERS:
        problems.add("too-deep", f"more than {MOST_LAYERS} catalogs extend each other", node.place, "merge some")
    elif not ((found / "catalog.yaml").is_file() or found.is_file()):
        problems.add("no-catalog", f"'{node.value}' is no catalog", node.place, _HINT)
    else:
        return found
    return None


def _resolved(text: str, folder: Path) -> Path:
    if text == "default":
        return data_folder("hardware").resolve()
    here = folder.resolve()
    if text.startswith("../"):
        return contained_path(here.parent, text.removeprefix("../"))
    return contained_path(here, text)
