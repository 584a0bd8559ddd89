"""Columns by what they mean: the names that publishers give to time, prompt and answer of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from planner.carriers import dataclass

# role -> names without case, blanks and signs, the surest first
NAMES: Mapping[str, tuple[str, ...]] = {
    "time": (
        "timestamp", "arrivaltimestamp", "arrivedat", "arrivaltime", "arrival", "requesttime", "requesttimestamp",
        "createdatiso", "createdat", "created", "requestcreatedat", "starttime", "starttimeunixnano",
        "timegenerated", "timegeneratedutc",
        "requeststart", "receivedat", "startedat", "submittedat",
        "datetime", "eventtime", "time", "ts", "date", "t",
    ),
    "input": (
        "inputtokens", "prompttokens", "contexttokens", "requesttokens", "inputlength", "numprefilltokens",
        "promptsize", "inputtoks", "promptlength", "promptlen", "inputlen", "ncontexttokenstotal", "numinputtokens",
        "numprompttokens", "inputtokencount", "prefilltokens", "promptnumtokens", "usageprompttokens",
        "usageinputtokens", "isl", "tokensin", "inputsequencelength", "prompttokenslen",
        "tokensprompt", "inputusage", "tokencountprompt", "tokensinput",
    ),
    "output": (
        "outputtokens", "completiontokens", "generatedtokens", "responsetokens", "outputlength", "numdecodetokens",
        "tokensize", "outputtoks", "outputlen", "generationlength", "generatedlength", "ngeneratedtokenstotal",
        "numoutputtokens", "numgeneratedtokens", "numcompletiontokens", "outputtokencount", "decodetokens",
        "responselength", "completionlength", "usagecompletiontokens", "usageoutputtokens", "osl", "tokensout",
        "outputsequencelength", "anstokens", "answertokens", "gentokens", "decodelength", "tokenscompletion",
        "outputusage", "tokencountcompletion", "tokensoutput",
    ),
    "id": ("requestid", "id", "reqid", "callid", "traceid", "uuid", "xrequestid"),
    "model": ("model", "modelid", "modelname", "modelgroup", "deployment"),
    "status": ("status", "statuscode", "state", "outcome", "finishstatus"),
    # of prompts that are told without what a cache gave and what was written to it (Anthropic): those are added
    "cache_read": ("cachereadinputtokens", "usagecachereadinputtokens", "cachereadtokens"),
    "cache_write": ("cachecreationinputtokens", "usagecachecreationinputtokens", "cachecreationtokens"),
    "cached": ("cachehit",),  # of whole answers, by a gateway
    "blocks": ("hashids", "blockhashes", "blockids", "prefixhashes"),
}  # fmt: skip
_UNIT = re.compile(
    r"[ _\-(\[./](ns|us|ms|s|sec|secs|seconds|millis|milliseconds|microseconds|nanoseconds)[)\]]?$", re.I
)
_UNITS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "millis": 1e-3, "milliseconds": 1e-3, "us": 1e-6,
    "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
_BELOW = ("input", "output")  # roles whose columns may lie in records of any name: attributes.gen_ai.usage.input_tokens
SYMBOLS = {1.0: "s", 1e-3: "ms", 1e-6: "us", 1e-9: "ns"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which column of a file plays which role, and the unit that the name of the time gives."""

    of: Mapping[str, str]  # role -> column as it is written
    time_unit_s: float | None = None  # None: the name gives none  [s]


def plain(name: str) -> str:
    """A name without case, blanks and signs."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


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
    stems = {name: (plain(_UNIT.sub("", name)), plain(name)) for name in names}
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
                  and (end := plain(name.removeprefix(begin))) in NAMES["time"]]  # fmt: skip
        if beside:
            found["time"] = min(beside)[1]
    if not plain(found.get("input", "")).endswith("inputtokens"):  # prompt tokens hold the cached ones
        found.pop("cache_read", None)
        found.pop("cache_write", None)
    found.update(named or {})
    return Roles(of=found, time_unit_s=unit_of(found["time"]) if "time" in found else None)
