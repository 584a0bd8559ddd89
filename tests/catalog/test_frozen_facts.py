"""The facts that figures in dollars are planned with stay those of their commit."""

from __future__ import annotations

from tests import frozen


def test_the_frozen_facts_are_those_of_their_commit() -> None:
    assert frozen.catalog().digest == frozen.DIGEST
    assert len(frozen.catalog().offers) == 575
