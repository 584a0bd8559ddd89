"""A first scenario from a few answers: the one text that `plan init` writes, with units and next changes in comments.

Answers are what a person typed. The scenario reader judges them, each alone, where it will stand in the file: so a
question refuses in the same words as the file would. A commented line of the form `# key: value` becomes part of the
scenario when its `# ` is taken away; tests hold every one of them to that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.carriers import dataclass
from planner.errors import InputError, Place, Problem
from planner.scenario.load import parse_scenario
from planner.yamlfile.writing import flow_text

SCHEMA_FILE = ".plan/scenario.schema.json"
MODELINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"
_COMMENT_COLUMN = 36
_SIZE = re.compile(r"[0-9]+(\.[0-9]+)? ?[kMBT]( ?param(eter)?s)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What is asked for, each as a person writes it; "" for `train` or `serve` leaves that workload out."""

    name: str = "my-plan"
    train: str = "llama-3.1-8b"
    tokens: str = "20B"
    deadline: str = "14 days"
    serve: str = "llama-3.1-8b"
    qpm: str = "600"
    input_tokens: str = "1000"
    output_tokens: str = "250"
    budget: str = ""
    allow: tuple[str, ...] = ("h100-*", "h200-*", "b200-*", "a100-*", "l40s", "tpu-*")


DEFAULTS = Answers()


def starter_text(answers: Answers, file: str = "scenario.yaml") -> str:
    """The scenario as text; `file` is where it will stand, from which paths of models count.

    Raises
    ------
    ValueError
        Neither a job nor a fleet is asked for.
    """
    if not answers.train and not answers.serve:
        raise ValueError("a scenario trains or serves something")
    parts = [_head(answers, file), *_training(answers, file), *_serving(answers, file), *_rest(answers)]
    return "\n".join(parts) + "\n"


def answer_problems(key: str, value: str | tuple[str, ...], file: str = "scenario.yaml") -> list[Problem]:
    """What the scenario reader says of one answer, every other being as it is by default; placed at the answer.

    Parameters
    ----------
    key
        Field of `Answers`.
    value
        What a person typed.
    file
        Where the scenario will stand; paths of models are seen from there.

    Returns
    -------
    The problems, each of them once; none where the answer is fine.
    """
    other = {"train": "serve", "serve": "train"}.get(key)  # one model is looked at at a time
    changes: dict[str, Any] = {key: value} | ({other: ""} if other else {})
    answers = replace(DEFAULTS, **changes)
    try:
        parse_scenario(starter_text(answers, file), file=file)
    except InputError as error:
        return [at_flag(problem, key, value) for problem in dict.fromkeys(error.problems)]
    return []


def at_flag(problem: Problem, key: str, value: str | tuple[str, ...]) -> Problem:
    """A problem of an answer, shown under the answer itself.

    Parameters
    ----------
    problem
        What is wrong, with any place.
    key
        Field of `Answers`; the problem then stands at the flag of `plan init` for it.
    value
        What a person typed; it is shown and marked as a whole.
    """
    shown = ", ".join(value) if isinstance(value, tuple) else value
    place = Place(file="--" + key.replace("_", "-"), line=1, column=1, text=shown, width=max(1, len(shown)))
    return replace(problem, places=(place,))


def model_reference(model: str, file: str) -> str:
    """A model as YAML: a preset's name, a config file as seen from the scenario, or a bare size."""
    if is_size(model):
        return flow_text({"parameters": model})
    if not is_path(model):
        return flow_text(model)
    folder = os.path.dirname(file) or "."  # noqa: PTH120 - "" for a bare name
    path = model if os.path.isabs(model) else os.path.relpath(model, folder)  # noqa: PTH117 - text in, text out
    return flow_text({"config": path.replace(os.sep, "/")})


def is_size(model: str) -> bool:
    """Whether a model is named by its number of parameters alone."""
    return bool(_SIZE.fullmatch(model))


def is_path(model: str) -> bool:
    """Whether a model is named by a file or folder."""
    return "/" in model or os.sep in model or model.endswith(".json") or model in (".", "..")


def _head(answers: Answers, file: str) -> str:
    name = flow_text(answers.name, plain=answers.name[:1].isalpha())  # a name may look like a number
    return f"""\
{MODELINE}
# Made by `plan init`. Change it, then: plan solve {flow_text(file)}
#
# Quantities are text with a unit: 30 days, 80 GB, 200B tokens, $2.49/h, 30 %. k M B T count in thousands (8B is
# 8,000,000,000), GB is 10^9 bytes and GiB 2^30, a month is 730 h. Lines such as "# key: value" are suggestions: take
# the "# " away to use one. `plan schema` prints every key; editors that know the first line complete them.
schema: plan/v1
{_line(0, "name", name, "the plan is saved as .plan/NAME.plan.json")}
{_line(0, "horizon", "1 month", "how long serving is paid for; training is paid once")}"""


def _training(answers: Answers, file: str) -> Iterator[str]:
    if not answers.train:
        return
    yield "\ntraining:"
    yield _line(2, "- name", "train", "used in --set training.train.deadline='20 days' and in reports")
    yield _line(4, "model", model_reference(answers.train, file), _MODELS)
    yield _line(4, "tokens", flow_text(answers.tokens), "to train on, each epoch")
    yield _line(4, "deadline", flow_text(answers.deadline), "from the start; held with a margin (confidence: p90)")
    yield _line(4, "# epochs", "2", "passes over the tokens")
    yield _line(4, "# sequence_length", "8192", "default 4096, or the most that the model takes")
    yield _line(4, "# global_batch", "2M tokens", "of one optimizer step; default at most 4M tokens")
    yield _line(4, "# precision", "fp8", "fp32, fp16, bf16 (default) or fp8")
    yield _line(4, "# optimizer", "adamw-8bit", "adamw (default) holds 16 bytes a parameter")
    yield _line(4, "# mfu", '{"h100-*": 42 %}', "what you measured, in place of the prediction")


def _serving(answers: Answers, file: str) -> Iterator[str]:
    if not answers.serve:
        return
    yield "\nserving:"
    yield _line(2, "- name", "serve", "")
    yield _line(4, "model", model_reference(answers.serve, file), "plan models list, or {config: path/to/config.json}")
    yield _line(4, "qpm", flow_text(answers.qpm), "requests per minute, mean")
    yield _line(4, "peak_factor", "2", "busiest over mean")
    yield _line(4, "input_tokens", flow_text(answers.input_tokens), "of a request, mean; or {mean: 1500, p95: 4000}")
    yield _line(4, "output_tokens", flow_text(answers.output_tokens), "of an answer, mean")
    yield _line(4, "slo", "{ttft_p95: 3 s, tpot_p95: 100 ms}", "to the first token, and between the others")
    yield _line(4, "# weights", "fp8", "bf16 (default), fp8, int4, ...: less memory, perhaps less quality")
    yield _line(4, "# kv_cache", "fp8", "format of the key-value cache")
    yield _line(4, "# spare_replicas", "1", "that many may be lost")
    yield _line(4, "# prefix_cached", "30 %", "share of the input that is found in the cache")


def _rest(answers: Answers) -> Iterator[str]:
    yield "\nhardware:"
    yield _line(2, "allow", flow_text(answers.allow), "plan catalog list --group-by device")
    yield _line(2, "pricing", "[on_demand]", "also spot, commitment_1y, commitment_3y, flex, calendar")
    yield _line(2, "# regions", '["us-*"]', "where; left out: anywhere")
    yield _line(2, "# owned", "[{shape: dgx-a100-80gb, count: 1, price: $9.80/h}]", "yours: power and hosting only")
    yield "\nlimits:" if answers.budget else "\n# limits: {max_devices: 64, power: 120 kW}"
    if answers.budget:
        yield _line(2, "budget", flow_text(answers.budget), "training, and serving over the horizon")
        yield _line(2, "# max_devices", "64", "at most, all workloads together")
    yield "\n" + _line(0, "# objective", "[cost, time]", "the cheapest plan, and of equals the soonest")
    yield from _cases(answers)


def _cases(answers: Answers) -> Iterator[str]:
    """What if? One case for each workload, whose values hold whatever was answered."""
    settings = [("cautious", "training.train.confidence", "p95")] if answers.train else []
    settings += [("burst", "serving.serve.peak_factor", "4")] if answers.serve else []
    yield "\n# What if? Named changes; plan solve --case " + settings[0][0]
    yield "overrides:"
    yield from (_line(2, name, f"{{{path}: {value}}}", "") for name, path, value in settings)
    yield "scenarios:"
    yield from (_line(2, name, f"[{name}]", "") for name, _, _ in settings)


_MODELS = "plan models list, {config: path/to/config.json}, or {parameters: 8B}"


def _line(indent: int, key: str, value: str, comment: str) -> str:
    text = f"{' ' * indent}{key}: {value}"
    return f"{text:<{_COMMENT_COLUMN}}  # {comment}" if comment else text
