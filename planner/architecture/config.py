"""A Hugging Face `config.json`, read with care: every mistake becomes a Problem with its line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import InputError, Place, Problem

CONFIG_LIMIT_BYTES = 4 * 2**20  # real ones are 1-10 kB, with long quantisation lists up to about 1 MB

# Far above every model made so far; a value beyond is a slip, and would make nonsense of every sum after it.
MOST = {"layers": 10_000, "heads": 100_000, "experts": 100_000, "width": 10_000_000, "tokens": 10**9}

# classes of checkpoints whose first configs bear the model_type of a kin that is built otherwise
_MADE_BY = {
    "Grok1ForCausalLM": "grok-1",
    "HunYuanDenseV1ForCausalLM": "hunyuan_v1_dense",
    "HunYuanMoEV1ForCausalLM": "hunyuan_v1_moe",
    "MiniMaxM2ForCausalLM": "minimax_m2",
}
THINKER = "thinker_config"  # of the part of an Omni model that writes
_EMBEDDERS = ("colpali", "colqwen2")  # make embeddings of a model by a matrix of a ten-thousandth of it
_EMBEDS = "vlm_config"  # that model
TEXT_CONFIGS = ("text_config", "language_config", "llm_config")


class _Refused(ValueError):
    """JSON that the standard module would take: a key given twice, NaN; the group of its pattern is refused."""

    def __init__(self, message: str, pattern: str, times: int = 0) -> None:
        super().__init__(message)
        self.pattern, self.times = pattern, times  # 0: the first one is it, else the last of so many


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(
            f"key '{twice}' is given twice", f"({re.escape(json.dumps(twice))})" + r"\s*:", names.count(twice)
        )
    return result


def _constant(name: str) -> float:
    if name == "NaN":
        raise _Refused(f"{name} is not a JSON number", r'"(?:[^"\\]|\\.)*"|(NaN)')  # texts are passed over
    return float(name)  # Infinity, as transformers writes limits of time steps; no count may be one


def parse_json(text: str, file: str) -> dict[str, Any]:
    """The object a JSON text holds; InputError[bad-json] otherwise."""
    try:
        data = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except json.JSONDecodeError as error:
        place = Place(file=file, line=error.lineno, column=error.colno)
        raise _bad_json(f"not valid JSON: {error.msg}", place) from None
    except RecursionError:
        raise _bad_json("nested too deeply", Place(file=file)) from None
    except _Refused as error:
        raise _bad_json(str(error), _place(text, file, error)) from None
    except ValueError as error:  # an integer of thousands of digits
        raise _bad_json(str(error).split(";")[0], Place(file=file)) from None
    if not isinstance(data, dict):
        raise _bad_json(f"holds {_kind(data)}, not an object", Place(file=file))
    return data


def _place(text: str, file: str, error: _Refused) -> Place:
    """Line and column of what is refused; the file alone where a key of the same name stands in other objects, too."""
    found = [each.start() for each in re.finditer(error.pattern, text) if each[1]]
    if not found or (error.times and len(found) != error.times):
        return Place(file=file)
    at = found[-1 if error.times else 0]
    return Place(file=file, line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))


def _bad_json(message: str, place: Place) -> InputError:
    hint = "give the config.json of a Hugging Face model"
    return InputError(Problem(reference="bad-json", message=f"{place.file} {message}", places=(place,), hint=hint))


def _kind(value: Any) -> str:
    names: dict[type, str] = {bool: "true/false", str: "text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


class Config:
    """The text model's part of a config; collects problems instead of stopping at the first."""

    def __init__(self, data: Mapping[str, Any], file: str, text: str = "") -> None:
        self.file = file
        self.text = text
        self.problems: list[Problem] = []
        self.inside = ""  # key of the nested text config, "" at the top
        self.spoken: tuple[str, ...] = ()  # parts of an Omni model that make sound of what its thinker says
        if isinstance(data.get(THINKER), dict):
            self.spoken = tuple(
                key
                for key, part in data.items()
                if isinstance(part, dict) and key.endswith("_config") and key != THINKER
            )
            data = data[THINKER]
        elif data.get("model_type") in _EMBEDDERS and isinstance(data.get(_EMBEDS), dict):
            data = {**data[_EMBEDS], "architectures": data.get("architectures")}
        self.outer = data
        self.data = data
        for key in TEXT_CONFIGS:
            if isinstance(data.get(key), dict):
                self.inside, self.data = key, data[key]
                break

    @property
    def model_type(self) -> str:
        """The family name; "" when none is given."""
        made = self.outer.get("architectures")
        if isinstance(made, list) and made and (meant := _MADE_BY.get(str(made[0]))):
            return meant
        for source in (self.data, self.outer):
            if isinstance(source.get("model_type"), str):
                return str(source["model_type"])
        return ""

    def has(self, *keys: str) -> bool:
        """True when one of the keys is given and not null."""
        return any(self.data.get(key) is not None for key in keys)

    def count(self, *keys: str, most: str, default: int | None = None, least: int = 1) -> int:
        """The whole number under the first key given; `most` names an upper bound of MOST.

        Parameters
        ----------
        *keys
            Names that the number goes by in one config or another; the first one given counts.
        most
            Key of `MOST`, for what is counted.
        default
            Where no key is given, unchecked; None: that is a problem.
        least
            Smallest number that is taken.

        Returns
        -------
        The number, or the default; where a problem was noted `least`, or 1 where that is 0.
        """
        key = next((key for key in keys if self.data.get(key) is not None), None)
        if key is None:
            if default is None:
                self.fail("missing-key", f"'{keys[0]}' is missing", "", self._other_names(keys))
                return least or 1
            return default
        value = self.data[key]
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)  # 4.0: some exporters write floats
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail("wrong-type", f"'{key}' is {_shown(value)}; it must be a whole number", key)
            return least or 1
        if not least <= value <= MOST[most]:
            self.fail("out-of-range", f"'{key}' is {_shown(value)}; it must be {least} to {MOST[most]}", key)
            return least or 1
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A true/false value."""
        value = self.data.get(key)
        if value is None and key not in self.data and key in self.outer:
            value = self.outer[key]  # tie_word_embeddings of a multimodal model stands at the top
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail("wrong-type", f"'{key}' is {_shown(value)}; it must be true or false", key)
            return default
        return value

    def tied(self, default: bool) -> bool:
        """Whether words go in and out by one table: the whole model says since transformers 5, the text before."""
        version, whole = str(self.outer.get("transformers_version") or ""), self.outer.get("tie_word_embeddings")
        if self.inside and isinstance(whole, bool) and version[:1].isdigit() and not version.startswith(("3.", "4.")):
            return whole
        return self.flag("tie_word_embeddings", default)

    def indices(self, key: str) -> frozenset[int] | None:
        """A list of layer numbers; None when absent."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, int) for item in value):
            self.fail("wrong-type", f"'{key}' must be a list of layer numbers", key)
            return None
        return frozenset(value)

    def kinds(self, key: str, layers: int, known: Sequence[str]) -> tuple[str, ...] | None:
        """A list with one known word per layer, such as `layer_types`; None when absent.

        Parameters
        ----------
        key
            Where the list stands.
        layers
            How long it must be.  [count]
        known
            Words that it may hold.

        Returns
        -------
        The words, layer by layer; None also where a problem was noted.
        """
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != layers:
            self.fail("wrong-length", f"'{key}' must be a list of {layers} words, one per layer", key)
            return None
        if strange := sorted({_shown(item) for item in value if item not in known}):
            hint = f"known: {', '.join(known)}"
            self.fail("unknown-layer-kind", f"'{key}' holds {', '.join(strange)}", key, hint)
            return None
        return tuple(value)

    def part(self, key: str) -> Config:
        """A nested object as a Config of its own that shares the problem list; empty when absent."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, dict):
            self.fail("wrong-type", f"'{key}' is {_shown(value)}; it must be an object", key)
        nested = Config(value if isinstance(value, dict) else {}, self.file, self.text)
        nested.problems = self.problems
        return nested

    def fail(self, reference: str, message: str, key: str = "", hint: str = "") -> None:
        """Note a problem; `key` finds the line.

        Parameters
        ----------
        reference
            Of the problem, in kebab-case.
        message
            What is wrong.
        key
            Whose line is shown; empty, or not there: the file as a whole.
        hint
            A way out; empty: to compare with the published config.
        """
        where = f" in {self.inside}" if self.inside else ""
        problem = Problem(
            reference=reference,
            message=f"model config{where}: {message}",
            places=(self.place(key),),
            hint=hint or "compare with the config.json published with the model",
        )
        if problem not in self.problems:  # a key may be asked for twice
            self.problems.append(problem)

    def conflict(self, reference: str, message: str, key: str = "", hint: str = "") -> None:
        """Note that values contradict each other, unless one is off already: it may be the cause.

        Parameters
        ----------
        reference
            Of the problem, in kebab-case.
        message
            What is wrong.
        key
            Whose line is shown; empty, or not there: the file as a whole.
        hint
            A way out; empty: to compare with the published config.
        """
        if not self.problems:
            self.fail(reference, message, key, hint)

    def place(self, key: str) -> Place:
        """Where a key stands: the first time after the nested object opens."""
        outside = max(self.text.find(f'"{THINKER}"'), 0) if self.spoken else 0
        start = max(self.text.find(f'"{self.inside}"', outside), 0) if self.inside else outside
        found = re.compile(rf'"{re.escape(key)}"\s*:').search(self.text, start) if key else None
        if not found:
            return Place(file=self.file)
        before = self.text[: found.start()]
        column = found.start() - (before.rfind("\n") + 1) + 1
        line = self.text.splitlines()[before.count("\n")][:200]
        return Place(file=self.file, line=before.count("\n") + 1, column=column, text=line, width=len(key) + 2)

    def check(self) -> None:
        """Raise everything found so far."""
        if self.problems:
            raise InputError(*self.problems)

    @staticmethod
    def _other_names(keys: Sequence[str]) -> str:
        return f"also accepted: {', '.join(keys[1:])}" if len(keys) > 1 else ""
