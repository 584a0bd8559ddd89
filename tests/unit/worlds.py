"""The old address of tests/worlds.py."""

from tests.worlds import *  # noqa: F403
