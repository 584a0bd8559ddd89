"""SkyPilot's own schema of tasks, read from its installed package without starting SkyPilot.

`import sky` wants some forty packages that a schema does not. Its modules of schemas and constants are imported for
real; what they import besides is stood in for. Only the `config:` block, which exports do not write, is left out.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

PACKAGES = ("sky", "sky.utils", "sky.skylet", "sky.serve", "sky.server")
STOOD_IN = ("sky.skylet.autostop_lib", "sky.serve.load_balancing_policies", "sky.serve.spot_placer")
Schema = dict[str, Any]


def installed_version() -> str | None:
    """The version of SkyPilot here; None when it is not installed."""
    try:
        return importlib.metadata.version("skypilot")
    except importlib.metadata.PackageNotFoundError:
        return None


def task_schemas() -> dict[str, Schema]:
    """Schemas of a task, of its resources and of its service."""
    with _without_the_rest():
        schemas = importlib.import_module("sky.utils.schemas")
        schemas._task_config_schema = lambda: {"type": "object", "maxProperties": 0}
        return {
            "task": schemas.get_task_schema(),
            "resources": schemas.get_resources_schema(),
            "service": schemas.get_service_schema(),
        }


@contextmanager
def _without_the_rest() -> Iterator[None]:
    """SkyPilot's packages as empty frames, and stand-ins for what is not installed; all taken away again."""
    before = dict(sys.modules)
    root = importlib.metadata.distribution("skypilot").locate_file("sky")
    try:
        for name in PACKAGES:
            frame = types.ModuleType(name)
            frame.__path__ = [str(root).rstrip("/") + "/" + "/".join(name.split(".")[1:])]
            sys.modules[name] = frame
        sys.modules["sky"].__version__ = importlib.metadata.version("skypilot")  # type: ignore[attr-defined]
        sys.modules |= {name: MagicMock() for name in STOOD_IN}
        _import_until_whole()
        yield
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)


def _import_until_whole() -> None:
    for _ in range(40):
        try:
            importlib.import_module("sky.utils.schemas")
            return
        except ModuleNotFoundError as error:
            sys.modules[str(error.name)] = MagicMock()
    raise ImportError("SkyPilot's schemas import more than they did")
