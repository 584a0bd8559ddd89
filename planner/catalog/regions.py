"""Whether an offer lies where a pattern says.

Providers name regions as they like (us-central1, eastus, US-CA-1, FIN-03). A pattern is therefore held
against the provider's own names of region and zone, and against the country (ISO 3166) alone and before
the region: "us-*" finds gcp us-central1, azure eastus (as us-eastus) and runpod US-CA-1; "fi" and "fi-*"
find all of Finland. "eu" is all of the European Union, "eea" of the European Economic Area, whose law of data
protection is one, by whatever names; "eu-*" is names that begin so. Capitals do not matter.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from planner.catalog.model import Offer

# Members on 2026-11-29 (recalled: treaties of accession; the EEA agreement)
_MEMBERS = "at be bg cy cz de dk ee es fi fr gr hr hu ie it lt lu lv mt nl pl pt ro se si sk"
_UNION = frozenset(_MEMBERS.split())
_AREAS = {"eu": _UNION, "eea": _UNION | {"is", "li", "no"}}


def region_matches(offer: Offer, pattern: str) -> bool:
    """Whether a region pattern covers an offer."""
    wanted = pattern.lower()
    return wanted == "*" or any(fnmatchcase(name, wanted) for name in _names(offer))


def _names(offer: Offer) -> list[str]:
    region, zone, country = offer.region.lower(), offer.zone.lower(), offer.country.lower()
    names = [region, zone] if zone else [region]
    if country:
        names += [country, f"{country}-{region}", *(area for area, members in _AREAS.items() if country in members)]
    return names
