"""Takes catalog files apart: every key is asked for, every fact has a unit and a provenance."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TypeVar

from planner.carriers import dataclass
from planner.catalog.model import Provenance
from planner.errors import InputError, Place, Problem
from planner.files import read_text
from planner.units import UnitError
from planner.yamlfile import BAD, Document, Node, read_yaml

T = TypeVar("T")
Parser = Callable[..., T]

STATUSES = ("seen", "measured", "recalled", "inferred", "user", "date-unknown")
KNOWN = ("seen", "measured", "inferred", "user", "date-unknown")  # good enough to plan with
MAX_CSV_BYTES = 20_000_000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Problems(list[Problem]):
    """Mistakes found so far."""

    def add(self, reference: str, message: str, place: Place, hint: str = "") -> None:
        """Note one mistake.

        Parameters
        ----------
        reference
            Of the problem, in kebab-case.
        message
            What is wrong.
        place
            Where it stands.
        hint
            What to do about it; empty: none.
        """
        self.append(Problem(reference=reference, message=message, places=(place,), hint=hint))

    def demand_none(self) -> None:
        """Stop here when there are any."""
        if self:
            raise InputError(*self)


@dataclass(frozen=True, slots=True)
class Origin:
    """What a fact inherits when it does not say: source, date, status."""

    source: str = ""
    as_of: str = ""
    status: str = ""

    @property
    def provenance(self) -> Provenance:
        """As a fact carries it."""
        return Provenance(source=self.source, as_of=self.as_of, status=self.status)


NOWHERE = Origin()


class Fields:
    """A mapping whose keys are taken one by one; what is left over is a mistake."""

    __slots__ = ("left", "node", "problems", "what")

    def __init__(self, node: Node, problems: Problems, what: str) -> None:
        self.node = node
        self.problems = problems
        self.what = what
        self.left: dict[str, Node] = dict(node.value) if type(node.value) is dict else {}
        if type(node.value) is not dict and node.value is not BAD:
            problems.add("wrong-type", f"{what} wants a mapping of keys", node.place, "write key: value")

    def take(self, key: str, *, required: bool = False) -> Node | None:
        """The node of a key, or None when it is absent or null."""
        node = self.left.pop(key, None)
        if node is not None and node.value is not None:
            return None if node.value is BAD else node
        if required and type(self.node.value) is dict:
            self.problems.add("missing-key", f"{self.what} has no '{key}'", self.node.place, f"add {key}:")
        return None

    def text(self, key: str, default: str = "", *, required: bool = False, among: Iterable[str] = ()) -> str:
        """A text, or what a plain number was written as.

        Parameters
        ----------
        key
            Is taken: what is left in the end is a mistake.
        default
            Stands where the key is absent, null, or holds neither a text nor a number.
        required
            The key has to be there, and not null.
        among
            Texts that may stand there; another one is a mistake, and given all the same; empty: any text.
        """
        node = self.take(key, required=required)
        if node is None:
            return default
        if not isinstance(node.value, str | int | float) or isinstance(node.value, bool):
            self.problems.add("wrong-type", f"'{key}' of {self.what} wants a text", node.place)
            return default
        text = str(node.value)
        if among and text not in among:
            hint = "one of: " + ", ".join(among)
            self.problems.add("unknown-value", f"'{key}' of {self.what} is '{text}'", node.place, hint)
        return text

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts; one text counts as a list of one."""
        node = self.take(key)
        if node is None:
            return default
        items = node.value if type(node.value) is list else [node]
        if any(not isinstance(item.value, str | int | float) for item in items):
            self.problems.add("wrong-type", f"'{key}' of {self.what} wants a list of texts", node.place)
            return default
        return tuple(str(item.value) for item in items)

    def whole(self, key: str, default: int = 0, *, required: bool = False, least: int = 1) -> int:
        """A whole number of at least `least`.

        Parameters
        ----------
        key
            Is taken: what is left in the end is a mistake.
        default
            Stands where the key is absent, null, or holds no such number; it may be below `least`.
        required
            The key has to be there, and not null.
        least
            A smaller number is a mistake.
        """
        node = self.take(key, required=required)
        if node is None:
            return default
        if not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < least:
            self.problems.add("wrong-type", f"'{key}' of {self.what} wants a whole number >= {least}", node.place)
            return default
        return node.value

    def below(self, key: str, what: str = "") -> Fields | None:
        """The mapping under a key."""
        node = self.take(key)
        return None if node is None else Fields(node, self.problems, what or f"{key} of {self.what}")

    def items(self, key: str) -> Iterator[Fields]:
        """The mappings of a list under a key."""
        node = self.take(key)
        if node is None:
            return
        if type(node.value) is not list:
            self.problems.add("wrong-type", f"'{key}' of {self.what} wants a list", node.place, "start items with -")
            return
        for number, item in enumerate(node.value):
            yield Fields(item, self.problems, f"{key}[{number}]")

    def origin(self, above: Origin) -> Origin:
        """Source, date and status of this mapping, over what it inherits."""
        as_of = self.text("as_of", above.as_of)
        if as_of and not is_date(as_of):
            self.problems.add("bad-date", f"as_of of {self.what} is '{as_of}'", self.node.place, "write 2026-11-21")
        source = "; ".join(self.texts("source")) or above.source
        return Origin(source, as_of, self.text("status", above.status, among=STATUSES))

    def done(self) -> None:
        """Report every key that nobody asked for."""
        for key in self.left:
            known = (self.node.keys or {}).get(key, self.node)
            self.problems.add("unknown-key", f"'{key}' is not a key of {self.what}", known.place, "check the spelling")


class Facts:
    """Provenance of each fact of one thing, collected while it is read."""

    def __init__(self, origin: Origin, statuses: Mapping[str, str] | None = None) -> None:
        self.origin = origin
        self.statuses = dict(statuses or {})  # path of a fact, or of what holds it -> status
        self.unused = set(self.statuses)
        self.found: dict[str, Provenance] = {}
        self._shared: dict[Origin, Provenance] = {}

    def value(self, fields: Fields, key: str, parse: Parser[T], name: str, path: str) -> T | None:
        """A fact: `value with unit`, or {value, source, as_of, status}; noted under `name`.

        Parameters
        ----------
        fields
            The mapping that holds the key.
        key
            Is taken; where it is absent or null, there is no fact.
        parse
            Called with what is written, and what it is as `field`; a `UnitError` of it becomes a problem.
        name
            Key of the provenance in `found`: as the field of the model, "memory_bytes".
        path
            Of the fact in the file, "memory.capacity": as `statuses` and messages name it.
        """
        node = fields.take(key)
        if node is None:
            return None
        origin = Origin(self.origin.source, self.origin.as_of, self._status(path))
        if type(node.value) is dict:
            inner = Fields(node, fields.problems, path)
            origin = inner.origin(origin)
            held = inner.take("value", required=True)
            inner.done()
            if held is None:
                return None
            node = held
        value = parsed(node, parse, f"{path} of {fields.what}", fields.problems)
        if value is not None:
            self.note(name, origin)
        return value

    def note(self, name: str, origin: Origin) -> None:
        """Record where a fact is from."""
        known = self._shared.get(origin)
        if known is None:
            known = origin.provenance
            self._shared[origin] = known
        self.found[name] = known

    def _status(self, path: str) -> str:
        if not self.statuses:
            return self.origin.status
        while path:
            if path in self.statuses:
                self.unused.discard(path)
                return self.statuses[path]
            path = path.rpartition(".")[0]
        return self.origin.status


def parsed(node: Node, parse: Parser[T], what: str, problems: Problems) -> T | None:
    """A quantity with its unit, or None after a problem was noted.

    Parameters
    ----------
    node
        A scalar.
    parse
        Called with what is written, and `what` as `field`; a `UnitError` of it becomes a problem.
    what
        Names the quantity in messages.
    problems
        Where mistakes go; a float that is not finite is one.
    """
    if node.value is BAD:
        return None
    try:
        value = parse(node.value, field=what)
    except UnitError as error:
        problems.add(error.reference, error.message, node.place, error.hint)
        return None
    if isinstance(value, float) and not math.isfinite(value):
        problems.add("out-of-range", f"{what} is not finite", node.place)
        return None
    return value


def is_date(text: str) -> bool:
    """Whether a text is an ISO date that the calendar holds."""
    try:
        return bool(_DATE.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def open_yaml(path: Path, schema: str, problems: Problems) -> Fields:
    """The top mapping of a YAML file of ours, its schema line checked.

    Parameters
    ----------
    path
        The file; its name stands for it in messages.
    schema
        What its key schema has to say.
    problems
        Where mistakes go that leave the rest readable.

    Raises
    ------
    InputError
        The file cannot be read, or is not YAML.
    """
    document: Document = read_yaml(path, problems=problems)
    fields = Fields(document.root, problems, path.name)
    found = fields.text("schema", required=True)
    if found and found != schema:
        place = document.place("schema")
        problems.add("wrong-schema", f"schema of {path.name} is '{found}'", place, f"write schema: {schema}")
    return fields


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a CSV table, cells by column name."""

    cells: dict[str, str]
    file: str
    line: int

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column) or ""

    @property
    def place(self) -> Place:
        """Where the line stands."""
        return Place(file=self.file, line=self.line, column=1)

    def number(self, column: str, problems: Problems, *, least: float = 0.0, most: float = math.inf) -> float | None:
        """A finite number in bounds, or None when the cell is empty.

        Parameters
        ----------
        column
            Name of a column; one that the table lacks counts as empty.
        problems
            Where mistakes go; the number is None then.
        least, most
            Bounds, both of which are allowed.
        """
        text = self[column]
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (least <= value <= most and math.isfinite(value)):
            most_told = f" and at most {most:g}" if math.isfinite(most) else ""
            problems.add(
                "bad-number", f"{column} is '{text}'", self.place, f"a number of at least {least:g}{most_told}"
            )
            return None
        return value

    def whole(self, column: str, problems: Problems, *, least: int = 1) -> int | None:
        """A whole number, or None when the cell is empty.

        Parameters
        ----------
        column
            Name of a column; one that the table lacks counts as empty.
        problems
            Where mistakes go; the number is None then.
        least
            A smaller number is a mistake.
        """
        value = self.number(column, problems, least=least)
        if value is not None and value != int(value):
            problems.add("bad-number", f"{column} is '{self[column]}'", self.place, "a whole number")
            return None
        return None if value is None else int(value)

    def provenance(self, problems: Problems, prefix: str = "") -> Provenance:
        """Source, date and status of the line."""
        as_of, status = self["as_of"], self[prefix + "status"]
        if not is_date(as_of):
            problems.add("bad-date", f"as_of is '{as_of}'", self.place, "write a date such as 2026-11-21")
        if status not in STATUSES and (status or not prefix):
            problems.add("unknown-value", f"{prefix}status is '{status}'", self.place, "one of: " + ", ".join(STATUSES))
        return Provenance(source=self[prefix + "source"], as_of=as_of, status=status)


def open_csv(path: Path, required: Iterable[str], optional: Iterable[str], problems: Problems) -> Iterator[Row]:
    """The lines of a CSV table with known columns.

    Parameters
    ----------
    path
        File with the names of its columns in the first line.
    required
        Columns that have to be there; their cells may be empty.
    optional
        Columns that may be there; any further one is a mistake.
    problems
        Where mistakes go; a line with too many or too few cells is left out.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    lines = read_text(path, limit_bytes=MAX_CSV_BYTES).splitlines()
    reader = csv.reader(lines)
    try:
        header = next(reader, [])
        places = Place(file=str(path), line=1, column=1)
        for column in required:
            if column not in header:
                problems.add("missing-column", f"{path.name} has no column '{column}'", places, f"add {column}")
        allowed = {*required, *optional}
        for column in header:
            if column not in allowed:
                hint = "columns: " + ", ".join(sorted(allowed))
                problems.add("unknown-column", f"'{column}' is not a column of {path.name}", places, hint)
        for cells in reader:
            row = Row(dict(zip(header, cells)), str(path), reader.line_num)
            if len(cells) == len(header):
                yield row
            elif cells:
                problems.add("bad-row", f"the line has {len(cells)} cells, not {len(header)}", row.place)
    except csv.Error as error:
        problems.add("bad-row", f"not CSV: {error}", Place(file=str(path), line=reader.line_num, column=1))


def defaults_of(fields: Fields, above: Origin = NOWHERE) -> tuple[Origin, Fields | None]:
    """The defaults of a file, over what it inherits: where its facts are from, and what else it says for all."""
    below = fields.below("defaults", "defaults")
    return (below.origin(above), below) if below else (above, None)
