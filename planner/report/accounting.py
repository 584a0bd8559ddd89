"""Rules behind figures that no equation of the physics gives: money, time, choice; each with an id and a sentence."""

from __future__ import annotations

COST, SUM, BY_MONTH, SHARED, RESERVE, HOURS, EXPECTED, GIVEN, CARBON, MACHINES, CHOSEN, PROVEN, SOLVED = (
    "ACC-1", "ACC-2", "ACC-3", "ACC-4", "ACC-5", "ACC-6", "ACC-7", "ACC-8", "ACC-9", "ACC-10",
    "OPT-1", "OPT-2", "OPT-3",
)  # fmt: skip

RULES = {
    COST: "nodes × hours paid for × price, hours in whole steps of a bill or to ten significant digits; rounded once, "
    "half to even, to micro-dollars",
    SUM: "a sum of integer micro-dollars",
    BY_MONTH: "spread evenly over the hours that fall into a month; the running total is rounded down",
    SHARED: "a pool's cost shared by the node-hours of those who run on it",
    RESERVE: "the contingency's share of the total, rounded half to even; beside the total, never in it",
    HOURS: "devices × hours that they are held",
    EXPECTED: "the mean over all cases by their probability",
    GIVEN: "worked out from rates or times that the scenario gives",
    CARBON: "power drawn, rated where its owner says nothing, × hours × the carbon of the grid of the place",
    MACHINES: "facts of the machines of the row, and the hours that they run",
    CHOSEN: "chosen by the integer program as cheapest within every limit, and verified apart from it",
    PROVEN: "a lower bound that the certificate of the plan proves without a solver",
    SOLVED: "the difference of two plans, each solved to its optimum",
}
