"""What the rule tier expects of each family, and the carbon facts."""

from __future__ import annotations

import pytest

from planner.catalog.model import Catalog
from planner.equations.rules import A100_RULE_MFU


def test_a100_share_is_the_founding_rule(catalog: Catalog) -> None:
    ampere = catalog.efficiencies["ampere"]
    share = 6 * 1e9 * 1e9 / (13.3 * 3600) / catalog.devices["a100-sxm-80gb"].peak_flop_per_s["bf16"]
    assert ampere.mfu == pytest.approx(share, rel=1e-3)
    assert ampere.inherited_from == ""


def test_shares_with_a_source_of_their_own(catalog: Catalog) -> None:
    own = {name: row.mfu for name, row in catalog.efficiencies.items() if not row.inherited_from}
    assert own.pop("ampere") == pytest.approx(A100_RULE_MFU, rel=1e-15)
    assert own == {
        "hopper": 0.315, "tpu-v4": 0.55, "tpu-v5e": 0.55, "tpu-v5p": 0.55, "tpu-v6e": 0.38,
    }  # fmt: skip
    assert 0.28 <= own["hopper"] <= 0.35


def test_the_others_say_whose_share_they_take(catalog: Catalog) -> None:
    for name, row in catalog.efficiencies.items():
        assert row.provenance.source, name
        if row.inherited_from:
            parent = catalog.efficiencies[row.inherited_from]
            assert row.mfu == parent.mfu
            assert row.provenance.status == "inferred"
            assert row.inherited_from in row.provenance.source
    for old in ("kepler", "pascal", "volta", "turing"):
        assert catalog.efficiencies[old].inherited_from == "ampere"


def test_every_device_that_trains_has_a_share(catalog: Catalog) -> None:
    for device in catalog.devices.values():
        assert ("training" not in device.uses) or device.family in catalog.efficiencies, device.id


def test_error_of_the_rule(catalog: Catalog) -> None:
    error = catalog.rule_error
    assert error is not None
    assert (error.runs, error.median, error.mean, error.max) == (23, 0.187, 0.2, 0.43)
    assert error.provenance.source


def test_carbon_only_where_a_source_names_the_region(catalog: Catalog) -> None:
    found = {key: (grid.gco2_per_kwh, grid.pue) for key, grid in catalog.grids.items()}
    assert found["gcp", "us-east1"] == (579.44, 1.1)  # South Carolina, as Google states it for 2025
    assert found["gcp", "europe-west3"] == (275.81, 1.1)  # Frankfurt
    assert found["aws", "eu-central-1"] == (275.81, 1.135)  # the same grid in another's building
    assert ("aws", "eu-west-1") not in found  # nobody states the grid of Ireland
    by_source = {grid.provenance.status for (provider, _), grid in catalog.grids.items() if provider != "gcp"}
    assert by_source == {"inferred"}
    regions = {(offer.provider, offer.region) for offer in catalog.offers}
    assert {region for provider, region in regions if provider == "gcp"} <= {r for p, r in found if p == "gcp"}
