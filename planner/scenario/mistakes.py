"""From what the validators found to problems with a place, a sentence and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from planner.carriers import dataclass
from planner.errors import Place, Problem
from planner.scenario.fields import FIELD, written
from planner.scenario.schema import Scenario
from planner.spelling import closest
from planner.yamlfile import BAD, Document, Steps, path_text

# Keys that load.py takes out before the models see the rest.
LOADER_KEYS = ("include", "overrides", "scenarios")

_EXAMPLES = {
    "schema": "schema: plan/v1",
    "name": "name: my-plan",
    "model": "model: llama-3.1-8b",
    "tokens": "tokens: 200B",
    "deadline": "deadline: 30 days",
    "qpm": "qpm: 600",
    "users": "users: 2000",
    "think_time": "think_time: 30 s",
    "input_tokens": "input_tokens: 1500",
    "output_tokens": "output_tokens: 400",
    "min": "min: 1M tokens",
    "max": "max: 8M tokens",
    "shape": "shape: dgx-a100-80gb",
    "count": "count: 2",
    "price": "price: $9.80/h",
    "fraction": "fraction: 20 %",
    "measured": "measured: 9.7 s",
    "watts": "watts: 10.2 kW",
    "years": "years: 4",
    "pue": "pue: 1.3",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A problem and the path it is about; `keys` are the names it is about in that mapping."""

    path: Steps
    problem: Problem
    missing: tuple[str, ...] = ()  # what is not there
    meant: str = ""  # what an unknown key was probably meant to be


def mistake(
    document: Document,
    path: Steps,
    reference: str,
    message: str,
    hint: str,
    *,
    places: Sequence[Place] = (),
    missing: tuple[str, ...] = (),
) -> Mistake:
    """A mistake at a path; its place is the value's unless others are given.

    Parameters
    ----------
    document
        The file, for places.
    path
        What it is about; () = the scenario as a whole.
    reference
        Of the problem, in kebab-case.
    message
        What is wrong.
    hint
        A way out.
    places
        Where it shows; empty: at the value of the path, or at the nearest above it.
    missing
        Keys that are not there, in the mapping at the path.
    """  # fmt: skip
    places = tuple(places) or (document.place(path),)
    problem = Problem(reference=reference, message=message, places=tuple(places), hint=hint)
    return Mistake(path=path, problem=problem, missing=missing)


def from_pydantic(errors: Iterable[Any], document: Document) -> list[Mistake]:
    """One mistake for each error of pydantic, less those about values that were refused before."""
    found = []
    for error in errors:
        path = tuple(step for step in error["loc"] if step != "[key]")
        node, _ = document.nearest(path)
        if node.value is BAD or error["input"] is BAD:
            continue
        found.append(_translate(error, path, document))
    return found


def _translate(error: Any, path: Steps, document: Document) -> Mistake:
    kind = error["type"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(path, document)
    if kind == "missing":
        key = str(path[-1])
        example = _EXAMPLES.get(key, f"{key}: …")
        return mistake(document, path[:-1], "missing-field", f"'{key}' is missing in {_container(path[:-1])}",
                       f'add "{example}"', missing=(key,))  # fmt: skip
    field = _field_name(path, document)
    if "message" in context:
        reference, message, hint = kind, context["message"], context["hint"]
        if reference == "not-one-of":
            hint = hint or _choice_hint(error["input"], message.rsplit("one of ", 1)[-1].split(", "))
    elif kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        reference = "not-one-of"
        message = f"{FIELD} is {written(error['input'])}; it must be one of {', '.join(choices)}"
        hint = _choice_hint(error["input"], choices)
    else:
        reference, message, hint = _wrong_type(kind, error["input"])
    message = message.replace(FIELD, field)
    return mistake(document, path, reference, message, hint.replace(FIELD, field))


def _wrong_type(kind: str, value: object) -> tuple[str, str, str]:
    if kind == "bool_type":
        return "wrong-type", f"{FIELD} is {written(value)}; it wants true or false", "write true or false"
    if kind == "string_type":
        return "wrong-type", f"{FIELD} is {written(value)}; it wants text", "write text, in quotes if need be"
    return "wrong-type", f"{FIELD} is {written(value)}; it wants a mapping of fields", "write key: value, one a line"


def _unknown_field(path: Steps, document: Document) -> Mistake:
    key, above = str(path[-1]), path[:-1]
    model = _model_at(above)
    known = _aliases(model) if model else []
    if model is Scenario:
        known += LOADER_KEYS
    near = closest(key, known)
    home = "" if near else _home_of(key)
    if near:
        hint = f"did you mean '{near[0]}'?"
    elif home:
        hint = f"'{key}' is a field of {home}"
    else:
        hint = "fields: " + ", ".join(known)
    problem = Problem(
        reference="unknown-field",
        message=f"'{key[:80]}' is not a field of {_container(above)}",
        places=(document.key_place(path),),
        hint=hint,
    )
    return Mistake(path=path, problem=problem, meant=near[0] if near else "")


def _choice_hint(value: object, choices: Sequence[str]) -> str:
    near = closest(value, choices) if isinstance(value, str) and len(value) < 80 else []
    return f"did you mean '{near[0]}'?" if near else f"write {choices[0]}"


def _field_name(path: Steps, document: Document) -> str:
    """The last key of the path that somebody wrote."""
    left = document.nearest(path)[1]
    there = path[: len(path) - len(left)] if left else path
    names = [step for step in there if isinstance(step, str)]
    return names[-1] if names else "the scenario"


def _container(path: Steps) -> str:
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return "the scenario"
    return names[-1] if len(path) == 2 and isinstance(path[1], int) else path_text(path)


def _aliases(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as tuple[TrainingJob, ...] | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _model_at(path: Steps) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Scenario
    for step in path:
        if model is None or isinstance(step, int):
            continue
        infos = {info.alias or name: info for name, info in model.model_fields.items()}
        model = _model_in(infos[step].annotation) if step in infos else None
    return model


def _home_of(key: str) -> str:
    """The section where a misplaced key belongs."""
    for section in ("training", "serving", "hardware", "limits"):
        model = _model_at((section,))
        if model and key in _aliases(model):
            return section
    return "the scenario itself" if key in _aliases(Scenario) else ""


def one_each(mistakes: Iterable[Mistake]) -> list[Problem]:
    """The problems to print: one for each mistake, in the order of the file."""
    mistakes = list(mistakes)
    meant = {(m.path[:-1], m.meant) for m in mistakes if m.meant}
    kept: dict[tuple[str, str, tuple[Place, ...]], Problem] = {}
    for m in mistakes:
        # A mistyped key is one mistake, not an unknown field and a missing one.
        if any((m.path, key) in meant for key in m.missing):
            continue
        kept.setdefault((m.problem.reference, m.problem.message, m.problem.places), m.problem)
    return list(kept.values())
