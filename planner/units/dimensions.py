"""The kinds of quantity that `parsing.py` reads: units, sizes, examples, common slips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction

from planner.carriers import dataclass

MONTH_S = 730 * 3600
MICRO = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One kind of quantity: its units with their size in the base unit, and how to speak of it."""

    noun: str  # "'80 GB' is <noun>"
    wants: str  # "'deadline' wants <wants>"
    unit_of: str  # "needs <unit_of>"
    units: Mapping[str, Fraction]
    examples: tuple[str, ...]  # hints; {n} is the number as written
    sample: int  # a number for the examples when none was given
    slips: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # common spellings -> what may be meant
    slip_rule: str = ""  # the rule that a slip breaks


def _table(**units: Fraction | int) -> dict[str, Fraction]:
    return {name: Fraction(size) for name, size in units.items()}


_COUNT_SUFFIX = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_COUNT_SLIPS = {"thousand": "k", "mn": "M", "million": "M", "G": "B", "bn": "B", "billion": "B", "trillion": "T"}
_THOUSANDS = {"k": 10**3, "K": 10**3, "M": 10**6}
_SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_PER_S = {"s": Fraction(1), "min": Fraction(1, 60), "h": Fraction(1, 3600), "day": Fraction(1, 86400)}
_PER_HOUR: dict[str, Fraction | int] = {
    "s": 3600,
    "min": 60,
    "h": 1,
    "hour": 1,
    "day": Fraction(1, 24),
    "month": Fraction(1, 730),
    "year": Fraction(1, 8760),
}
_BYTES = {f"{p}B": Fraction(n) for p, n in _SI.items() if p != "E"} | {f"{p}B": Fraction(n) for p, n in _BINARY.items()}


def _counted(*nouns: str) -> dict[str, Fraction]:
    """Units of a count: every suffix alone and before each noun."""
    units = {suffix: Fraction(size) for suffix, size in _COUNT_SUFFIX.items()}
    for noun in nouns:
        units |= {f"{suffix} {noun}".strip(): Fraction(size) for suffix, size in _COUNT_SUFFIX.items()}
    return units


def _count_slips(noun: str) -> dict[str, tuple[str, ...]]:
    slips: dict[str, tuple[str, ...]] = {slip: (suffix,) for slip, suffix in _COUNT_SLIPS.items()}
    return slips | {f"{slip} {noun}": (f"{suffix} {noun}",) for slip, suffix in _COUNT_SLIPS.items()}


_SUFFIX_RULE = "suffixes are k, M, B, T"

MEMORY = Dimension(
    sample=80,
    noun="an amount of memory",
    wants="an amount of memory",
    unit_of="a unit of memory",
    units=_BYTES,
    examples=("{n} GB", "{n} GiB"),
    slips={p: (f"{p}B", f"{p}iB") for p in "MGTP"} | {f"{p}i": (f"{p}iB",) for p in "KMGT"} | {"K": ("kB", "KiB")},
    slip_rule="units are B, kB, MB, GB, TB, PB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)",
)
TIME = Dimension(
    sample=30,
    noun="a time",
    wants="a time",
    unit_of="a unit of time",
    units=_table(
        us=Fraction(1, MICRO), ms=Fraction(1, 1000), s=1, second=1, seconds=1, min=60, minute=60, minutes=60,
        h=3600, hour=3600, hours=3600, d=86400, day=86400, days=86400, week=7 * 86400, weeks=7 * 86400,
        month=MONTH_S, months=MONTH_S,
    ),
    examples=("{n} days", "{n*24} h"),
    slips={"m": ("min", "months"), "M": ("months", "min"), "hr": ("h",), "hrs": ("h",), "sec": ("s",), "secs": ("s",),
           "mins": ("min",), "w": ("weeks",), "wk": ("weeks",), "wks": ("weeks",), "mo": ("months",),
           "year": ("{n*12} months",), "years": ("{n*12} months",), "y": ("{n*12} months",), "yr": ("{n*12} months",),
           "yrs": ("{n*12} months",), "quarter": ("{n*3} months",), "quarters": ("{n*3} months",)},
    slip_rule="units of time are ms, s, min, h, days, weeks, months",
)  # fmt: skip
LATENCY = replace(TIME, sample=500, examples=("{n} ms", "{n} s"))
TOKENS = Dimension(
    sample=200,
    noun="an amount of tokens",
    wants="an amount of tokens",
    unit_of="an amount of tokens",
    units=_counted("tokens", "token"),
    examples=("{n}B tokens",),
    slips=_count_slips("tokens"),
    slip_rule=_SUFFIX_RULE,
)
COUNT = Dimension(
    sample=8,
    noun="a count",
    wants="a count",
    unit_of="a count",
    units=_counted(),
    examples=("{n}",),
    slips=_count_slips("things") | {"Ki": ("{n*1024}",)},
    slip_rule=_SUFFIX_RULE,
)
PARAMETERS = Dimension(
    sample=8,
    noun="a number of parameters",
    wants="a number of parameters",
    unit_of="a number of parameters",
    units={"b": Fraction(10**9), "m": Fraction(10**6), **_counted("parameters", "params")},  # 13b, as models are called
    examples=("{n}B",),
    slips=_count_slips("parameters"),
    slip_rule=_SUFFIX_RULE,
)
SEQUENCES = Dimension(
    sample=512,
    noun="an amount of sequences",
    wants="an amount of sequences",
    unit_of="'sequences' or 'tokens'",
    units={unit: size for unit, size in _counted("sequences", "sequence").items() if "sequence" in unit},
    examples=("{n} sequences",),
    slips=_count_slips("sequences") | dict.fromkeys(("seq", "seqs", "samples", "sample", "examples"), ("sequences",)),
    slip_rule=_SUFFIX_RULE,
)
DATA_RATE = Dimension(
    sample=100,
    noun="a data rate",
    wants="a data rate",
    unit_of="a unit of data per second",
    units={f"{p}bit/s": Fraction(n, 8) for p, n in _SI.items()} | {f"{u}/s": n for u, n in _BYTES.items()},
    examples=("{n} Gbit/s", "{n} GB/s"),
    slips={f"{p}{tail}": (f"{p}bit/s", f"{p}B/s") for p in "kMGT" for tail in ("bps", "b/s", "Bps", "bits/s")},
    slip_rule="bits are written bit/s and bytes B/s",
)
FLOP_RATE = Dimension(
    sample=989,
    noun="a compute rate",
    wants="a compute rate",
    unit_of="a unit of compute per second",
    units={f"{p}{op}/s": Fraction(n) for p, n in _SI.items() for op in ("FLOP", "OP")},
    examples=("{n} TFLOP/s",),
    slips={f"{p}{op}": (f"{p}{op[:-1].rstrip('S')}/s",) for p in "GTPE" for op in ("FLOPS", "FLOPs", "OPS")}
    | {f"{p}FLOP": (f"{p}FLOP/s",) for p in "GTPE"},
    slip_rule="rates are written FLOP/s or OP/s",
)
MONEY = Dimension(
    sample=60000,
    noun="an amount of money",
    wants="an amount of money",
    unit_of="a currency",
    units=_table(**{"$": MICRO, "USD": MICRO, "EUR": MICRO})
    | {f"{sign}{suffix}": Fraction(MICRO) * size for sign in ("$", "") for suffix, size in _THOUSANDS.items()},
    examples=("${n}",),
    slips={f"${s}": (f"${{n*{size}}}",) for s, size in (("m", 10**6), ("B", 10**9), ("b", 10**9), ("T", 10**12))},
    slip_rule="money is written in full, in thousands (20k) or in millions (1.5M)",
)
PRICE = Dimension(
    sample=2,
    noun="a price per time",
    wants="a price per time",
    unit_of="a currency and a period",
    units={f"{c}/{t}": Fraction(MICRO) * n for c in ("$", "USD", "EUR") for t, n in _PER_HOUR.items()},
    examples=("${n}/h",),
    slips={f"/{t}": (f"${{n}}/{t}",) for t in _PER_HOUR},
    slip_rule="prices are written $2.49/h",
)
ENERGY_PRICE = Dimension(
    sample=2,
    noun="a price of energy",
    wants="a price of energy",
    unit_of="a currency and a unit of energy",
    units={f"{c}/{e}": Fraction(MICRO) * n for c in ("$", "USD") for e, n in (("kWh", 1), ("MWh", Fraction(1, 1000)))},
    examples=("$0.12/kWh",),
    slips={f"${kwh}": ("$/kWh",) for kwh in ("/kwh", "/KWh", "/kW", "/kWhr")},
    slip_rule="prices of energy are written $0.12/kWh or $120/MWh",
)
POWER = Dimension(
    sample=120,
    noun="a power",
    wants="a power",
    unit_of="a unit of power",
    units={f"{p}W": Fraction(_SI[p]) for p in ("", "k", "M", "G")},
    examples=("{n} kW",),
    slip_rule="units of power are W, kW, MW",
)
MASS = Dimension(
    sample=5,
    noun="a mass",
    wants="a mass",
    unit_of="a unit of mass",
    units=_table(g=1, kg=1000, t=MICRO, kt=10**9),
    examples=("{n} t",),
    slips={"tonne": ("t",), "ton": ("t",), "tonnes": ("t",), "tons": ("t",), "Mg": ("t",)},
    slip_rule="units of mass are g, kg, t",
)
CARBON_INTENSITY = Dimension(
    sample=380,
    noun="a carbon intensity",
    wants="a mass of CO2 for each unit of energy",
    unit_of="a mass and a unit of energy",
    units={
        f"{mass}/{energy}": size / kwh
        for mass, size in (("g", Fraction(1)), ("kg", Fraction(1000)), ("t", Fraction(MICRO)))
        for energy, kwh in (("kWh", 1), ("MWh", 1000))
    },
    examples=("{n} g/kWh",),
    slips={"g/kwh": ("g/kWh",), "g/KWh": ("g/kWh",), "gCO2/kWh": ("g/kWh",), "gCO2e/kWh": ("g/kWh",)},
    slip_rule="carbon intensities are written 380 g/kWh",
)
FRACTION = Dimension(
    sample=30,
    noun="a share",
    wants="a share",
    unit_of="a share",
    units={"": Fraction(1), "%": Fraction(1, 100)},
    examples=("{n} %",),
    slips={"percent": ("%",), "pct": ("%",)},
    slip_rule="shares are written 30 % or 0.3",
)
TOKEN_RATE = Dimension(
    sample=2100,
    noun="a rate of tokens",
    wants="a rate of tokens",
    unit_of="a unit of tokens per time",
    units={f"{p} tokens/{t}".strip(): share * n for p, n in _COUNT_SUFFIX.items() for t, share in _PER_S.items()},
    examples=("{n} tokens/s",),
    slips={"tok/s": ("tokens/s",), "tps": ("tokens/s",), "t/s": ("tokens/s",), "/s": ("tokens/s",)},
    slip_rule="rates of tokens are written tokens/s",
)
REQUEST_RATE = Dimension(
    sample=16,
    noun="a rate",
    wants="a rate",
    unit_of="a unit of time to count in",
    units={f"{noun}/{t}": share for noun in ("", "requests") for t, share in _PER_S.items()},
    examples=("{n} /s", "{n} /h"),
    slip_rule="rates are written 16 /s or 0.05 /h",
)

DIMENSIONS = (
    MEMORY, TIME, SEQUENCES, DATA_RATE, FLOP_RATE, MONEY, PRICE, ENERGY_PRICE, POWER, MASS, CARBON_INTENSITY,
    TOKEN_RATE, REQUEST_RATE, TOKENS, FRACTION, PARAMETERS,
)  # fmt: skip
