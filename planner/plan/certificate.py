"""A bound that anyone can check: prices in the plan, a few lines of integer arithmetic, no solver.

For any prices l_r >= 0 of the joint rows sum_k a_rk u_k <= b_r, every plan u has

    sum_k c_k u_k  >=  sum over the tasks of min (w u)  -  sum_r l_r b_r,      w_k = c_k + sum_r l_r a_rk,

where each minimum is over the ways to meet that task alone:

* a job: `count` units on its columns of least w;
* what is optional: every unit with w < 0;
* a fleet: whole units that earn what its demand is worth. At prices p_b of a request's prefill and q_b of its
  decode a unit earns at most E_k = max_b C_kb (p_b + q_b), or p_b, or q_b alone in such a pool, and the units that
  run must earn N = sum_b (p_b + q_b) D_b. With k spares they must do so after the loss of any k replicas of a type
  in use: sum E u >= N + k max (E / R) over the types in use, tried for every possible dearest type. The least cover
  of that line is found in integers, or bounded by its own relaxation when it takes too long.
  Lines of several levels are added up, which stays true.

The bound holds for all columns that the scenario and the catalog give rise to, before any was dropped, and says
nothing of ways that were never listed. Source: Lagrangian relaxation, Geoffrion, Math. Programming Study 2 (1974),
section 2; Fisher, Management Science 27(1) (1981), section 2.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task
from planner.errors import Problem
from planner.plan.checks.findings import Finding, problems_of

Document = dict[str, Any]
Item = tuple[int, int, int, int]  # weight, earned, most units, size of a replica
STEPS = 1000  # prices of limits are whole thousandths of the criterion's unit
MOST_STEPS = 20_000  # of the search for a least cover
UNMET = 2**400  # weighs more than any plan
ARRAYS = (
    "cost_microusd", "finish_s", "carbon_mg", "nodes", "replicas", "capacity_micro_per_s", "max_units", "provider",
    "role", "level", "spot", "domain",
)  # fmt: skip


def certificate_problems(document: Document, program: Program) -> list[Problem]:
    """What is wrong with the certificate of a plan; `program` holds every column of its scenario."""
    certificate = document.get("certificate")
    if certificate is None:
        return []
    try:
        return problems_of(_findings(document, certificate, program))
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        return problems_of([Finding("wrong-certificate", f"it cannot be read: {type(error).__name__} {error}")])


def _findings(document: Document, certificate: Document, program: Program) -> Iterator[Finding]:
    if certificate["columns_sha256"] != columns_digest(program):
        yield Finding("other-columns", "the certificate is about other columns than this scenario and catalog have")
        return
    value, stated, bound = certificate["value"], certificate["bound"], certified_bound(program, certificate)
    if certificate["criterion"] == "cost" and value != document["summary"]["cost_microusd"]:
        yield Finding("wrong-certificate", f"it is about a plan of {value} micro-dollars")
    if bound != stated:
        yield Finding("wrong-certificate", f"its prices prove {bound}, not {stated}")
    if bound > value:
        yield Finding("wrong-certificate", f"no plan can be below {bound}, this plan claims {value}")
    if not math.isclose(certificate["gap"], (value - bound) / value if value else 0.0, rel_tol=1e-6, abs_tol=1e-12):
        yield Finding("wrong-certificate", f"gap {certificate['gap']} is not ({value} − {bound}) / {value}")


class CertificateError(ValueError):
    """Prices that do not fit the program."""


def columns_digest(program: Program) -> str:
    """SHA-256 of every number of a program: columns, tasks and joint rows."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        values = getattr(program, name)
        kind = "<f8" if values.dtype.kind == "f" else "<i8"
        digest.update(f"{name} {values.shape} ".encode() + np.ascontiguousarray(values, dtype=kind).tobytes())
    for task in program.tasks:
        digest.update(repr(task).encode())
    for row in program.rows:
        digest.update(f"{row.name} {row.bound} ".encode())
        digest.update(np.ascontiguousarray(row.columns, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(row.coefficients, dtype="<i8").tobytes())
    return digest.hexdigest()


def certified_bound(program: Program, certificate: Mapping[str, Any]) -> int:
    """The least value of the criterion that the prices of a certificate prove, rounded up to a whole unit.

    Parameters
    ----------
    program
        Every column of the scenario.
    certificate
        ``criterion`` (cost or carbon), ``latest_s``, ``rows`` [{number, price}], ``requests`` [{workload, level,
        prefill, decode}]; prices are integers >= 0.

    Raises
    ------
    CertificateError
        A price is negative, or is of something that the program does not have.
    """
    weights = priced_weights(program, certificate)
    upper = np.array(program.max_units, dtype=np.int64)
    if certificate["latest_s"] is not None:
        upper[program.finish_s > certificate["latest_s"]] = 0
    constant = sum(price * program.rows[number].bound for number, price in _row_prices(program, certificate))
    total = sum(least_of_task(program, task, weights, upper, certificate["requests"]) for task in program.tasks)
    return -(-(total - constant) // STEPS)


def priced_weights(program: Program, certificate: Mapping[str, Any]) -> NDArray[Any]:
    """Thousandths of the criterion's unit, of one unit of each column, with what it uses of the limits."""
    criteria = {"cost": program.cost_microusd, "carbon": program.carbon_mg}
    if certificate["criterion"] not in criteria:
        raise CertificateError(f"no bound is known for {certificate['criterion']!r}")
    weights = criteria[certificate["criterion"]].astype(object) * STEPS  # whole numbers of any size
    for number, price in _row_prices(program, certificate):
        row = program.rows[number]
        np.add.at(weights, row.columns, row.coefficients.astype(object) * price)
    return weights


def _row_prices(program: Program, certificate: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    for entry in certificate["rows"]:
        number, price = entry["number"], entry["price"]
        known = isinstance(number, int) and 0 <= number < len(program.rows)
        if not known or program.rows[number].name != entry["name"]:
            raise CertificateError(f"there is no limit {number} called {entry['name']!r}")
        if not isinstance(price, int) or price < 0:
            raise CertificateError(f"the price of {entry['name']} is {price!r}")
        yield number, price


def least_of_task(
    program: Program, task: Task, weights: NDArray[Any], upper: NDArray[np.int64], requests: Sequence[Mapping[str, Any]]
) -> int:
    """The least weight of any way to meet a task alone; a bound below it where that takes too long."""
    here = weights[task.first : task.stop].tolist()
    most = upper[task.first : task.stop].tolist()
    if task.kind == "training":
        return _least_jobs(here, most, task.count)
    gained: int = sum(weight * amount for weight, amount in zip(here, most) if weight < 0)
    if task.kind == "optional":
        return gained
    paid = [max(weight, 0) for weight in here]
    covers = [_least_fleet(program, task, paid, most, requests)]
    if task.min_replicas:
        level = program.level[task.first : task.stop].tolist()
        replicas = [int(r) if m == 0 else 0 for r, m in zip(program.replicas[task.first : task.stop], level)]
        covers.append(least_cover(paid, replicas, most, task.min_replicas))
    return gained + max(covers)


def _least_jobs(weights: Sequence[int], upper: Sequence[int], count: int) -> int:
    total = 0
    for weight, most in sorted(zip(weights, upper)):
        taken = min(most, count)
        total, count = total + taken * weight, count - taken
        if not count:
            return total
    raise CertificateError("a job has no way left: nothing to bound")


def _least_fleet(
    program: Program, task: Task, weights: Sequence[int], upper: Sequence[int], requests: Sequence[Mapping[str, Any]]
) -> int:
    earned, need = _line(program, task, requests)
    if not need:
        return 0
    if not task.spare_replicas:
        return least_cover(weights, earned, upper, need)
    replicas = [max(int(each), 1) for each in program.replicas[task.first : task.stop]]
    parts = math.lcm(*set(replicas))
    sizes = [earn * (parts // each) for earn, each in zip(earned, replicas)]  # of one replica, in 1 / parts
    items = _items(weights, [earn * parts for earn in earned], upper, sizes)
    # the dearest type in use may be any: those that look cheapest first, until none can be cheaper
    looks = sorted(
        (_relaxed(_up_to(items, size), _need(task, need, parts, size)), size) for size in {i[3] for i in items}
    )
    best: int | None = None
    for least, size in looks:
        if least >= UNMET or (best is not None and least >= best):
            break
        found = _cover(list(_up_to(items, size)), _need(task, need, parts, size))
        best = found if best is None or (found is not None and found < best) else best
    if best is None:
        raise CertificateError(f"{task.name} has no way left: nothing to bound")
    return best


def _need(task: Task, need: int, parts: int, largest: int) -> int:
    """What must be earned where replicas of up to a size are in use."""
    return need * parts + task.spare_replicas * largest


def _up_to(items: Sequence[Item], size: int) -> Iterator[Item]:
    return (item for item in items if item[3] <= size)


def _line(program: Program, task: Task, requests: Sequence[Mapping[str, Any]]) -> tuple[list[int], int]:
    """What one unit of each column earns at most, and what the demand is worth."""
    earned, need = np.zeros(task.stop - task.first, dtype=object), 0
    part = slice(task.first, task.stop)
    for entry in requests:
        if entry["workload"] != task.name:
            continue
        demand = task.demands[entry["level"]] if 0 <= entry["level"] < len(task.demands) else ()
        prefill, decode = entry["prefill"], entry["decode"]
        if not len(demand) == len(prefill) == len(decode) or any(price < 0 for price in (*prefill, *decode)):
            raise CertificateError(f"the prices of {task.name} at level {entry['level']} fit no demand of it")
        both = [p + q for p, q in zip(prefill, decode)]
        rates = program.capacity_micro_per_s[part, : len(demand)].astype(object)
        for role, prices in ((WHOLE, both), (PREFILL, prefill), (DECODE, decode)):
            runs = (program.level[part] <= entry["level"]) & (program.role[part] == role)
            if runs.any():
                earned[runs] = earned[runs] + (rates[runs] * np.array(prices, dtype=object)).max(axis=1)
        need += sum(price * rate for price, rate in zip(both, demand))
    return [int(each) for each in earned], int(need)


def least_cover(weights: Sequence[int], earned: Sequence[int], upper: Sequence[int], need: int) -> int:
    """min sum w u with sum e u >= need, 0 <= u <= upper, u whole; a bound below it when the search grows long.

    Raises
    ------
    CertificateError
        Nothing covers the need.

    Examples
    --------
    Two units of 3 for 2 each are dearer than one of 5 for 3 where 5 are needed.

    >>> least_cover([2, 3], [3, 5], [9, 9], 5)
    3
    """
    found = _cover(_items(weights, earned, upper, [0] * len(weights)), need)
    if found is None:
        raise CertificateError("a fleet has no way left: nothing to bound")
    return found


def _items(weights: Sequence[int], earned: Sequence[int], upper: Sequence[int], sizes: Sequence[int]) -> list[Item]:
    """What earns something, the cheapest for what it earns first."""
    items = [(w, e, u, s) for w, e, u, s in zip(weights, earned, upper, sizes) if e > 0 and u > 0]
    # two ratios of whole numbers below 2^128 differ by more than 2^-256
    return sorted(items, key=lambda item: ((item[0] << 256) // item[1], item[1]))


def _cover(items: Sequence[Item], need: int) -> int | None:
    """The least cover in whole units, or a bound below it; None when there is none."""
    relaxed = _relaxed(items, need)
    if relaxed >= UNMET:
        return None
    best = _any_cover(items, need)
    stack, steps = [(0, 0, need)], 0
    while stack:
        at, paid, left = stack.pop()
        steps += 1
        if steps > MOST_STEPS:
            return relaxed
        if left <= 0:
            best = min(best, paid)
        elif at < len(items) and paid + _relaxed(islice(items, at, None), left) < best:
            weight, earn, most, _ = items[at]
            for amount in range(min(most, -(-left // earn)) + 1):  # the largest is looked at first
                stack.append((at + 1, paid + amount * weight, left - amount * earn))
    return best


def _relaxed(items: Iterable[Item], need: int) -> int:
    """The least weight in parts of units, rounded up: never more than in whole units; `UNMET` without a cover."""
    total = 0
    for weight, earn, most, _ in items:
        if need <= earn * most:
            return total + -(-need * weight // earn)
        total, need = total + weight * most, need - earn * most
    return total if need <= 0 else UNMET


def _any_cover(items: Iterable[Item], need: int) -> int:
    total = 0
    for weight, earn, most, _ in items:
        amount = min(most, -(-need // earn))
        total, need = total + amount * weight, need - amount * earn
        if need <= 0:
            break
    return total
