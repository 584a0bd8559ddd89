"""Where each term of an estimate is from: its equation, and the first source that the equation names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.candidates.rates import RatesQuestion
from planner.candidates.serving import ServingQuestion
from planner.equations.registry import REGISTRY
from planner.estimate.sources import MIXED_TIME, SERVING_MEMORY, SERVING_STEP, TRAINING_MEMORY, time_equations

if TYPE_CHECKING:
    from planner.candidates.training_question import TrainingQuestion
    from planner.plan.model.workloads import TermSource, TermSources

_FIRST_REFERENCE = re.compile(r"References\n-+\n\[1\] (?P<text>.+?)(?:\n\[|\n\n|\Z)", re.DOTALL)
_AUTHOR = re.compile(r"(?:[A-Z]\.[ -]?)+ ?(?P<name>[A-Z][\w-]+)")
_REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)")
_PUBLISHER = re.compile(r"(?P<name>[A-Z]{3,})\b")
_ARXIV = re.compile(r"\b(\d\d)\d\d\.\d{4,5}\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b(?!\.\d)")  # not the month of an arXiv number


def term_sources(question: TrainingQuestion | ServingQuestion) -> TermSources:
    """Equation and source of each term of memory and time, by the names that rows give them."""
    if isinstance(question, RatesQuestion):
        return {"memory": {}, "time": {}}
    if isinstance(question, ServingQuestion):
        step = SERVING_STEP if question.fleet.throughput_tokens_per_s_per_device is None else {}
        return {"memory": _sourced(SERVING_MEMORY), "time": _sourced(step)}
    tiers = dict.fromkeys((question.base_tier, "rule" if question.job.mfu else question.base_tier))
    time = {name: found for tier in reversed(tiers) for name, found in _sourced(time_equations(tier)).items()}
    groups = _sourced(MIXED_TIME) if question.job.mix_within_job else {}
    return {"memory": _sourced(TRAINING_MEMORY), "time": {**time, **groups}}


def _sourced(equations: Mapping[str, str]) -> dict[str, TermSource]:
    return {term: {"equation": name, "source": short_reference(name)} for term, name in equations.items()}


def short_reference(identifier: str) -> str:
    """The first source of an equation as people cite it: "Korthikanti 2022"; empty when there is none.

    Examples
    --------
    >>> short_reference("EQ-MEM-1")
    'Rajbhandari 2020'
    """
    found = _FIRST_REFERENCE.search(inspect.getdoc(REGISTRY[identifier]) or "")
    if not found:
        return ""
    text = " ".join(found["text"].split())
    named = _AUTHOR.match(text) or _REPOSITORY.match(text) or _PUBLISHER.match(text)
    return " ".join(part for part in (named["name"], _year(text)) if part) if named else ""


def _year(text: str) -> str:
    """The year that a reference names, else that of its arXiv number."""
    if year := _YEAR.search(text):
        return year[0]
    number = _ARXIV.search(text)
    return f"20{number[1]}" if number else ""
