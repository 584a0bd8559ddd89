"""Why so much is bought ahead and no more: the load of a pool against the share of the time at which a node pays.

A node under contract costs the same however long it is used, a node on demand costs what it is used. So contract as
many nodes as are in use for at least the share fee / (price on demand) of the time: the newsvendor's quantile
(Arrow, Harris and Marschak 1951). Figures are the plan's own; only shares are put into words here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.plan.model.bought import Contract
from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Items, columns
from planner.report.schedule_view import KINDS, chains, mean_of, moment


def contracts_of(document: PlanDocument, workloads: Sequence[str]) -> list[Contract]:
    """What is bought for the pools that some workloads run on."""
    schedule = document.get("schedule")
    shares = schedule["shares"] if schedule else []
    pools = {share["pool"] for share in shares if share["workload"] in workloads}
    return [one for one in document.get("contracts", []) if one["pool"] in pools]


def contract_blocks(document: PlanDocument, workloads: Sequence[str]) -> list[Block]:
    """What stands behind the contracts of the pools that some workloads run on; nothing without contracts."""
    mine = [one for one in contracts_of(document, workloads) if one["kind"] != "on_demand"]
    if not mine:
        return []
    reasons = tuple(line for chain in chains(mine) for line in _reasons(document, chain))
    return [_quantiles(mine), Items(title="Why these contracts", items=tuple(dict.fromkeys(reasons)))]


def _quantiles(contracts: Sequence[Contract]) -> Block:
    rows = [
        [
            chain[0]["pool"],
            _kind(chain),
            f"{moment(chain[0]['start_hours'])} → {moment(chain[-1]['end_hours'])}",
            *(_percent(mean_of(chain, name)) for name in ("last_node_share", "break_even_share", "next_node_share")),
        ]
        for chain in chains(contracts)
    ]
    heads = columns("Pool", "Contract", "From → to", ">Last node in use", ">Even at", ">One more would be")
    return Grid(title="Load against fee", columns=heads, rows=rows, grouped=True)


def _kind(chain: Sequence[Contract]) -> str:
    many = f"{len(chain)} × " if len(chain) > 1 else ""
    return many + str(KINDS.get(chain[0]["kind"], chain[0]["kind"]))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _reasons(document: PlanDocument, chain: Sequence[Contract]) -> Iterator[str]:
    """One sentence a contract, or a row of them: what the last node does, and what one more would do."""
    even = mean_of(chain, "break_even_share")
    last, more = mean_of(chain, "last_node_share") or 0.0, mean_of(chain, "next_node_share") or 0.0
    nodes = f"{chain[0]['count']} node" + ("s" if chain[0]["count"] > 1 else "")
    head = f"{chain[0]['pool']}, {nodes}, {_kind(chain)}"
    if even is None:
        yield f"{head}: nobody sells such nodes on demand there, so whoever runs there needs a contract"
        return
    cost = words.money(document, sum(one["cost_microusd"] for one in chain))
    rented = words.money(document, sum(one["on_demand_microusd"] or 0 for one in chain))
    pays = "pays" if last >= even else "does not pay by itself"
    yield (
        f"{head}: fee / price on demand is {_percent(even)}; all contracted nodes are in use {_percent(last)} of the "
        f"time, so the last one {pays}; {cost} for what would be {rented} on demand"
    )
    if more > 0:
        would = "would not pay" if more < even else "would pay by this rule, but other limits or terms stand against it"
        yield f"{head}: one node more would be in use {_percent(more)} of the time, so it {would}"
