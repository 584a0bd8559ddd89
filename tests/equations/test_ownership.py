"""An hour of an owned machine: linear in what it is made of; all hours are its price less what it is sold for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.equations.machine_costs import HOURS_PER_YEAR, capital_per_hour, power_per_hour

MONEY = st.floats(min_value=0.0, max_value=1e7)
YEARS = st.floats(min_value=0.25, max_value=20.0)


@given(MONEY, MONEY, YEARS)
def test_all_hours_together_are_what_it_lost_in_value(price: float, residual: float, years: float) -> None:
    hours = years * HOURS_PER_YEAR
    assert float(capital_per_hour(price, residual, years)) * hours == pytest.approx(price - residual, abs=1e-6)


@given(st.floats(1.0, 1e5), st.floats(0.0, 2.0), st.floats(1.0, 3.0), st.floats(0.5, 4.0))
def test_power_grows_with_each_of_its_three(watts: float, price: float, pue: float, times: float) -> None:
    once = float(power_per_hour(watts, price, pue))
    for more in ((times * watts, price, pue), (watts, times * price, pue), (watts, price, times * pue)):
        assert float(power_per_hour(*more)) == pytest.approx(times * once)


def test_arrays_are_taken_element_by_element() -> None:
    hours = capital_per_hour(np.array([87_600.0, 43_800.0]), np.array([0.0, 0.0]), np.array([10.0, 5.0]))
    assert np.asarray(hours).tolist() == [1.0, 1.0]
    assert np.asarray(power_per_hour(np.array([1000.0, 2000.0]), 0.5, 2.0)).tolist() == [1.0, 2.0]
