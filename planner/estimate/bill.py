"""How a rental is billed: the provider's increment and minimum, and the boot that is paid for before a job runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Offer, Provenance
from planner.equations.machine_costs import billed_s
from planner.estimate.market import METERED
from planner.scenario.schema import Hardware
from planner.units import format_duration

UNKNOWN_STEP_S = 3600.0  # the coarsest increment that is met with: what is not published is not taken for less
UNKNOWN_BOOT_S = 600.0  # of a provider that is listed without one
BY_TIME_S = 1.0  # increment where only the scenario knows a boot: as good as none
ASSUMED = Provenance(source="assumed: nothing is known of it", as_of="2026-11-23", status="inferred")
STATED = Provenance(source="scenario: hardware.boot", as_of="", status="user")


class BillFact(NamedTuple):
    """A term of a bill, as plans tell it."""

    name: str
    value: str
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The terms on which a metered rental of a training job is billed."""

    step_s: float
    minimum_s: float
    boot_s: float
    facts: tuple[BillFact, ...] = ()

    def seconds(self, hours: float) -> float:
        """Time that is billed for a run of some hours.  [s]"""
        return float(billed_s(3600.0 * hours, self.boot_s, self.step_s, self.minimum_s))

    def words(self) -> str:
        """The terms in a sentence."""
        boot = next(fact for fact in self.facts if fact.name == "boot")
        whose = "hardware.boot" if boot.provenance is STATED else "assumed" if boot.provenance.status != "seen" else ""
        least = f", {format_duration(self.minimum_s)} at least" if self.minimum_s else ""
        unknown = " (theirs is unknown)" if any(fact.provenance is ASSUMED for fact in self.facts[:-1]) else ""
        source = f" ({whose})" if whose else ""
        return (
            f"in steps of {format_duration(self.step_s)}{unknown}{least}, with {format_duration(self.boot_s)} of boot "
            f"and set-up before each{source}; deadlines are counted from when they can run"
        )


def bill_of(offer: Offer, catalog: Catalog, hardware: Hardware) -> Bill | None:
    """The bill of a metered offer; None where the time of the run alone is paid for.

    That is so of what is owned or reserved, and of providers that the catalog does not list: nothing is known of them.
    A listed provider whose increment is unknown counts by the hour.

    Parameters
    ----------
    offer
        Its price model says whether it is metered, its provider whose terms hold.
    catalog
        Providers with their increments, minima and boots, as far as they are known.
    hardware
        A boot that it states wins over that of the provider.
    """
    if offer.price_model not in METERED:
        return None
    seller = catalog.providers.get(offer.provider)
    if seller is None:
        if hardware.boot_s is None:
            return None
        boot = BillFact("boot", _seconds(hardware.boot_s), STATED)
        return Bill(step_s=BY_TIME_S, minimum_s=0.0, boot_s=hardware.boot_s, facts=(boot,))
    step_s, minimum_s, boot_s = seller.billing_step_s or UNKNOWN_STEP_S, seller.minimum_s or 0.0, UNKNOWN_BOOT_S
    billing = f"in steps of {_seconds(step_s)}" + (f", {_seconds(minimum_s)} at least" if minimum_s else "")
    told = seller.provenance if seller.billing_step_s else ASSUMED
    origin = ASSUMED
    if hardware.boot_s is not None:
        boot_s, origin = hardware.boot_s, STATED
    elif seller.boot_s is not None:
        boot_s, origin = seller.boot_s, seller.boot_provenance or seller.provenance
    facts = (BillFact("billing", billing, told), BillFact("boot", _seconds(boot_s), origin))
    return Bill(step_s=step_s, minimum_s=minimum_s, boot_s=boot_s, facts=facts)


def seconds_of(
    bills: Sequence[Bill | None], hours: NDArray[np.float64], of: NDArray[np.int64] | slice = slice(None)
) -> NDArray[np.float64]:
    """(n,) time that each of some runs is billed for; nan where it is the time of the run.  [s]

    Parameters
    ----------
    bills
        Terms of some rentals.
    hours
        (n,) of each run.  [h]
    of
        (n,) which of the terms are its own; left out: there is one for each.
    """
    terms = np.array([(one.boot_s, one.step_s, one.minimum_s) if one else (0.0, np.nan, 0.0) for one in bills])
    boot, step, minimum = terms.reshape(-1, 3)[of].T
    return np.where(np.isnan(step), np.nan, billed_s(3600.0 * hours, boot, step, minimum))


def billed_hours(bill: Bill | None, hours: float) -> float:
    """Time that a run of some hours is paid for.  [h]"""
    return hours if bill is None else bill.seconds(hours) / 3600.0


def _seconds(value: float) -> str:
    return f"{value:g} s"
