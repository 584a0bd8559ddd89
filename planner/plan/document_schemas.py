"""JSON Schemas of documents from their types; `python -m planner.api.made_schemas` writes those that ship."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_original_bases, is_typeddict

from planner.plan.model.plan import PlanDocument
from planner.plan.plan_files import adapter_of

Schema = dict[str, Any]


class _Untitled(GenerateJsonSchema):
    """Without titles that only repeat the names of keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def plan_json_schema() -> Schema:
    """The schema of a plan document."""
    return document_schema(PlanDocument, "plan/result/v1", "A plan, as `plan solve -o json` prints it")


def document_schema(document: Any, identifier: str, title: str) -> Schema:
    """The schema of a document, with what its types say of each key.

    Parameters
    ----------
    document
        A TypedDict; a text below a key of it, or of what it holds, describes the key.
    identifier
        Its name and version, as plan/result/v1.
    """
    found = adapter_of(document).json_schema(schema_generator=_Untitled)
    parts = found.pop("$defs", {})
    whole = parts.pop(document.__name__, found)
    for kind in _kinds(document):
        part = whole if kind is document else parts.get(kind.__name__)
        if part is None:  # a document inside this one, which has a schema of its own
            continue
        part.pop("title", None)
        for key, text in _texts(kind):
            part["properties"][key]["description"] = text
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identifier, "title": title}
    own = f'"#/$defs/{document.__name__}"'  # the whole, inside itself
    schema: Schema = json.loads(json.dumps({**head, **whole, "$defs": parts}).replace(own, '"#"'))
    return schema


def _kinds(hint: Any, found: dict[Any, None] | None = None) -> dict[Any, None]:
    """Every TypedDict that a type holds, itself included."""
    found = {} if found is None else found
    if is_typeddict(hint) and hint not in found:
        found[hint] = None
        for inner in get_type_hints(hint, include_extras=True).values():
            _kinds(inner, found)
    for part in get_args(hint):
        _kinds(part, found)
    return found


def _texts(kind: Any) -> Iterator[tuple[str, str]]:
    """Keys of a TypedDict with the texts below them, those of its bases first."""
    for base in get_original_bases(kind):
        if is_typeddict(base):
            yield from _texts(base)
    try:
        (body,) = ast.parse(inspect.getsource(kind)).body
    except OSError:  # made by a call, for keys that are words of Python
        return
    assert isinstance(body, ast.ClassDef)
    for one, after in zip(body.body, body.body[1:]):
        if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield ast.unparse(one.target), str(after.value.value)


def schema_text(schema: Schema) -> str:
    """A schema as it ships."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
