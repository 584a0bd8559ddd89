"""What a file can be, which of all kinds it is, and what was read of it.

A `Kind` recognises its own by content before name, and reads it: rows taken and skipped, what the figures are, the
pieces that follow from them.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date
from pathlib import PurePath
from typing import Any

from planner.carriers import dataclass
from planner.errors import InputError, Place, Problem, UsageError
from planner.reading.source import Source
from planner.spelling import closest

MOST_NOTES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure for people."""

    label: str
    value: float | int | str
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something to write.

    `what` is scenario (a fragment: keys below which `fragment` is put, `lists` are lists of named things),
    trace (CSV of requests), rows (CSV of measurements), card (config of a model), prices or overlay (YAML or CSV).
    """

    what: str
    name: str  # of the file, as proposed
    text: str = ""
    fragment: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""  # one line: what it is good for


@dataclass(slots=True, kw_only=True)
class Skips:
    """Rows that were not taken: reason -> how many, and the line or row of the first."""

    reasons: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, reason: str, line: int, count: int = 1) -> None:
        """Count rows, of which the first stands at a line.

        Parameters
        ----------
        reason
            Why the rows were not taken; they are counted by it.
        line
            Of the first of them, or its place among records.
        count
            How many.  [count]
        """
        before, first = self.reasons.get(reason, (0, line))
        self.reasons[reason] = (before + count, min(first, line) if before else line)

    @property
    def count(self) -> int:
        """All rows skipped."""
        return sum(count for count, _ in self.reasons.values())


@dataclass(slots=True, kw_only=True)
class Reading:
    """What a file is and what follows from it."""

    kind: str
    title: str
    source: str
    tool: str = ""
    version: str = ""
    taken: int = 0
    of: str = "rows"  # what is counted
    skipped: Skips = field(default_factory=Skips)
    notes: list[str] = field(default_factory=list)
    understood: dict[str, str] = field(default_factory=dict)  # units, time zone, columns: as they were taken
    look: list[Figure] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def show(self, label: str, value: float | int | str | None, unit: str = "") -> None:
        """Add a figure, unless it is not known.

        Parameters
        ----------
        label
            What the figure is.
        value
            None: it is not known.
        unit
            As it stands behind the figure; empty: none.
        """
        if value is not None:
            self.look.append(Figure(label=label, value=value, unit=unit))

    def note(self, sentence: str) -> None:
        """Add a note once; after the 40th no more."""
        if sentence not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(sentence)


def document_of(reading: Reading) -> dict[str, Any]:
    """The reading as plain data, for every output format."""
    return {
        "kind": reading.kind,
        "title": reading.title,
        "source": reading.source,
        "tool": reading.tool,
        "version": reading.version,
        "taken": reading.taken,
        "of": reading.of,
        "skipped": [
            {"reason": reason, "count": count, "first_line": line}
            for reason, (count, line) in reading.skipped.reasons.items()
        ],
        "understood": dict(reading.understood),
        "figures": [{"label": each.label, "value": each.value, "unit": each.unit} for each in reading.look],
        "notes": list(reading.notes),
        "pieces": [{"what": piece.what, "name": piece.name, "says": piece.says} for piece in reading.pieces],
    }


SURE = 0.6  # from here on a file is of the kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How well a file fits a kind: 0 not at all, 1 without doubt; what of it was found and what is missing."""

    score: float
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    tool: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says about a file."""

    columns: Mapping[str, str] = field(default_factory=dict)  # role -> name of the column in the file
    time_zone: str = ""  # of times without one, as Europe/Berlin
    time_unit: str = ""  # of numbers that are times: s, ms, us, ns
    model: str = ""
    accelerator: str = ""
    devices: int = 0
    name: str = ""  # of the workload, fleet or job that is written
    today: str = field(default_factory=lambda: date.today().isoformat())  # of prices that tell no date


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of file; `recognise` looks at the head only."""

    name: str
    title: str
    looks_for: str  # one line: what a file of this kind holds
    recognise: Callable[[Source], Match]
    read: Callable[[Source, Asked], Reading]


def fit(found: Mapping[str, bool], *, tool: str = "", version: str = "", ceiling: float = 1.0) -> Match:
    """A match by the share of marks that are there.

    Parameters
    ----------
    found
        Mark in words -> whether the file has it.
    tool
        What writes such files; empty: not told.
    version
        Of the tool; empty: not told.
    ceiling
        Score where every mark is there.  [1]
    """
    there = tuple(mark for mark, is_there in found.items() if is_there)
    missing = tuple(mark for mark, is_there in found.items() if not is_there)
    return Match(score=ceiling * len(there) / max(len(found), 1), found=there, missing=missing, tool=tool,
                 version=version)  # fmt: skip


NOTHING = Match(score=0.0)


# modules with a tuple KINDS, imported when a file is to be recognised
MODULES = (
    "planner.reading.requests",
    "planner.reading.usage",
    "planner.reading.engine_logs",
    "planner.reading.benchmarks",
    "planner.reading.bench_tables",
    "planner.reading.bench_reports",
    "planner.reading.training_logs",
    "planner.reading.weights",
    "planner.reading.kubernetes_state",
    "planner.reading.nvidia_smi",
    "planner.reading.vendor_tools",
    "planner.reading.machines",
    "planner.reading.slurm_jobs",
    "planner.reading.slurm_nodes",
    "planner.reading.job_traces",
    "planner.reading.prometheus",
    "planner.reading.bills",
    "planner.reading.cost_reports",
    "planner.reading.prices",
    "planner.reading.price_lists",
    "planner.reading.quotes",
    "planner.reading.model_files",
    "planner.reading.training_configs",
    "planner.reading.deployments",
    "planner.reading.launches",
)  # fmt: skip
_NEAREST = 3
_PACKED_OF = re.compile(r"\.[^.]+$")
_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")  # how a document begins; [12:00] is of a log
_COLUMNS = ("requests-table", "requests-json", "request-lengths")  # kinds whose columns --column names
_NO_TEXT = (  # first bytes of what people have beside texts, and what to make of it
    (b"PK\x03\x04", "it is a workbook or another archive: save the sheet as CSV, or unpack it"),
    (b"\xd0\xcf\x11\xe0", "it is a workbook of an old kind: save the sheet as CSV"),
    (b"PAR1", "it is Parquet: write it as CSV or as JSON lines"),
    (b"SQLite format 3", "it is a database: write the table as CSV"),
    (b"%PDF", "it is a PDF: the table behind it as CSV is read"),
    (b"\x89PNG", "it is a picture: the figures behind it as CSV are read"),
    (b"BZh", "it is packed by bzip2: unpack it first, or pack it by gzip or zstd"),
    (b"\xfd7zXZ", "it is packed by xz: unpack it first, or pack it by gzip or zstd"),
)
_ACCESS = re.compile(r"^\S+ \S+ \S+ \[\d\d/\w{3}/\d{4}:[\d:]{8} [+-]\d{4}\] \"[A-Z]{3,7} \S", re.M)
_NO_TOKENS = (
    "it is an access log of a web server, which has times and bytes and no tokens: a log of usage.prompt_tokens and "
    "usage.completion_tokens of each answer is read, and so are /metrics of the engines behind it (vLLM, SGLang, TGI)"
)
_OURS = re.compile(r"""\A(?:\s|#[^\n]*\n)*(?:\{\s*"schema"\s*:\s*"|schema:\s*["']?)((?:plan|catalog)/[a-z0-9/]+)""")
_ITS_USE = {  # what this program wrote, or reads elsewhere, and by which command
    "plan/v1": "it is a scenario: plan solve FILE",
    "plan/result/v1": "it is a plan, which predicts and measures nothing: plan explain, report or verify FILE",
}


def kinds() -> tuple[Kind, ...]:
    """Every kind of file that is read."""
    return tuple(kind for module in MODULES for kind in importlib.import_module(module).KINDS)


def kind_of(source: Source, named: str = "", asked: Asked | None = None) -> tuple[Kind, Match]:
    """What a file is: by its content, or as the command line says.

    Parameters
    ----------
    source
        The file, or several as one.
    named
        Kind to read it as, by its name; empty: told by the content.
    asked
        What the command line says of it: columns of prompts and answers are those of requests; None: nothing.

    Raises
    ------
    InputError
        The file is empty or of no known kind; the three nearest kinds are named with what is missing.
    UsageError
        There is no kind of the given name.
    """
    known = {kind.name: kind for kind in kinds()}
    if named:
        if named not in known:
            near = closest(named, known)
            hint = f"did you mean '{near[0]}'?" if near else "kinds: " + ", ".join(known)
            raise UsageError(Problem(reference="unknown-kind", message=f"there is no kind '{named}'", hint=hint))
        return known[named], known[named].recognise(source)
    if not source.head.strip():
        raise _unread(source, "empty-file", f"{source.name} is empty", "name a file that holds something")
    if mine := _OURS.match(source.head_text):
        hint = _ITS_USE.get(mine[1], f"it is {mine[1]}, which plan wrote itself or takes by another command")
        raise _unread(source, "unknown-format", f"{source.name} is of no kind that is read", hint)
    matches = sorted(((kind.recognise(source), kind) for kind in known.values()), key=lambda each: -each[0].score)
    best, kind = matches[0] if matches else (NOTHING, None)
    if asked is not None and not asked.columns.keys().isdisjoint(("input", "output")):
        ours = next(((one, match) for match, one in matches if one.name in _COLUMNS and match.score > 0), None)
        if ours is not None:
            return ours
    if kind is not None and best.score >= SURE:
        return kind, best
    hint = next((hint for sign, hint in _NO_TEXT if source.head.startswith(sign)), "") or _no_text(source)
    if not hint and (broken := _broken(source)):
        raise broken
    hint = hint or (_NO_TOKENS if _ACCESS.search(source.head_text) else _nearest(matches))
    raise _unread(source, "unknown-format", f"{source.name} is of no kind that is read", hint)


def read(source: Source, asked: Asked | None = None, named: str = "") -> Reading:
    """Recognise a file and read it.

    Parameters
    ----------
    source
        The file, or several as one.
    asked
        What the command line says of it; None: nothing.
    named
        Kind to read it as, by its name; empty: told by the content.

    Raises
    ------
    InputError
        It is of no known kind, or nothing can be taken from it.
    UsageError
        There is no kind of the given name.
    """
    packed = source.packed_again()
    if packed:
        source = Source(*(path for path in source.paths if path not in packed))
    kind, match = kind_of(source, named, asked)
    reading = kind.read(source, asked or Asked())
    for path in packed:
        reading.note(f"{PurePath(path).name} is {_PACKED_OF.sub('', PurePath(path).name)}, packed: it counts once")
    for again, first in source.twins():
        reading.note(f"{PurePath(again).name} is the same as {PurePath(first).name}, byte for byte: both count")
    reading.tool = reading.tool or match.tool
    reading.version = reading.version or match.version
    return reading


def _no_text(source: Source) -> str:
    """What to make of bytes that are no text; "" for text."""
    at = source.head_text.find("\0")
    if at < 0:
        return ""
    line, column = source.head_text.count("\n", 0, at) + 1, at - source.head_text.rfind("\n", 0, at)
    return f"it has bytes that are no text, the first in line {line}, column {column}: save it as UTF-8"


def _broken(source: Source) -> InputError | None:
    """Where JSON of no known kind breaks off; None for what is whole, no JSON, or many lines of it."""
    if not _JSON.match(source.head_text) or not source.whole:
        return None
    try:
        json.loads(source.head_text)
    except json.JSONDecodeError as error:
        lines = [line for line in source.first_lines if line.strip()]
        if error.msg == "Extra data" or (len(lines) > 1 and lines[1].startswith("{")):
            return None
        place = Place(file=source.name, line=error.lineno, column=error.colno)
        message = f"{source.name} is not valid JSON: {error.msg}"
        return InputError(Problem(reference="bad-json", message=message, places=(place,),
                                  hint="mend it there, or fetch it again: it may be cut short"))  # fmt: skip
    except (ValueError, RecursionError):
        return None
    return None


def _nearest(matches: list[tuple[Match, Kind]]) -> str:
    near = []
    for match, kind in matches[:_NEAREST]:
        lacks = f"; missing: {', '.join(match.missing[:4])}" if match.missing else ""
        near.append(f"{kind.title} ({kind.name}): {kind.looks_for}{lacks}")
    return "looked for, nearest first: " + " | ".join(near) + " | --as NAME reads it as one, --column names columns"


def _unread(source: Source, reference: str, message: str, hint: str) -> InputError:
    return InputError(Problem(reference=reference, message=message, places=(Place(file=source.name),), hint=hint))
