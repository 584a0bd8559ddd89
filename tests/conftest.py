"""The tiers of the suite (tests/tiers.py), and a folder of what is worked out once for all processes of a run."""

from __future__ import annotations

import os
import shutil
import tempfile
import time

import pytest

from tests import shipped, tiers

_STARTED = time.monotonic()


def pytest_configure(config: pytest.Config) -> None:
    if shipped.FOLDER not in os.environ:  # processes of xdist are started with the folder of the one that starts them
        os.environ[shipped.FOLDER] = tempfile.mkdtemp(prefix="plan-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(shipped.FOLDER), ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those of the tier, unless somebody says which."""
    if config.option.markexpr or config.option.keyword or any("::" in one for one in config.args):
        return
    wanted = _long if tiers.LONG else lambda item: not _long_only(item)
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = filter(wanted, items)


def _long_only(item: pytest.Item) -> bool:
    return item.get_closest_marker("campaign") is not None


def _long(item: pytest.Item) -> bool:
    """Whether the long tier adds something to what the default one tries."""
    function, module = getattr(item, "function", None), getattr(item, "module", None)
    counted = getattr(module, "cases", None) is tiers.cases
    return _long_only(item) or counted or hasattr(function, "hypothesis")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() - _STARTED > tiers.SECONDS:
        pytest.skip("the time of the campaign is over")
