"""What is compared: plans, scenarios, catalogs, as a command line names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.carriers import dataclass
from planner.catalog.load import DEFAULT
from planner.cli.find import is_scenario
from planner.cli.frame import Frame, usage

if TYPE_CHECKING:
    from planner.analysis.compare.side import Side
    from planner.catalog.model import Catalog

_SNIFFED = 4_000  # characters of a file that say what it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a command line says of every side.

    Parameters
    ----------
    scenario
        What catalogs are solved for.
    cases
        One for all sides; several for one scenario alone.
    own_prices
        `prices` and `price`, as `planner.cli.find.load_catalog` takes them.
    solving
        Arguments of `planner.api.solve`.
    """

    frame: Frame
    scenario: str | None = None
    settings: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    hardware: str | None = None
    own_prices: dict[str, Any] = field(default_factory=dict)
    solving: dict[str, Any] = field(default_factory=dict)


def kind_of(source: str) -> str:
    """plan | scenario | catalog."""
    path = Path(source)
    if source == DEFAULT or path.is_dir():
        return "catalog"
    if path.suffix != ".json" or is_scenario(source):
        return "scenario"
    from planner import files

    head = files.read_text(path, limit_bytes=64_000_000)[:_SNIFFED]
    return "catalog" if '"catalog/frozen/' in head else "plan"


def sides_of(given: Given, sources: Sequence[str]) -> list[Side]:
    """Every side; one scenario alone is held against its own cases or settings.

    Raises
    ------
    UsageError
        There is nothing to compare with, or an option says nothing of any side.
    """
    kinds = [kind_of(source) for source in sources]
    _refuse(given, kinds)
    if len(sources) == 1:
        return list(_against_itself(given, sources[0]))
    case = given.cases[0] if given.cases else None
    names = _names(sources, kinds)
    sides = [_side(given, name, kind, source, case) for name, kind, source in zip(names, kinds, sources)]
    said = [f"--{key}" for key, values in given.own_prices.items() if values]
    if set(kinds) == {"plan"} and said:
        catalog = _catalog_of_plans(given)
        if catalog is None or all(side.document["provenance"]["catalog"]["sha256"] != catalog.digest for side in sides):
            hint = "leave it out, or name the scenario of one in its place to plan that anew"
            raise usage("not-together", f"no plan here was made with {' and '.join(said)}, and plans stay", hint)
    return sides


def _catalog_of_plans(given: Given) -> Catalog | None:
    """The catalog that the command line says plans were made with; None: it says nothing of it."""
    from planner.cli.find import load_catalog

    asked = given.hardware is not None or any(given.own_prices.values())
    return load_catalog(given.hardware, **given.own_prices) if asked else None


def _refuse(given: Given, kinds: Sequence[str]) -> None:
    if len(kinds) == 1 and (kinds[0] != "scenario" or not (given.cases or given.settings)):
        hint = "name two plans, scenarios or catalogs; or one scenario with --case or --set"
        raise usage("missing-argument", "there is only one thing to compare", hint)
    if len(kinds) > 1 and len(given.cases) > 1:
        raise usage("not-together", "several cases are those of one scenario alone", "name one scenario, or one --case")
    if given.scenario is not None and "catalog" not in kinds:
        raise usage("not-together", "--scenario is what catalogs are solved for", "leave it out, or name catalogs")
    if "catalog" in kinds and given.hardware is not None:
        raise usage(
            "not-together", "--hardware names one catalog for all sides", "leave it out where catalogs are compared"
        )
    if set(kinds) == {"plan"} and (given.settings or given.cases):
        raise usage(
            "not-together", "a plan was made with the settings that it has", "name its scenario to plan it anew"
        )


def demand_catalogs(given: Given, sources: Sequence[str]) -> None:
    """Refuse what is no catalog, or says nothing of catalogs; prices that have gone stale are told.

    Raises
    ------
    UsageError
        Several scenarios say nothing of what is compared.
    InputError
        A catalog cannot be read.
    """
    from planner.cli.find import load_catalog

    kinds = [kind_of(source) for source in sources]
    if set(kinds) != {"catalog"} or len(kinds) < 2:
        hint = "name two catalogs or more, or one --scenario"
        raise usage("not-together", "several scenarios are what catalogs are compared for", hint)
    _refuse(given, kinds)
    for source in sources:
        load_catalog(None if source == DEFAULT else source, frame=given.frame)


def _against_itself(given: Given, source: str) -> Iterator[Side]:
    """The scenario as it is written, then with each of the cases, or with the settings."""
    stem = Path(source).stem
    if not given.cases:
        yield _scenario(given, stem, source, None, ())
        yield _scenario(given, ", ".join(given.settings), source, None, given.settings)
        return
    yield _scenario(given, stem, source, None, given.settings)
    for case in given.cases:
        yield _scenario(given, case, source, case, given.settings)


def _names(sources: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Short names where they tell the sides apart."""
    short = [_short(source) if kind != "catalog" else source for source, kind in zip(sources, kinds)]
    whole = short if len(set(short)) == len(short) else list(sources)
    return [name if whole.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(whole, 1)]


def _short(source: str) -> str:
    return Path(source).name.removesuffix(".json").removesuffix(".plan").removesuffix(".yaml").removesuffix(".yml")


def _side(given: Given, name: str, kind: str, source: str, case: str | None) -> Side:
    if kind == "scenario":
        return _scenario(given, name, source, case, given.settings)
    if kind == "plan":
        return _plan(given, name, source)
    from planner import api
    from planner.cli.find import load_catalog, scenario_file
    from planner.scenario import load_scenario

    scenario = load_scenario(scenario_file(given.scenario), settings=given.settings, case=case)
    catalog = load_catalog(None if source == DEFAULT else source, **given.own_prices, frame=given.frame)
    return api.side_of(name, scenario, catalog, kind="catalog", **given.solving)


def _scenario(given: Given, name: str, source: str, case: str | None, settings: Sequence[str]) -> Side:
    from planner import api
    from planner.cli.find import load

    scenario, catalog = load(
        source, settings=settings, case=case, hardware=given.hardware, **given.own_prices, frame=given.frame
    )
    return api.side_of(name, scenario, catalog, **given.solving)


def _plan(given: Given, name: str, source: str) -> Side:
    from planner import api
    from planner.answers import Plan
    from planner.cli.stale import as_proven
    from planner.plan.plan_files import read_plan

    document = read_plan(source)
    catalog = _catalog_of_plans(given)
    made_with = catalog if catalog and catalog.digest == document["provenance"]["catalog"]["sha256"] else None
    plan = Plan(document=as_proven(given.frame, document, made_with, file=source))
    return api.side_of_plan(name, plan, catalog)
