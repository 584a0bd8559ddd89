"""How often the ways out and the break-even prices are right, against brute force.

    python benchmarks/repairs.py [INSTANCES] [PRICES]

Random programs of one to three workloads with quotas, budgets, power, deadlines and provider limits. Of each that is
infeasible by brute force: whether the conflict set cannot be met and can be met without any one of its members;
whether each single repair does when applied, at the cost stated, and one unit less does not; whether what is called
not enough is not; whether the combination does and no other plan is of less weighted slack. Of each break-even
price: whether the hardware is in the best plan at a millionth of the price less, and not at a millionth more.
"""

from __future__ import annotations

import itertools
import sys
import time
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.optimize.repair_cases import checked, infeasible_instances, price_cases

EPSILON = Fraction(1, 10**6)


def repairs(count: int) -> int:
    """Check that many infeasible instances; how many are right."""
    right = members = single = alone = together = 0
    for seed, limited in itertools.islice(infeasible_instances(range(10**9)), count):
        tally = checked(limited)
        right += not tally.wrong
        members += tally.conflict_members
        single += tally.repairs
        alone += tally.not_enough
        together += tally.combined > 1
        for line in tally.wrong:
            print(f"  seed {seed}: {line}")
    print(
        f"infeasible instances        {right} of {count} right\n"
        f"  conflict sets             {count}, {members} members, each needed\n"
        f"  single repairs            {single}, each does and one unit less does not; {alone} limits not enough alone\n"
        f"  of several limits         {together} combinations need two or more"
    )
    return right


def prices(count: int) -> int:
    """Check that many break-even prices; how many are right."""
    right = asked = never = 0
    for seed, case in price_cases(range(10**9)):
        found = case.break_even()
        if found.share is None:
            never += 1
            continue
        asked += 1
        below, above = case.best_at(found.share - EPSILON)[1], case.best_at(found.share + EPSILON)[1]
        right += below and not above
        if not below or above:
            print(f"  seed {seed}: at {found.share} chosen below {below}, above {above}")
        if asked == count:
            break
    print(f"break-even prices           {right} of {asked} right; {never} others not even free, or unusable")
    return right


def main() -> None:
    """Print all counts; exit 1 unless every one is right."""
    instances = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    started = time.monotonic()
    right = repairs(instances) == instances
    right &= prices(wanted) == wanted
    print(f"{time.monotonic() - started:.0f} s")
    raise SystemExit(0 if right else 1)


if __name__ == "__main__":
    main()
