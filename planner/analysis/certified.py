"""The certificate of a plan: prices that prove how much less any plan could cost, put beside the answer.

Prices of limits and of requests are those of the relaxation, or, where a fleet is a few replicas, those of one bucket
alone or of the replicas in use. Where that falls short of the plan, lines are added to the fleets: the least cover of
a fleet's lines is routed, and where its requests do not fit, or not after a loss, the prices that show it are one more
line. So the cover rises to the fleet's cheapest whole units, or until `ROUNDS` are over: counted, never
timed, but that none is begun once the time that was given is up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from planner.analysis.branched import parted
from planner.analysis.limit_prices import with_whole_units_priced
from planner.candidates.program import (
    DECODE,
    PREFILL,
    SHARE,
    IntArray,
    Program,
    Task,
    choices_of_providers,
    optional_columns,
    units_of,
)
from planner.candidates.search import Candidates
from planner.optimize.bound import LINE_STEPS, prices_of, violated_line
from planner.optimize.bound import Prices as RelaxedPrices
from planner.optimize.bound import RequestPrices as LinePrices
from planner.optimize.solve import Solution
from planner.plan.certificate import (
    TIE,
    bound_at,
    bound_of_choices,
    bound_of_earlier,
    certified_bound,
    least_mixes,
    prices_alone,
    settled,
)
from planner.plan.least_weights import Least, Part, beyond_spot_share, least_of_task, parts_of, priced_weights
from planner.plan.proof import SHOWN, digest_of_witness, gap_of, reaches

if TYPE_CHECKING:
    from planner.plan.model.others import Certificate, Choice, FleetPrices, Prices, RequestPrices, Selection, Witness

SPOT_PRICES = 40  # of a share on spot that are tried
LIMIT_ROUNDS = 3  # of prices of limits for whole units, and lines at these prices
ROUNDS = 40  # lines added to one part of a fleet
Weights = NDArray[Any]  # whole numbers of any size


def certificate_of(
    candidates: Candidates,
    solution: Solution,
    *,
    allow_suspect: bool = False,
    time_limit_s: float | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Certificate | None:
    """Prices, what they prove of all columns, and the gap to the plan; None where they prove nothing, or not in time.

    The bound is of the first criterion that is a sum: of the cost, or of the carbon where that comes first. Where
    the earliest finish comes first it is the cost of plans that finish no later, and beside it stands what shows that
    none finishes earlier. Without a plan it is what shows that nothing meets every limit.

    Parameters
    ----------
    candidates
        Every way that was listed.
    solution
        The plan, of these ways or of the same with lower rates; or that there is none.
    allow_suspect
        Offers whose price is flagged as wrong were listed too; the certificate says so.
    time_limit_s
        For each relaxation that is solved; None = no limit.  [s]
    over
        Whether the time is up: prices are made no finer then.
    """
    if solution.status == "infeasible":
        return _of_limits(candidates, allow_suspect, time_limit_s)
    if not solution.has_plan:
        return None
    reached = dict(solution.stages)
    first = candidates.program.objective[0]
    criterion: Literal["cost", "carbon"] = "carbon" if first == "carbon" else "cost"
    latest_s = float(reached["time"]) if first == "time" else None
    value, ready, exact = int(reached[criterion]), candidates, None
    while exact is not ready:  # prices of rates that were only bounded are those of another question
        ready = exact or ready
        found = prices_of(ready.program, criterion, latest_s, time_limit_s=time_limit_s)
        if found is None:
            return None
        priced: Selection = {"criterion": criterion, "latest_s": latest_s, **relaxed_prices(ready.program, found)}
        plain, priced = priced["requests"], _with_supplies_paid(ready.whole, priced)
        priced = {**priced, "requests": list(_best_parts(ready, solution, priced))}
        exact = settled(ready, priced)
    bound = certified_bound(settled(candidates, priced, known=True), priced, value)
    share = SHARE if criterion == "carbon" else candidates.program.tie_share
    if not reaches(value, bound, share) and not over():
        spot = _with_spot_prices(ready, priced)
        if spot is not priced:
            better = certified_bound(settled(candidates, spot, known=True), spot, value)
            priced, bound = (spot, better) if better > bound else (priced, bound)
    if not reaches(value, bound, share) and not over():
        finer = _finer(ready, solution, priced, plain)
        better = bound
        if finer != priced:
            better = certified_bound(settled(candidates, finer, known=True), finer, value)  # as the verifier finds it
        priced, bound = (finer, better) if better > bound else (priced, bound)
    for _ in range(LIMIT_ROUNDS):
        if reaches(value, bound, share) or over():
            break
        whole = with_whole_units_priced(ready, _units(ready.program, solution), priced, value, over)
        if whole is not priced:
            whole = _finer(ready, solution, {**whole, "requests": list(_best_parts(ready, solution, whole))}, plain)
        if whole == priced:
            break
        better = certified_bound(settled(candidates, whole, known=True), whole, value)
        if better <= bound:
            break
        priced, bound = whole, better
    if not reaches(value, bound, share) and not over():
        mixed = least_mixes(candidates, criterion)
        tree = parted(settled(candidates, priced, known=True).whole, priced, value, share, over, mixed)
        better = 0 if tree is None else certified_bound(settled(candidates, tree, known=True), tree, value)
        priced, bound = (tree, better) if tree is not None and better > bound else (priced, bound)
    choices: list[Choice] = []
    if not reaches(value, bound, share) and not over():
        choices = list(_choices(candidates, solution, priced, value, time_limit_s))
        bound = max(bound, bound_of_choices(candidates, priced, choices, value))
    earlier = None if latest_s is None else _of_earlier(candidates, latest_s, time_limit_s)
    return _sealed(priced, allow_suspect, earlier, value, bound, share, choices)


def proves_best(candidates: Candidates, solution: Solution) -> bool:
    """Whether prices prove that no plan is better, of the columns and of all mixes of jobs that are not among them."""
    found = certificate_of(candidates, solution)
    return found is not None and found["gap"] == 0


def _with_supplies_paid(program: Program, priced: Selection) -> Selection:
    """With prices of what is bought for others to use raised to what buying it costs.

    A relaxation that buys none of something leaves open what it is worth there, down to nothing. Whatever its price up
    to that of buying, none is bought for the price alone: the bound cannot fall, and units that use it weigh more.
    """
    prices, weights = {one["number"]: one["price"] for one in priced["rows"]}, priced_weights(program, priced)
    optional = optional_columns(program)
    for number, row in enumerate(program.rows):
        supplies = row.coefficients < 0
        if row.bound or not supplies.any() or not optional[row.columns[supplies]].all():
            continue
        more = min(int(w) // -int(a) for w, a in zip(weights[row.columns[supplies]], row.coefficients[supplies]))
        if more > 0:
            prices[number] = prices.get(number, 0) + more
            np.add.at(weights, row.columns, row.coefficients.astype(object) * more)
    rows = [{"number": n, "name": program.rows[n].name, "price": price} for n, price in sorted(prices.items())]
    return cast("Selection", {**priced, "rows": rows})


def _with_spot_prices(candidates: Candidates, priced: Selection) -> Selection:
    """With the price at which what fleets have on spot beyond their share proves most: of `SPOT_PRICES`, evenly spread.

    At the largest of them a unit that is not on spot weighs nothing.
    """
    program, spots = candidates.whole, list[Any]()
    weights, upper = priced_weights(program, priced), units_of(program)
    for task in _fleets(program):
        part = slice(task.first, task.stop)
        if task.max_spot_share is None or not program.spot[part].any():
            continue
        beyond, parts = beyond_spot_share(program, task), parts_of(priced["requests"], task)
        most = min((int(w) // -int(each) for w, each in zip(weights[part], beyond) if each < 0), default=0)

        def proven(price: int, task: Task = task, beyond: Weights = beyond, parts: Sequence[Part] = parts) -> int:
            changed = weights.copy()
            changed[task.first : task.stop] += price * beyond
            return least_of_task(program, task, changed, upper, parts).weight

        best = max({most * k // SPOT_PRICES for k in range(SPOT_PRICES + 1)}, key=proven)
        if best:
            spots.append({"workload": task.name, "price": best})
    return {**priced, "spots": spots} if spots else priced


def _choices(
    candidates: Candidates, solution: Solution, priced: Selection, value: int, time_limit_s: float | None
) -> Iterator[Choice]:
    """Prices of each choice of providers at which those of all prove too little."""
    for some in choices_of_providers(candidates.whole):
        if reaches(value, bound_at(candidates, priced, value, some)):
            continue
        found = prices_of(
            candidates.program, priced["criterion"], priced["latest_s"], among=some, time_limit_s=time_limit_s
        )
        if found is None:
            shown = _shown(candidates, priced["latest_s"], time_limit_s, some)
            if shown is not None:
                yield {**shown, "providers": list(some), "criterion": "limits"}
            continue
        own: Selection = {**_unparted(priced), **relaxed_prices(candidates.program, found)}
        plain = own["requests"]
        own = {**own, "requests": list(_best_parts(candidates, solution, own, some))}
        if not reaches(value, bound_at(candidates, own, value, some)):
            own = _finer(candidates, solution, own, plain, some)
        yield {**prices_alone(own), "providers": list(some), "criterion": priced["criterion"]}


def _unparted(priced: Selection) -> Selection:
    """Without branches, which are of all plans."""
    return cast("Selection", {name: value for name, value in priced.items() if name != "branches"})


def _shown(
    candidates: Candidates, latest_s: float | None, time_limit_s: float | None, among: Collection[int] | None = None
) -> Prices | None:
    """Prices at which nothing meets every limit, at some providers or at all; None where none show it."""
    for prices in _prices_of_limits(candidates.program, latest_s, time_limit_s, among):
        priced: Selection = {**prices, "criterion": "limits", "latest_s": latest_s}
        if certified_bound(candidates, priced, 1, among) > 0:
            return prices
    return None


def _finer(
    candidates: Candidates,
    solution: Solution,
    priced: Selection,
    plain: Sequence[FleetPrices],
    among: Collection[int] | None = None,
) -> Selection:
    """Prices with more lines, made again as long as they rest on rates that were only bounded."""
    while True:
        finer: Selection = {**priced, "requests": list(_finer_parts(candidates, solution, priced, plain, among))}
        exact = settled(candidates, finer, among=among)
        if exact is candidates:
            return finer
        candidates = exact


def _sealed(
    priced: Selection,
    allow_suspect: bool,
    earlier: Prices | None,
    value: int,
    bound: int,
    share: float = SHARE,
    choices: Sequence[Choice] = (),
) -> Certificate:
    witness: Witness = {"allow_suspect": allow_suspect, "earlier": earlier, **priced}  # type: ignore[typeddict-item]
    if choices:
        witness["choices"] = list(choices)
    figures: dict[str, Any] = {"value": value, "bound": min(bound, value), "gap": gap_of(value, bound, share)}
    if priced["criterion"] == "limits":
        figures = {"value": 0, "bound": SHOWN, "gap": 0.0}
    return cast("Certificate", {**witness, **figures, "sha256": digest_of_witness(witness)})


def _of_limits(candidates: Candidates, allow_suspect: bool, time_limit_s: float | None) -> Certificate | None:
    """What shows that nothing meets every limit; None where no prices do."""
    shown = _shown(candidates, None, time_limit_s)
    if shown is not None:
        return _sealed({**shown, "criterion": "limits", "latest_s": None}, allow_suspect, None, 0, 0)
    every = choices_of_providers(candidates.whole)
    of_each = [_shown(candidates, None, time_limit_s, some) for some in every]
    if not every or None in of_each:
        return _of_parted_limits(candidates, allow_suspect, time_limit_s)
    choices: list[Choice] = [
        {**prices, "providers": list(some), "criterion": "limits"} for some, prices in zip(every, of_each) if prices
    ]
    nothing: Selection = {"rows": [], "requests": [], "criterion": "limits", "latest_s": None}
    return _sealed(nothing, allow_suspect, None, 0, 0, SHARE, choices)


def _of_parted_limits(candidates: Candidates, allow_suspect: bool, time_limit_s: float | None) -> Certificate | None:
    """The same by branches: no prices of all plans show that two workloads cannot both have the one machine."""
    program = candidates.program
    found = None if candidates.spaces else prices_of(program, "limits", time_limit_s=time_limit_s)
    if found is not None:
        prices = relaxed_prices(program, found)
        known = {one["workload"] for one in prices["requests"]}
        others = [task for task in _fleets(program) if task.name not in known]  # the relaxation meets them for nothing
        more = [one for task in others for one in _document(task.name, [Part(1, tuple(_plain_lines(task)))])]
        requests = [*prices["requests"], *more]
        priced: Selection = {**prices, "requests": requests, "criterion": "limits", "latest_s": None}
        tree = parted(settled(candidates, priced, known=True).whole, priced, SHOWN, 0.0)
        if tree is not None and certified_bound(settled(candidates, tree, known=True), tree, SHOWN) > 0:
            return _sealed(tree, allow_suspect, None, 0, 0)
    return None


def _plain_lines(task: Task) -> Iterator[list[RequestPrices]]:
    """At the peak every request is worth the same, and those of each bucket alone."""
    peak, width = len(task.demands) - 1, len(task.demands[-1])
    for worth in ([1] * width, *(np.eye(width, dtype=int).tolist() if width > 1 else ())):
        yield [{"level": peak, "prefill": worth, "decode": worth}]


def _of_earlier(candidates: Candidates, latest_s: float, time_limit_s: float | None) -> Prices | None:
    """What shows that no plan finishes earlier; None where no prices do."""
    before = float(np.nextafter(latest_s * (1 - TIE), 0.0))
    for prices in _prices_of_limits(candidates.program, before, time_limit_s):
        if bound_of_earlier(candidates, prices, latest_s) > 0:
            return prices
    return None


def _prices_of_limits(
    program: Program, latest_s: float | None, time_limit_s: float | None, among: Collection[int] | None = None
) -> Iterator[Prices]:
    """None at all, which do where a workload has no way; those of what the limits would have to give way; and those
    at which all units that there are of a fleet, as many as are owned of each way say, do not earn what it asks."""
    yield {"rows": [], "requests": []}
    found = prices_of(program, "limits", latest_s, among=among, time_limit_s=time_limit_s)
    if found is not None:
        yield relaxed_prices(program, found)
    units = units_of(program, among).tolist()
    for task in _fleets(program):
        every = {column: units[column] for column in range(task.first, task.stop)}
        line = violated_line(program, task, every)
        if line is not None:
            yield {"rows": [], "requests": _document(task.name, [Part(1, ([_entry(line)],))])}


def relaxed_prices(program: Program, prices: RelaxedPrices) -> Prices:
    """The prices of a relaxation, those of one fleet added up to one line."""
    fleets = dict.fromkeys(one.task for one in prices.requests)
    return {
        "rows": [{"number": n, "name": program.rows[n].name, "price": p} for n, p in sorted(prices.rows.items())],
        "requests": [
            {"workload": name, "share": 1, "lines": [[_entry(one) for one in prices.requests if one.task == name]]}
            for name in fleets
        ],
    }


def _entry(one: LinePrices) -> RequestPrices:
    return {"level": one.level, "prefill": list(one.prefill), "decode": list(one.decode)}


def _document(name: str, parts: Sequence[Part]) -> list[FleetPrices]:
    return [{"workload": name, "share": part.share, "lines": [list(line) for line in part.lines]} for part in parts]


def _fleets(program: Program) -> Iterator[Task]:
    return (task for task in program.tasks if task.kind == "serving" and task.first < task.stop)


def _best_parts(
    candidates: Candidates, solution: Solution, priced: Selection, among: Collection[int] | None = None
) -> Iterator[FleetPrices]:
    """Of several prices of each fleet's requests those that prove most.

    The relaxation takes parts of replicas. Where a fleet is a few replicas, the prices at which a replica in use is
    worth the same on every bucket, or a price on the one bucket that few can serve, often prove more.
    """
    program = candidates.program
    weights = priced_weights(program, priced)
    upper = units_of(program, among)
    for task in _fleets(program):
        offered = [*parts_of(priced["requests"], task)]
        offered += [Part(1, (line,)) for line in _other_prices(program, task, solution)]
        if offered:
            best = max(offered, key=lambda part: least_of_task(program, task, weights, upper, [part]).weight)
            yield from _document(task.name, [best])


def _other_prices(program: Program, task: Task, solution: Solution) -> Iterator[list[RequestPrices]]:
    """At the peak: of each bucket alone, and as the replicas in use tell."""
    peak, demand = len(task.demands) - 1, task.demands[-1]
    for bucket in range(len(demand)) if len(demand) > 1 or task.boxed else ():
        alone = [int(place == bucket) for place in range(len(demand))]
        yield [{"level": peak, "prefill": alone, "decode": alone}]
    used = np.flatnonzero(_units(program, solution)[task.first : task.stop]) + task.first
    for column in used if not task.boxed else ():
        rates = program.capacity_micro_per_s[column, : len(demand)].tolist()
        least = min((rate for rate in rates if rate > 0), default=0)
        worth = [round(LINE_STEPS * least / rate) if rate > 0 else 0 for rate in rates]
        nothing = [0] * len(worth)
        decodes = program.role[column] == DECODE
        yield [{"level": peak, "prefill": nothing if decodes else worth, "decode": worth if decodes else nothing}]


def _units(program: Program, solution: Solution) -> IntArray:
    """Units of the solution, where it is of this program."""
    same = len(solution.units) == program.column_count
    return solution.units if same else np.zeros(program.column_count, dtype=np.int64)


def _finer_parts(
    candidates: Candidates,
    solution: Solution,
    priced: Selection,
    plain: Sequence[FleetPrices],
    among: Collection[int] | None = None,
) -> Iterator[FleetPrices]:
    """Parts of each fleet with lines added until the least cover carries every request, or `ROUNDS` are over."""
    program = candidates.program
    weights = priced_weights(program, priced)
    upper = units_of(program, among)
    for task in _fleets(program):
        simple, relaxed = parts_of(priced["requests"], task), parts_of(plain, task)
        if program.role[task.first : task.stop].any():
            parts, least = _by_role(program, task, weights, upper, solution)
            if least.weight < least_of_task(program, task, weights, upper, simple).weight:
                parts = simple
        else:
            starts = [simple, *_with_every_box(task, relaxed)]
            found = [_raised(program, task, weights, upper, start, [(True, True)]) for start in starts]
            apart = _by_bucket(task, relaxed)
            found += [(apart, least_of_task(program, task, weights, upper, apart))] if apart else []
            parts, _ = max(found, key=lambda one: (one[1].weight, sum(len(part.lines) for part in one[0])))
        yield from _document(task.name, parts)


def _with_every_box(task: Task, relaxed: Sequence[Part]) -> Iterator[list[Part]]:
    """Of a boxed fleet: the line of the relaxation, which the search is bounded by, and those of all buckets."""
    peak = len(task.demands) - 1
    for part in relaxed if task.boxed else ():
        alone = np.eye(len(task.demands[peak]), dtype=int).tolist()
        lines: list[list[RequestPrices]] = [
            [{"level": peak, "prefill": one, "decode": [0] * len(one)}]
            for one, demand in zip(alone, task.demands[peak])
            if demand
        ]
        yield [Part(part.share, (*part.lines, *lines))]


def _by_bucket(task: Task, relaxed: Sequence[Part]) -> list[Part]:
    """Of a boxed fleet: each bucket in a part of its own, as dear as the relaxation has it; none where that has none.

    Replicas of one bucket are rounded up, and have spares, apart from those of another. What serves several buckets is
    shared out among them as they are worth, so that no less is proven than by parts of replicas.
    """
    peak = len(task.demands) - 1
    width = len(task.demands[peak])
    worth = [0] * width
    for entry in (one for part in relaxed for line in part.lines for one in line):
        priced = zip(entry["prefill"], entry["decode"], task.demands[entry["level"]])
        worth = [most + (p + q) * rate for most, (p, q, rate) in zip(worth, priced)]
    if not task.boxed or not sum(worth):
        return []
    return [
        Part(max(1, LINE_STEPS * worth[bucket] // sum(worth)), tuple(_of_bucket(task, bucket)))
        for bucket in range(width)
        if task.demands[peak][bucket]
    ]


def _of_bucket(task: Task, bucket: int) -> Iterator[list[RequestPrices]]:
    """Lines of one bucket alone, at every level at which it is asked for."""
    for level, demand in enumerate(task.demands):
        if demand[bucket]:
            alone = [int(place == bucket) for place in range(len(demand))]
            yield [{"level": level, "prefill": alone, "decode": [0] * len(demand)}]


def _by_role(
    program: Program, task: Task, weights: Weights, upper: IntArray, solution: Solution
) -> tuple[list[Part], Least]:
    """Prefill and decode each with lines of their own; what serves both is shared as the plan's money is."""
    units, role = _units(program, solution)[task.first : task.stop], program.role[task.first : task.stop]
    paid = weights[task.first : task.stop] * units
    spent = [int(sum(paid[role == side])) for side in (PREFILL, DECODE)]
    shares = [max(1, round(100 * part / sum(spent))) if sum(spent) > 0 else 1 for part in spent]
    sides = [(True, False), (False, True)]
    peak = len(task.demands) - 1
    ones, nothing = [1] * len(task.demands[peak]), [0] * len(task.demands[peak])
    lines: list[RequestPrices] = [
        {"level": peak, "prefill": ones, "decode": nothing},
        {"level": peak, "prefill": nothing, "decode": ones},
    ]
    parts = [Part(share, ([line],)) for share, line in zip(shares, lines)]
    return _raised(program, task, weights, upper, parts, sides)


def _raised(
    program: Program,
    task: Task,
    weights: Weights,
    upper: IntArray,
    parts: list[Part],
    sides: Sequence[tuple[bool, bool]],
) -> tuple[list[Part], Least]:
    """Parts with the lines that their least covers do not meet, one after the other, for as long as that proves more.

    A bound falls where the search for the least cover is cut short, or where a line changes the parts' shares.
    """
    least = least_of_task(program, task, weights, upper, parts)
    best = parts, least
    for _ in range(ROUNDS):
        if not least.units:
            break
        added = [violated_line(program, task, least.units, sides=side) for side in sides]
        if not any(added):
            break
        parts = [
            part if line is None else Part(part.share, (*part.lines, [_entry(line)]))
            for part, line in zip(parts, added)
        ]
        before, least = least, least_of_task(program, task, weights, upper, parts)
        if least.weight >= best[1].weight:  # as much with more lines: by another cover, whose rates may be bounds yet
            best = parts, least
        if least == before or (len(parts) == 1 and least.weight < before.weight):
            break
    return best
