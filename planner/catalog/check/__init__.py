"""Questions a catalog must answer before anyone minimises over it: a minimiser seeks out errors.

Prices that carry a quality flag are known to be doubtful and are left out of plans; they are
counted here but break no rule again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from planner.catalog.check.against import check_against, check_table
from planner.catalog.check.devices import check_device
from planner.catalog.check.facts import check_facts, check_numbers
from planner.catalog.check.offers import check_dates, check_offers
from planner.catalog.check.shapes import check_shape
from planner.catalog.model import Catalog, Device
from planner.errors import Place, Problem


def check_catalog(
    catalog: Catalog,
    other: Catalog | None = None,
    *,
    table: Mapping[str, Device] | None = None,
    today: date | None = None,
) -> list[Problem]:
    """Errors and warnings of a catalog.

    Parameters
    ----------
    other
        A second catalog: facts and prices that lie a factor of two apart are told as well.
    table
        Devices as they are known elsewhere, those that ship: facts that disagree are told, unless a user states them.
    today
        The day on which prices are old or not; default: the catalog's own date.

    Returns
    -------
    Problems, errors first, then by reference and message; each with the file that it is about.
    """
    found: list[Problem] = []
    for device in catalog.devices.values():
        found += check_device(device)
    found += check_facts(catalog)
    found += check_numbers(catalog)
    for shape in catalog.shapes.values():
        found += check_shape(shape, catalog)
    found += check_offers(catalog)
    found += check_dates(catalog, today or date.fromisoformat(catalog.as_of))
    if table is not None:
        found += check_table(catalog, table)
    if other is not None:
        found += check_against(catalog, other)
    placed = [replace(problem, places=_placed(problem, catalog)) for problem in found]
    return sorted(placed, key=lambda problem: (problem.severity, problem.reference, problem.message))


def _placed(problem: Problem, catalog: Catalog) -> tuple[Place, ...]:
    return tuple(Place(file=f"{catalog.path}/{place.file}".rstrip("/")) for place in problem.places)
