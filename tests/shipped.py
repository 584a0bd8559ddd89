"""What the tests of answers ask again and again, worked out once.

Plans of the shipped scenarios, each solved once in a run of the suite, whichever process asks first; and the ways to
run a workload, each listed once in a process: by the rule by which a session takes them over, which tests/api holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.candidates import evaluated, patience
from planner.candidates.evaluated import Evaluated
from planner.estimate import serving_fleet
from planner.optimize.solve import optimize

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
FOLDER = "PLAN_TESTS_FOLDER"


PATIENT = ("disaggregated", "portfolio")  # whose ties take about as long as a plan gives them
PATIENT_S = 60.0
NEAR = {"company": 0.01}  # proven so near the cheapest; to the end it takes HiGHS minutes


@contextlib.contextmanager
def unhurried(name: str) -> Iterator[None]:
    """Ties are told apart to the end, however busy the machine: which of them a clock cuts is no figure of a plan."""
    settings = optimize.__kwdefaults__
    before = settings["ties_s"]
    settings["ties_s"] = PATIENT_S if name in PATIENT else before
    try:
        yield
    finally:
        settings["ties_s"] = before


def plan_text(name: str, solver: str = "highs") -> str:
    """The file of a plan that was made in the root of the checkout, which no place in it names."""
    file = Path(os.environ[FOLDER]) / f"{name}.{solver}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            with contextlib.chdir(ROOT), unhurried(name):
                found = api.solve(api.load_scenario(f"scenarios/{name}.yaml"), solver=solver, gap=NEAR.get(name, 0.0))
            file.write_text(found.to_json(), encoding="utf-8")
        return file.read_text(encoding="utf-8")


def plan(name: str, solver: str = "highs") -> dict[str, Any]:
    """Its document, to change at will."""
    document: dict[str, Any] = json.loads(plan_text(name, solver))
    return document


_ANSWERS: dict[str, bytes] = {}


def once(asked: tuple[Any, ...], work: Callable[[], Any]) -> Any:
    """What work gives when it is asked so, worked out once in a run of the suite; each time an object of its own."""
    key = hashlib.sha256(repr(asked).encode("utf-8", "backslashreplace")).hexdigest()
    if key not in _ANSWERS:
        file = Path(os.environ[FOLDER]) / f"{key}.pickle"
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                file.write_bytes(pickle.dumps(work()))
        _ANSWERS[key] = file.read_bytes()
    return pickle.loads(_ANSWERS[key])


@pytest.fixture
def answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question of a command is answered once for all the forms that the answer is printed in."""
    import planner
    from planner.api import checking, reporting
    from planner.calibrate import calibration as fitted
    from planner.calibrate import serving as fitted_serving
    from planner.validate import serving, totals, training

    assert all(map(partial(getattr, planner), planner.__all__))  # it keeps what it is asked for first: the real ones

    def remember(room: Any, name: str, asked: Callable[..., tuple[Any, ...] | None]) -> None:
        whole = getattr(room, name)

        def known(*given: Any, **options: Any) -> Any:
            key = asked(*given, **options)
            work = partial(whole, *given, **options)
            return work() if key is None else once((name, *key), work)

        monkeypatch.setattr(room, name, known)

    remember(api, "solve", _solved)
    remember(checking, "check", _checked)
    remember(reporting, "tradeoffs", _traded)
    for room, name in (
        (training, "predict_training"),
        (serving, "predict_serving"),
        (totals, "predict_totals"),
        (fitted, "calibrate"),
        (fitted_serving, "calibrate_serving"),
    ):
        remember(room, name, _fitted)


def _fitted(rows: Any, catalog: Any, *more: Any, **options: Any) -> tuple[Any, ...]:
    from planner.calibrate import serving_fit, training_effects

    return rows, catalog.digest, more, options, training_effects.STEPS, serving_fit.STEPS


def _solved(scenario: Any, catalog: Any = None, **options: Any) -> tuple[Any, ...] | None:
    if catalog is None or isinstance(scenario, str | Path):
        return None
    resolved = json.dumps(scenario.resolved, sort_keys=True)
    return resolved, scenario.file, scenario.case, catalog.digest, catalog.own_prices, options


def _traded(scenario: Any, catalog: Any, *, plan: Any, **options: Any) -> tuple[Any, ...]:
    return json.dumps(scenario.resolved, sort_keys=True), catalog.digest, json.dumps(plan), options


def _checked(document: Any, catalog: Any = None, **options: Any) -> tuple[Any, ...] | None:
    """Of plans whose scenario is one that ships, as it ships: a check reads the files that a scenario names."""
    given = Path(document["scenario_file"])
    kept = ROOT / "scenarios" / given.name
    if not kept.exists() or not given.exists() or given.read_bytes() != kept.read_bytes():
        return None
    own = document["provenance"]["catalog"].get("own_prices") or document["scenario"].get("hardware", {}).get("catalog")
    if catalog is None and own:
        return None
    used = catalog or api.load_catalog()
    return json.dumps(document), used.digest, used.own_prices, options


_LISTED: dict[str, list[Evaluated]] = {}
_MOST = 6  # listings of workloads of one name


@pytest.fixture
def listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways to run a workload are listed once in a process, as long as nothing that they depend on differs."""
    whole = evaluated.evaluated

    def known(workload: Any, arch: Any, around: Any, market: Any, waiting: patience.Patience) -> Evaluated:
        before = _LISTED.setdefault(workload.name, [])
        found = next((one for one in before if one.answers(workload, arch, around)), None)
        if found is not None:
            return found.asked_by(workload, around)
        found = whole(workload, arch, around, market, waiting)
        if waiting.spent is patience.endless:
            before[:] = [*before[1 - _MOST :], found]
        return found

    monkeypatch.setattr(evaluated, "evaluated", known)


_RATED: dict[tuple[str, bytes], Any] = {}


@pytest.fixture
def rated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a replica does at a rate, and the rate at which it keeps its targets, are worked out once in a process.

    For plans that are verified again and again with one leaf changed, where nearly all replicas are what they were.
    """
    for name in ("slo_capacity", "load_at"):
        whole = getattr(serving_fleet, name)

        def known(*given: Any, _name: str = name, _whole: Any = whole, **options: Any) -> Any:
            key = (_name, hashlib.sha256(pickle.dumps((given, options))).digest())
            if key not in _RATED:
                _RATED[key] = _whole(*given, **options)
            return _RATED[key]

        monkeypatch.setattr(serving_fleet, name, known)
