"""The tiers of the suite (tests/tiers.py), and a folder of what is worked out once for all processes of a run."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile

import pytest

from tests import shipped, tiers

# files that take long and cannot be shared out: begun first, so that no process is left with one of them at the end
FIRST = {
    f"tests/{name}.py": place
    for place, name in enumerate(
        (
            "cli/test_cli_examples",
            "plan/test_fleet_plans",
            "scenarios/test_shipped_scenarios",
            "scenarios/test_second_processor",
            "faults/test_solver_process",
            "faults/test_mutated_plans",
            "docs/test_tutorials",
            "optimize/test_determinism",
            "plan/test_verify",
            "plan/test_calendar_plans",
            "api/test_answers",
            "api/test_session",
            "report/test_workbook",
            "house/test_wheel",
        )
    )
}


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # what a shell starts in the background ignores Ctrl-C, and so would all that tests start and break off
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if shipped.FOLDER not in os.environ:  # processes of xdist are started with the folder of the one that starts them
        os.environ[shipped.FOLDER] = tempfile.mkdtemp(prefix="plan-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(shipped.FOLDER), ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those of the tier, unless somebody says which."""
    if config.option.markexpr or config.option.keyword or any("::" in one for one in config.args):
        return
    wanted = _long if tiers.LONG else lambda item: not _long_only(item)
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = sorted(filter(wanted, items), key=lambda item: FIRST.get(item.nodeid.partition("::")[0], len(FIRST)))


def _long_only(item: pytest.Item) -> bool:
    return item.get_closest_marker("campaign") is not None


def _long(item: pytest.Item) -> bool:
    """Whether the long tier adds something to what the default one tries."""
    function, module = getattr(item, "function", None), getattr(item, "module", None)
    counted = any(getattr(module, one.__name__, None) is one for one in (tiers.cases, tiers.first_and_last))
    return _long_only(item) or counted or hasattr(function, "hypothesis")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if tiers.time_is_up():
        pytest.skip("the time of the campaign is over")


listed_once, answered_once, rated_once = shipped.listed_once, shipped.answered_once, shipped.rated_once
