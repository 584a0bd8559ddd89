"""Prices of one's own on top of a catalog: from a file, or one device on the command line.

A price file has the columns of a catalog's offers. A line that names only `offer`, the price and `as_of` gives
an offer that the catalog has another price; a line with a `shape` is an offer of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from planner.carriers import dataclass
from planner.catalog.frozen import digest_of
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Offer, Provenance
from planner.catalog.names import device_matches, machine_names, offers_at_one_price, offers_meant
from planner.catalog.offers import (
    OPTIONAL,
    PRICE,
    PRICE_MODELS,
    REQUIRED,
    is_price,
    newest,
    placed,
    read_offer,
    read_price,
)
from planner.catalog.pricing import discounted, repriced, shape_price
from planner.catalog.reading import Problems, Row, is_date, open_csv
from planner.errors import UsageError
from planner.files import StrPath
from planner.spelling import closest
from planner.units import NO_RATES, Rates, UnitError, format_money_rate, parse_price

NEEDED = ("offer", PRICE, "as_of")
_AS_A_DAY = re.compile(r"(?i)\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{8}|\d{4}-\d\d|today|yesterday|now|\d{4}")
_REST = tuple(name for name in (*REQUIRED, *OPTIONAL) if name not in NEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrices:
    """What is asked of prices on top of a catalog."""

    until: str = ""  # ISO date: only prices of that day or earlier
    files: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()  # "h100-sxm=$2.50/h"
    rates: Rates = NO_RATES  # of the scenario, for prices in other currencies

    @classmethod
    def of(cls, prices: Iterable[str] | None, price: Iterable[str] | None, rates: Rates = NO_RATES) -> OwnPrices:
        """From what stands after `--prices` (a date or files) and `--price`.

        Parameters
        ----------
        prices
            Texts after `--prices`: an ISO date, the others files; None: nothing was said.
        price
            Texts after `--price`, as `with_device_price` takes them; None: nothing was said.
        rates
            Of the scenario, for prices in other currencies.

        Raises
        ------
        UsageError
            Two dates, or one that the calendar has not.
        """
        given = tuple(prices or ())
        dates = [text for text in given if is_date(text)]
        if len(dates) > 1:
            raise UsageError.of("two-dates", f"prices of which day? --prices {' and '.join(dates)}", hint="give one")
        files = tuple(text for text in given if text not in dates)
        if meant := next((text for text in files if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text)), ""):
            raise UsageError.of("bad-date", f"--prices is '{meant}', which is no date", hint="write 2026-11-21")
        if meant := next((text for text in files if _AS_A_DAY.fullmatch(text) and not Path(text).exists()), ""):
            hint = "a day is written as 2026-11-21: year, month, day"
            raise UsageError.of(
                "bad-date", f"--prices is '{meant[:40]}', which is neither a file nor a date", hint=hint
            )
        return cls(until=dates[0] if dates else "", files=files, devices=tuple(price or ()), rates=rates)

    @classmethod
    def from_flags(cls, flags: Iterable[str], rates: Rates = NO_RATES) -> OwnPrices:
        """From the flags that a plan records."""
        pairs = [flag.partition(" ") for flag in flags]
        prices = [text for name, _, text in pairs if name == "--prices"]
        return cls.of(prices, [text for name, _, text in pairs if name == "--price"], rates)

    @property
    def flags(self) -> tuple[str, ...]:
        """As a plan records them."""
        prices = [text for text in (self.until, *self.files) if text]
        return (*(f"--prices {text}" for text in prices), *(f"--price {text}" for text in self.devices))


NO_OWN_PRICES = OwnPrices()


def load_priced(path: StrPath | None = None, own: OwnPrices = NO_OWN_PRICES) -> Catalog:
    """The catalog of a folder or file (None: the one that ships) at prices of one's own, files first.

    Raises
    ------
    InputError
        The catalog or a price file is invalid.
    UsageError
        A price of a device is no price, or of nothing that is offered.
    """
    catalog = load_catalog(path, prices_until=own.until)
    for file in own.files:
        catalog = with_price_file(catalog, file, until=own.until)
    for text in own.devices:
        catalog = with_device_price(catalog, text, own.rates)
    return replace(catalog, own_prices=own.flags) if own.flags else catalog


def with_price_file(catalog: Catalog, path: StrPath, *, until: str = "") -> Catalog:
    """The catalog at the prices of a file, under the digest of what it then holds.

    Parameters
    ----------
    path
        CSV file of prices.
    until
        ISO date: lines of later dates do not count.

    Raises
    ------
    InputError
        The file cannot be read, or a line names no offer, has no price above zero, or no date.
    """
    file, problems = Path(path), Problems()
    offers = {offer.id: offer for offer in catalog.offers}
    found: dict[tuple[str, str], Offer] = {}
    for row in open_csv(file, NEEDED, _REST, problems):
        for offer in _line(row, catalog, offers, problems):
            if (offer.id, offer.provenance.as_of) in found:
                hint = "keep one line, or give each its date"
                problems.add("duplicate-id", f"{offer.id} has two prices of one date", row.place, hint)
            found[offer.id, offer.provenance.as_of] = offer
    problems.demand_none()
    return _with_offers(catalog, placed(offers | newest(found.values(), until)))


def _line(row: Row, catalog: Catalog, offers: dict[str, Offer], problems: Problems) -> Iterator[Offer]:
    row.cells["status"] = row["status"] or "user"
    row.cells["source"] = row["source"] or Path(row.file).name
    if row["shape"]:
        offer = read_offer(row, catalog.shapes, problems)
        if offer:
            yield offer
        return
    known, price, provenance = offers.get(row["offer"]), read_price(row, problems), row.provenance(problems)
    if known is None:
        near = closest(row["offer"][:200], list(offers))
        hint = f"did you mean '{near[0]}'?" if near else "a new offer needs provider, shape, region and price_model"
        problems.add("unknown-offer", f"the catalog has no offer '{row['offer']}'", row.place, hint)
    elif price is not None:
        yield repriced(known, price, provenance)


_CHANGE = re.compile(r"([+-]) *([0-9]+(?:\.[0-9]+)?) *%")
MOST_RISE = 10.0  # times the price that a rise may put on it


def with_device_price(catalog: Catalog, text: str, rates: Rates = NO_RATES) -> Catalog:
    """The catalog with another price of a device-hour: "h100-sxm=$2.50/h", or "h100-sxm@spot=$1.10/h"; or of a machine.

    Offers on demand of every device that the pattern covers, or those of the price model after the @, cost that
    much a device; those of one machine, or by their ids, that much a machine ("aws:p5.48xlarge=$40/h").
    "h100-*=+20%" and "aws:*=-10%" change prices by a share: those of devices, of a machine, or of offers by their
    ids, on every price model unless one is named. A price in another currency counts at the scenario's rate.

    Parameters
    ----------
    catalog
        Whose offers get other prices; it stays as it is.
    text
        What stands after `--price`, in one of the forms above.
    rates
        Of the scenario, for a price in another currency.

    Raises
    ------
    UsageError
        The text is no price of a device, or nothing of that kind is offered.
    """
    changed_by = _CHANGE.fullmatch(text.partition("=")[2].strip())
    if changed_by:
        return _with_change(catalog, text.partition("=")[0].strip(), changed_by)
    pattern, named, price = _asked(text, rates)
    model, said = named or "on_demand", format_money_rate(price, exact=True)
    provenance = Provenance(source=f"--price {pattern}@{model}={said}", as_of="", status="user")
    ids = {device.id for device in catalog.devices.values() if device_matches(device, pattern)}
    if not ids and (offers := offers_at_one_price(catalog, pattern, named, text.partition("=")[2].strip())):
        asked = f"{pattern}@{named}" if named else pattern
        provenance = replace(provenance, source=f"--price {asked}={said} a machine")
        own = {offer.id: repriced(offer, price, provenance) for offer in offers}
        return _with_offers(catalog, {offer.id: offer for offer in catalog.offers} | own)
    if not ids:
        near = closest(pattern.lower()[:100], [*catalog.aliases, *machine_names(catalog)])
        hint = f"did you mean '{near[0]}'?" if near else "plan catalog list shows every device"
        hint = _of_a_provider(catalog, pattern, "-10%") or _of_machines(catalog, pattern, "-10%") or hint
        what = "machine or offer" if ":" in pattern or "/" in pattern else "device"
        raise UsageError.of("unknown-device", f"--price: there is no {what} '{pattern[:80]}'", hint=hint)
    mine = {offer.id: offer for offer in catalog.offers if catalog.shapes[offer.shape].device in ids}
    changed = {
        name: repriced(offer, shape_price(price, catalog.shapes[offer.shape]), provenance)
        for name, offer in mine.items()
        if offer.price_model == model
    }
    if not changed:
        models = sorted({offer.price_model for offer in mine.values()})
        hint = f"it is offered as {', '.join(models)}: write {pattern}@{models[0]}=..." if models else "nobody sells it"
        raise UsageError.of("no-offer", f"--price: '{pattern}' is not offered as {model}", hint=hint)
    return _with_offers(catalog, {offer.id: offer for offer in catalog.offers} | changed)


def _of_a_provider(catalog: Catalog, name: str, change: str) -> str:
    """How all prices of a provider are changed, where that is what was named; "" for any other name."""
    known = {offer.provider for offer in catalog.offers}
    return f"that is a provider: --price '{name.lower()}:*={change}' is of its offers" if name.lower() in known else ""


def _of_machines(catalog: Catalog, name: str, change: str) -> str:
    """How prices of a machine, or of a provider's devices, are changed, where that is what was named; "" else."""
    provider, _, device = name.partition(":")
    machines = [
        one.id
        for one in catalog.shapes.values()
        if name in (one.id, one.id.partition("/")[2])
        or (device and one.provider == provider and device_matches(catalog.devices[one.device], device))
    ]
    sold = {offer.shape for offer in catalog.offers}
    told = [f"'{one.replace('/', ':*:')}:*={change}'" for one in sorted(machines) if one in sold]
    return f"offers go by provider:region:machine:terms: --price {' --price '.join(told[:3])}" if told else ""


def _with_change(catalog: Catalog, asked: str, change: re.Match[str]) -> Catalog:
    """The catalog with the prices of a pattern changed by a share; they stay as old and as sure as they were."""
    pattern, _, model = asked.partition("@")
    share = float(change[2]) / 100
    if (change[1] == "-" and share >= 1) or share > MOST_RISE:
        hint = f"less than 100 % off, at most {100 * MOST_RISE:g} % on"
        raise UsageError.of("out-of-range", f"--price {asked[:80]}={change[0]} leaves no price", hint=hint)
    if model and model not in PRICE_MODELS:
        hint = "one of: " + ", ".join(PRICE_MODELS)
        raise UsageError.of("unknown-value", f"--price: there is no price model '{model[:40]}'", hint=hint)
    by_id = ":" in pattern
    mine = [] if by_id else [
        offer
        for offer in catalog.offers
        if (not model or offer.price_model == model)
        and device_matches(catalog.devices[catalog.shapes[offer.shape].device], pattern)
    ]  # fmt: skip
    mine = mine or offers_meant(catalog, pattern, model)
    if not mine:
        near = closest(pattern.lower()[:100], [offer.id for offer in catalog.offers] if by_id else catalog.aliases)
        hint = f"did you mean '{near[0]}'?" if near else "plan catalog list shows every offer"
        hint = _of_a_provider(catalog, pattern, change[0]) or _of_machines(catalog, pattern, change[0]) or hint
        raise UsageError.of("no-offer", f"--price: nothing that is offered is meant by '{asked[:80]}'", hint=hint)
    fraction = share if change[1] == "-" else -share
    said = f"--price {asked}={change[1]}{change[2]}%"
    changed = {offer.id: discounted(offer, fraction, said) for offer in mine}
    return _with_offers(catalog, {offer.id: offer for offer in catalog.offers} | changed)


def _asked(text: str, rates: Rates) -> tuple[str, str, int]:
    """Pattern, price model ("" where none is named) and micro-USD an hour of "DEVICE@MODEL=PRICE"."""
    left, equals, right = text.partition("=")
    pattern, _, model = left.strip().partition("@")
    model = model.strip()
    if not equals or not pattern.strip():
        raise UsageError.of("bad-price", f"--price '{text[:80]}' is no price", hint="write --price 'h100-sxm=$2.50/h'")
    if model and model not in PRICE_MODELS:
        hint = "one of: " + ", ".join(PRICE_MODELS)
        raise UsageError.of("unknown-value", f"--price: there is no price model '{model[:40]}'", hint=hint)
    if share := re.fullmatch(r"([0-9.]+) *%", right.strip()):
        hint = f"write +{share[1]}% or -{share[1]}%"
        raise UsageError.of("ambiguous-number", f"--price {text[:80]}: dearer or cheaper by so much?", hint=hint)
    try:
        price = parse_price(right.strip(), field="--price", rates=rates)
    except UnitError as error:
        raise UsageError.of(error.reference, error.message, hint=error.hint) from None
    if not is_price(price):
        hint = "what costs nothing belongs under hardware.owned"
        raise UsageError.of("bad-price", f"--price {text[:80]} is no price of an hour", hint=hint)
    return pattern.strip(), model, price


def _with_offers(catalog: Catalog, offers: dict[str, Offer]) -> Catalog:
    changed = replace(catalog, offers=tuple(offers[name] for name in sorted(offers)))
    return replace(changed, digest=digest_of(changed))
