"""Plans that claim more than is proven, every one under a new seal: named by a finding, and called proven nowhere.

The forger is careful: `dear` is a whole plan of the scenario, right in every row and total, that a solver found when
the cheapest machines were taken away from it. Only what it says of its proof can give it away.
"""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.api.checking import Checked, check
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.plan.document import digest_of
from planner.plan.proof import digest_of_witness
from planner.report.explanation_view import render_explanation
from planner.report.html.pages import render_page
from planner.report.notebook import plan_html
from planner.report.plan_formats import render_plan
from planner.report.report_view import render_report
from planner.report.workbook import workbook
from planner.scenario.schema import Scenario
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

pytestmark = pytest.mark.usefixtures("listed_once", "rated_once")
Document = dict[str, Any]
Forge = Callable[[Document, "Plans"], Document]
PLAN = {
    "training": [job("train", tokens="10B", deadline="30000 s", count=2)],
    "serving": [fleet("chat", qpm=1500, spare_replicas=1)],
    "hardware": {"quotas": [{"device": "plain", "max_devices": 6}]},
    "limits": {"max_devices": 40},
}
SUSPECT = "shady/one"


@pytest.fixture(scope="module")
def world() -> Catalog:
    """Three offers of one device, the cheapest of them suspect."""
    return catalog(
        [device(), device("other", measured_matmul_flop_per_s={})],
        [shape(), shape("south/other", device="other"), shape("south/one"), shape(SUSPECT)],
        [
            offer(),
            offer("south/one", 1.7),
            offer("south/other", 1.4),
            offer(SUSPECT, 0.2, quality="suspect"),
        ],
    )


class Plans:
    """Plans of one scenario, solved once: the best, a dear one of a market without the cheapest offer, and so on."""

    def __init__(self, world: Catalog) -> None:
        self.world = world
        asked = self.asked()
        self.best = written(asked, world)
        fewer = replace(world, offers=tuple(one for one in world.offers if one.price_microusd_per_hour != 1_000_000))
        self.dear = careful(written(asked, fewer), self.best)  # proven, where there is less to choose from
        self.doubted = json.loads(api.solve(asked, world, allow_suspect=True).to_json())
        self.none = written(self.asked(limits={"max_devices": 5}), world)
        self.early = written(self.asked(objective=["time", "cost"]), world)

    @staticmethod
    def asked(**changes: Any) -> Scenario:
        parts = {**PLAN, **changes}
        training, serving = parts.pop("training"), parts.pop("serving")
        return scenario(training, serving, **parts)  # type: ignore[arg-type]


def careful(document: Document, best: Document) -> Document:
    """A plan that tells of all the ways that there are, as another one does."""
    made = {name: best["provenance"][name] for name in ("columns", "columns_pruned")}
    document |= {"rejected": best["rejected"], "provenance": {**document["provenance"], **made}}
    for mine, other in zip(document["workloads"], best["workloads"]):
        paid = mine["cost_microusd"] if mine["kind"] == "training" else None
        mine["alternatives"] = [{**one, "tie": one["cost_microusd"] == paid} for one in other["alternatives"]]
    return document


def written(asked: Scenario, world: Catalog) -> Document:
    document: Document = json.loads(api.solve(asked, world).to_json())
    return document


def sealed(document: Document) -> Document:
    return {**document, "sha256": digest_of(document)}


@pytest.fixture(scope="module")
def plans(world: Catalog) -> Plans:
    return Plans(world)


def test_the_plans_to_forge_from_are_what_they_are_for(plans: Plans) -> None:
    assert not check(plans.best, plans.world).problems
    assert check(plans.best, plans.world).standing.proven
    assert check(plans.early, plans.world).standing.proven
    assert check(plans.none, plans.world).standing.proven
    assert plans.dear["summary"]["cost_microusd"] > 1.1 * plans.best["summary"]["cost_microusd"]
    assert plans.doubted["summary"]["cost_microusd"] < plans.best["summary"]["cost_microusd"]


# ---- what a forger does to a proof


def told(document: Document, certificate: Document | None, **summary: Any) -> Document:
    """A plan with this certificate under its digest, and a summary that says the same."""
    forged = copy.deepcopy(document)
    if certificate is None:
        due: Document = {"bound_microusd": None, "bound_usd": None, "gap": None}
    else:
        certificate["sha256"] = digest_of_witness(certificate)  # type: ignore[arg-type]
        bound = certificate["bound"] if certificate["criterion"] == "cost" else None
        due = {
            "bound_microusd": bound,
            "bound_usd": None if bound is None else bound / 1e6,
            "gap": certificate["gap"],
        }
    forged["certificate"] = certificate
    forged["summary"] |= {**due, **summary}
    return forged


def claims_all(document: Document) -> Document:
    cost = document["summary"]["cost_microusd"]
    return {"value": cost, "bound": cost, "gap": 0.0}


def with_certificate(**changes: Any) -> Forge:
    """The dear plan with the certificate of the best one, told to prove all of it; and some of it changed."""

    def forge(document: Document, plans: Plans) -> Document:
        certificate = {**copy.deepcopy(plans.best["certificate"]), **claims_all(plans.dear), **changes}
        return told(plans.dear, certificate)

    return forge


def prices(change: Callable[[Document], Any]) -> Forge:
    """The same, with its prices changed by a function."""

    def forge(document: Document, plans: Plans) -> Document:
        certificate = {**copy.deepcopy(plans.best["certificate"]), **claims_all(plans.dear)}
        change(certificate)
        return told(plans.dear, certificate)

    return forge


def true_proof(**changes: Any) -> Forge:
    """The dear plan with what is truly proven of it."""

    def forge(document: Document, plans: Plans) -> Document:
        cost, bound = plans.dear["summary"]["cost_microusd"], plans.best["certificate"]["bound"]
        figures = {"value": cost, "bound": bound, "gap": (cost - bound) / cost}
        certificate = {**copy.deepcopy(plans.best["certificate"]), **figures}
        return {**told(plans.dear, certificate, **changes.pop("summary", {})), **changes}

    return forge


def no_certificate(**summary: Any) -> Forge:
    return lambda document, plans: told(plans.dear, None, **summary)


def all_told(document: Document, plans: Plans) -> Document:
    cost = plans.dear["summary"]["cost_microusd"]
    return told(plans.dear, None, bound_microusd=cost, bound_usd=cost / 1e6, gap=0.0)


def without_plan(status: str, certificate: Callable[[Plans], Document | None] = lambda plans: None) -> Forge:
    """The scenario of the best plan with an answer that holds no plan."""

    def forge(document: Document, plans: Plans) -> Document:
        empty = copy.deepcopy(plans.none)
        changed = {"scenario": plans.best["scenario"], "status": status, "certificate": certificate(plans)}
        if status == "infeasible":
            nothing = {"conflict": [], "ways_out": [], "combined": None}  # those known are of another limit
            changed["infeasible"] = {**empty["infeasible"], **nothing}
        else:
            changed["infeasible"] = None
        return careful({**empty, **changed}, plans.best)

    return forge


def stale_digest(document: Document, plans: Plans) -> Document:
    forged = copy.deepcopy(plans.best)
    forged["certificate"]["requests"][0]["share"] += 1
    return forged


def own(document: Document, plans: Plans) -> Document:
    return told(plans.dear, copy.deepcopy(plans.dear["certificate"]))


def of_suspects(allow: bool) -> Forge:
    """A plan on suspect prices, said to be the best without (or with) them, under the other digest."""

    def forge(document: Document, plans: Plans) -> Document:
        certificate = {**copy.deepcopy(plans.best["certificate"]), **claims_all(plans.doubted), "allow_suspect": allow}
        return told(plans.doubted, certificate)

    return forge


def early(**changes: Any) -> Forge:
    return lambda document, plans: told(plans.early, {**copy.deepcopy(plans.early["certificate"]), **changes})


def late(document: Document, plans: Plans) -> Document:
    """A plan of the least cost called the earliest."""
    objective = {"scenario": plans.early["scenario"]}
    finish = 3600.0 * max(row["finish_hours"] for row in plans.best["workloads"][0]["allocations"])
    certificate = {
        **copy.deepcopy(plans.best["certificate"]),
        "latest_s": finish,
        "earlier": {"rows": [], "requests": []},
    }
    return {**told(plans.best, certificate, objective=["time", "cost"]), **objective}


def row(**changes: Any) -> Forge:
    """The best plan with its own proof, and a cell of its first row changed."""

    def forge(document: Document, plans: Plans) -> Document:
        forged = copy.deepcopy(plans.best)
        cells = forged["workloads"][0]["allocations"][0]
        for name, value in changes.items():
            cells[name] = value(cells[name]) if callable(value) else value
        return forged

    return forge


def top(**changes: Any) -> Forge:
    def forge(document: Document, plans: Plans) -> Document:
        return {**copy.deepcopy(plans.best), **changes}

    return forge


def summary(**changes: Any) -> Forge:
    def forge(document: Document, plans: Plans) -> Document:
        forged = copy.deepcopy(plans.best)
        forged["summary"] |= changes
        return forged

    return forge


def price_of(number: int, name: str, price: Any) -> Callable[[Document], None]:
    return lambda c: c["rows"].append({"number": number, "name": name, "price": price})


def line_of(level: Any, prefill: Any, decode: Any) -> Callable[[Document], None]:
    entry = {"level": level, "prefill": prefill, "decode": decode}
    return lambda c: c["requests"].append({"workload": "chat", "share": 1, "lines": [[entry]]})


WRONG, UNPROVEN, PROOF = "wrong-certificate", "not-proven", "wrong-proof"
FORGERIES: dict[str, tuple[Forge, str]] = {
    # without a certificate
    "left out": (no_certificate(), UNPROVEN),
    "left out, and the summary claims all": (all_told, PROOF),
    "left out, and the summary has a gap": (no_certificate(gap=0.01), PROOF),
    "left out, and the summary has a bound": (no_certificate(bound_microusd=1, bound_usd=1e-6), PROOF),
    # with another one
    "what is truly proven, called optimal": (true_proof(), UNPROVEN),
    "what is truly proven, and the summary has no gap": (true_proof(summary={"gap": 0.0}), PROOF),
    "that of a market with less to choose from": (own, WRONG),
    "that of the best plan as it is": (lambda d, p: told(p.dear, copy.deepcopy(p.best["certificate"])), WRONG),
    "that of the best plan, told to prove all": (with_certificate(), WRONG),
    "bounds carbon": (with_certificate(criterion="carbon"), WRONG),
    "bounds limits": (with_certificate(criterion="limits"), WRONG),
    "of early plans alone": (with_certificate(latest_s=1.0), WRONG),
    "of plans no later than this one": (with_certificate(latest_s=30000.0), WRONG),
    "shows an earlier one": (with_certificate(earlier={"rows": [], "requests": []}), WRONG),
    "value below the cost": (with_certificate(value=1), WRONG),
    "value above the cost": (with_certificate(value=10**12), WRONG),
    "bound above the value": (with_certificate(bound=10**12), PROOF),
    "bound below nothing": (with_certificate(bound=-1), WRONG),
    "gap below nothing": (with_certificate(gap=-0.5), WRONG),
    "gap of another bound": (true_proof(certificate=None), PROOF),
    "no prices": (with_certificate(rows=[], requests=[]), WRONG),
    "a limit at a price": (prices(price_of(1, "limits.max_devices", 10**12)), WRONG),
    "a limit below nothing": (prices(price_of(0, "limits.max_devices", -(10**9))), WRONG),
    "a limit that is none": (prices(price_of(99, "limits.max_devices", 1)), WRONG),
    "a limit by another name": (prices(price_of(0, "limits.budget", 1)), WRONG),
    "requests at a dear price": (prices(line_of(0, [10**30], [10**30])), WRONG),
    "requests below nothing": (prices(line_of(0, [-1], [-1])), WRONG),
    "requests of a level that is none": (prices(line_of(7, [1], [1])), WRONG),
    "requests of a bucket that is none": (prices(line_of(0, [1, 1], [1, 1])), WRONG),
    "requests by words": (prices(line_of(0, ["1"], ["1"])), WRONG),
    "a share of nothing": (prices(lambda c: c["requests"][0].update(share=0)), WRONG),
    "a share below nothing": (prices(lambda c: c["requests"][0].update(share=-1)), WRONG),
    "lines of nothing": (prices(lambda c: c["requests"][0].update(lines=[])), WRONG),
    "of another fleet": (prices(lambda c: c["requests"][0].update(workload="train")), WRONG),
    "the same line twice in two parts": (prices(lambda c: c["requests"].append(c["requests"][0])), WRONG),
    "under another digest": (stale_digest, "changed-certificate"),
    "on suspect prices, said to be the best without": (of_suspects(allow=False), WRONG),
    "on suspect prices, with the bound of the others": (of_suspects(allow=True), WRONG),
    "of the earliest, no longer shown": (early(earlier=None), UNPROVEN),
    "of the earliest, one second earlier": (early(latest_s=29999.0), WRONG),
    "of the earliest, of any finish": (early(latest_s=None), WRONG),
    "the cheapest called the earliest": (late, WRONG),
    # that there is no plan, or no answer
    "called infeasible": (without_plan("infeasible"), UNPROVEN),
    "called infeasible by the prices of another question": (
        without_plan("infeasible", lambda p: p.none["certificate"]), WRONG,
    ),
    "called infeasible by the certificate of a plan": (
        without_plan("infeasible", lambda p: p.best["certificate"]), WRONG,
    ),
    "called stopped": (without_plan("stopped"), UNPROVEN),
    "called failed": (without_plan("failed"), UNPROVEN),
    "called stopped with a certificate": (without_plan("stopped", lambda p: p.none["certificate"]), WRONG),
    "a plan called infeasible": (top(status="infeasible"), PROOF),
    "a plan called stopped": (top(status="stopped"), PROOF),
    "the best called feasible": (top(status="feasible"), UNPROVEN),
    # the plan beside its proof
    "a bound above the cost": (summary(bound_microusd=10**12), PROOF),
    "a bound below the cost": (summary(bound_microusd=10**6, bound_usd=1.0), PROOF),
    "a gap": (summary(gap=0.5), PROOF),
    "a dollar less": (summary(cost_microusd=1_000_000, cost_usd=1.0), "wrong-total"),
    "other devices": (summary(devices=1), "wrong-total"),
    "another objective": (summary(objective=["carbon"]), "wrong-total"),
    "half the machines": (row(count=1), "wrong-count"),
    "a cheaper hour": (row(price_microusd_per_hour=lambda p: p // 2), "wrong-price"),
    "half the time": (row(hours=lambda h: h / 2), "wrong-time"),
    "half the cost": (row(cost_microusd=lambda c: c // 2), "wrong-cost"),
    "another seal": (lambda d, p: {**copy.deepcopy(p.best), "title": "another"}, "wrong-workload"),
}  # fmt: skip


def test_there_are_sixty_kinds() -> None:
    assert len(FORGERIES) >= 60
    assert sum("proven" not in name for name in list(FORGERIES)[:42]) >= 20


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_named_and_proven_is_said_nowhere(name: str, plans: Plans) -> None:
    forge, reference = FORGERIES[name]
    checked = check(sealed(forge(copy.deepcopy(plans.dear), plans)), plans.world)
    found = {problem.reference for problem in checked.problems}
    assert reference in found, checked.problems
    assert checked.holds == (reference == UNPROVEN)
    assert not checked.standing.proven
    assert calls_it_proven(checked, plans.world) == []


def test_another_status_is_refused_where_it_is_read(plans: Plans) -> None:
    document = sealed({**plans.best, "status": "proven"})
    assert not check(document, plans.world).standing.proven
    with pytest.raises(InputError):
        api.report(document, plans.world)


def test_the_true_plan_is_called_proven(plans: Plans) -> None:
    """The words that are looked for are there when they are deserved: in every form of a plan and its report."""
    said = calls_it_proven(check(plans.best, plans.world), plans.world)
    assert {"table", "md", "report table", "report md", "page", "workbook", "notebook"} <= set(said)
    assert "table" in calls_it_proven(check(plans.none, plans.world), plans.world)


def calls_it_proven(checked: Checked, world: Catalog) -> list[str]:
    """The forms in which a plan is said to be proven."""
    document, _ = checked.shown()
    return [form for form, text in forms(document, world) if says_proven(text)]


def says_proven(text: str) -> bool:
    words = re.sub(r"\s+", " ", text.lower())
    return bool(re.search(r"(?<!not )(?<!not all )\bproven\b", words))


def forms(document: Document, world: Catalog) -> Iterator[tuple[str, str]]:
    """Everything that a plan is shown in."""
    for form in ("table", "md", "csv"):
        yield form, render_plan(document, form)
    yield "explanation", render_explanation(document, "table")
    yield "notebook", plan_html(document)
    report = api.report(api.Plan(document=document), world)
    for form in ("table", "md"):
        yield f"report {form}", render_report(report, form)
    page = render_page(report).text
    yield "page", re.sub(r"<style.*?</style>|<script.*?</script>", "", page, flags=re.DOTALL)
    with zipfile.ZipFile(io.BytesIO(workbook(report))) as book:
        yield "workbook", "\n".join(book.read(name).decode() for name in book.namelist() if name.endswith(".xml"))


# ---- the scenario in a plan beside its file


COPIES: dict[str, Callable[[Document], Any]] = {
    "a later deadline": lambda s: s["training"][0].update(deadline="90000 s"),
    "more devices": lambda s: s["limits"].update(max_devices=400),
    "a quota gone": lambda s: s["hardware"].pop("quotas"),
    "less to choose from": lambda s: s["hardware"].update(allow=["other"]),
    "less work": lambda s: s["training"][0].update(tokens="1B"),
    "less traffic": lambda s: s["serving"][0].update(qpm=60),
    "no spare": lambda s: s["serving"][0].pop("spare_replicas"),
    "another objective": lambda s: s.update(objective=["time"]),
}


@pytest.fixture(scope="module")
def on_disk(world: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    """A plan of a file in the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("scenario"))
        Path("plan.yaml").write_text(json.dumps({"schema": "plan/v1", "name": "test", **PLAN}), encoding="utf-8")
        yield written(api.load_scenario("plan.yaml", settings=["limits.max_devices=50"]), world)


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_the_scenario_that_is_not_its_file_is_found(name: str, on_disk: Document, plans: Plans) -> None:
    forged = copy.deepcopy(on_disk)
    COPIES[name](forged["scenario"])
    parts = {key: value for key, value in forged["scenario"].items() if key not in ("schema", "name", "title")}
    best = written(scenario(**parts), plans.world)  # the best plan of the copy, and proven
    assert best["status"] == "optimal"
    origin = {key: on_disk[key] for key in ("scenario_file", "settings")}
    careful = sealed({**best, **origin, "scenario": forged["scenario"]})
    checked = check(careful, plans.world)
    assert {problem.reference for problem in checked.problems} == {"other-scenario"}
    assert not says_proven(render_plan(checked.shown()[0], "table"))


def test_a_plan_of_its_file_with_its_settings_holds(on_disk: Document, plans: Plans) -> None:
    assert check(on_disk, plans.world).problems == []
    assert check(sealed({**on_disk, "settings": []}), plans.world).problems != []
    gone = sealed({**on_disk, "scenario_file": "gone.yaml"})
    assert check(gone, plans.world).problems == []
