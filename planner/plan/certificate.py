"""A bound that anyone can check: prices in the plan, some lines of integer arithmetic, no solver.

For any prices l_r >= 0 of the joint rows sum_k a_rk u_k <= b_r, every plan u has

    sum_k c_k u_k  >=  sum over the tasks of min (w u)  -  sum_r l_r b_r,      w_k = c_k + sum_r l_r a_rk,

where each minimum is over the ways to meet that task alone:

* a job: `count` units on its columns of least w; of a job that may be mixed, mixes that are not among the columns
  weigh at least what the walk over all of them finds at the same prices (`planner.candidates.mixed_search`);
* what is optional: every unit with w < 0;
* a fleet: whole units that earn what its demand is worth, on several lines at once. At prices p_b of a request's
  prefill and q_b of its decode a unit earns at most E_k = max_b C_kb (p_b + q_b), or p_b, or q_b alone in such a
  pool, or sum_b C_kb (p_b + q_b) where it brings its rates of all buckets at once (a boxed task), and the units that
  run must earn N = sum_b (p_b + q_b) D_b. With k spares they must do so after the loss of any k replicas of a type in
  use: sum E u >= N + k max (E / R) over the types in use. Each price vector gives such a line; the least cover of all
  of them, and of the least number of replicas, is found in whole units (`planner.plan.cover`). Lines of several levels
  may be added up to one. Where the lines of a fleet come in several parts, the weight of a column is shared out among
  the parts in which it earns anything (all, where it earns nothing), and the least covers of the parts add up. Where
  that falls short of a fleet with pools, its roles are told apart (`planner.plan.open_choices`). Where it may have a
  share of its rate on spot, what lies beyond the share has a price like a joint limit whose bound is 0.

With c = 0 the bound is 0 for any limits that can be met: where it is above that, nothing meets them all.

How many providers there may be is no joint row. A plan is at one of the choices of so many, and the least of what is
proven of each choice's columns bounds it; each may have prices of its own.

The bound holds for all columns that the scenario and the catalog give rise to, before any was dropped, and says
nothing of ways that were never listed. Source: Lagrangian relaxation, Geoffrion, Math. Programming Study 2 (1974),
section 2; Fisher, Management Science 27(1) (1981), section 2; of the parts Guignard and Kim, Math. Programming 39
(1987).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.mixed_prices import prices_of_mixes
from planner.candidates.mixed_search import cheapest
from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task, choices_of_providers, earnings, units_of
from planner.candidates.search import Candidates, with_tables
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.candidates.shared_nodes import DEVICES_OF, NODES
from planner.plan.cover import (
    MOST_STEPS,
    UNMET,
    Open,
    least_choice,
    least_cover,
    least_of_job,
    lightest_first,
    open_jobs,
)
from planner.plan.open_choices import STEPS_OF_WEIGHING, Asked, counted_rows, least_with_whole_nodes, more_by_role
from planner.plan.spot_share import beyond_spot_share, least_off_spot

if TYPE_CHECKING:
    from planner.plan.model.others import Choice, FleetPrices, Prices, RequestPrices, Selection

STEPS = 1000  # prices of limits are whole thousandths of the criterion's unit
TIE = 1e-9  # relative, of times
CRITERIA = ("cost", "carbon", "limits")  # limits: nothing is weighed, prices show that nothing meets them


class CertificateError(ValueError):
    """Prices that do not fit the program."""


def certified_bound(
    candidates: Candidates, certificate: Selection, upto: int | None = None, among: Collection[int] | None = None
) -> int:
    """The least value of the criterion that the prices of a certificate prove, rounded up to a whole unit.

    Parameters
    ----------
    candidates
        Every column of the scenario.
    certificate
        ``criterion`` (cost, carbon or limits), ``latest_s``, ``rows`` [{number, name, price}], ``requests``
        [{workload, share, lines [[{level, prefill, decode}]]}]; prices are integers >= 0.
    upto
        A value that is to be reached: where the prices fall short of it, choices of the jobs are tried together.
    among
        Only of plans at these providers; None: at all.

    Returns
    -------
    The bound; at least `UNMET` where some workload has no way at all.

    Raises
    ------
    CertificateError
        A price is negative, or is of something that the program does not have.
    """
    upper = units_of(candidates.whole, among)
    if certificate["latest_s"] is not None:
        upper[candidates.whole.finish_s > certificate["latest_s"] * (1 + TIE)] = 0
    return _bound(candidates, certificate, upper, upto)


def bound_of_choices(candidates: Candidates, certificate: Selection, choices: Sequence[Choice], upto: int) -> int:
    """The least that the prices of a certificate prove of plans at each choice of as many providers as may be used.

    Prices of limits know nothing of how many providers there are. A plan is at one of the choices, though: of each the
    prices prove more, and the more where it has prices of its own.

    Parameters
    ----------
    candidates
        Every column of the scenario.
    certificate
        Prices of all choices, as of `certified_bound`.
    choices
        Prices of some choices alone, which take their place there.
    upto
        A value that is to be reached, of no interest beyond.

    Returns
    -------
    The bound; 0 where the choices are too many to be gone through, or as many providers as there are may be used.

    Raises
    ------
    CertificateError
        A price is negative, or is of something that the program does not have.
    """
    own, least = {tuple(one["providers"]): one for one in choices}, upto
    every = choices_of_providers(candidates.whole)
    for some in every:
        bound = bound_at(candidates, certificate, upto, some)
        if bound < upto and some in own:
            bound = max(bound, bound_at(candidates, at_choice(certificate, own[some]), upto, some))
        least = min(least, bound)
    return least if every else 0


def at_choice(certificate: Selection, choice: Choice) -> Selection:
    """A certificate with the prices of one choice in place of its own."""
    return {"criterion": choice["criterion"], "latest_s": certificate["latest_s"], **prices_alone(choice)}


def prices_alone(witness: Prices) -> Prices:
    """The prices of a certificate or of a choice, without what they are of."""
    prices: Prices = {"rows": witness["rows"], "requests": witness["requests"]}
    if "spots" in witness:
        prices["spots"] = witness["spots"]
    return prices


def bound_at(candidates: Candidates, certificate: Selection, upto: int, among: Collection[int]) -> int:
    """As `certified_bound`, of plans at some providers; `UNMET` where prices of limits show that there are none.

    Parameters
    ----------
    candidates
        Every column of the scenario.
    certificate
        Prices; of the criterion ``limits`` they show that no plan there meets every limit, or nothing.
    upto
        A value that is to be reached.
    among
        The providers.

    Raises
    ------
    CertificateError
        A price is negative, or is of something that the program does not have.
    """
    exact, shows = settled(candidates, certificate, known=True, among=among), certificate["criterion"] == "limits"
    found = certified_bound(exact, certificate, 1 if shows else upto, among)
    return found if not shows else UNMET if found > 0 else 0


def settled(
    candidates: Candidates, certificate: Selection, *, known: bool = False, among: Collection[int] | None = None
) -> Candidates:
    """The columns with exact rates in all least covers at the prices of a certificate.

    Rates that were only bounded are never lower than the exact ones, so a least cover of exact rates weighs as little
    as it would if all were exact: the bound of a certificate does not depend on which rates were looked at before.

    Parameters
    ----------
    candidates
        Every column of the scenario.
    certificate
        As of `certified_bound`.
    known
        Take all rates at once that were worked out for whatever question: for a bound, not to make prices of.
    among
        Columns of these providers alone, and of nobody; None: of all.
    """
    while True:
        tables = dict[str, ServingTable]()
        for program, rows_of in ((candidates.program, candidates.rows), (candidates.whole, candidates.whole_rows)):
            weights, upper = priced_weights(program, certificate), units_of(program, among)
            for task in program.tasks:
                table, question = candidates.tables.get(task.name), candidates.questions.get(task.name)
                if not isinstance(table, ServingTable) or not isinstance(question, ServingQuestion):
                    continue
                if task.name in tables or not table.blended:
                    continue
                least = least_of_task(program, task, weights, upper, parts_of(certificate["requests"], task))
                bounded = [row for row in map(int, rows_of[list(least.units or ())]) if table.bounded(row)]
                if bounded:
                    tables[task.name] = table.exactly(question, bounded, known=known)
            if tables:
                break
        if not tables:
            return candidates
        spares = {task.name: task.spare_replicas for task in candidates.whole.tasks}
        candidates = with_tables(candidates, tables, spares)


def all_settled(candidates: Candidates) -> Candidates:
    """The columns with exact rates throughout: each may count where a search for a least cover is cut short."""
    tables = {
        name: table.exactly(question, np.flatnonzero(table.open_rows).tolist())
        for name, table in candidates.tables.items()
        if isinstance(table, ServingTable) and isinstance(question := candidates.questions[name], ServingQuestion)
    }
    spares = {task.name: task.spare_replicas for task in candidates.whole.tasks}
    return with_tables(candidates, tables, spares)


def bound_of_earlier(candidates: Candidates, prices: Prices, latest_s: float) -> int:
    """Above 0 where prices of limits prove that no plan finishes before a time.  [s]

    Parameters
    ----------
    candidates
        Every column of the scenario.
    prices
        Prices of limits and of requests, integers >= 0.
    latest_s
        When the last job of the plan is done.  [s]

    Raises
    ------
    CertificateError
        A price is negative, or is of something that the program does not have.
    """
    if latest_s <= 0.0:
        return 1  # a plan of fleets alone has no job that could be done before it begins
    upper = np.array(candidates.whole.max_units, dtype=np.int64)
    upper[candidates.whole.finish_s >= latest_s * (1 - TIE)] = 0
    return _bound(candidates, {**prices, "criterion": "limits", "latest_s": None}, upper, 1)


def _bound(candidates: Candidates, certificate: Selection, upper: NDArray[np.int64], upto: int | None) -> int:
    """The bound, worked out once for whoever makes prices and whoever checks them beside the same columns."""
    about = (candidates.whole, candidates.whole_shared, candidates.spaces, candidates.tables)
    known = candidates.recall.known("bounds")  # of the columns asked about last: of others they are not kept alive
    bounds = known[1] if known is not None and all(map(is_, known[0], about)) else {}
    asked = repr(sorted(certificate.items())), upper.tobytes(), upto
    if asked not in bounds:
        bounds[asked] = _worked_out(candidates, certificate, upper, upto)
        candidates.recall.keep("bounds", (about, bounds), nbytes=len(bounds) * 32 * upper.nbytes)
    return int(bounds[asked])


def _worked_out(candidates: Candidates, certificate: Selection, upper: NDArray[np.int64], upto: int | None) -> int:
    program = candidates.whole
    weights = priced_weights(program, certificate)
    charges = list(row_prices(program, certificate))
    total = rest = -sum(price * program.rows[number].bound for number, price in charges)
    jobs, alone = open_jobs(program), dict[str, int]()
    for task in program.tasks:
        mixes = task.name in candidates.spaces
        mixed = _least_mix(candidates, task, certificate["criterion"], charges, weights) if mixes else None
        parts = parts_of(certificate["requests"], task)
        if (least := least_of_task(program, task, weights, upper, parts, mixed=mixed).weight) >= UNMET:
            return UNMET
        total, alone[task.name] = total + least, least
        rest += least if task not in jobs else 0
    if upto is not None and total < upto * STEPS:
        lines = {task.name: [line for part in parts_of(certificate["requests"], task) for line in part.lines]
                 for task in program.tasks}  # fmt: skip
        more = more_by_role(program, lines, weights, upper, alone, upto * STEPS - total)
        total, rest = total + more, rest + more
    bound = -(-total // STEPS)
    if upto is not None and bound < upto and candidates.whole_shared is not None:
        own_node = _own_nodes(candidates)
        held = [counted_rows(program, candidates.whole_shared, own_node, jobs=beside) for beside in (False, True)]
        for place, counted in enumerate([{}, *held]):
            if bound < upto and counted not in ([], [{}], [{}, held[0]])[place]:
                found = _with_whole_nodes(candidates, certificate, upper, upto, own_node, counted)
                bound = max(bound, min(found, upto))
        return bound
    if upto is None or bound >= upto or not jobs or not program.rows or candidates.spaces:
        return bound
    costs = priced_weights(program, {**certificate, "rows": []})
    plain = sum(
        least_of_task(program, task, costs, upper, parts_of(certificate["requests"], task)).weight
        for task in program.tasks
        if task not in jobs
    )
    free = Open(tasks=jobs, rest=rest, plain=plain)
    found = least_choice(program, weights, costs, upper.tolist(), free, upto * STEPS)
    return max(bound, -(-found // STEPS))


def _with_whole_nodes(
    candidates: Candidates,
    certificate: Selection,
    upper: NDArray[np.int64],
    upto: int,
    own_node: NDArray[np.int64],
    counted: Mapping[int, tuple[tuple[int, ...], int]],
) -> int:
    """The bound where nodes that fleets share are whole (`planner.plan.open_choices`), rounded up to a whole unit.

    Parameters
    ----------
    upper
        Units that there are of each column.
    upto
        The value that is to be reached.
    own_node
        As of `_own_nodes`.
    counted
        Limits on nodes and jobs that are held by counting them, not by their prices, as of `counted_rows`.
    """
    program, shared = candidates.whole, candidates.whole_shared
    assert shared is not None
    charged = [r for r in certificate["rows"] if not r["name"].startswith(DEVICES_OF) and r["number"] not in counted]
    others: Selection = {**certificate, "rows": charged}
    weights = priced_weights(program, others)
    rest = -sum(price * program.rows[number].bound for number, price in row_prices(program, others))
    parts = {task.name: parts_of(certificate["requests"], task) for task in program.tasks}
    earned: dict[str, list[tuple[Sequence[int], int]]] = {}
    jobs = [task for task in program.tasks if task.kind == "training"]
    charges = list(row_prices(program, others))
    mixed = {
        task.name: _least_mix(candidates, task, certificate["criterion"], charges, weights)
        for task in jobs
        if task.name in candidates.spaces
    }
    for task in program.tasks:
        if task.kind == "optional" and task.name != NODES:
            rest += least_of_task(program, task, weights, upper, ()).weight
        elif task.kind == "serving":
            earned[task.name] = [line_of(program, task, line) for part in parts[task.name] for line in part.lines]

    def least(small: Program, task: Task, priced: NDArray[Any], most: NDArray[np.int64]) -> tuple[int, int]:
        found = least_of_task(small, task, priced, most, parts[task.name], steps=STEPS_OF_WEIGHING)
        return found.weight, found.steps

    lightest = {task.name: lightest_first(weights[task.first : task.stop].tolist()) for task in jobs}

    @cache
    def left(nodes: tuple[tuple[int, int], ...]) -> NDArray[np.int64]:
        """Units of their own nodes that jobs may take, within what shared ones leave of the limits that are counted."""
        there = np.where(shared.devices > 0, 0, upper)
        for number, (taken, bound) in counted.items():
            row, rest_of_it = program.rows[number], bound - sum(taken[offer] * count for offer, count in nodes)
            there[row.columns[row.coefficients > rest_of_it]] = 0
        return there

    @cache
    def beside(nodes: tuple[tuple[int, int], ...], parts: tuple[int | None, ...]) -> list[int]:
        """What jobs weigh at least on their own nodes, or each on a part of a shared one where that weighs less."""
        there, found = left(nodes), list[int]()
        for task, part in zip(jobs, parts):
            free = min((one for one in (mixed.get(task.name), part) if one is not None), default=None)
            found.append(least_of_job(lightest[task.name], there[task.first : task.stop], task.count, free))
        return found

    asked = Asked(
        program=program,
        shared=shared,
        weights=weights,
        upper=upper,
        own_node=own_node,
        earned=earned,
        least=least,
        rest=rest,
        jobs=lambda nodes, parts: beside(tuple(sorted(nodes.items())), tuple(parts)),
        upto=upto * STEPS,
        limits=tuple(counted.values()),
    )
    return -(-least_with_whole_nodes(asked) // STEPS)


def _own_nodes(candidates: Candidates) -> NDArray[np.int64]:
    """(columns of `whole`,) the offer of which a unit is nodes for one fleet, among those that are shared; else -1."""
    shared, whole = candidates.whole_shared, candidates.whole
    assert shared is not None
    offers = {site.offer.id: number for number, site in enumerate(shared.sites)}
    found = np.full(whole.column_count, -1, dtype=np.int64)
    for task in whole.tasks:
        table = candidates.tables.get(task.name)
        if not isinstance(table, ServingTable):
            continue
        for column in range(task.first, task.stop):
            if whole.nodes[column] > 0:
                found[column] = offers.get(table.sites[int(candidates.whole_rows[column])].offer.id, -1)
    return found


def priced_weights(program: Program, certificate: Selection) -> NDArray[Any]:
    """Thousandths of the criterion's unit, of one unit of each column, with what it uses of the limits."""
    criterion = certificate["criterion"]
    if criterion not in CRITERIA:
        raise CertificateError(f"no bound is known for {criterion!r}")
    values = {"cost": program.cost_microusd, "carbon": program.carbon_mg, "limits": 0 * program.cost_microusd}
    weights = values[criterion].astype(object) * STEPS  # whole numbers of any size
    for number, price in row_prices(program, certificate):
        row = program.rows[number]
        np.add.at(weights, row.columns, row.coefficients.astype(object) * price)
    for entry in certificate.get("spots", []):
        task = next((one for one in program.tasks if one.name == entry["workload"]), None)
        if task is None or task.max_spot_share is None or not _whole(entry["price"]):
            raise CertificateError(f"the price of spot for {entry['workload']!r} is {entry['price']!r}")
        weights[task.first : task.stop] += entry["price"] * beyond_spot_share(program, task)
    return weights


def row_prices(program: Program, certificate: Prices) -> Iterator[tuple[int, int]]:
    """Number and price of each joint limit that has one."""
    for entry in certificate["rows"]:
        number, price = entry["number"], entry["price"]
        known = _whole(number) and number < len(program.rows)
        if not known or program.rows[number].name != entry["name"]:
            raise CertificateError(f"there is no limit {number} called {entry['name']!r}")
        if not _whole(price):
            raise CertificateError(f"the price of {entry['name']} is {price!r}")
        yield number, price


def _whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _least_mix(
    candidates: Candidates, task: Task, criterion: str, charges: Sequence[tuple[int, int]], weights: NDArray[Any]
) -> int:
    """No mix of a job weighs less, whether it is among the columns or not."""
    if criterion == "limits":
        return 0
    rows = [(candidates.whole.rows[number], float(price)) for number, price in charges]
    prices = prices_of_mixes(candidates, task, rows, criterion, float(STEPS))
    cutoff = float(max(weights[task.first : task.stop], default=UNMET))
    return int(cheapest(candidates.spaces[task.name].job, prices, cutoff)[1])


class Part(NamedTuple):
    """Lines of a fleet that are met together, and for which part of the weights."""

    share: int
    lines: tuple[Sequence[RequestPrices], ...]


def parts_of(requests: Sequence[FleetPrices], task: Task) -> list[Part]:
    """The parts of one fleet."""
    parts = [Part(entry["share"], tuple(entry["lines"])) for entry in requests if entry["workload"] == task.name]
    if not all(_whole(part.share) for part in parts):
        raise CertificateError(f"the shares of {task.name} are no whole numbers")
    return parts


class Least(NamedTuple):
    """The least weight of a task, and units by column of a least cover of its lines; None where they are not known."""

    weight: int
    units: dict[int, int] | None
    steps: int = 0  # that the search for it took


def least_of_task(
    program: Program,
    task: Task,
    weights: NDArray[Any],
    upper: NDArray[np.int64],
    parts: Sequence[Part],
    *,
    mixed: int | None = None,
    steps: int = MOST_STEPS,
) -> Least:
    """The least weight of any way to meet a task alone; a bound below it where that takes too long.

    Parameters
    ----------
    mixed
        Of a job: no way that is not among the columns weighs less; None: the columns are all.
    steps
        That each search for the least of a fleet may take.

    Returns
    -------
    `UNMET` where nothing meets it.
    """
    here = weights[task.first : task.stop].tolist()
    if task.kind == "training":
        return Least(least_of_job(lightest_first(here), upper[task.first : task.stop], task.count, mixed), None)
    most = upper[task.first : task.stop].tolist()
    gained: int = sum(weight * amount for weight, amount in zip(here, most) if weight < 0)
    if task.kind == "optional":
        return Least(gained, None)
    paid = [max(weight, 0) for weight in here]
    found = _least_fleet(program, task, paid, most, parts, steps)
    if task.min_replicas:
        level = program.level[task.first : task.stop].tolist()
        replicas = [int(r) if m == 0 else 0 for r, m in zip(program.replicas[task.first : task.stop], level)]
        least = least_cover(paid, most, [replicas], [task.min_replicas]).bound
        found = found if found.weight >= least else found._replace(weight=least)
    return found._replace(weight=gained + found.weight if found.weight < UNMET else UNMET)


def _least_fleet(
    program: Program, task: Task, weights: Sequence[int], upper: Sequence[int], parts: Sequence[Part], steps: int
) -> Least:
    if not weights:
        return Least(UNMET, None)
    lines = [[line_of(program, task, entries) for entries in part.lines] for part in parts]
    every = (True,) * len(parts)  # for what earns nothing, but is a replica
    none = [0] * len(weights)
    by_part = [[any(each) for each in zip(none, *(earned for earned, _ in part))] for part in lines]
    earns = [mine if any(mine) else every for mine in zip(*by_part)] if parts else [()] * len(weights)
    shares = [sum(part.share for part, any_ in zip(parts, mine) if any_) for mine in earns]
    replicas = [max(int(each), 1) for each in program.replicas[task.first : task.stop]]
    counted = np.where(program.level[task.first : task.stop] == 0, program.replicas[task.first : task.stop], 0)
    off_spot = least_off_spot(program, task)
    total, taken, units = 0, 0, dict[int, int]()
    for number, (part, mine) in enumerate(zip(parts, lines)):
        own = [
            weight * part.share // shares[k] if earns[k][number] and shares[k] else 0
            for k, weight in enumerate(weights)
        ]
        earned = [*(one for one, _ in mine), counted.tolist(), *(line.earned for line in off_spot)]
        needs = [*(need for _, need in mine), task.min_replicas, *(line.needed for line in off_spot)]
        before_loss = [none, *(line.taken for line in off_spot)]
        found = least_cover(
            own, upper, earned, needs, replicas=replicas, spare=task.spare_replicas, taken=before_loss, steps=steps
        )
        if found.bound >= UNMET:
            return Least(UNMET, None)
        total, taken = total + found.bound, taken + found.steps
        for k, count in (found.units or {}).items():
            units[task.first + k] = max(units.get(task.first + k, 0), count)
    return Least(total, units, taken)


def line_of(program: Program, task: Task, entries: Sequence[RequestPrices]) -> tuple[list[int], int]:
    """What one unit of each column earns at most on one line, and what the demand is worth.

    Parameters
    ----------
    program
        Whose columns earn.
    task
        A fleet of the program.
    entries
        Prices of its requests at several levels of load, added up to one line.

    Raises
    ------
    CertificateError
        A price is negative, or the prices fit no demand of the fleet: another level, or other buckets.
    """
    earned, need = np.zeros(task.stop - task.first, dtype=object), 0
    part = slice(task.first, task.stop)
    for entry in entries:
        level, prefill, decode = entry["level"], entry["prefill"], entry["decode"]
        demand = task.demands[level] if _whole(level) and level < len(task.demands) else ()
        if not len(demand) == len(prefill) == len(decode) or not all(map(_whole, (*prefill, *decode))):
            raise CertificateError(f"the prices of {task.name} at level {level} fit no demand of it")
        both = [p + q for p, q in zip(prefill, decode)]
        rates = program.capacity_micro_per_s[part, : len(demand)].astype(object)
        for role, prices in ((WHOLE, both), (PREFILL, prefill), (DECODE, decode)):
            runs = (program.level[part] <= level) & (program.role[part] == role)
            if runs.any():
                earned[runs] = earned[runs] + earnings(task, rates[runs], prices)
        need += sum(price * rate for price, rate in zip(both, demand))
    return [int(each) for each in earned], int(need)
