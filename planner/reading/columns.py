"""Columns by what they mean: the names that publishers give to time, prompt and answer of a request.

Which sign of a column's numbers is the decimal one, a dot or a comma, is told by all of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from planner.carriers import dataclass
from planner.reading.source import Source, refused

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
        "requeststart", "receivedat", "startedat", "submittedat",
        "timelocal", "timeiso8601", "datetime", "eventtime", "time", "ts", "date", "t", "start", "begin",
    ),
    "input": (
        "inputtokens", "prompttokens", "contexttokens", "requesttokens", "inputlength", "numprefilltokens",
        "promptsize", "inputtoks", "promptlength", "promptlen", "inputlen", "ncontexttokenstotal", "numinputtokens",
        "numprompttokens", "inputtokencount", "prefilltokens", "promptnumtokens", "usageprompttokens",
        "usageinputtokens", "isl", "tokensin", "inputsequencelength", "prompttokenslen",
        "tokensprompt", "inputusage", "tokencountprompt", "tokensinput", "inputtoken", "prompttoken", "intokens",
        "intok", "usageinput", "usagedetailsinput", "inputtok", "prompttok", "requestlength", "inputcount",
        "usagemetadataprompttokencount", "prompttokencount",
    ),
    "output": (
        "outputtokens", "completiontokens", "generatedtokens", "responsetokens", "outputlength", "numdecodetokens",
        "tokensize", "outputtoks", "outputlen", "generationlength", "generatedlength", "ngeneratedtokenstotal",
        "numoutputtokens", "numgeneratedtokens", "numcompletiontokens", "outputtokencount", "decodetokens",
        "responselength", "completionlength", "usagecompletiontokens", "usageoutputtokens", "osl", "tokensout",
        "outputsequencelength", "anstokens", "answertokens", "gentokens", "decodelength", "tokenscompletion",
        "outputusage", "tokencountcompletion", "tokensoutput", "outputtoken", "completiontoken", "responsetoken",
        "outtokens", "outtok", "usageoutput", "usagedetailsoutput", "outputtok", "answerlength", "outputcount",
        "usagemetadatacandidatestokencount", "candidatestokencount",
    ),
    "id": ("requestid", "id", "reqid", "callid", "traceid", "uuid", "xrequestid"),
    "model": ("model", "modelid", "modelname", "modelgroup", "deployment"),
    "status": ("status", "statuscode", "state", "outcome", "finishstatus"),
    "total": (  # of prompt and answer, where one of them is not told
        "totaltokens", "usagetotaltokens", "tokenstotal", "totaltokencount", "usagemetadatatotaltokencount",
        "usagetotal", "numtotaltokens", "totaltokensused", "tokencount",
    ),
    "thoughts": ("thoughtstokencount", "usagemetadatathoughtstokencount"),  # of answers that are told without (Gemini)
    # of prompts that are told without what a cache gave and what was written to it (Anthropic): those are added
    "cache_read": ("cachereadinputtokens", "usagecachereadinputtokens", "cachereadtokens"),
    "cache_write": ("cachecreationinputtokens", "usagecachecreationinputtokens", "cachecreationtokens"),
    "cached": ("cachehit",),  # of whole answers, by a gateway
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
)  # roles whose columns may lie in records of any name: attributes.gen_ai.usage.input_tokens
_PARTS = ("cache_read", "cache_write", "thoughts")  # which a sum of prompt and answer holds already
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
                  if stem in known]  # fmt: skip
        if not ranked and role in _BELOW:
            ranked = [(known.index(stem), place, name) for place, name in enumerate(names)
                      for stem in _ends_of(name) if stem in known]  # fmt: skip
        if ranked:
            found[role] = min(ranked)[2]
    if "time" not in found and "." in found.get("input", ""):  # of a record that holds the tokens, too
        parts = found["input"].split(".")
        beside = [(NAMES["time"].index(end), name) for name in names for at in range(1, len(parts))
                  if name.startswith(begin := ".".join(parts[:at]) + ".")
                  for end in (plain(name.removeprefix(begin)), plain(_UNIT.sub("", name.removeprefix(begin))))
                  if end in NAMES["time"]]  # fmt: skip
        if beside:
            found["time"] = min(beside)[1]
    if not plain(found.get("input", "")).endswith("inputtokens"):  # prompt tokens hold the cached ones
        found.pop("cache_read", None)
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
