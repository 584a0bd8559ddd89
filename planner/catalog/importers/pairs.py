"""Prices of AWS by machine and region, {"p5.48xlarge/us-east-1": 55.04}, as offers.

Such a file says neither when nor on which terms: the price model is the user's to say.

Source of the layout: opencost/opencost, configs/awsreservationofferings.json.
"""

from __future__ import annotations

import json
import re

from planner.catalog.importers.imported import Imported, countries_of, price_of
from planner.catalog.importers.terms import ListTerms, in_dollars
from planner.catalog.model import Catalog
from planner.catalog.offers import PRICE_MODELS
from planner.errors import InputError, UsageError

PROVIDER = "aws"
_KEY = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+/[a-z]{2}(?:-[a-z]+)+-\d")


def is_pairs(data: object) -> bool:
    """Whether a JSON document is such a list."""
    return isinstance(data, dict) and bool(data) and all(_KEY.fullmatch(str(key)) for key in data)


def read_pairs(
    data: object, file: str, catalog: Catalog, terms: ListTerms, *, price_model: str, source: str = "", as_of: str = "",
    copied: str = "",
) -> Imported:  # fmt: skip
    """The prices of a JSON document as offers.

    Parameters
    ----------
    data
        The document.
    file
        Its name, for messages and where nothing is said of the source.
    catalog
        Whose shapes tell what a pair sells.
    terms
        Tax, where the user says that it is in the prices; they are in dollars.
    price_model
        On which terms the prices are; empty: nobody said it.
    source
        Where the file is from; empty: its name.
    as_of
        ISO date of the prices; empty: not known.
    copied
        ISO date of the import, which stands where `as_of` is not known.

    Raises
    ------
    InputError, UsageError
        Nobody said on which terms the prices are, or there are no such terms.
    """
    if not price_model:
        hint = "say it: --price-model commitment_1y; one of " + ", ".join(PRICE_MODELS)
        raise InputError.of("missing-field", f"{file} does not say on which terms its prices are", hint=hint)
    if price_model not in PRICE_MODELS:
        hint = "one of: " + ", ".join(PRICE_MODELS)
        raise UsageError.of("unknown-value", f"there is no price model '{price_model[:40]}'", hint=hint)
    found = Imported(file=file, provider=PROVIDER, copied=copied, countries=countries_of(catalog, PROVIDER))
    for number, (key, value) in enumerate(data.items() if isinstance(data, dict) else (), start=1):
        found.rows += 1
        name, _, region = str(key).partition("/")
        price = price_of(json.dumps(value))  # a text keeps its quotes: it is no number
        if f"{PROVIDER}/{name}" not in catalog.shapes:
            found.skip(number, str(key), "no shape of this machine")
        elif isinstance(price, str):
            found.no_price(number, str(key), price, (name, region, price_model))
        else:
            found.offer(shape=name, region=region, zone="", price_model=price_model, source=source or file, as_of=as_of,
                        price=in_dollars(price, "USD", terms, file))  # fmt: skip
            found.taken += 1
    return found
