"""Billed time: whole increments, at least the minimum, never less than what ran; scalars and arrays alike."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.money import cost_microusd, rental_microusd, rentals_microusd
from planner.checks.facts import exact_rental
from planner.equations.machine_costs import ROUNDING, billed_s
from planner.estimate.bill import Bill, seconds_of

HELD = st.floats(min_value=1e-3, max_value=1e8)
BOOT = st.floats(min_value=0.0, max_value=7200.0)
STEP = st.sampled_from([1, 60, 300, 600, 3600])
LEAST = st.integers(min_value=0, max_value=86400)
FINER = st.sampled_from([1, 2, 3, 5, 10, 60])


@pytest.mark.parametrize(
    ("held", "boot", "step", "least", "billed"),
    [
        (180.0, 0.0, 1, 60, 180.0),
        (180.0, 600.0, 1, 60, 780.0),
        (20.0, 0.0, 1, 60, 60.0),  # the minimum
        (59.0, 2.0, 60, 0, 120.0),  # boot and run together, rounded up once
        (3600.0, 0.0, 3600, 0, 3600.0),  # at the bound nothing more is begun
        (3600.0 + 1e-9, 0.0, 3600, 0, 3600.0),  # nor by the noise of a float
        (3600.1, 0.0, 3600, 0, 7200.0),
        (0.0, 0.0, 60, 0, 0.0),
    ],
)
def test_bills_by_hand(held: float, boot: float, step: float, least: float, billed: float) -> None:
    assert float(billed_s(held, boot, step, least)) == billed
    assert np.asarray(billed_s(np.full(3, held), boot, np.full(3, float(step)), least)).tolist() == [billed] * 3


@given(HELD, BOOT, STEP, LEAST)
def test_never_below_what_ran_and_never_a_step_more(held: float, boot: float, step: int, least: int) -> None:
    found = float(billed_s(held, boot, step, least))
    assert found >= max((held + boot) * (1 - 2 * ROUNDING), least)
    assert found <= max(held + boot + step, least)
    assert found == least or found % step == 0


@given(HELD, BOOT, STEP, LEAST, FINER)
def test_a_finer_increment_is_never_dearer(held: float, boot: float, step: int, least: int, parts: int) -> None:
    assert billed_s(held, boot, step / parts, least) <= billed_s(held, boot, step, least) * (1 + 1e-12)


@given(HELD, BOOT, STEP, LEAST, LEAST)
def test_more_of_a_minimum_of_boot_or_of_time_is_never_cheaper(
    held: float, boot: float, step: int, least: int, more: int
) -> None:
    once = billed_s(held, boot, step, least)
    assert billed_s(held, boot, step, least + more) >= once
    assert billed_s(held, boot + more, step, least) >= once
    assert billed_s(held + more, boot, step, least) >= once


@given(HELD, BOOT, STEP, LEAST, st.integers(1, 4096), st.integers(1, 10**9))
def test_money_is_that_of_the_verifier_and_never_below_time_times_price(
    held: float, boot: float, step: int, least: int, shapes: int, price: int
) -> None:
    bill, hours = Bill(step_s=step, minimum_s=least, boot_s=boot), held / 3600.0
    cost = rental_microusd(shapes, price, hours, bill.seconds(hours))
    assert cost == exact_rental(shapes, price, hours, bill)
    assert cost == round(Fraction(bill.seconds(hours)) / 3600 * shapes * price)
    assert cost >= int(cost_microusd(shapes, price, hours) * (1 - 4 * ROUNDING)) - 1
    assert rental_microusd(shapes, price, hours, None) == cost_microusd(shapes, price, hours)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.integers(0, 10**12), HELD, BOOT, st.sampled_from([None, 1, 1800, 0.3])),
        min_size=1,
        max_size=20,
    )
)
def test_many_rentals_cost_what_each_does(runs: list[tuple[int, int, float, float, float | None]]) -> None:
    """Whole seconds in 64 bits, products beyond them, parts of a second, time that is not billed by a step, halves."""
    runs = [*runs, (1, 1, 1800.0, 0.0, 1800), (3, 1, 1800.0, 0.0, 1800)]
    bills = [None if step is None else Bill(step_s=step, minimum_s=0.0, boot_s=boot) for *_, boot, step in runs]
    nodes, prices, held = (np.array(column) for column in list(zip(*runs))[:3])
    hours = held / 3600.0
    expected = [
        rental_microusd(int(n), int(price), float(h), bill.seconds(float(h)) if bill else None)
        for n, price, h, bill in zip(nodes, prices, hours, bills)
    ]
    every, of = list(dict.fromkeys(bills)), [list(dict.fromkeys(bills)).index(bill) for bill in bills]
    assert rentals_microusd(nodes, prices, hours, seconds_of(bills, hours)) == expected
    assert rentals_microusd(nodes, prices, hours, seconds_of(every, hours, np.array(of))) == expected
