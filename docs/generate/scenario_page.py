"""docs/scenario.md: every key of a scenario, from the JSON Schema that ships and scenarios that load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markup import link, paragraphs, prose, table
from scenario_words import HEAD, INTRODUCTION, MAPPINGS, QUANTITIES

from planner.scenario.jsonschema import scenario_json_schema
from planner.yamlfile import parse_yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = [*sorted((ROOT / "scenarios").glob("*.yaml")), *sorted((Path(__file__).parent / "examples").glob("*.yaml"))]
Shape = Mapping[str, Any]
_LONGEST = 60  # characters of an example


def scenario_page() -> dict[str, str]:
    """Path below docs/ -> text."""
    schema = scenario_json_schema()
    parts = [HEAD, *map(paragraphs_or_block, INTRODUCTION), "## Quantities", table(("What", "Written as"), QUANTITIES)]
    for name, mapping in mappings(schema).items():
        title, about = MAPPINGS[name]
        parts += [f"## {title}", paragraphs(about), _keys(name, mapping, schema)]
    return {"scenario.md": "\n\n".join(parts) + "\n"}


def paragraphs_or_block(text: str) -> str:
    """Running text folded; a fenced block or a heading as it is."""
    return text if text.startswith(("```", "#")) else paragraphs(text)


def mappings(schema: Shape) -> dict[str, Shape]:
    """The file itself and every mapping in it, each followed by those that it holds."""
    found: dict[str, Shape] = {}

    def visit(name: str, mapping: Shape) -> None:
        if name in found:
            return
        found[name] = mapping
        for shape in mapping["properties"].values():
            for below in _references(shape):
                visit(below, schema["$defs"][below])

    visit("Scenario", schema)
    return found


def _keys(name: str, mapping: Shape, schema: Shape) -> str:
    required = mapping.get("required", ())
    rows = []
    for key, shape in mapping["properties"].items():
        default = "**required**" if key in required else _default(shape)
        rows.append([f"`{key}`", prose(shape["description"]), " or ".join(_kinds(shape)), default, _example(name, key)])
    return table(("Key", "What it says", "Written as", "Default", "Example"), rows)


def _kinds(shape: Shape) -> Iterator[str]:
    """The ways to write a value, in words, each once."""
    words = list(dict.fromkeys(word for option in _options(shape) for word in _kind(option)))
    for word in words:
        if f"list of {word}" in words:
            yield f"one or more of {word}"
        elif word.removeprefix("list of ") not in words or word not in words[1:]:
            yield word


def _kind(option: Shape) -> Iterator[str]:
    text = "$comment" in option and prose(str(option["$comment"]))
    if "$ref" in option:
        yield _section(option["$ref"].rsplit("/", 1)[-1])
    elif "enum" in option or "const" in option:
        yield ", ".join(f"`{value}`" for value in option.get("enum", [option.get("const")]))
    elif option.get("type") == "array":
        yield f"list of {' or '.join(_kinds(option.get('items', {})))}"
    elif option.get("examples"):
        yield f"`{option['examples'][0]}`" + (f" ({text})" if text else "")
    elif option.get("type") in ("number", "integer"):
        yield f"number {text or _range(option)}".strip()
    elif option.get("type") == "boolean":
        yield "`true` or `false`"
    elif option.get("type") == "object":
        yield "mapping"
    elif option.get("type") != "null":
        yield text or "text"


def _range(option: Shape) -> str:
    return f"from {option['minimum']:g}" if "minimum" in option else ""


def _options(shape: Shape) -> Iterator[Shape]:
    """The alternatives of a shape; a bare number beside a text with a unit is told by the text alone."""
    if "anyOf" not in shape:
        yield shape
        return
    options = [one for option in shape["anyOf"] for one in _options(option)]
    comment = {key: shape[key] for key in ("$comment",) if key in shape}
    told = any(option.get("examples") for option in options)
    yield from ({**option, **comment} for option in options if not (told and option.get("type") == "number"))


def _references(shape: Shape) -> Iterator[str]:
    for option in _options(shape):
        if "$ref" in option:
            yield option["$ref"].rsplit("/", 1)[-1]
        for part in ("items", "additionalProperties"):
            if isinstance(option.get(part), dict):
                yield from _references(option[part])


def _section(name: str) -> str:
    title = MAPPINGS[name][0]
    return link(title.lower(), f"#{anchor(title)}")


def anchor(title: str) -> str:
    """The anchor that repository hosts make of a heading."""
    kept = "".join(character for character in title.lower() if character.isalnum() or character in " -_")
    return kept.replace(" ", "-")


def _default(shape: Shape) -> str:
    default = shape.get("default")
    if default in (None, [], {}, "", ()):
        return ""
    return f"`{_flow(default)}`" if not isinstance(default, dict) else ""


def _example(name: str, key: str) -> str:
    """A real use of the key, with the scenario that it stands in."""
    value, path = used()[name, key]
    text = _flow(value)
    shown = f"`{key}: {text}`" if len(text) <= _LONGEST else ""
    shipped = path.parent.name == "scenarios"
    where = link(path.name, f"../scenarios/{path.name}" if shipped else f"generate/examples/{path.name}")
    return f"{shown} {where}".strip()


def _flow(value: Any) -> str:
    """A value in YAML's flow style, unquoted where that may be."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if value[:1] in "*[{&!%@" or "*" in value or ": " in value else value
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def used() -> dict[tuple[str, str], tuple[Any, Path]]:
    """(mapping, key) -> a value that a scenario gives it and the scenario; the shortest that is shown."""
    schema = scenario_json_schema()
    found: dict[tuple[str, str], tuple[Any, Path]] = {}
    for path in EXAMPLES:
        data = parse_yaml(path.read_text(encoding="utf-8"), str(path)).data
        for name, key, value in _uses("Scenario", data, schema):
            before = found.get((name, key))
            if before is None or len(_flow(before[0])) > _LONGEST >= len(_flow(value)):
                found[name, key] = value, path
    return found


def _uses(name: str, data: Any, schema: Shape) -> Iterator[tuple[str, str, Any]]:
    mapping = schema if name == "Scenario" else schema["$defs"][name]
    for key, value in data.items() if isinstance(data, Mapping) else ():
        shape = mapping["properties"].get(key)
        if shape is None:
            continue
        yield name, key, value
        items = value if isinstance(value, list) else [value]
        for below in _references(shape):
            for item in items:
                yield from _uses(below, item, schema)
