"""Pieces written: each whole or not at all, into a scenario that is there or a new one, or as a file of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from planner import files
from planner.architecture.load import load_model
from planner.errors import InputError, OutputError, Place, Problem, UsageError
from planner.reading.kinds import Asked, Piece, Reading
from planner.scenario.load import load_scenario
from planner.yamlfile import parse_yaml
from planner.yamlfile.writing import block_lines, flow_text, item_lines

# what a key of a fleet says already, so that the other ways to say it have to go
_REPLACES: Mapping[str, tuple[str, ...]] = {
    "trace": (
        "qpm", "users", "think_time", "input_tokens", "output_tokens", "peak_factor", "arrival_variability", "profile",
        "histogram", "load_profile", "trace",
    ),
    "qpm": ("trace", "users", "think_time", "qpm", "profile", "histogram"),
}  # fmt: skip
_STAYS: Mapping[str, set[str]] = {"hardware": {"allow"}}  # what other workloads go by, too
_OF_A_MODEL = {"name", "model", "weights", "kv_cache"}  # an item of these alone tells which model it is
_BESIDE = ("trace", "card", "profile")  # files that a scenario names, written beside it
_COUNT = re.compile(r"((?:^\s*(?:- )?|[{,]\s*)count:\s*)\d+")
_DEFAULT_ALLOW = ["h100-*", "h200-*", "b200-*", "a100-*", "l40s*", "mi300x*"]


def write_piece(reading: Reading, out: str) -> str:
    """The one file that a reading makes, written to `out` (not for `-`); its text.

    Raises
    ------
    UsageError
        The reading makes no file; what it makes goes into a scenario.
    """
    made = [piece for piece in reading.pieces if piece.text]
    if not made:
        fragments = [piece for piece in reading.pieces if piece.fragment]
        if not fragments:
            hint = "; ".join(reading.notes[:2]) or "see what it shows without --out"
            raise UsageError(
                Problem(reference="nothing-to-write", message="nothing follows from it to write", hint=hint)
            )
        text = scenario_text(fragments, PurePath(out).stem if out != "-" else "read")
    else:
        text = made[0].text
    if out != "-":
        files.write_text(out, text)
    return text


def write_into(reading: Reading, scenario: str, asked: Asked, *, force: bool = False) -> list[str]:
    """Put what was read into a scenario, made when there is none; the files written, the scenario last.

    Parameters
    ----------
    force
        Replace files beside the scenario that hold something else; what is read is never replaced.

    Raises
    ------
    InputError
        The scenario would not be read any more, or is written in a way that is not edited; it stays as it is.
    OutputError
        A file beside the scenario is there, and holds something else.
    UsageError
        Nothing of what was read goes into a scenario.
    """
    fragments = [piece for piece in reading.pieces if piece.fragment]
    if not fragments:
        hint = "plan read FILE --out rows.csv writes the rows that it gives" if reading.pieces else ""
        message = f"{reading.source} gives nothing that stands in a scenario"
        raise UsageError(Problem(reference="nothing-to-write", message=message, hint=hint))
    if PurePath(scenario).suffix not in (".yaml", ".yml"):
        hint = f"--into {PurePath(scenario).stem or 'mine'}.yaml"
        raise UsageError(
            Problem(reference="not-a-scenario", message=f"'{scenario}' is no name of a scenario", hint=hint)
        )
    folder = Path(scenario).parent
    beside = {str(folder / piece.name): piece.text for piece in reading.pieces if piece.text and piece.what in _BESIDE}
    for name, content in beside.items():
        _demand_free(name, content, reading.source, force=force)
    if Path(scenario).exists():
        text = files.read_text(scenario)
        for piece in fragments:
            text = merged(text, piece.fragment, scenario, asked.name)
    else:
        text = scenario_text(fragments, PurePath(scenario).stem)
    _demand_read(text, scenario)
    for name, content in beside.items():
        files.write_text(name, content)
    files.write_text(scenario, text)
    return [*beside, scenario]


def still_wanted(scenario: str) -> list[str]:
    """What a scenario wants before it can be solved: a sentence each, with what to write."""
    try:
        asked = load_scenario(scenario)
    except InputError as error:
        found = [(problem, problem.places[0].line if problem.places else 0) for problem in error.problems]
        return [f"{problem.message}, line {line}: {problem.hint}" for problem, line in found]
    wanted = []
    for name in dict.fromkeys(one.model.preset for one in asked.workloads if one.model and one.model.preset):
        try:
            load_model(name)
        except InputError as error:
            wanted += [f"{problem.message}: {problem.hint}" for problem in error.problems]
    return wanted


def _demand_free(name: str, content: str, source: str, *, force: bool) -> None:
    """A file may be written: it is not there, or holds the same, or may be replaced; it is never what was read."""
    if not Path(name).exists():
        return
    hint = "--name gives it another name"
    if _same(name, source):
        message = f"{name} would be replaced by what was read from it"
        raise OutputError(Problem(reference="not-written", message=message, hint=hint))
    data = content.encode()
    if not force and (Path(name).stat().st_size != len(data) or files.read_bytes(name, limit_bytes=len(data)) != data):
        message = f"{name} is there already, and holds something else"
        raise OutputError(Problem(reference="file-exists", message=message, hint=f"{hint}; --force replaces it"))


def scenario_text(fragments: Sequence[Piece], name: str) -> str:
    """A whole scenario of fragments."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "-", name) or "read"
    lines = [
        f"# Made by `plan read` ({_printable('; '.join(piece.says or piece.what for piece in fragments))}).",
        "schema: plan/v1",
        f"name: {flow_text(safe, plain=safe[:1].isalpha())}",
    ]
    text = "\n".join(lines) + "\n"
    for piece in fragments:
        text = merged(text, piece.fragment, f"{name}.yaml")
    if "\nhardware:" not in text:
        text += "\n" + "\n".join(block_lines("hardware", {"allow": _DEFAULT_ALLOW})) + "\n"
    return text


def _printable(text: str) -> str:
    """A text that stays within its comment, whatever the name of a file holds."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:300]


def merged(text: str, fragment: Mapping[str, Any], file: str, name: str = "") -> str:
    """A scenario's text with a fragment put in: lists of named things grow or change one, mappings gain keys.

    Parameters
    ----------
    text
        The scenario.
    fragment
        Keys of a scenario with what is put below them.
    file
        Names the scenario in errors.
    name
        What is changed or added, where a list of the fragment holds one thing alone; empty: that of its name, else the
        only one there.

    Raises
    ------
    InputError
        A key or an entry is written in a way that is not edited, on one line or in braces.
    """
    for key, value in fragment.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            for item in value:
                text = _with_item(text, key, item, file, name, alone=len(value) == 1)
        else:
            text = _with_key(text, key, value, file)
    return text


def _with_item(text: str, key: str, item: Mapping[str, Any], file: str, name: str, *, alone: bool) -> str:
    """A list with an item put in: over that of its name, over the only one when it comes `alone`, else beside."""
    lines = text.splitlines()
    span = _span(lines, key)
    if span is None:
        return "\n".join([*lines, "", f"{key}:", *item_lines(item, 2)]) + "\n"
    begin, end = span
    _demand_block(lines, begin, key, file)
    least = _least(lines, begin, end)
    starts = [n for n in range(begin + 1, end) if re.match(rf"[ ]{{{least}}}- ", lines[n])]
    named = {_name_of(lines, at, stop): (at, stop) for at, stop in zip(starts, [*starts[1:], end])}
    only = next(iter(named)) if len(named) == 1 and alone else item["name"]
    wanted = (name if alone else "") or (item["name"] if item["name"] in named else only)
    if wanted in named:
        at, stop = named[wanted]
        changed = _changed(lines[at:stop], item, file)
        return "\n".join([*lines[:at], *changed, *lines[stop:]]) + "\n"
    return "\n".join([*lines[:end], *item_lines({**item, "name": wanted}, least), *lines[end:]]) + "\n"


def _changed(lines: list[str], item: Mapping[str, Any], file: str) -> list[str]:
    """Lines of one item with the keys of another; its name stays, and a model that it has unless that was read."""
    indent = _indent(lines[0]) + 2
    if re.match(r"\s*- *[{\[]", lines[0]):
        raise _not_edited(file, "one line in braces")
    have = {match.group(1) for line in lines if (match := re.match(rf"[ ]{{{indent}}}([a-z_]+):", line))}
    stays = {"name"} if item.keys() <= _OF_A_MODEL else {"name", *have & {"model"}}
    new = {key: value for key, value in item.items() if key not in stays}
    gone = set(new) | {other for key in new for other in _REPLACES.get(key, ())}
    kept: list[str] = []
    dropping = False
    for number, line in enumerate(lines):
        body = line if number or not line.lstrip().startswith("- ") else " " * indent + line.lstrip()[2:]
        match = re.match(rf"[ ]{{{indent}}}([A-Za-z_]+):", body)
        if match:
            dropping = match.group(1) in gone
        elif body.strip() and _indent(body) <= indent and not body.lstrip().startswith("#"):
            dropping = False
        if not dropping:
            kept.append(body)
        elif number == 0:
            kept.append("")
    while kept and not kept[-1].strip():
        kept.pop()
    kept = [line for line in kept if line.strip()] if kept and not kept[0].strip() else kept
    kept += [line for key, value in new.items() for line in block_lines(key, value, indent)]
    kept[0] = " " * (indent - 2) + "- " + kept[0].strip()
    return kept


def _with_key(text: str, key: str, value: Any, file: str) -> str:
    lines = text.splitlines()
    span = _span(lines, key)
    if span is None:
        return "\n".join([*lines, "", *block_lines(key, value)]) + "\n"
    begin, end = span
    if not isinstance(value, Mapping):
        return "\n".join([*lines[:begin], *block_lines(key, value), *lines[end:]]) + "\n"
    _demand_block(lines, begin, key, file)
    indent = _least(lines, begin, end)
    have = {match.group(1) for line in lines[begin:end] if (match := re.match(rf"[ ]{{{indent}}}([a-z_]+):", line))}
    value = {below: content for below, content in value.items() if below not in have & _STAYS.get(key, set())}
    body, kept, dropping = lines[begin + 1 : end], [], False
    owned = value.get("owned")
    if isinstance(owned, list) and (there := _span(body, "owned", indent)):
        body = [*body[: there[0]], *_with_shapes(body[there[0] : there[1]], owned, file), *body[there[1] :]]
        value = {below: content for below, content in value.items() if below != "owned"}
    for line in body:
        match = re.match(rf"[ ]{{{indent}}}([A-Za-z_]+):", line)
        dropping = match.group(1) in value if match else dropping
        if not dropping:
            kept.append(line)
    made = [line for below, content in value.items() for line in block_lines(below, content, indent)]
    return "\n".join([*lines[: begin + 1], *made, *kept, *lines[end:]]) + "\n"


def _with_shapes(lines: list[str], items: Sequence[Mapping[str, Any]], file: str) -> list[str]:
    """Lines of hardware.owned with machines counted anew: a shape that is there keeps all but its count."""
    _demand_block(lines, 0, "owned", file)
    for item in items:
        least = _least(lines, 0, len(lines))
        starts = [n for n in range(1, len(lines)) if re.match(rf"[ ]{{{least}}}- ", lines[n])]
        spans = list(zip(starts, [*starts[1:], len(lines)]))
        mine = [(at, stop) for at, stop in spans if _shape_of(lines[at:stop]) == item["shape"]]
        if len(mine) > 1:
            raise _not_edited(file, f"several entries of {item['shape']}", "owned")
        if not mine:
            lines = [*lines, *item_lines(item, least)]
            continue
        at, stop = mine[0]
        counted = [_COUNT.sub(rf"\g<1>{item['count']}", line, count=1) for line in lines[at:stop]]
        if not any(_COUNT.search(line) for line in lines[at:stop]):
            raise _not_edited(file, f"an entry of {item['shape']} without a count", "owned")
        lines = [*lines[:at], *counted, *lines[stop:]]
    return lines


def _shape_of(lines: Sequence[str]) -> str:
    """The shape of an entry, in braces or over several lines."""
    found = (re.search(r"""(?:^\s*(?:- )?\s*|[{,]\s*)shape:\s*["']?([^"',}\s#]+)""", line) for line in lines)
    return next((match.group(1) for match in found if match), "")


def _span(lines: Sequence[str], key: str, indent: int = 0) -> tuple[int, int] | None:
    """First line of a key of the whole, or of what stands below another, and the line after its last."""
    for begin, line in enumerate(lines):
        if re.match(rf"[ ]{{{indent}}}{re.escape(key)}\s*:", line):
            end = begin + 1
            while end < len(lines) and (not lines[end].strip() or lines[end][indent : indent + 1] in tuple(" \t-#")):
                end += 1
            while end > begin + 1 and (not lines[end - 1].strip() or re.match(rf"[ ]{{0,{indent}}}#", lines[end - 1])):
                end -= 1
            return begin, end
    return None


def _demand_block(lines: Sequence[str], begin: int, key: str, file: str) -> None:
    rest = lines[begin].split(":", 1)[1].split(" #")[0].strip()
    if rest and not rest.startswith("#"):
        raise _not_edited(file, "a value on its own line", key)


def _not_edited(file: str, how: str, key: str = "") -> InputError:
    what = f"'{key}'" if key else "the entry"
    message = f"{what} is written as {how}, which is not edited here"
    hint = "write it over several lines; or plan read --into another.yaml, and copy the lines"
    return InputError(Problem(reference="not-edited", message=message, places=(Place(file=file),), hint=hint))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _least(lines: Sequence[str], begin: int, end: int) -> int:
    """Indentation of what stands directly below a key."""
    found = [_indent(line) for line in lines[begin + 1 : end] if line.strip() and not line.lstrip().startswith("#")]
    return min(found, default=2)


def _name_of(lines: Sequence[str], begin: int, end: int) -> str:
    for line in lines[begin:end]:
        match = re.match(r"\s*(?:- )?\s*name:\s*['\"]?([^'\"#]*?)['\"]?\s*(?:#.*)?$", line)
        if match:
            return match.group(1).strip()
    return f"entry {begin}"


def _same(path: str, source: str) -> bool:
    return Path(source).exists() and Path(path).samefile(source)


def _demand_read(text: str, file: str) -> None:
    """What is written is YAML that our own reader takes; what it means is judged when it is solved."""
    parse_yaml(text, file)
