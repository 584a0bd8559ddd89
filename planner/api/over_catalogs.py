"""What many scenarios cost on each of some catalogs: a sweep over both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from planner.answers import CatalogTable
from planner.api.sessions import Session
from planner.api.sweeping import sweep
from planner.catalog.load import DEFAULT
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.errors import UsageError
from planner.files import StrPath
from planner.scenario.load import load_scenario
from planner.sweeps.axes import Axis, Grid

MOST = 10_000  # scenarios or catalogs


def compare_catalogs(
    scenarios: Sequence[StrPath],
    catalogs: Sequence[StrPath],
    scheduler: str | None = None,
    *,
    settings: Sequence[str] = (),
    case: str | None = None,
    prices: Iterable[str] = (),
    price: Iterable[str] = (),
    asked: dict[str, Any] | None = None,
    **how: Any,
) -> CatalogTable:
    """Every scenario solved on every catalog, and each held against the first catalog.

    Parameters
    ----------
    scenarios
        Files, or names of those that ship.
    catalogs
        Folders or frozen files, or "default" for the one that ships.
    scheduler
        As for `planner.sweep`.
    settings, case
        Of every scenario.
    prices, price
        Put on every catalog, as after ``--prices`` and ``--price``.
    asked
        Options of the session that solves: solver, gap, threads, seed, allow_suspect.
    how
        Arguments of `planner.sweep` that say where questions are answered: workers, journal, security, tell, over.

    Raises
    ------
    UsageError
        There is none of either, or one is named twice.
    InputError, StoppedError, OutputError
        As `planner.sweep`.
    """
    named = [("scenario", scenarios), ("case", () if case is None else (case,)), ("catalog", catalogs)]
    axes = tuple(_axis(name, values) for name, values in named if name != "case" or values)
    first, there = axes[0].texts[0], axes[-1].texts[0]
    scenario = load_scenario(first, settings=tuple(settings), case=case)
    catalog = load_priced(None if there == DEFAULT else there, OwnPrices.of(prices, price, scenario.rates))
    held = Session(scenario, catalog, **(asked or {}))
    found = sweep(held, Grid(axes=axes), scheduler, standing=False, **how)
    return CatalogTable(document=found.document, asked=found.asked, broken=found.broken)


def _axis(name: str, values: Sequence[StrPath]) -> Axis:
    texts = tuple(map(str, values))
    if not 1 <= len(texts) <= MOST:
        raise UsageError.of("out-of-range", f"{len(texts):,} of {name}", hint=f"from 1 to {MOST:,}")
    if len(set(texts)) < len(texts):
        raise UsageError.of("given-twice", f"a {name} is named twice", hint="name each once")
    return Axis(name=name, texts=texts)
