"""The ledger: counts by reason, and the nearest miss of each."""

from __future__ import annotations

from planner.candidates.ledger import Ledger


def test_counts_add_up_by_reason_and_kind() -> None:
    ledger = Ledger(workload="job")
    ledger.drop("memory", "layouts", 3)
    ledger.drop("memory", "layouts", 4)
    ledger.drop("memory", "columns", 5)
    ledger.drop("region", "offers")
    counts = {(drop.reason, drop.what): drop.count for drop in ledger}
    assert counts == {("memory", "layouts"): 7, ("memory", "columns"): 5, ("region", "offers"): 1}


def test_the_smallest_miss_is_kept_whatever_the_order() -> None:
    misses = [(3.0, "three over"), (1.0, "one over"), (2.0, "two over")]
    for order in (misses, misses[::-1]):
        ledger = Ledger(workload="job")
        for miss, text in order:
            ledger.drop("memory", "layouts", nearest=text, miss=miss)
        assert next(iter(ledger)).nearest == "one over"


def test_a_text_without_a_miss_is_kept_until_one_with_a_miss_comes() -> None:
    ledger = Ledger(workload="job")
    ledger.drop("quota", "columns")
    ledger.drop("quota", "columns", nearest="some offer")
    assert next(iter(ledger)).nearest == "some offer"
    ledger.drop("quota", "columns", nearest="one shape over", miss=1.0)
    assert next(iter(ledger)).nearest == "one shape over"


def test_nothing_dropped_is_nothing_written() -> None:
    ledger = Ledger(workload="job")
    ledger.drop("memory", "layouts", 0, nearest="never", miss=0.0)
    ledger.drop("memory", "layouts", -1)
    assert list(ledger) == []
    assert ledger.reasons() == []


def test_rows_come_offers_first_then_most_frequent() -> None:
    ledger = Ledger(workload="job")
    ledger.drop("slower", "layouts", 10)
    ledger.drop("memory", "layouts", 20)
    ledger.drop("quota", "columns", 99)
    ledger.drop("deadline", "counts", 1)
    ledger.drop("region", "offers", 2)
    ledger.drop("price-model", "offers", 2)
    assert [(row["reason"], row["what"]) for row in ledger.reasons()] == [
        ("price-model", "offers"),
        ("region", "offers"),
        ("deadline", "counts"),
        ("memory", "layouts"),
        ("slower", "layouts"),
        ("quota", "columns"),
    ]
