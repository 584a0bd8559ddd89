"""Machines that are timed together against each by itself; times but for rounding against those term by term."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from planner.api import load_catalog, load_model
from planner.candidates import training
from planner.candidates.layouts import enumerate_layouts
from planner.candidates.ledger import Ledger
from planner.candidates.offers import Site, group_by_physics, sites_of
from planner.candidates.training_question import TrainingQuestion, resolve_training
from planner.estimate.recall import Recall
from planner.estimate.step_distinct import Ways
from planner.estimate.training import OnMachine, run_seconds, step_seconds, training_time, training_times
from tests.tiers import sampled
from tests.worlds import job, scenario

MODELS = ("llama-3.2-1b", "qwen3-30b-a3b", "gemma-2-2b")
SPREAD = {"recompute": ["none", "selective", "full"], "sharding": ["none", "zero-1", "zero-2", "zero-3"]}
HARDWARE = {"allow": ["h100-sxm-80gb", "a100-*", "l4", "tpu-v5e", "trainium2"], "pricing": ["on_demand", "spot"],
            "spot": {"interruptions": "0.02 /h"}}  # fmt: skip


def asked(model: str, **changes: object) -> tuple[TrainingQuestion, list[list[Site]]]:
    """A job on some machines, not all of one kind of software."""
    one = job(model=model, tokens="5B", deadline="20 days", sequence_length=4096, global_batch="1M tokens")
    plan = scenario([{**one, "estimator": "analytic", **SPREAD, **changes}], hardware=HARDWARE)
    world = load_catalog()
    question = resolve_training(plan.training[0], load_model(plan.training[0].model), plan, world)
    groups = group_by_physics(sites_of(plan, world, Ledger(workload="job")))
    return question, groups


def machines(question: TrainingQuestion, groups: Sequence[list[Site]], count: int) -> list[OnMachine]:
    """Every other layout on each of them, from another one on."""
    found = [OnMachine(spec=question.spec_on(g[0]), machine=question.machine(g[0]), rows=np.arange(0)) for g in groups]
    rows = [np.arange(place % 3, count, 2) for place in range(len(found))]
    return [OnMachine(spec=one.spec, machine=one.machine, rows=some) for one, some in zip(found, rows)]


@pytest.mark.parametrize("model", sampled(MODELS, 2))
def test_together_is_each_by_itself_to_the_last_bit(model: str) -> None:
    question, groups = asked(model)
    layout = enumerate_layouts(question.arch, [8, 32], question.rules)
    ways = Ways.of(layout)
    assert ways is not None
    few = machines(question, groups[:12], len(layout.devices))
    steps, finite = step_seconds(question.arch, layout, ways, few), 0
    rough = run_seconds(question.arch, layout, few, steps)
    for one, timed, (_, wall) in zip(few, training_times(question.arch, layout, ways, few), rough):
        alone = training_time(question.arch, one.spec, layout.select(one.rows), one.machine)
        mine = np.arange(timed.first, timed.first + len(one.rows))
        together = timed.terms.select(mine)
        assert list(together) == list(alone)
        for name, values in alone.items():
            assert np.array_equal(together[name], values, equal_nan=True), name
        known = np.isfinite(alone.total)
        finite += int(known.sum())
        np.testing.assert_allclose(wall[known], alone.total[known], rtol=1e-12)
        assert not np.isfinite(wall[~known]).any()
    assert finite > 1000


@pytest.mark.parametrize("model", sampled(MODELS, 1))
def test_what_is_timed_roughly_first_is_chosen_as_if_all_were_exact(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where steps are recalled from a job of other tokens and another deadline."""
    recall = Recall()

    def tables(change: dict[str, object]) -> list[object]:
        question, groups = asked(model, **change)
        question = training.replace(question, recall=recall)
        ledger = Ledger(workload="job")
        sites = [site for group in groups[:20] for site in group]
        found = training.training_tables(question, sites, ledger)
        told = [[each.cost_microusd, each.finish_s.tolist(), each.nodes.tolist(), each.fastest_s] for each in found]
        return [*told, [dict(found[0].time.row(row)) for row in range(len(found[0]))], ledger.reasons()]

    for change in ({}, {"tokens": "7B"}, {"deadline": "4 days"}):
        quick = tables(change)
        with monkeypatch.context() as patch:
            patch.setattr(training._Timed, "roughly", lambda timed, _: timed)
            assert tables(change) == quick
    assert len(quick[2]) > 3  # type: ignore[arg-type]


QUESTIONS: tuple[dict[str, object], ...] = (
    {}, {"deadline": "3 days"}, {"deadline": "60 days"}, {"tokens": "40B"}, {"tokens": "1B", "deadline": "2 days"},
    {"global_batch": "2M tokens"}, {"deadline": "11 days", "tokens": "9B"},
)  # fmt: skip


@pytest.mark.parametrize("model", sampled(MODELS, 1))
@pytest.mark.parametrize("limits", [{}, {"max_devices": 16}], ids=["free", "few"])
def test_what_was_asked_before_changes_nothing(model: str, limits: dict[str, object]) -> None:
    """Layouts looked at for other deadlines, tokens and limits, beside fewer machines: the same tables and drops."""
    recall = Recall()
    for before, change in enumerate((*QUESTIONS, *QUESTIONS[::-2])):
        found = []
        for memory in (recall, Recall()):
            question, groups = asked(model, **change)
            scarce = limits if before % 2 else {}
            hurried = question.scenario.model_copy(
                update={"limits": question.scenario.limits.model_copy(update=scarce)}
            )
            question = training.replace(question, recall=memory, scenario=hurried)
            ledger = Ledger(workload="job")
            tables = training.training_tables(
                question, [site for group in groups[: 6 + 5 * (before % 3)] for site in group], ledger
            )
            cells = [
                [each.cost_microusd, each.finish_s.tolist(), each.nodes.tolist(), each.fastest_s, str(each.layout)]
                for each in tables
            ]
            memories = [{name: values.tolist() for name, values in each.memory.items()} for each in tables]
            found.append((cells, memories, ledger.reasons(), ledger.nearest_on, ledger.layouts_seen))
        assert found[0] == found[1], change
    assert found[0][4] > 100


def test_a_question_that_time_runs_out_for_has_what_was_looked_at_before() -> None:
    """And nothing is kept of it: the next one, with time, finds all."""
    recall, whole = Recall(), []
    for change, patience in (({}, None), ({"tokens": "400B"}, 0), ({"tokens": "400B"}, None)):
        question, groups = asked("llama-3.2-1b", **change)
        question = training.replace(question, recall=recall)
        searches = [
            training.Search.of(question, group, training.node_counts(question, group, Ledger(workload="job")))
            for group in groups[:12]
        ]
        searches = [one for one in searches if one.counts]
        _, found = training.look(question, searches, lambda _, hurry=patience: hurry == 0, every_layout=False)
        for one in found:
            training.tell(one, Ledger(workload="job"))
        whole.append(sum(len(one.rows) for one in found))
    assert 0 < whole[1] < whole[2]


def test_what_is_kept_of_a_job_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other confidences are other machines to it: the oldest are forgotten, and the last question finds its own."""
    recall = Recall()
    bound = 2_000_000
    monkeypatch.setattr("planner.candidates.training_fit.MOST_KEPT_BYTES", bound)
    for confidence in (0.9, 0.8, 0.7, 0.6, 0.8):
        found = []
        for memory in (recall, Recall()):
            question, groups = asked("llama-3.2-1b")
            spec = training.replace(question.spec, confidence=confidence)
            question = training.replace(question, recall=memory, spec=spec)
            ledger = Ledger(workload="job")
            tables = training.training_tables(question, [site for group in groups[:6] for site in group], ledger)
            found.append(([(each.cost_microusd, str(each.layout)) for each in tables], ledger.reasons()))
        assert found[0] == found[1]
        (kept,) = (answer for answer, _ in recall._found.values() if hasattr(answer, "on"))
        assert len(kept.on) <= 6 or kept.nbytes <= bound
