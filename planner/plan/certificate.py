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
  that falls short of a fleet with pools, its roles are told apart (`planner.plan.role_cover`). Where it may have a
  share of its rate on spot, what lies beyond the share has a price like a joint limit whose bound is 0.

With c = 0 the bound is 0 for any limits that can be met: where it is above that, nothing meets them all.

Where that falls short, plans may be parted in a tree of branches, each side at prices of its own, and the least of what
is proven of the sides bounds all (`planner.plan.branches`).

How many providers there may be is no joint row. A plan is at one of the choices of so many, and the least of what is
proven of each choice's columns bounds it; each may have prices of its own.

Ways of jobs that share limits are tried together. At the prices of a certificate every plan below a value uses, of each
job, only columns whose weights exceed the least of that job by at most what the bound is short of the value. These are
few. All their choices are tried, each job's in turn, with the joint limits as they are; a choice that breaks one is no
plan. What is left is bounded by its weights, and by its own cost beside the least of everything else. So the tree of
branches stands in no file: who checks walks it.

The bound holds for all columns that the scenario and the catalog give rise to, before any was dropped, and says
nothing of ways that were never listed. Source: Lagrangian relaxation, Geoffrion, Math. Programming Study 2 (1974),
section 2; Fisher, Management Science 27(1) (1981), section 2; of the parts Guignard and Kim, Math. Programming 39
(1987).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.mixed_prices import prices_of_mixes
from planner.candidates.mixed_search import cheapest
from planner.candidates.program import Program, Task, choices_of_providers, units_of
from planner.candidates.search import Candidates, with_tables
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.candidates.shared_nodes import DEVICES_OF
from planner.plan.branches import Charges, Mixed, bound_of_branches
from planner.plan.cover import UNMET
from planner.plan.least_weights import STEPS, least_of_task, parts_of, priced_weights, row_prices
from planner.plan.role_cover import more_by_role

if TYPE_CHECKING:
    from planner.plan.model.others import Choice, Prices, Selection

TIE = 1e-9  # relative, of times
MOST_CHOICES = 50_000  # that are tried
MOST_JOBS = 12  # of all workloads together


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
        [{workload, share, lines [[{level, prefill, decode}]]}], ``branches``; prices are integers >= 0.
    upto
        A value that is to be reached: where the prices fall short of it, branches are walked, or choices of the jobs
        tried together.
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
    """The prices of a certificate or of a choice, and its branches, without what they are of."""
    prices: Prices = {"rows": witness["rows"], "requests": witness["requests"]}
    if "spots" in witness:
        prices["spots"] = witness["spots"]
    if "branches" in witness:
        prices["branches"] = witness["branches"]
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
    jobs, alone, mixed = _open_jobs(program), dict[str, int](), least_mixes(candidates, certificate["criterion"])
    for task in program.tasks:
        parts, other = (
            parts_of(certificate["requests"], task),
            mixed(task, charges, weights[task.first : task.stop], ()),
        )
        if (least := least_of_task(program, task, weights, upper, parts, mixed=other).weight) >= UNMET:
            return UNMET
        total, alone[task.name] = total + least, least
        rest += least if task not in jobs else 0
    if upto is not None and total < upto * STEPS:
        lines = {task.name: [line for part in parts_of(certificate["requests"], task) for line in part.lines]
                 for task in program.tasks}  # fmt: skip
        more = more_by_role(program, lines, weights, upper, alone, upto * STEPS - total)
        total, rest = total + more, rest + more
    bound = -(-total // STEPS)
    if upto is not None and bound < upto and certificate.get("branches"):
        parted = bound_of_branches(program, certificate, upper, upto, mixed)
        bound = max(bound, min(-(-parted // STEPS), upto))
    if upto is None or bound >= upto or not jobs or not program.rows:
        return bound
    if candidates.spaces or candidates.whole_shared is not None:  # mixes are no columns; of shared nodes branches tell
        return bound
    costs = priced_weights(program, {**certificate, "rows": []})
    plain = sum(
        least_of_task(program, task, costs, upper, parts_of(certificate["requests"], task)).weight
        for task in program.tasks
        if task not in jobs
    )
    free = _Open(tasks=jobs, rest=rest, plain=plain)
    found = _least_choice(program, weights, costs, upper.tolist(), free, upto * STEPS)
    return max(bound, -(-found // STEPS))


class _Open(NamedTuple):
    """What is open: jobs that are chosen for, in thousandths of the criterion's unit."""

    tasks: tuple[Task, ...]
    rest: int  # the least of everything else at the prices, less what limits are worth
    plain: int  # the least of everything else without prices


def _open_jobs(program: Program) -> tuple[Task, ...]:
    """Workloads whose jobs can be tried one by one."""
    jobs = [task for task in program.tasks if task.kind == "training"]
    return tuple(jobs) if sum(task.count for task in jobs) <= MOST_JOBS else ()


def _least_choice(
    program: Program, weights: NDArray[Any], costs: NDArray[Any], upper: Sequence[int], free: _Open, upto: int
) -> int:
    """The least that any choice of the jobs comes to, or `upto`; a bound below it after `MOST_CHOICES`.

    Parameters
    ----------
    weights, costs
        Of a unit of each column, with and without what limits charge.
    upper
        Units that there are.
    upto
        Of no interest beyond.
    """
    uses = _uses(program)
    jobs = [task for task in free.tasks for _ in range(task.count)]
    options = {task.name: _options(weights, upper, task) for task in free.tasks}
    if not all(options.values()):
        return upto
    base = free.rest + sum(options[task.name][0][0] for task in jobs)
    jobs.sort(key=lambda task: sum(w - options[task.name][0][0] < upto - base for w, _ in options[task.name]))
    best, tried = upto, 0
    # bound, plain cost, jobs that are placed, place of the last option, units by column, use by row
    stack: list[tuple[int, int, int, int, dict[int, int], dict[int, int]]] = [(base, free.plain, 0, 0, {}, {})]
    while stack:
        bound, paid, placed, last, units, used = stack.pop()
        if bound >= best:
            continue
        if tried > MOST_CHOICES:
            return min([bound, best, *(node[0] for node in stack)])
        if placed == len(jobs):
            best = min(best, max(bound, paid))
            continue
        task = jobs[placed]
        same = placed > 0 and jobs[placed - 1] is task  # jobs of one workload are alike: in one order only
        mine, children = options[task.name], []
        for place in range(last if same else 0, len(mine)):
            weight, column = mine[place]
            above = bound + weight - mine[0][0]
            if above >= best:
                break
            tried += 1
            taken = units.get(column, 0) + 1
            now = _added(program, used, uses.get(column, ()))
            if taken <= upper[column] and now is not None:
                cost = paid + int(costs[column])
                children.append((above, cost, placed + 1, place, {**units, column: taken}, now))
        stack += reversed(children)
    return best


def _options(weights: NDArray[Any], upper: Sequence[int], task: Task) -> list[tuple[int, int]]:
    """Weight and column of each way of a job, the least first."""
    return sorted((int(weights[k]), k) for k in range(task.first, task.stop) if upper[k] > 0)


def _uses(program: Program) -> dict[int, list[tuple[int, int]]]:
    """Row and coefficient of each column, of the limits that nothing supplies."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, row in enumerate(program.rows):
        if len(row.coefficients) and int(np.min(row.coefficients)) >= 0:
            for column, coefficient in zip(row.columns.tolist(), row.coefficients.tolist()):
                found.setdefault(column, []).append((number, coefficient))
    return found


def _added(program: Program, used: Mapping[int, int], more: Sequence[tuple[int, int]]) -> dict[int, int] | None:
    """The use of limits with one more job; None when that breaks one."""
    now = dict(used)
    for number, coefficient in more:
        now[number] = now.get(number, 0) + coefficient
        if now[number] > program.rows[number].bound:
            return None
    return now


def least_mixes(candidates: Candidates, criterion: str) -> Mixed:
    """What no mix of a job weighs less than, whether it is among the columns or not.

    Parameters
    ----------
    candidates
        With what may be mixed for each job.
    criterion
        ``cost``, ``carbon``, or ``limits``, of which nothing is known.
    """
    known: dict[tuple[object, ...], int] = {}

    def least(task: Task, charges: Charges, weights: NDArray[Any], used: Iterable[int]) -> int | None:
        space = candidates.spaces.get(task.name)
        if space is None:
            return None
        if any(candidates.whole.rows[number].name.startswith(DEVICES_OF) for number in used):
            return UNMET  # parts of nodes are for single ways alone
        if criterion == "limits":
            return 0
        rows = [(candidates.whole.rows[number], float(price)) for number, price in charges]
        prices = prices_of_mixes(candidates, task, rows, criterion, float(STEPS))
        cutoff = float(max(weights, default=UNMET))
        key = task.name, prices.cost, prices.carbon, prices.node.tobytes(), cutoff
        if key not in known:
            known[key] = int(cheapest(space.job, prices, cutoff)[1])
        return known[key]

    return least
