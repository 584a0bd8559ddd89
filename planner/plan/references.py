"""What a scenario names: models loaded once, devices, regions and shapes looked up, mistakes at the scenario's line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from planner.architecture.load import coarse_model, suggestions
from planner.architecture.load import load_model as load_architecture
from planner.architecture.model import Architecture
from planner.candidates.offers import OWNED
from planner.catalog.load import find_shape, match_devices
from planner.catalog.model import Catalog
from planner.catalog.names import provider_matches, region_matches
from planner.errors import InputError, Problem
from planner.scenario.schema import Discount, ModelRef, Quota, Scenario, SiteLimit
from planner.spelling import closest


def load_model(ref: ModelRef | str | None) -> Architecture:
    """A model by preset name, by its config.json, or by its bare size."""
    if isinstance(ref, str):
        return load_architecture(ref)
    if ref is None:
        raise InputError.of("missing-field", "a workload names no model", hint="add model: llama-3.1-8b")
    if ref.parameters is not None:
        return coarse_model(ref.parameters)
    return load_architecture(Path(ref.config) if ref.config else ref.preset or "")


def loader_of(scenario: Scenario) -> Callable[[ModelRef | None], Architecture]:
    """Loads each model once and points errors at the scenario's line."""
    cache: dict[str, Architecture] = {}

    def load(ref: ModelRef | None) -> Architecture:
        key = ref.model_dump_json() if ref else ""
        if key not in cache:
            cache[key] = _placed(scenario, ref)
        return cache[key]

    return load


def _placed(scenario: Scenario, ref: ModelRef | None) -> Architecture:
    try:
        return load_model(ref)
    except InputError as error:
        place = _place_of_model(scenario, ref)
        if place is None:
            raise
        raise InputError(*(_at(problem, place) for problem in error.problems)) from error


def _at(problem: Problem, place: Any) -> Problem:
    if problem.places or place is None:
        return problem
    return Problem(reference=problem.reference, message=problem.message, places=(place,), hint=problem.hint)


def _draft_models(scenario: Scenario) -> Iterator[Problem]:
    """What is wrong with the draft models of fleets."""
    for index, fleet in enumerate(scenario.serving):
        try:
            _ = fleet.speculative and fleet.speculative.draft  # read here, where its place is known
        except InputError as error:
            place = scenario.places.get(f"serving[{index}].speculative.model")
            yield from (_at(problem, place) for problem in error.problems)


def _place_of_model(scenario: Scenario, ref: ModelRef | None) -> Any:
    for kind, workloads in (("training", scenario.training), ("serving", scenario.serving)):
        workload: Any
        for index, workload in enumerate(workloads):
            if workload.model == ref:
                return scenario.places.get(f"{kind}[{index}].model")
    return None


def check_references(scenario: Scenario, catalog: Catalog) -> None:
    """Names in the scenario that the catalog must know: patterns that match nothing, owned shapes."""
    problems = [*_unmatched_devices(scenario, catalog), *_unmatched_regions(scenario, catalog)]
    problems += [*_unmatched_providers(scenario, catalog), *_draft_models(scenario)]
    named = [(f"hardware.owned[{i}].shape", owned.shape) for i, owned in enumerate(scenario.hardware.owned)]
    timed = [(f"training[{i}].step_time.shape", job.step_time) for i, job in enumerate(scenario.training)]
    for path, name in [*named, *((path, given.shape) for path, given in timed if given and given.shape)]:
        try:
            find_shape(catalog, name)
        except InputError as error:
            problems += [_at(problem, scenario.places.get(path)) for problem in error.problems]
    if problems:
        raise InputError(*problems)


def _unmatched_devices(scenario: Scenario, catalog: Catalog) -> list[Problem]:
    patterns = [(f"hardware.allow[{i}]", text) for i, text in enumerate(scenario.hardware.allow)]
    patterns += [(f"hardware.deny[{i}]", text) for i, text in enumerate(scenario.hardware.deny)]
    patterns += [
        (f"hardware.quotas[{i}].device", quota.device)
        for i, quota in enumerate(scenario.hardware.quotas)
        if quota.device
    ]
    patterns += [(f"training[{i}].mfu.{text}", text) for i, job in enumerate(scenario.training) for text in job.mfu]
    unmatched = [(path, text) for path, text in patterns if not match_devices(catalog, text)]
    if not unmatched:
        return []
    known = sorted(catalog.devices)
    named = {name.split("-")[0] for one in catalog.devices.values() for name in (one.id, one.family, one.vendor)}
    kinds = sorted(f"{name}-*" for name in named if name and match_devices(catalog, f"{name}-*"))
    return [
        _unknown(scenario, path, "device", text, known, kinds, hint=_not_devices(catalog, text))
        for path, text in unmatched
    ]


def _not_devices(catalog: Catalog, text: str) -> str:
    """What a name means that is one of machines or of a vendor, where devices are to be named; "" nothing known."""
    low = text.lower().removeprefix("standard_")  # as Azure writes its sizes
    shapes = [one for one in catalog.shapes.values() if fnmatchcase(one.id.rpartition("/")[2].lower(), low)]
    shapes = shapes or [one for one in catalog.shapes.values() if fnmatchcase(one.id.lower(), low)]
    if shapes:
        devices, sellers = (sorted({getattr(one, name) for one in shapes})[:3] for name in ("device", "provider"))
        whose = "that one owns (hardware.owned)" if sellers == ["onprem"] else f"of {', '.join(sellers)}"
        return f"that is a machine {whose}: here devices are named, {' or '.join(devices)}"
    sold = Counter(catalog.shapes[offer.shape].device for offer in catalog.offers)
    made = [name for name, _ in sold.most_common() if catalog.devices[name].vendor == low]
    vendors = {one.vendor for one in catalog.devices.values()}
    bare = next((low[len(one) + 1 :] for one in vendors if low.startswith((f"{one}-", f"{one}/", f"{one}_"))), "")
    if bare and match_devices(catalog, bare):
        return f"devices go by their names without their makers': {bare}"
    return f"that is a vendor: name its devices, {', '.join(made[:4])}{' …' * (len(made) > 4)}" if made else ""


def _listed(scenario: Scenario) -> Iterator[tuple[str, Quota | Discount | SiteLimit]]:
    """What holds for a provider, a region or a provider's region, with its path."""
    listed: tuple[tuple[str, Sequence[Quota | Discount | SiteLimit]], ...] = (
        ("hardware.quotas", scenario.hardware.quotas),
        ("hardware.discounts", scenario.hardware.discounts),
        ("limits.sites", scenario.limits.sites),
    )
    return ((f"{path}[{i}]", one) for path, some in listed for i, one in enumerate(some))


def _unmatched_regions(scenario: Scenario, catalog: Catalog) -> Iterator[Problem]:
    """Patterns of regions that hold for nothing: of the provider that is named with them, and not the user's own."""
    hardware = scenario.hardware
    own = {one.region.lower() for one in hardware.owned if one.region}
    own |= {one.region.lower() for one in hardware.contracts}
    named = [(f"hardware.regions[{i}]", "*", text) for i, text in enumerate(hardware.regions)]
    named += [(f"{path}.region", one.provider or "*", one.region) for path, one in _listed(scenario) if one.region]
    stated = [(f"serving[{i}].regions", fleet.regions) for i, fleet in enumerate(scenario.serving)]
    stated += [(f"training[{i}].regions", job.regions) for i, job in enumerate(scenario.training)]
    named += [(f"{path}[{i}]", "*", text) for path, some in stated for i, text in enumerate(some)]
    for path, provider, text in named:
        there = [offer for offer in catalog.offers if provider_matches(offer.provider, provider)]
        unsold = provider not in ("*", OWNED) and not there  # the provider is the mistake, or sells nothing
        matched = text == "*" or unsold or any(region_matches(offer, text) for offer in there)
        if not matched and not any(fnmatchcase(region, text.lower()) for region in own):
            of = "the catalog" if provider == "*" else provider
            known = {offer.region for offer in there} or own
            hint = area_meant(text) or _city_meant(text, known) or _patterns(text, known)
            if path.startswith("hardware.regions") and hardware.owned and text.lower() in ("nowhere", "none"):
                hint = "to rent nothing beside what is owned: kinds: [owned]"
            yield _unknown(scenario, path, "region", text, sorted(known), of=of, hint=hint)


def _city_meant(text: str, regions: Collection[str]) -> str:
    """The regions of a city or a state, of those that are sold; "" for any other word."""
    there = [name for name in _CITIES.get(text.lower().replace(" ", "-"), "").split() if name in regions]
    return f"providers call it {' or '.join(there)}" if there else ""


def _patterns(text: str, regions: Iterable[str]) -> str:
    """Patterns that the beginning of some regions may stand for, as "eu" does; "" for any other word."""
    begin = text.lower()
    like = [region for region in regions if "-" in region and region.startswith(begin)]
    first = {begin + "*" if "-" in text else region.partition("-")[0] + "-*" for region in like}  # us-east: not us-west
    meant = [f'"{pattern}"' for pattern in sorted(first)][:MOST_PATTERNS]
    return f"write a region, or what several have in common: {' or '.join(meant)}" if meant and "*" not in text else ""


def area_meant(text: str) -> str:
    """What a country or a part of the world is called here; "" for any other word."""
    low = text.lower()
    if low in ("europe", "european-union"):
        return 'write eu, all countries of the European Union, or eea; regions that are called so: "europe-*"'
    code = next((code for code, names in _COUNTRIES.items() if low in names.split()), "")
    return f"countries go by their two letters: {code}" if code else ""


_COUNTRIES = {
    "au": "australia", "be": "belgium", "br": "brazil brasil", "ca": "canada", "cl": "chile",
    "de": "germany deutschland", "es": "spain", "fi": "finland", "fr": "france",
    "gb": "uk england britain great-britain united-kingdom",
    "ie": "ireland", "in": "india", "is": "iceland", "jp": "japan", "ma": "morocco", "nl": "netherlands holland",
    "pl": "poland", "sa": "saudi-arabia", "se": "sweden", "sg": "singapore", "tw": "taiwan",
    "us": "usa america united-states", "za": "south-africa",
}  # fmt: skip
# Regions by what their providers call the city or state that they lie in
_CITIES = {
    "amsterdam": "europe-west4 westeurope", "belgium": "europe-west1", "cape-town": "southafricanorth",
    "dallas": "us-south1", "dublin": "eu-west-1", "frankfurt": "eu-central-1 europe-west3", "helsinki": "eu-north1",
    "iowa": "us-central1", "johannesburg": "southafricanorth", "kansas": "us-central1", "london": "eu-west-2 uksouth",
    "madrid": "spaincentral", "melbourne": "ap-southeast-4", "mumbai": "ap-south-1", "ohio": "us-east-2",
    "oregon": "us-west-2 us-west1", "paris": "francecentral eu-west1", "singapore": "asia-southeast1 southeastasia",
    "stockholm": "eu-north-1 swedencentral", "taiwan": "asia-east1", "texas": "southcentralus us-south1",
    "tokyo": "ap-northeast-1 asia-northeast1 japaneast", "toronto": "tor1", "virginia": "us-east-1 us-east4 eastus",
    "warsaw": "polandcentral",
}  # fmt: skip
MOST_PATTERNS = 3  # that are told of one word
# Names that people have for a provider and the catalog has not: of its company, or that it had before
_CALLED = {"amazon": "aws", "datacrunch": "verda", "google": "gcp", "microsoft": "azure", "oracle": "oci"}


def _unmatched_providers(scenario: Scenario, catalog: Catalog) -> list[Problem]:
    hardware = scenario.hardware
    known = sorted({offer.provider for offer in catalog.offers} | {shape.provider for shape in catalog.shapes.values()})
    named = [
        (f"{path}.provider", one.provider)
        for path, one in _listed(scenario)
        if not (isinstance(one, SiteLimit) and one.provider == OWNED and hardware.owned)
    ]
    named += [(f"hardware.providers[{i}]", name) for i, name in enumerate(hardware.providers) if name != "*"]
    named += [(f"hardware.exclude[{i}]", name) for i, name in enumerate(hardware.exclude)]
    return [
        _unknown(scenario, path, "provider", name, known, hint=_not_providers(catalog, path, name))
        for path, name in named
        if name and not any(provider_matches(one, name) for one in known)
    ]


def _not_providers(catalog: Catalog, path: str, text: str) -> str:
    """Where a name of devices belongs that stands for a provider; "" for any other."""
    if not path.startswith(("hardware.exclude", "hardware.providers")) or not match_devices(catalog, text):
        return ""
    key = "deny" if path.startswith("hardware.exclude") else "allow"
    return f'that is a device, and here providers are named; devices: hardware.{key}: ["{text}"]'


def _unknown(
    scenario: Scenario,
    path: str,
    what: str,
    text: str,
    known: Sequence[str],
    kinds: Sequence[str] = (),
    of: str = "the catalog",
    hint: str = "",
) -> Problem:
    """That nothing is of a name or a pattern, and the nearest names, or patterns of kinds of things."""
    called = _CALLED.get(text.lower().replace("_", "-").partition("-")[0], "") if what == "provider" else ""
    near = [one for one in known if one == called] or suggestions(text, tuple(known))
    near = near or (closest(text, kinds) if "*" in text else [])
    place = scenario.places.get(path) or scenario.places.get(path.rsplit("[", 1)[0])
    hint = hint or (f"did you mean {' or '.join(near)}?" if near else f"plan catalog list shows every {what}")
    if what == "provider" and not near and hint.startswith("plan catalog"):
        hint += "; a quote of one that is not there: hardware.contracts, of a machine such as dgx-h100, or --prices"
    if what == "provider" and text == OWNED:
        hint = 'machines of your own count everywhere; to rent nothing beside them: exclude: ["*"]'
    return Problem(
        reference=f"unknown-{what}",
        message=f"no {what} of {of} matches '{text}'",
        places=(place,) if place else (),
        hint=hint,
    )
