"""`plan init`: a first scenario from a few questions, from flags, or from nothing."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.carriers import dataclass
from planner.cli import complete
from planner.cli.frame import Frame, command, usage

if TYPE_CHECKING:
    from planner.errors import Problem
    from planner.scenario.starter import Answers

NOTHING = "-"
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked for one answer; `of` names the model without which it makes no sense."""

    key: str
    text: str
    of: str = ""


QUESTIONS = (
    Question(key="train", text=f"Model to train (a name, a config.json, a size as 8B; {NOTHING} for none)"),
    Question(key="tokens", text="Tokens to train on", of="train"),
    Question(key="deadline", text="Done within", of="train"),
    Question(key="serve", text=f"Model to serve ({NOTHING} for none)"),
    Question(key="qpm", text="Requests per minute, mean", of="serve"),
    Question(key="input_tokens", text="Tokens of a request, mean", of="serve"),
    Question(key="output_tokens", text="Tokens of an answer, mean", of="serve"),
    Question(key="budget", text=f"Budget for all of it, as $60000 ({NOTHING} for no limit)"),
    Question(key="allow", text="Accelerators that may be used"),
)


def _flag(key: str, help_text: str, **more: Any) -> Any:
    return typer.Option(f"--{key}", help=help_text, **more)


def init(
    frame: Frame,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help=f"Scenario to write; {STDOUT} is stdout.")
    ] = "scenario.yaml",
    train: Annotated[
        str | None,
        _flag("train", "Train this: a preset, a config.json, 8B.", metavar="MODEL", autocompletion=complete.models),
    ] = None,
    tokens: Annotated[str | None, _flag("tokens", "To train on, as 20B.", metavar="TOKENS")] = None,
    deadline: Annotated[str | None, _flag("deadline", "Training is done within, as '14 days'.", metavar="TIME")] = None,
    serve: Annotated[
        str | None,
        _flag("serve", "Serve this: a preset, or a config.json.", metavar="MODEL", autocompletion=complete.models),
    ] = None,
    qpm: Annotated[str | None, _flag("qpm", "Requests per minute, mean.", metavar="NUMBER")] = None,
    input_tokens: Annotated[str | None, _flag("input-tokens", "Of a request, mean.", metavar="TOKENS")] = None,
    output_tokens: Annotated[str | None, _flag("output-tokens", "Of an answer, mean.", metavar="TOKENS")] = None,
    budget: Annotated[str | None, _flag("budget", "For all of it, as '$60000'.", metavar="MONEY")] = None,
    name: Annotated[str | None, _flag("name", "Of the scenario; default: that of the file.", metavar="NAME")] = None,
    allow: Annotated[
        list[str] | None,
        _flag(
            "allow",
            "Accelerators that may be used: h100-*; repeatable.",
            metavar="DEVICE",
            autocompletion=complete.devices,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; defaults where no flag says more.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a first scenario, with comments: by questions on a terminal, else from flags and defaults."""
    given = {key: value for key, value in locals().items() if key in _ANSWERS and value is not None}
    _may_write(file, force)
    answers = _named(file, name)
    answers = _from_flags(answers, given, file)
    if not given and not yes and file != STDOUT and sys.stdin.isatty() and sys.stdout.isatty():
        answers = _asked(frame, answers, file)
    _write(frame, answers, file)


_ANSWERS = ("train", "tokens", "deadline", "serve", "qpm", "input_tokens", "output_tokens", "budget", "name", "allow")


def _may_write(file: str, force: bool) -> None:
    if file == STDOUT:
        return
    if PurePath(file).suffix not in (".yaml", ".yml"):
        name = PurePath(file).stem or "scenario"
        raise usage("not-a-scenario", f"'{file}' is no name of a scenario file", f"plan init {name}.yaml")
    if not force and Path(file).exists():
        raise usage("file-exists", f"{file} is there already", "--force replaces it; or name another file")


def _named(file: str, name: str | None) -> Answers:
    """The defaults, under the name given or that of the file."""
    from planner.report.escape import file_stem
    from planner.scenario.starter import DEFAULTS

    stem = file_stem(PurePath(file).stem).lower().lstrip("_")[:60]
    own = stem if file != STDOUT and stem not in ("", "scenario", "plan") else DEFAULTS.name
    return replace(DEFAULTS, name=name if name is not None else own)


def _from_flags(answers: Answers, given: dict[str, Any], file: str) -> Answers:
    """The answers with those of flags; every flag that is refused is told at once."""
    from planner.errors import UsageError

    values: dict[str, Any] = {key: tuple(value) if key == "allow" else value for key, value in given.items()}
    if "train" in values or "serve" in values:  # then only what is named is planned
        values = {"train": "", "serve": "", **values}
    for question in QUESTIONS:
        if question.key in given and question.of and not values.get(question.of, "default"):
            flag = question.key.replace("_", "-")
            raise usage("missing-option", f"--{flag}, of which model?", f"add --{question.of} llama-3.1-8b")
    if not values.get("train", "default") and not values.get("serve", "default"):
        raise usage("missing-option", "a scenario trains or serves something", "add --train or --serve MODEL")
    problems = [problem for key, value in values.items() if value for problem in refusals(key, value, file)]
    if problems:
        raise UsageError(*problems)
    return replace(answers, **values)


def _asked(frame: Frame, answers: Answers, file: str) -> Answers:
    """The answers of a person; each is checked at once, and asked for again while it is refused."""
    frame.say("Nine questions at most. Enter takes what stands in brackets; Ctrl-C leaves nothing behind.\n")
    for question in QUESTIONS:
        if question.of and not getattr(answers, question.of):
            continue
        default = _default(question.key, answers)
        needed = question.key not in ("train", "budget") and not (question.key == "serve" and answers.train)
        answers = replace(answers, **{question.key: _one(frame, question, default, needed, file)})
    return answers


def _default(key: str, answers: Answers) -> Any:
    """What Enter takes: to serve, the model that is trained, unless only its size is known."""
    from planner.scenario.starter import is_size

    if key == "serve" and answers.train and not is_size(answers.train):
        return answers.train
    return getattr(answers, key)


def _one(frame: Frame, question: Question, default: Any, needed: bool, file: str) -> Any:
    """One answer that stands; "" for none, where none is needed."""
    shown = " ".join(default) if isinstance(default, tuple) else default or NOTHING
    while True:
        line = _line_of(f"{question.text} [{shown}]: ").strip() or shown
        if line == NOTHING:
            if not needed:
                return ""
            frame.say("  something has to stand here\n")
            continue
        value: Any = tuple(line.replace(",", " ").split()) if question.key == "allow" else line
        found = refusals(question.key, value, file)
        if not found:
            return value
        frame.say("".join(f"  {problem.message}\n  {problem.hint}\n" for problem in found))


def _line_of(prompt: str) -> str:
    """One line from the terminal; its end (Ctrl-D) is taken as a wish to leave."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - lets input() edit its line
    try:
        return input(prompt)
    except EOFError:
        raise KeyboardInterrupt from None


def refusals(key: str, value: str | tuple[str, ...], file: str) -> list[Problem]:
    """What the reader of scenarios, the presets or the catalog say against one answer.

    Parameters
    ----------
    key
        Field of `Answers`.
    value
        What a person typed, or a flag gave; names of devices come as several.
    file
        Where the scenario will stand.
    """
    from planner.errors import InputError
    from planner.scenario.starter import answer_problems, at_flag

    problems = answer_problems(key, value, file)
    if problems or key not in ("train", "serve", "allow"):
        return problems
    try:
        _look_up(key, value)
    except InputError as error:
        return [at_flag(problem, key, value) for problem in error.problems]
    return []


def _look_up(key: str, value: Any) -> None:
    """Models and devices by name; `InputError` when there is none, or when too little is known of it."""
    from planner.errors import InputError
    from planner.scenario.starter import Answers, is_path, is_size, starter_text

    if key == "allow":
        from planner.catalog.load import load_catalog
        from planner.plan.references import check_references
        from planner.scenario.load import parse_scenario

        check_references(parse_scenario(starter_text(Answers(allow=value))), load_catalog())
    elif is_size(value):
        if key == "serve":
            hint = "name a preset or a config.json; or write the file first, and throughput: 2100 tokens/s into it"
            raise InputError.of(
                "shape-unknown", f"the size {value} alone does not say how fast a model serves", hint=hint
            )
    else:
        from planner.architecture.load import load_model

        load_model(Path(value) if is_path(value) else value)


def _write(frame: Frame, answers: Answers, file: str) -> None:
    from planner import files
    from planner.cli.next_steps import after_init
    from planner.scenario.starter import SCHEMA_FILE, starter_text

    text = starter_text(answers, "scenario.yaml" if file == STDOUT else file)
    if file == STDOUT:
        frame.emit(text)
        return
    files.write_text(file, text)
    schema = PurePath(file).parent / SCHEMA_FILE
    files.write_text(schema, files.read_package_text("scenario/scenario.schema.json"))
    frame.emit(after_init(file, str(schema)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    examples = (
        "plan init mine.yaml",
        "plan init mine.yaml --train qwen2.5-7b --tokens 100B --deadline '21 days' --budget '$50000'",
    )
    command(app, "init", examples=examples)(init)
