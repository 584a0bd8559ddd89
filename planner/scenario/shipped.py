"""Scenarios that ship, by name: `llama` is the file of that name here, else the one that came with the package.

What is read from the package is called `shipped:llama` in plans and messages, wherever the package lies: a plan that
names it means the same on every machine, and the files that such a scenario names are looked for beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from planner.brief import brief
from planner.carriers import dataclass
from planner.errors import InputError
from planner.files import StrPath, data_folder, list_files, read_text
from planner.spelling import closest
from planner.yamlfile import MAX_BYTES, Node, parse_yaml

PREFIX = "shipped:"
_FOLDER = "scenarios"
_FILES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Shipped:
    """A scenario that ships, in short."""

    name: str
    title: str
    training: tuple[str, ...]  # names of jobs
    serving: tuple[str, ...]  # names of fleets

    def __repr__(self) -> str:
        return brief("Shipped", f"{self.name}: {self.title}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A scenario file: where it is read, and what it is called."""

    path: str
    file: str

    @property
    def shipped(self) -> bool:
        """Whether it came with the package."""
        return self.file.startswith(PREFIX)


def shipped_names() -> list[str]:
    """Names of the scenarios that ship, sorted; none where they are missing."""
    try:
        return [path.stem for path in list_files(data_folder(_FOLDER), "*.yaml")]
    except InputError:
        return []


def shipped_scenarios() -> list[Shipped]:
    """The scenarios that ship, by name."""
    return [_in_short(name) for name in shipped_names()]


def shipped_text(name: str) -> str:
    """The text of a scenario that ships.

    Raises
    ------
    InputError
        None has this name.
    """
    if name not in shipped_names():
        raise _unknown(name)
    return read_text(_path_of(name), limit_bytes=MAX_BYTES)


def beside(name: str) -> dict[str, str]:
    """Files that a scenario that ships reads from its own folder, by name: their text."""
    text, folder = shipped_text(name), data_folder(_FOLDER)
    names = [path.name for path in list_files(folder, "*.csv") if path.name in text]
    return {one: read_text(folder / one, limit_bytes=MAX_BYTES) for one in names}


def is_name(given: str) -> bool:
    """Whether it may be the name of a scenario rather than a path: no folder, no ending of a file, no file itself."""
    if given.startswith(PREFIX):
        return True
    return not ("/" in given or os.sep in given or given.endswith(_FILES) or _is_there(given))


def find_scenario(given: StrPath) -> Found:
    """The file that a path or a name means: the file itself, NAME.yaml here, or the scenario that ships.

    Raises
    ------
    InputError
        It is a name, and there is no such file here nor such a scenario in the package.
    """
    name = os.fspath(given)
    if not is_name(name):
        return Found(path=name, file=name)
    if not name.startswith(PREFIX):
        own = _own(name)
        if own:
            return Found(path=own, file=own)
    name = name.removeprefix(PREFIX)
    if name not in shipped_names():
        raise _unknown(name)
    return Found(path=str(_path_of(name)), file=PREFIX + name)


def name_here(file: str) -> str:
    """How a scenario is named on a command line of this folder: one that ships by its name alone where that is clear.

    Parameters
    ----------
    file
        As plans write it.
    """
    name = file.removeprefix(PREFIX)
    return name if name == file or (is_name(name) and not _own(name)) else file


def is_shipped(file: str) -> bool:
    """Whether the file of a scenario, as plans write it, is one that ships."""
    return file.startswith(PREFIX)


def folder_of(file: str) -> str:
    """Folder where the paths in a scenario file start; "" for a bare name."""
    if file.startswith(PREFIX):
        return str(data_folder(_FOLDER))
    return os.path.dirname(file)  # noqa: PTH120 - "" for a bare name, not "."


def _own(name: str) -> str:
    """The file of this folder that a name means; "" where there is none."""
    return next((own for own in (f"{name}.yaml", f"{name}.yml") if _is_there(own)), "")


def _path_of(name: str) -> Path:
    return data_folder(_FOLDER) / f"{name}.yaml"


def _is_there(name: str) -> bool:
    """Whether something of this name is meant: anything but a folder, so that a pipe is refused, not passed by."""
    try:
        return Path(name).exists() and not Path(name).is_dir()
    except (OSError, ValueError):
        return False


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir() and name != ""
    except (OSError, ValueError):
        return False


def _unknown(name: str) -> InputError:
    near = closest(name[:100], shipped_names())
    hint = f"did you mean {' or '.join(near)}?" if near else "plan scenarios lists those that ship; or name a file"
    there = f"{name!r} is a folder" if _is_folder(name) else f"there is no file {name[:100]!r}"
    message = f"{there}, and no scenario ships by that name"
    error = InputError.of("unknown-scenario", message, hint=hint)
    assert isinstance(error, InputError)
    return error


def _in_short(name: str) -> Shipped:
    root = parse_yaml(shipped_text(name), PREFIX + name).root
    title = root.value.get("title")
    return Shipped(
        name=name,
        title=str(title.value) if title else "",
        training=tuple(_names(root, "training")),
        serving=tuple(_names(root, "serving")),
    )


def _names(root: Node, kind: str) -> Iterator[str]:
    """Names of the jobs or fleets of a scenario that ships."""
    for entry in root.value[kind].value if kind in root.value else ():
        yield str(entry.value["name"].value)
