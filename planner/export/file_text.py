"""The text of exported files: their head, commands of a shell, and one quoting a target language.

What came from a file is text there and stays text. Values are quoted by emitters, never by formatting: shell words by
`shlex` (all but what is marked to be expanded), YAML by PyYAML's safe dumper, JSON and TOML by writers that escape
every character that could end a string. Comments take one line of visible text. Names of objects (Kubernetes, files,
jobs) are cleaned, because there nothing can be quoted. A head says who made the file, from which plan, for which
version, and what to fill in.
"""

from __future__ import annotations

import json as _json
import re
import shlex
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from planner.carriers import dataclass
from planner.export.launch import Launch, ServingLaunch, TrainingLaunch
from planner.report.escape import terminal

DNS_LABEL_LENGTH = 63
OBJECT_LENGTH = 40
_TOML_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOML_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def shell(value: object) -> str:
    """One word of a POSIX shell, whatever is in it but NUL, which no argument can hold.

    Examples
    --------
    >>> shell("$(reboot) it's")
    '\\'$(reboot) it\\'"\\'"\\'s\\''
    """
    return shlex.quote(_encodable(str(value)).replace("\0", ""))


def shell_double(text: str) -> str:
    """The inside of a shell string in double quotes: nothing of it is expanded.

    Examples
    --------
    >>> shell_double('say "$HOME"')
    'say \\\\"\\\\$HOME\\\\"'
    """
    return re.sub(r'([\\"$`])', r"\\\1", _encodable(text).replace("\0", ""))


def comment(text: str) -> str:
    """Text of a comment: one line, without control characters, so that nothing of it leaves the comment.

    Examples
    --------
    >>> comment("harmless\\nrm -rf /")
    'harmless rm -rf /'
    """
    return " ".join(terminal(text).split())


def yaml(value: Any) -> str:
    """A document as YAML in the order given; aliases are never written.

    Examples
    --------
    >>> yaml({"a": "yes", "b": ["1:30", 2]})
    "a: 'yes'\\nb:\\n- '1:30'\\n- 2\\n"
    """
    import yaml as pyyaml

    class Dumper(pyyaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def scalar(self, text: str) -> Any:
            """Several lines as a block where YAML can hold them so; PyYAML quotes what it cannot."""
            return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, Dumper.scalar)
    text: str = pyyaml.dump(
        _plain(value), Dumper=Dumper, sort_keys=False, allow_unicode=False, default_flow_style=False, width=1000
    )
    return text


def json(value: Any) -> str:
    """A document as JSON, ASCII only; NaN and infinity are bugs and raise ValueError."""
    return _json.dumps(_plain(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def toml(value: Mapping[str, Any]) -> str:
    """A document as TOML: plain keys first, then one table for each mapping, in the order given.

    Examples
    --------
    >>> print(toml({"a": 1, "b": {"c": ["x", True], "d e": 0.5}}), end="")
    a = 1
    <BLANKLINE>
    [b]
    c = ["x", true]
    "d e" = 0.5
    """
    lines = _toml_lines(_plain(value), ())
    return "\n".join(lines).lstrip("\n") + "\n"


def _toml_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(map(_toml_key, path))}]"] if path and (plain or not table) else []
    lines += [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _toml_lines(value, (*path, key))
    return lines


def _toml_key(key: str) -> str:
    return key if _TOML_BARE.fullmatch(key) else _toml_text(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is not written to a TOML file")
        return repr(value)
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml_value, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _toml_text(text: str) -> str:
    return '"' + "".join(_toml_character(character) for character in text) + '"'


def _toml_character(character: str) -> str:
    if character in _TOML_ESCAPES:
        return _TOML_ESCAPES[character]
    if character.isascii() and character.isprintable():
        return character
    return f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"


def _plain(value: Any) -> Any:
    """Mappings, lists and scalars only, every text one that UTF-8 can hold."""
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, Mapping):
        return {_encodable(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _encodable(text: str) -> str:
    """Lone surrogates, which a JSON file can carry in, become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def dns_label(name: str) -> str:
    """A DNS-1123 label made of a name: at most 63 of a-z, 0-9 and "-", which it neither begins nor ends with.

    Examples
    --------
    >>> dns_label("Chat_Fleet.2")
    'chat-fleet-2'
    """
    label = re.sub(r"[^a-z0-9]+", "-", name.lower())[:DNS_LABEL_LENGTH].strip("-")
    return label or "workload"


def object_name(stem: str) -> str:
    """Name of an object, as of a cluster or a service: begins with a letter, leaves room for what is appended to it.

    Different stems have different names: where the stem cannot be kept, a digest of it is added.

    Examples
    --------
    >>> object_name("assistant-1"), object_name("Chat_Fleet.2"), object_name("7b")
    ('assistant-1', 'chat-fleet-2-d30f43', 'w-7b')
    """
    label = dns_label(stem)
    if label != stem or len(label) > OBJECT_LENGTH:
        digest = sha256(_encodable(stem).encode()).hexdigest()[:6]
        label = f"{label[:OBJECT_LENGTH].strip('-')}-{digest}"
    return label if label[0].isalpha() else f"w-{label}"


class Expand(str):
    """Text that the shell expands where the command runs, as `"$MODEL"`; our own words only, never a file's."""

    __slots__ = ()


Argument = tuple[str, object | None]  # an option and its value; None: the option stands alone


def command_line(words: Sequence[object], arguments: Sequence[Argument]) -> str:
    """A command with one option a line.

    Examples
    --------
    >>> print(command_line(["vllm", "serve", "a b"], [("--port", 80), ("--quiet", None), ("--host", Expand('"$H"'))]))
    vllm serve 'a b' \\
      --port 80 \\
      --quiet \\
      --host "$H"
    """
    return " \\\n  ".join([" ".join(map(_word, words)), *(_option(*argument) for argument in arguments)])


def _option(name: str, value: object | None) -> str:
    if value is None:
        return name
    joint = "=" if str(value).startswith("-") else " "  # a value that looks like an option stays a value
    return f"{name}{joint}{_word(value)}"


def _word(value: object) -> str:
    return str(value) if isinstance(value, Expand) else shell(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The program that a file is for, in the version whose options were read."""

    name: str
    version: str
    read: str  # ISO date on which its options were read
    source: str  # where, owner/repository:path


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """What a plan does not know, and the environment variable (or placeholder) that stands for it."""

    name: str
    meaning: str


def demand(blank: Blank) -> str:
    """A line that stops a script, with the meaning, where a variable is not set."""
    return f': "${{{blank.name}:?{shell_double(blank.meaning)}}}"'


def header_lines(launch: Launch, target: Target, blanks: Sequence[Blank] = (), notes: Sequence[str] = ()) -> list[str]:
    """Lines of the head without comment marks; each is one line of visible text.

    Parameters
    ----------
    launch
        What the file launches.
    target
        The program and version that it is for.
    blanks
        What to fill in before use.
    notes
        What else to know: where the file differs from what was planned, what was left out.
    """
    origin = launch.origin
    case = f", case {origin.case}" if origin.case else ""
    prices = f"prices as of {origin.prices_as_of}" if origin.prices_as_of else "no price of the catalog is in it"
    proven = "" if origin.proven else f", {origin.status}: not proven"
    lines = [
        f"Made by: {origin.command} (plan {origin.planner})",
        f"Plan: {origin.plan_name} ({origin.scenario_file}{case}{proven}), sha256 {origin.plan_sha256}",
        f"Catalog: {origin.catalog}; {prices}",
        f"Workload: {launch.workload}, {launch.model.name} on {placed(launch)}",
        f"For: {target.name} {target.version} (options read on {target.read} from {target.source})",
        "Check before use: predicted, not tried on this hardware.",
    ]
    if blanks:
        lines.append("The plan does not know these; set them before use:")
        width = max(len(blank.name) for blank in blanks)
        lines += [f"  {blank.name:{width}}  {blank.meaning}" for blank in blanks]
    lines += [f"Note: {note}" for note in [*notes, *_rack_notes(launch)]]
    return [" " * (len(line) - len(line.lstrip(" "))) + comment(line) for line in lines]


def _rack_notes(launch: Launch) -> list[str]:
    """That nodes which work together are to be had where the links of their devices reach."""
    if isinstance(launch, TrainingLaunch):
        nodes, what = launch.nodes_per_job, "job"
    else:
        nodes, what = (launch.nodes_per_replica, "replica") if isinstance(launch, ServingLaunch) else (1, "")
    rack = launch.machine.rack_nodes
    if nodes < 2 or rack < 2:
        return []
    where = f"in one rack of {rack}" if nodes <= rack else f"in as few racks of {rack} as hold them"
    return [
        f"the plan counts on the links of racks: the {nodes} nodes of a {what} must stand {where}; ask for "
        "that (a placement policy, a block; in Kubernetes a ComputeDomain), or all of it takes the network"
    ]


def placed(launch: Launch) -> str:
    """Where an allocation stands: "2 × n3-H100-SXM5x8 (8 × h100-sxm-80gb), hyperstack CANADA-1, on_demand"."""
    machine = launch.machine
    place = " ".join(dict.fromkeys(part for part in (machine.provider, machine.region, machine.zone) if part))
    shape = f"{machine.nodes} × {machine.shape_name} ({machine.devices_per_node} × {machine.device})"
    if isinstance(launch, TrainingLaunch) and launch.on is not None:
        shape = f"{machine.devices} × {machine.device} of a {machine.shape_name}"
    return f"{shape}, {place}, {machine.price_model}"


def commented(lines: Sequence[str]) -> str:
    """Lines as comments of a script, YAML or TOML file."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)
