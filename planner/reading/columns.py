"""Columns by what they mean, and cells of all the forms that logs have.

Publishers have names of their own for time, prompt and answer of a request. Which sign of a column's numbers is the
decimal one, a dot or a comma, is told by all of them. Times are seconds since 1970 or since the beginning of a log.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.carriers import dataclass
from planner.errors import Problem, UsageError
from planner.reading.source import Source, refused

_TICKS = re.compile(r"(\.\d{6})\d+")  # more digits than a microsecond has
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d\d?)\2(\d\d?)(?!\d)")
_DIGITS = re.compile(r"(\d{4})()(\d\d)(\d\d)(?!\d)")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)(?!\d)")
_DAY_NAMED = re.compile(r"(?:[A-Za-z]{3}, )?(\d{1,2})[ /-]([A-Za-z]{3})[a-z]*[ /-](\d{4})(?!\d)")  # 1 Mar 2025
_MONTH_NAMED = re.compile(r"([A-Za-z]{3})[a-z]*\.? (\d{1,2}),? (\d{4})(?!\d)")  # Mar 1, 2025
_TIME_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    r"[T:,@\s]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?(?:\s?([ap])\.?m\.?)?"
    r"\s?(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d)?(?: UTC)?)?",
    re.IGNORECASE,
)
_CLOCK_ALONE = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?)?(?:\s?(?:Z|[+-]\d\d:?\d\d))?", re.I)
_MIDNIGHT = re.compile(r"(?:[T ]0?0:00(?::00(?:\.0+)?)?(?:Z|\+00:00)?)?")
_SLASHED = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(?:\d{4}|\d\d)(?!\d)")
_NOON_H = 12
_MONTHS = 12
# an offset of hours alone follows a time of day: 2026-11-01 ends in a day
_ZONE = re.compile(r"(?:Z| UTC| GMT|\d[T :].*\d ?[+-]\d\d(?::?\d\d)?)$")
# an epoch count of 2001 to 2128 is this large in each unit; smaller numbers count from the log's beginning
_EPOCHS = ((1e9, 5e9, 1.0), (1e12, 5e12, 1e-3), (1e15, 5e15, 1e-6), (1e18, 5e18, 1e-9))
EPOCH_FROM_S = 1e9


def zone_of(name: str) -> tzinfo:
    """A time zone by its name; UTC for none.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    if not name or name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problem = Problem(reference="unknown-zone", message=f"there is no time zone '{name}'",
                          hint="as Europe/Berlin, America/New_York or UTC")  # fmt: skip
        raise UsageError(problem) from None


def epoch_unit_s(value: float) -> float | None:
    """The unit in which a number is a time between 2001 and 2128; None when there is none.  [s]"""
    return next((unit for low, high, unit in _EPOCHS if low <= value < high), None)


class DayOrder:
    """Whether of dates like 9/2/2023 the day stands first, by those of a whole file that can be read one way only."""

    def __init__(self) -> None:
        self._months_first = self._days_first = 0
        self._there = False

    def see(self, text: str) -> None:
        """A written time."""
        found = _SLASHED.match(text)
        if found:
            first, second = (int(each) <= _MONTHS for each in found.group(1, 3))
            self._there = True
            self._months_first += first and not second
            self._days_first += second and not first

    @property
    def day_first(self) -> bool:
        """Whether more of them say so than say otherwise."""
        return self._days_first > self._months_first

    @property
    def said(self) -> str:
        """How they are understood, for people; "" without such dates."""
        if not self._there:
            return ""
        if not (self._days_first or self._months_first):
            return "taken as month/day/year: no day after the 12th tells"
        return "day/month/year" if self.day_first else "month/day/year"


def has_slashes(text: str) -> bool:
    """Whether a text holds a date whose order is not said, like 9/2/2023 or 9-2-23."""
    return bool(_SLASHED.search(text))


def iso_seconds(text: str, zone: tzinfo, day_first: bool = False) -> float:
    """Seconds since 1970 of a written time; `ValueError` when it is none.  [s]

    Parameters
    ----------
    text
        As logs write it.
    zone
        Of a time that names none.
    day_first
        Of 9/2/2023 the day stands first, not the month.
    """
    text = _TICKS.sub(r"\1", text.strip().removeprefix("[").removesuffix("]"))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = _other(text, day_first)
    return (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()


def has_zone(text: str) -> bool:
    """Whether a written time names its zone."""
    return bool(_ZONE.search(text.strip().removesuffix("]")))


def is_clock(value: object) -> bool:
    """Whether it is a time of a day whose day is not told, as 9:05:00."""
    return isinstance(value, str) and bool(_CLOCK_ALONE.fullmatch(value.strip()))


def day_alone(value: object) -> str:
    """A day that is written without a time of it, or with midnight, as a spreadsheet does; "" for anything else."""
    text = str(value).strip()[:40]
    try:
        _, rest = written_day(text)
    except ValueError:
        try:
            _, rest = written_day(text, day_first=True)
        except ValueError:
            return ""
    return text.removesuffix(rest) if _MIDNIGHT.fullmatch(rest) else ""


def written_day(text: str, day_first: bool = False) -> tuple[date, str]:
    """The day that a text begins with, and what follows it; `ValueError` when it begins with none.

    Parameters
    ----------
    text
        As 2023-02-09, 20230209, 9/2/2023, 9-2-23, 9.2.2023, 9 Feb 2023 or Feb 9, 2023.
    day_first
        Of 9/2/2023 the day stands first, not the month; of 9.2.2023 it always does.
    """
    if found := _YEAR_FIRST.match(text) or _DIGITS.match(text):
        year, month, day = map(int, found.group(1, 3, 4))
    elif found := _YEAR_LAST.match(text):
        first, second, year = map(int, found.group(1, 3, 4))
        month, day = (second, first) if day_first or found.group(2) == "." else (first, second)
        year += 2000 if year < 100 else 0
    elif found := _DAY_NAMED.match(text):
        day, month, year = int(found.group(1)), _month(found.group(2)), int(found.group(3))
    elif found := _MONTH_NAMED.match(text):
        month, day, year = _month(found.group(1)), int(found.group(2)), int(found.group(3))
    else:
        raise ValueError(f"'{text[:40]}' is no day")
    return date(year, month, day), text[found.end() :]


def _month(name: str) -> int:
    return _TIME_NAMES.index(name.lower()) + 1


def _other(text: str, day_first: bool) -> datetime:
    """A time that is not of ISO's form; a day alone is its midnight."""
    day, rest = written_day(text, day_first)
    found = _CLOCK.fullmatch(rest) if rest.strip() else None
    if found is None:
        if rest.strip():
            raise ValueError(f"'{text[:40]}' is no time")
        return datetime.combine(day, time())
    hour, minute, second = (int(each or 0) for each in found.group(1, 2, 3))
    if half := found.group(5):
        if not 1 <= hour <= _NOON_H:
            raise ValueError(f"'{text[:40]}' is no time of half a day")
        hour = hour % _NOON_H + (_NOON_H if half in "pP" else 0)
    zone = UTC if found.group(6) else None
    if found.group(7):
        ahead = timedelta(hours=int(found.group(8)), minutes=int(found.group(9) or 0))
        zone = timezone(-ahead if found.group(7) == "-" else ahead)
    microsecond = int((found.group(4) or "0").ljust(6, "0"))
    return datetime.combine(day, time(hour, minute, second, microsecond, tzinfo=zone))


_NAMES = {".": "dot", ",": "comma"}
_FORMS = {
    sign: re.compile(
        rf"[-+]?(?:[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{3}})+(?:[{sign}][0-9]*)?"
        rf"|(?:[0-9]+[{sign}]?[0-9]*|[{sign}][0-9]+)(?:[eE][-+]?[0-9]+)?)"
    )
    for sign, group in (".,", ",.")
}
_LONGEST = 60
_GROUP = 3  # digits between two signs of thousands


def number_in(text: str, sign: str = ".") -> Decimal | None:
    """A number as it is written with a decimal sign, the other between thousands; exactly, None for anything else."""
    if not (len(text) <= _LONGEST and _FORMS[sign].fullmatch(text)):
        return None
    try:
        return Decimal(text.replace(",", "") if sign == "." else text.replace(".", "").replace(",", "."))
    except InvalidOperation:
        return None


class DecimalSign:
    """What the numbers of a column say: 1,234.56 and 1.5 have a decimal dot, 1.234 alone may be either."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[str, int]] = {}  # sign -> the first number that has it as its decimal one, line
        self.either = ""  # the first number that says nothing

    def see(self, text: str, line: int) -> None:
        """One number of the column, at its line."""
        if not ("." in text or "," in text) or len(text) > _LONGEST:
            return
        fits = [sign for sign, form in _FORMS.items() if form.fullmatch(text)]
        if len(fits) == 1:
            self.shown.setdefault(fits[0], (text, line))
        elif fits:
            self.either = self.either or text

    def of(self, source: Source, column: str) -> str:
        """The sign that the numbers show, "" for none; `InputError` where they show both."""
        if len(self.shown) > 1:
            (dot, _), (comma, _) = self.shown["."], self.shown[","]
            line = max(line for _, line in self.shown.values())
            both = f"{dot} has a decimal dot, {comma} a decimal comma"
            raise refused(source, "mixed-numbers", f"the numbers of the {column} contradict each other: {both}",
                          "write all of them with one decimal sign", line)  # fmt: skip
        return next(iter(self.shown), "")


class WholeSign(DecimalSign):
    """As `DecimalSign`, of whole numbers: 1.234 has a sign between thousands, and so has 1.000 beside 950."""

    def __init__(self) -> None:
        super().__init__()
        self._thousands: dict[str, tuple[str, int]] = {}  # as `shown`, where the other reading is no whole number
        self._below = self._beyond = False  # numbers without a sign, below a thousand and from there on

    def see(self, text: str, line: int) -> None:
        """One number of the column, at its line."""
        super().see(text, line)
        if text.isdecimal():
            self._beyond |= len(text) > _GROUP
            self._below |= len(text) <= _GROUP
        elif ("." in text) != ("," in text) and len(text) <= _LONGEST:
            sign, other = ".," if "." in text else ",."
            if all(form.fullmatch(text) for form in _FORMS.values()) and not text.endswith(f"{sign}000"):
                self._thousands.setdefault(other, (text, line))

    def of(self, source: Source, column: str) -> str:
        """As of `DecimalSign`, then by what is whole."""
        self.shown = self.shown or self._thousands
        sign = super().of(source, column)
        if not sign and self.either and self._below and not self._beyond:
            return "," if "." in self.either else "."
        return sign

    def demand_told(self, source: Source, column: str, told: str, separator: str) -> None:
        """Refuse what may be a thousand or one.

        Parameters
        ----------
        source
            What is read, for errors.
        column
            Its name.
        told
            The decimal sign that it or another column shows; "" for none.
        separator
            Of the cells: a comma that is none stands between thousands.
        """
        if self.either and not told and not ("," in self.either and separator != ";"):
            one = re.split("[.,]", self.either)[0]
            raise refused(source, "mixed-numbers", f"{self.either} of the {column} may be {one} or {one}000, and no "
                          "other number tells", f"write whole numbers without a sign: {one}000 or {one}")  # fmt: skip


def signs_of(source: Source, columns: dict[str, DecimalSign], separator: str) -> tuple[dict[str, str], str]:
    """The decimal sign of each column, and how that was understood, "" where there was nothing to understand.

    Parameters
    ----------
    source
        What is read, for errors.
    columns
        Name of a column -> what its numbers say; one that says nothing follows another that does.
    separator
        Of the cells: where nothing tells, a lone sign between semicolons is the decimal one, else the dot is.
    """
    shown = {name: column.of(source, name) for name, column in columns.items()}
    told = next(filter(None, shown.values()), "")
    either = next((column.either for column in columns.values() if column.either), "")
    for name, column in columns.items():
        if isinstance(column, WholeSign):
            column.demand_told(source, name, told, separator)
    default = told or ("," if separator == ";" and "," in either else ".")
    signs = {name: sign or default for name, sign in shown.items()}
    if either and not told:
        value = number_in(either, default)
        return signs, f"with a decimal {_NAMES[default]}: no number tells, {either} is taken as {value:f}"
    if len(set(signs.values())) > 1:
        return signs, ", ".join(f"the {name} with a decimal {_NAMES[sign]}" for name, sign in signs.items())
    return signs, f"with a decimal {_NAMES[told]}" if told == "," or (told and separator == ";") else ""


class Signs:
    """Decimal signs by role, looked for in all of a source when a number first leaves them open."""

    def __init__(self, look: Callable[[], tuple[dict[str, str], str]] = lambda: ({}, "")) -> None:
        self._look = look
        self._of: dict[str, str] | None = None
        self.said = ""  # how they were understood

    def of(self, role: str) -> str:
        """The sign of a role's numbers."""
        if self._of is None:
            self._of, self.said = self._look()
        return self._of.get(role, ".")


# role -> names without case, blanks and signs, the surest first
NAMES: Mapping[str, tuple[str, ...]] = {
    "time": (
        "timestamp", "arrivaltimestamp", "arrivedat", "arrivaltime", "arrival", "requesttime", "requesttimestamp",
        "createdatiso", "createdat", "created", "requestcreatedat", "starttime", "starttimeunixnano", "timeunixnano",
        "timegenerated", "timegeneratedutc",
        "requeststart", "receivedat", "startedat", "submittedat", "loggingtime", "timeofgeneration",
        "timelocal", "timeiso8601", "datetime", "eventtime", "time", "ts", "date", "t", "start", "begin",
    ),
    "input": (
        "inputtokens", "prompttokens", "contexttokens", "requesttokens", "inputlength", "numprefilltokens",
        "promptsize", "inputtoks", "promptlength", "promptlen", "inputlen", "ncontexttokenstotal", "numinputtokens",
        "numprompttokens", "inputtokencount", "prefilltokens", "promptnumtokens", "usageprompttokens",
        "usageinputtokens", "isl", "tokensin", "inputsequencelength", "prompttokenslen",
        "tokensprompt", "inputusage", "tokencountprompt", "tokensinput", "inputtoken", "prompttoken", "intokens",
        "intok", "usageinput", "usagedetailsinput", "inputtok", "prompttok", "requestlength", "inputcount",
        "usagemetadataprompttokencount", "prompttokencount", "promptevalcount", "genaitokensinput",
        "nprompttokens", "ninputtokens", "tokensevaluated",
    ),
    "output": (
        "outputtokens", "completiontokens", "generatedtokens", "responsetokens", "outputlength", "numdecodetokens",
        "tokensize", "outputtoks", "outputlen", "generationlength", "generatedlength", "ngeneratedtokenstotal",
        "numoutputtokens", "numgeneratedtokens", "numcompletiontokens", "outputtokencount", "decodetokens",
        "responselength", "completionlength", "usagecompletiontokens", "usageoutputtokens", "osl", "tokensout",
        "outputsequencelength", "anstokens", "answertokens", "gentokens", "decodelength", "tokenscompletion",
        "outputusage", "tokencountcompletion", "tokensoutput", "outputtoken", "completiontoken", "responsetoken",
        "outtokens", "outtok", "usageoutput", "usagedetailsoutput", "outputtok", "answerlength", "outputcount",
        "usagemetadatacandidatestokencount", "candidatestokencount", "evalcount", "genaitokensoutput",
        "ncompletiontokens", "noutputtokens", "ngeneratedtokens", "tokenspredicted", "predictedn",
    ),
    "id": ("requestid", "id", "reqid", "callid", "traceid", "uuid", "xrequestid"),
    "model": ("model", "modelid", "modelname", "modelgroup", "deployment", "requestmodel", "modelpermaslug"),
    "status": ("status", "state", "outcome", "finishstatus"),
    "code": ("statuscode", "httpstatus", "httpstatuscode", "responsestatus", "responsestatuscode", "responsecode",
             "httpcode", "resultsignature"),
    "error": ("error", "errormessage", "errortype", "errorcode", "errormsg", "exception", "failurereason"),
    "success": ("success", "successful", "succeeded", "issuccess", "issuccessful", "ok"),
    "stopped": ("finishreason", "finishreasons", "stopreason", "cancelled", "canceled", "wascancelled", "iscancelled",
                "aborted", "isaborted", "choices"),
    "total": (  # of prompt and answer, where one of them is not told
        "totaltokens", "usagetotaltokens", "tokenstotal", "totaltokencount", "usagemetadatatotaltokencount",
        "usagetotal", "numtotaltokens", "totaltokensused", "tokencount",
    ),
    "thoughts": ("thoughtstokencount", "usagemetadatathoughtstokencount"),  # of answers that are told without (Gemini)
    # of prompts told without what a cache gave and what was written to it (Anthropic, Bedrock): those are added
    "cache_read": ("cachereadinputtokens", "usagecachereadinputtokens", "cachereadtokens", "cachereadinputtokencount"),
    "cache_write": ("cachecreationinputtokens", "usagecachecreationinputtokens", "cachecreationtokens",
                    "cachewriteinputtokens", "cachewriteinputtokencount"),
    "cached": ("cachehit",),  # of whole answers, by a gateway
    "reused": (  # of prompts, by the prefix cache of the servers that answered
        "cachedtokens", "inputcachedtokens", "cachedinputtokens", "promptcachedtokens", "cachedprompttokens",
        "numcachedtokens", "cachedcontenttokencount", "prefixcachedtokens",
    ),
    "session": ("sessionid",),  # of which later turns tell how long they wait behind the one before, and no time
    "delay": ("delay", "delayms"),
    "blocks": ("hashids", "blockhashes", "blockids", "prefixhashes"),
}  # fmt: skip
_UNIT = re.compile(
    r"[ _\-(\[./](ns|us|ms|s|sec|secs|seconds|millis|milliseconds|microseconds|nanoseconds)[)\]]?$", re.I
)
_UNITS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "millis": 1e-3, "milliseconds": 1e-3, "us": 1e-6,
    "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
# what a name ends in that is no part of it: the unit of a count, a zone, the type that Azure's logs append
_TAIL = re.compile(r"(?i)[ _]*[(\[](?:tokens?|toks?|count|anzahl|#|[a-z]{2,5}time|utc|gmt)[)\]]$|_[dstgb]$")
_GERMAN = (  # parts of names, the longest first, as compounds have them: Eingabetoken, Antwortlänge
    ("zeitstempel", "timestamp"), ("zeitpunkt", "timestamp"), ("ausgabe", "output"), ("eingabe", "input"),
    ("anbieter", "provider"), ("anfrage", "request"), ("antwort", "response"), ("uhrzeit", "time"),
    ("nebenlaufigkeit", "concurrency"), ("durchsatz", "throughput"), ("wahrung", "currency"), ("latenz", "latency"),
    ("dienst", "service"), ("modell", "model"), ("rechner", "host"), ("stunde", "hour"), ("anzahl", "count"),
    ("kosten", "cost"),
    ("laenge", "length"), ("geraet", "device"), ("knoten", "node"), ("lange", "length"), ("gerat", "device"),
    ("datum", "date"), ("preis", "price"), ("zeit", "time"),
)  # fmt: skip
_MEANT = dict(_GERMAN)
_PART = re.compile("|".join(_MEANT), re.IGNORECASE)
_LOST = re.compile(r"[^\x00-\x7f]")  # what is no character of UTF-8 is read as one sign
_BELOW = (
    "input",
    "output",
    "total",
    "thoughts",
    "reused",
    "code",
    "error",
    "stopped",
)  # roles whose columns may lie in records of any name: attributes.gen_ai.usage.input_tokens
_BYTES = ("requestlength", "responselength")  # of web servers and of Azure's logs, in these very words
_OF_LANGFUSE = {"cache_read": ("inputcachedtokens", "inputcacheread"), "cache_write": ("inputcachecreation",)}
_PARTS = ("cache_read", "cache_write", "reused", "thoughts")  # which a sum of prompt and answer holds already
SYMBOLS = {1.0: "s", 1e-3: "ms", 1e-6: "us", 1e-9: "ns"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which column of a file plays which role, and the unit that the name of the time gives."""

    of: Mapping[str, str]  # role -> column as it is written
    time_unit_s: float | None = None  # None: the name gives none  [s]
    whole: str = ""  # role whose column counts prompt and answer together: the other one is taken off


def plain(name: str) -> str:
    """A name without case, blanks and signs."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(maxsize=4096)  # records have the same names, one after the other
def english(name: str) -> str:
    """A name without accents, and with English for the German words in it: Eingabe-Tokens gives input-Tokens."""
    folded = name if name.isascii() else unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _PART.sub(lambda part: _MEANT[part.group().lower()], folded)


def unit_of(name: str) -> float | None:
    """Seconds in the unit that the end of a name gives; None when it gives none.  [s]"""
    found = _UNIT.search(name)
    return _UNITS[found.group(1).lower()] if found else None


def _ends_of(name: str) -> list[str]:
    """What a name with dots ends in: gen_ai.usage.input_tokens gives usageinputtokens, inputtokens."""
    parts = name.split(".")
    return [plain("".join(parts[at:])) for at in range(1, len(parts))]


def roles_of(names: Sequence[str], named: Mapping[str, str] | None = None) -> Roles:
    """The columns that mean something; what the command line names wins."""
    stems = {name: tuple(plain(english(each)) for each in (_UNIT.sub("", name), _TAIL.sub("", name), name))
             for name in names}  # fmt: skip
    found: dict[str, str] = {}
    for role, known in NAMES.items():
        ranked = [(known.index(stem), place, name) for place, (name, both) in enumerate(stems.items())
                  for stem in (both if role == "time" or "/" not in name else both[1:])  # tokens/s are no tokens
                  if stem in known and not plain(_TAIL.sub("", name)).endswith(_BYTES)]  # fmt: skip
        if not ranked and role in _BELOW:
            ranked = [(known.index(stem), place, name) for place, name in enumerate(names)
                      for stem in _ends_of(name) if stem in known and stem not in _BYTES]  # fmt: skip
        if ranked:
            found[role] = min(ranked)[2]
    for role in ("time", "status", "success"):
        if role not in found and "." in found.get("input", ""):  # of a record that holds the tokens, too
            parts = found["input"].split(".")
            beside = [(NAMES[role].index(end), name) for name in names for at in range(1, len(parts))
                      if name.startswith(begin := ".".join(parts[:at]) + ".")
                      for end in (plain(name.removeprefix(begin)), plain(_UNIT.sub("", name.removeprefix(begin))))
                      if end in NAMES[role]]  # fmt: skip
            found |= {role: min(beside)[1]} if beside else {}
    held = found.get("input", "").rpartition(".")[0]
    apart = plain(found.get("input", "")).endswith("usagedetailsinput")  # Langfuse: each kind of tokens by itself
    for role in ("cache_read", "cache_write") if held else ():
        known = (*NAMES[role], *_OF_LANGFUSE[role]) if apart else NAMES[role]
        near = [name for name in names if name.startswith(f"{held}.") and plain(name[len(held) :]) in known]
        if near:  # message.usage.cache_read_input_tokens
            found[role] = near[0]
    of_prompts = plain(found.get("input", ""))
    without = of_prompts.endswith(("inputtokens", "inputtokencount")) and "genai" not in of_prompts
    if not apart and not without:  # prompt tokens hold the cached ones, and so does OpenTelemetry's gen_ai.usage
        if held := found.pop("cache_read", ""):
            found.setdefault("reused", held)
        found.pop("cache_write", None)
    legible = {_LOST.sub("\ufffd", name): name for name in names}  # of a file that is in Latin-1, say
    found.update({role: legible.get(_LOST.sub("\ufffd", name), name) for role, name in (named or {}).items()})
    whole, both = "", found.pop("total", "")
    if both and len({"input", "output"} & found.keys()) == 1:
        whole = "output" if "input" in found else "input"
        found = {role: name for role, name in found.items() if role not in _PARTS} | {whole: both}
    return Roles(of=found, time_unit_s=unit_of(found["time"]) if "time" in found else None, whole=whole)


def counts_both(names: Sequence[str]) -> str:
    """The column that counts prompt and answer together; "" without one."""
    return next((name for name in names if {plain(english(name)), *_ends_of(name)} & set(NAMES["total"])), "")
