"""JSON Schema of the scenario file, for editors and for `plan schema`."""

from __future__ import annotations

from typing import Any

from planner.scenario.schema import Scenario

# What stands for a whole mapping, by the mapping's model.
_SHORT_FORMS: dict[str, dict[str, Any]] = {
    "ModelRef": {"type": "string", "description": "name of a shipped preset", "examples": ["llama-3.1-8b"]},
    "Batch": {"type": "string", "examples": ["4M tokens", "512 sequences"]},
    "Failures": {"const": "none"},
    "StepTime": {"type": "string", "examples": ["9.7 s"]},
    "Lengths": {"anyOf": [{"type": "number"}, {"type": "string"}]},
}
_ONE_OR_MANY = {"recompute", "sharding", "offload", "after", "allow", "regions", "pricing", "objective"}
_LENGTHS = {"type": "array", "items": {"$ref": "#/$defs/Bucket"}}


def scenario_json_schema() -> dict[str, Any]:
    """The schema of a scenario file as it is written, short forms and loader keys included."""
    schema = Scenario.model_json_schema(by_alias=True)
    for part in (schema, *schema["$defs"].values()):
        for name, shape in part.get("properties", {}).items():
            part["properties"][name] = _as_written(name, shape)
    overrides = {"type": "object", "additionalProperties": {"type": "object"}}
    names = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    schema["properties"] |= {
        "include": {**names, "description": "files beside this one; what they say holds where this one is silent"},
        "overrides": {**overrides, "description": "named settings: path -> value"},
        "scenarios": {"type": "object", "additionalProperties": names, "description": "named lists of overrides"},
    }
    schema["title"] = "plan/v1 scenario"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _as_written(name: str, shape: dict[str, Any]) -> dict[str, Any]:
    """A property with the short forms that the validators accept."""
    options = shape.pop("anyOf", None)
    if options is None:
        keep: dict[str, Any] = {key: shape.pop(key) for key in ("description", "default", "title") if key in shape}
        options, shape = [shape], keep
    for option in list(options):
        model = option.get("$ref", "").rsplit("/", 1)[-1]
        if model in _SHORT_FORMS:
            options.insert(0, _SHORT_FORMS[model])
            options += [_LENGTHS] if model == "Lengths" else []
        if name in _ONE_OR_MANY and option.get("type") == "array":
            options.insert(0, option["items"])
    return {**options[0], **shape} if len(options) == 1 else {"anyOf": options, **shape}


def schema_text() -> str:
    """The schema as it ships."""
    import json

    return json.dumps(scenario_json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    from pathlib import Path

    from planner.files import write_text

    write_text(Path(__file__).with_name("scenario.schema.json"), schema_text())
