"""Plans are the same on a processor that rounds otherwise, and each verifies what the other made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from planner import api
from tests import shipped
from tests.scenarios.test_shipped_scenarios import GOLDEN, LARGE, ROOT, differences, lasting

# pools with caches sent between them, a job with failures: of what iterates most the quick ones
FEW = ("disaggregated", "gpt2-xl")
NOT_PROVEN = ("disaggregated",)  # whose certificate is of pools that may lie anywhere


def elsewhere(seed: int, folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """What another processor says: how many results it rounded otherwise, and what it finds wrong."""
    command = [sys.executable, "-m", "tests.scenarios.second_processor", str(seed), str(folder), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["moved"] > 1000
    return answer


def known(name: str, told: Sequence[str]) -> bool:
    """Whether nothing is wrong with a plan but for a certificate that is known to fall short."""
    return all(name in NOT_PROVEN and "[not-proven]" in one for one in told)


def check_both_ways(seed: int, folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / f"{name}.plan.json").write_text(shipped.plan_text(name), encoding="utf-8")
    found = elsewhere(seed, folder, names)["found"]
    assert {name: told for name, told in found.items() if not known(name, told)} == {}
    for name in names:
        plan = json.loads((folder / f"{name}.plan.json").read_text(encoding="utf-8"))
        golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
        assert differences(golden, lasting(plan)) == [], name
        assert known(name, [str(one) for one in api.verify(plan)]), name


def test_another_processor_makes_the_same_plans(tmp_path: Path) -> None:
    check_both_ways(1, tmp_path, FEW)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1, 6))
def test_other_processors_make_all_the_same_plans(seed: int, tmp_path: Path) -> None:
    check_both_ways(seed, tmp_path, sorted({*shipped.NAMES} - {*LARGE}))
