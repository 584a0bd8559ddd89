"""What a plan document claims to be proven, and what its certificate states: no number is worked out again here.

`planner.analysis.standing` works them out. Words of reports come from here, so that "proven" is said of a plan whose
certificate reaches its cost, and of no other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.candidates.program import MOST_SHARE, SHARE

if TYPE_CHECKING:
    from planner.plan.model.others import Certificate, Witness

SLACK_PARTS, SLACK_LEAST = 1_000_000, 10_000  # bounds of two machines agree to a millionth, or a cent
SHOWN = 1  # the bound of what is weighed as nothing: above 0, so that limits cannot be met
WITNESS = (
    "criterion",
    "latest_s",
    "allow_suspect",
    "rows",
    "requests",
    "spots",
    "branches",
    "choices",
    "earlier",
)  # what its digest covers
WITH_PLAN = ("optimal", "feasible")


def slack(value: int, share: float = SHARE) -> int:
    """How far two bounds of one plan, or the costs of one optimum, may lie apart.

    Costs within the tie tolerance are equal (`planner.candidates.ties`), and costs and rates are whole millionths,
    rounded from floats whose last bit depends on the processor's exp and log: never less than a millionth or a cent.
    [unit of the value: micro-USD or mg]

    Examples
    --------
    A cent of a plan of 20 dollars, ten cents of one of 100,000.

    >>> slack(20_000_000), slack(100_000_000_000)
    (10000, 100000)
    """
    return max(SLACK_LEAST, abs(value) // SLACK_PARTS, int(abs(value) * share) if share > SHARE else 0)


def reaches(value: int, bound: int, share: float = SHARE) -> bool:
    """Whether a bound proves a value best, as far as machines agree on it, or as good as the best in a tie.

    Parameters
    ----------
    value
        Of the criterion, of a plan.  [micro-USD or mg]
    bound
        No plan has a lower value, as far as is proven.  [micro-USD or mg]
    share
        Of the value, within which two are equal.

    Examples
    --------
    >>> reaches(20_000_000, 19_990_000), reaches(20_000_000, 19_989_999)
    (True, False)
    """
    return bound >= value - slack(value, share)


def gap_of(value: int, bound: int, share: float = SHARE) -> float:
    """By which share of a value a better one may lie below it; 0 where the bound reaches it.

    Parameters
    ----------
    value
        Of the criterion, of a plan.  [micro-USD or mg]
    bound
        No plan has a lower value, as far as is proven.  [micro-USD or mg]
    share
        Of the value, within which two are equal.
    """
    return 0.0 if not value or reaches(value, bound, share) else (value - bound) / value


def tie_share_of(document: Mapping[str, Any]) -> float:
    """The share of the cost within which a plan calls costs equal; of other criteria nothing is."""
    ties = document.get("ties")
    if ties is None or document["summary"]["objective"][0] == "carbon":
        return SHARE
    return min(float(ties["tolerance"]), MOST_SHARE)


def digest_of_witness(certificate: Witness) -> str:
    """SHA-256 of the prices and what they are of: whole numbers, names and flags.

    No measure of any column is in it, so that it does not depend on the processor; the finish of a plan ordered by
    time, `latest_s`, is a float as the plan has it.
    """
    content = {key: value for key, value in certificate.items() if key in WITNESS}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_proven(document: Mapping[str, Any]) -> bool:
    """Whether the certificate in a document states what its status says: optimal, or infeasible."""
    certificate: Certificate | None = document.get("certificate")
    if certificate is None:
        return False
    if document["status"] == "infeasible":
        return bool(certificate["bound"] > 0)
    return bool(document["status"] == "optimal" and certificate["gap"] == 0 and shows_earliest(certificate))


def shows_earliest(certificate: Certificate) -> bool:
    """Whether nothing is left to show of the finish: it does not come first, or no plan is earlier."""
    return certificate["latest_s"] is None or certificate["earlier"] is not None


def summary_proof(certificate: Certificate | None) -> dict[str, Any]:
    """Bound and gap of a plan's summary: what its certificate states; no bound of the cost where carbon is bounded."""
    if certificate is None:
        return {"bound_microusd": None, "gap": None}
    money = certificate["criterion"] == "cost"
    return {"bound_microusd": certificate["bound"] if money else None, "gap": certificate["gap"]}
