"""Which scenario and which catalog a command means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from planner import files
from planner.errors import InputError, UsageError

if TYPE_CHECKING:
    from planner.catalog.model import Catalog
    from planner.cli.frame import Frame
    from planner.scenario.schema import Scenario
    from planner.units import Rates

DEFAULT_SCENARIO = "scenario.yaml"
_SNIFFED_BYTES, _JSON_BYTES, _BLOCK_BYTES = 1_000_000, 64_000_000, 65_536
_OVERLAP_BYTES = 1_000  # of two blocks: a schema may begin in one and end in the next


def scenario_file(given: str | None) -> str:
    """The file given, else scenario.yaml, else the only file in scenarios/, else the only scenario of this folder."""
    if given:
        return given
    found = scenarios_here()
    if found[:1] == [DEFAULT_SCENARIO] or len(found) == 1:
        return found[0]
    if not found:
        others = named_scenarios()
        if len(others) == 1:
            return others[0]
        elsewhere = "plan init writes one; or name a file, or one that ships: plan scenarios"
        hint = f"name one: {', '.join(others[:5])} are here" if others else elsewhere
        raise UsageError.of("no-scenario", "no scenario given, and no scenario.yaml here", hint=hint)
    raise UsageError.of(
        "many-scenarios", f"which scenario? Here are {', '.join(found)}", hint=f"name one of them: {found[0]}"
    )


def plan_or_scenario(given: str | None, *, anew: bool = False) -> str:
    """The file given, else the only plan in .plan/, else the scenario found here; with `anew` the scenario at once."""
    return given or (scenario_file(None) if anew or not plans_here() else plan_file(None))


def plan_file(given: str | None) -> str:
    """The file given, else the only plan in .plan/."""
    if given:
        return given
    found = plans_here()
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError.of("no-plan", "no plan given, and none in .plan/", hint="plan solve SCENARIO writes one")
    newest = newest_first(found)[0]
    raise UsageError.of(
        "many-plans", f"which plan? Here are {', '.join(found)}", hint=f"name one of them: {newest} is the newest"
    )


def is_scenario(source: str) -> bool:
    """Whether a file is a scenario rather than a plan, by its ending or schema; or a name, as only scenarios have."""
    from planner.scenario.shipped import is_name

    return PurePath(source).suffix in (".yaml", ".yml") or is_name(source) or _is_json(source)


def _is_json(source: str) -> bool:
    """Whether a file is a scenario in JSON: the first schema in it is that of scenarios.

    A plan begins with its own, and has a hundred megabytes: no more of it is read than that takes.
    """
    if PurePath(source).suffix != ".json":
        return False
    rest, read = b"", 0
    try:
        with files.stream_of(source) as stream:
            while read < _JSON_BYTES and (more := stream.read(_BLOCK_BYTES)):
                rest, read = rest[-_OVERLAP_BYTES:] + more, read + len(more)
                if found := re.search(rb'"schema"\s*:\s*"([^"]*)"', rest):
                    return found[1] == b"plan/v1"
    except (InputError, OSError):  # whoever reads it says what is wrong
        return False
    return False


def scenarios_here() -> list[str]:
    """scenario.yaml, then the files in scenarios/ by name; those that exist."""
    own = [DEFAULT_SCENARIO] if Path(DEFAULT_SCENARIO).is_file() else []
    folder = Path("scenarios")
    return own + [str(path) for path in sorted(folder.glob("*.y*ml")) if path.is_file()]


def named_scenarios() -> list[str]:
    """Scenarios of other names in this folder, by what they hold: they have to be named, but may be told of."""
    return [str(path) for path in files.list_files(".", "*.y*ml") if path.name != DEFAULT_SCENARIO and _is_one(path)]


def _is_one(path: Path) -> bool:
    try:
        return "schema: plan/v1" in files.read_text(path, limit_bytes=_SNIFFED_BYTES)
    except InputError:
        return False


def plans_here() -> list[str]:
    """The plans in .plan/, by name."""
    return [str(path) for path in files.list_files(".plan", "*.plan.json")]


def newest_first(paths: Sequence[str]) -> list[str]:
    """Files by the time of their last change."""
    return sorted(paths, key=lambda path: Path(path).stat().st_mtime, reverse=True)


def load(
    given: str | None,
    *,
    settings: Sequence[str] | None,
    case: str | None,
    hardware: str | None,
    prices: Sequence[str] | None = None,
    price: Sequence[str] | None = None,
    frame: Frame | None = None,
) -> tuple[Scenario, Catalog]:
    """The scenario, and the catalog: --hardware, else the scenario's own, else the packaged one, at one's own prices.

    With a frame, it is told on stderr which file a name means, and when the prices have gone stale.

    Parameters
    ----------
    given
        Scenario file, or name of one; None: the one that is found here.
    settings
        Texts of `--set`, applied last; None: none.
    case
        Named case of the scenario; None: the scenario as it is.
    hardware
        Folder or frozen file of a catalog; None: the scenario's own, else the packaged one.
    prices, price
        Texts after `--prices` and `--price`; None: nothing was said.
    frame
        Where remarks go; None: nothing is told.

    Raises
    ------
    UsageError
        No scenario is named and none is found, or several are; or the prices asked for are none, or of nothing that is
        offered.
    InputError
        The scenario, the catalog or a file of prices is invalid.
    """
    from planner.scenario import load_scenario

    source = scenario_file(given)
    scenario = load_scenario(source, settings=tuple(settings or ()), case=case)
    if frame is not None:
        _tell_which(frame, source, scenario.file)
    folder = hardware or scenario.hardware.catalog
    catalog = load_catalog(folder, prices=prices, price=price, rates=scenario.rates, frame=frame)
    if frame is not None:
        _tell_idle(frame, scenario, catalog, price or ())
    return scenario, catalog


def _tell_idle(frame: Frame, scenario: Scenario, catalog: Catalog, price: Sequence[str]) -> None:
    """What prices of machines come to, and prices of what the scenario does not allow: they move nothing."""
    from planner.candidates.offers import why_left_out
    from planner.catalog.names import offers_priced, said_of_machines
    from planner.scenario.hardware_keys import COMMITMENT_HOURS

    for line in said_of_machines(catalog, price):
        frame.say_once(line)
    told = {
        "not-allowed": "hardware.allow or hardware.deny leaves those devices out",
        "region": "hardware.regions leaves those offers out",
        "provider": "hardware.providers or hardware.exclude leaves those offers out",
        "price-model": "hardware.pricing leaves those terms out",
    }
    for text in price:
        offers = offers_priced(catalog, text)
        why = {why_left_out(offer, scenario.hardware, catalog) for offer in offers}
        asked = any(
            offer.price_model in COMMITMENT_HOURS for offer in offers
        )  # by advice and plan reserve, whatever pricing
        if why and why <= told.keys() and not (asked and "price-model" in why):
            frame.say_once(f"--price '{text}' moves nothing: {[told[one] for one in told if one in why][-1]}")


def _tell_which(frame: Frame, given: str, file: str) -> None:
    """Which scenario a name means, where it is a name."""
    from planner.scenario.shipped import PREFIX, shipped_names

    if file.startswith(PREFIX):
        frame.say(f"{given} is the scenario that ships; plan scenarios {file.removeprefix(PREFIX)} prints it")
    elif file != given and given in shipped_names():
        frame.say(f"{given} is {file} of this folder, not the scenario that ships by that name: {PREFIX}{given}")


def load_catalog(
    hardware: str | None,
    *,
    prices: Sequence[str] | None = None,
    price: Sequence[str] | None = None,
    rates: Rates | None = None,
    frame: Frame | None = None,
) -> Catalog:
    """The catalog of a folder or frozen file, else the packaged one, at the prices of --prices and --price.

    With a frame, it is told on stderr when the prices have gone stale; `rates` are those of the scenario.

    Parameters
    ----------
    hardware
        Folder or frozen file of a catalog; None: the packaged one.
    prices, price
        Texts after `--prices` and `--price`; None: nothing was said.
    rates
        For prices in other currencies; None: there are none.
    frame
        Where warnings go; None: nothing is told.

    Raises
    ------
    UsageError
        The prices asked for are none, or of nothing that is offered, or of two days.
    InputError
        The catalog or a file of prices is invalid.
    """
    from planner.catalog.own_prices import OwnPrices, load_priced
    from planner.units import NO_RATES

    catalog = load_priced(hardware, OwnPrices.of(prices, price, rates or NO_RATES))
    if frame is not None:
        tell_age(frame, catalog)
    return catalog


def tell_age(frame: Frame, catalog: Catalog) -> None:
    """Prices that nobody has refreshed for long, on stderr."""
    from planner.catalog.pricing import gone_stale
    from planner.cli import clock

    warning = gone_stale(catalog, clock.today())
    if warning is not None:
        frame.warn(warning)
