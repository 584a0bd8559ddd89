"""hardware/calibration/training.yaml: what is read, what is inherited, what is refused and where."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import pytest

from planner.catalog.fitted_constants import constants_id, read_training
from planner.catalog.load import load_catalog
from planner.catalog.model import TrainingFamily
from planner.catalog.reading import Problems
from planner.estimate.constants import StepConstants
from planner.estimate.device_constants import fitted_on
from planner.estimate.frameworks import PART
from planner.files import data_folder

GOOD = """schema: catalog/training/v1
defaults: {as_of: 2026-11-21, status: inferred, source: rows of a test}
families:
  hopper:
    constants: {gemm: 0.8, host_s: 0.0004}
    time_band: {p10: 0.9, p50: 1.0, p90: 1.1, rows: 40, sources: 5,
      median_error: 0.03, mean_error: 0.05, p90_error: 0.1}
    expert_time_band: {p10: 0.8, p50: 1.0, p90: 1.3, rows: 12, sources: 1,
      median_error: 0.1, mean_error: 0.12, p90_error: 0.3}
    memory_band: {p10: 0.98, p50: 1.0, p90: 1.02, rows: 9, sources: 1,
      median_error: 0.01, mean_error: 0.01, p90_error: 0.02}
    by_source: {a-paper-2024: {rows: 4, mean_error: 0.03, bias: -0.01}}
    validity: {devices: [8, 1024]}
  ada: {inherits: hopper, because: same generation, widen: 1.5}
stacks: {old: 1.2}
beyond: {devices above: 1.3}
"""


def read(folder: Path, text: str) -> tuple[dict[str, TrainingFamily], dict[str, float], Problems]:
    path = folder / "training.yaml"
    path.write_text(text)
    problems = Problems()
    families, stacks, beyond = read_training(path, problems)
    assert problems or beyond == {"devices above": 1.3}
    return families, stacks, problems


def test_a_family_with_rows_of_its_own(tmp_path: Path) -> None:
    families, stacks, problems = read(tmp_path, GOOD)
    assert not problems
    hopper = families["hopper"]
    assert hopper.constants == {"gemm": 0.8, "host_s": 0.0004}
    assert hopper.inherited_from == ""
    assert hopper.time_band.p90 == 1.1
    assert hopper.time_band.rows == 40
    assert hopper.by_source["a-paper-2024"]["bias"] == -0.01
    assert hopper.validity["devices"] == (8.0, 1024.0)
    assert hopper.provenance.source == "rows of a test"
    assert stacks == {"old": 1.2}


PARTS = GOOD.replace(
    "    by_source:",
    """    tuning_time_band: {p10: 0.7, p50: 1.0, p90: 1.4, rows: 0, sources: 0,
      median_error: 0.2, mean_error: 0.2, p90_error: 0.4, tag: inherited}
    parts:
      h100:
        work: 1.02
        expert_work: 0.98
        time_band: {p10: 0.95, p50: 1.0, p90: 1.05, rows: 7, sources: 2,
          median_error: 0.02, mean_error: 0.03, p90_error: 0.05}
    by_source:""",
)


def test_a_device_has_factors_and_bands_of_its_own(tmp_path: Path) -> None:
    families, _, problems = read(tmp_path, PARTS)
    assert not problems
    hopper = families["hopper"]
    assert (hopper.parts["h100"].work, hopper.parts["h100"].expert_work) == (1.02, 0.98)
    assert hopper.time_band_of("h100", "dense").rows == 7
    assert hopper.time_band_of("h100", "experts") == hopper.expert_time_band
    assert hopper.time_band_of("h200", "dense") == hopper.time_band
    assert hopper.time_band_of("h200", "tuning").tag == "inherited"
    for change in (("work: 1.02", "work: -1"), ("tag: inherited", "tag: guessed"), ("rows: 7, sources: 2", "rows: 7")):
        _, _, wrong = read(tmp_path, PARTS.replace(*change))
        assert wrong


def test_an_heir_has_the_constants_and_a_wider_band(tmp_path: Path) -> None:
    families, _, _ = read(tmp_path, GOOD)
    hopper, ada = families["hopper"], families["ada"]
    assert ada.constants_id == hopper.constants_id
    assert ada.inherited_from == "hopper"
    assert "same generation" in ada.provenance.source
    assert math.isclose(ada.time_band.p90, 1.1**1.5)
    assert math.isclose(ada.time_band.p10, 0.9**1.5)
    assert math.isclose(ada.expert_time_band.p90, 1.3**1.5)
    assert ada.time_band_of("l40s", "experts") == ada.expert_time_band
    assert ada.time_band_of("l40s", "tuning") == ada.tuning_time_band
    assert (ada.time_band.rows, ada.time_band.sources, ada.time_band.tag) == (0, 0, "unfitted")  # no rows of its own
    assert ada.time_band.p50 == hopper.time_band.p50
    assert ada.time_band.mean_error == hopper.time_band.mean_error  # what was measured stays what was measured


def test_an_heir_of_another_vendor_works_by_a_factor_of_its_own(tmp_path: Path) -> None:
    text = GOOD.replace("widen: 1.5}", "widen: 1.5, work: 1.25, constants: {gemm: 0.6}}")
    families, _, problems = read(tmp_path, text)
    assert not problems
    ada = families["ada"]
    assert (ada.work, ada.constants) == (1.25, {"gemm": 0.6, "host_s": 0.0004})
    assert ada.constants_id == constants_id({**ada.constants, "work": 1.25}) != families["hopper"].constants_id
    assert (ada.inherited_from, ada.time_band.tag, families["hopper"].work) == ("hopper", "unfitted", 1.0)
    families, _, _ = read(tmp_path, GOOD.replace("    time_band:", "    work: 1.4\n    time_band:", 1))
    assert (families["hopper"].work, families["ada"].work) == (1.4, 1.0)


def test_a_device_takes_its_vendors_work_where_it_has_no_rows_too() -> None:
    """MI325X has no rows and MI355X's family none: both take what AMD's software takes, beside what a part says."""
    catalog = load_catalog()
    for name, family in (("mi300x", "cdna3"), ("mi325x", "cdna3"), ("mi355x", "cdna4"), ("gaudi3", "gaudi3")):
        known, device = catalog.training_families[family], catalog.devices[name]
        assert device.family == family
        assert known.work > 1.1
        part = known.parts[name].work if name in known.parts else 1.0
        assert fitted_on(catalog, device)[PART] == pytest.approx(known.work * part, rel=1e-12)
    assert (
        fitted_on(catalog, catalog.devices["h200-sxm"])[PART]
        == catalog.training_families["hopper"].parts["h200-sxm"].work
    )


# (old, new), reference, line
FAULTS = [
    (("gemm: 0.8", "gemm: high"), "wrong-type", 5),
    (("gemm: 0.8", "gemm: -1"), "out-of-range", 5),
    (("gemm: 0.8", "gemm: .nan"), "out-of-range", 5),
    (("p10: 0.9,", "p10: 1.05,"), "out-of-range", 6),
    (("p90: 1.1,", "p90: 110,"), "out-of-range", 6),
    (("p90: 1.1, ", ""), "missing-key", 6),
    (("rows: 40", "rows: -4"), "wrong-type", 6),
    (("time_band", "time_bond"), "missing-key", 5),
    (("devices: [8, 1024]", "devices: [1024, 8]"), "wrong-type", 13),
    (("inherits: hopper", "inherits: ada"), "unknown-family", 14),
    (("because: same generation, ", ""), "missing-key", 14),
    (("widen: 1.5", "widen: 0.5"), "out-of-range", 14),
    (("widen: 1.5", "widen: 1.5, constants: {gemm: -1}"), "out-of-range", 14),
    (("widen: 1.5", "widen: 1.5, work: 99"), "out-of-range", 14),
    (("widen: 1.5", "widen: 1.5, mfu: 40 %"), "unknown-key", 14),
    (("old: 1.2", "old: fast"), "wrong-type", 15),
    (("training/v1", "training/v2"), "wrong-schema", 1),
]


@pytest.mark.parametrize(("change", "reference", "line"), FAULTS, ids=[" -> ".join(fault[0]) for fault in FAULTS])
def test_faults_are_named_with_their_line(tmp_path: Path, change: tuple[str, str], reference: str, line: int) -> None:
    assert change[0] in GOOD
    _, _, problems = read(tmp_path, GOOD.replace(*change))
    found = [(problem.reference, problem.places[0].line) for problem in problems]
    assert (reference, line) in found, found


def test_a_file_of_many_names_is_bounded(tmp_path: Path) -> None:
    many = ", ".join(f"s{number}: 1.0" for number in range(600))
    _, stacks, problems = read(tmp_path, GOOD.replace("old: 1.2", many))
    assert not stacks
    assert "too-many" in {problem.reference for problem in problems}


def test_every_family_that_trains_has_known_constants() -> None:
    catalog = load_catalog()
    known = {field.name for field in fields(StepConstants)}
    for device in catalog.devices.values():
        if "training" in device.uses:
            family = catalog.training_families[device.family]
            assert set(family.constants) <= known, device.family
            work = {} if family.work == 1.0 else {"work": family.work}
            assert family.constants_id == constants_id({**family.constants, **work})
            assert family.provenance.source


def test_the_digest_of_a_catalog_covers_its_constants(tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "hardware"
    shutil.copytree(data_folder("hardware"), folder)
    before = load_catalog(folder).digest
    path = folder / "calibration" / "training.yaml"
    path.write_text(path.read_text().replace("widen: 1.", "widen: 2."))
    assert load_catalog(folder).digest != before


def test_a_folder_without_constants_takes_those_that_ship(tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "hardware"
    shutil.copytree(data_folder("hardware"), folder)
    (folder / "calibration" / "training.yaml").unlink()
    assert load_catalog(folder).training_families == load_catalog().training_families
