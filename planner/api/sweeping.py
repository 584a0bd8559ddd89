"""One scenario asked many things, or many on some catalogs: here, in processes of this machine, or on a Dask cluster.

The answers are the same wherever they are worked out.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planner import __version__
from planner.analysis.frontier.journal import program_digest
from planner.answers import CatalogTable, Plan, Sweep
from planner.api.sessions import Session
from planner.api.taking import ScenarioLike, checked_count
from planner.catalog.load import DEFAULT
from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced, with_device_price
from planner.deadline import Deadline
from planner.errors import PlanError, UsageError
from planner.files import LineFile, StrPath, read_text, write_text
from planner.plan.document import digest_of
from planner.plan.parts import expected_microusd
from planner.plan.references import load_model
from planner.scenario.load import load_scenario, with_settings
from planner.scenario.schema import Scenario
from planner.sweeps.answering import BEGINS, Asker, Journal, Processes, Progress, Runner, checked_workers, in_turn
from planner.sweeps.axes import MOST_HALVINGS, Axis, Border, Grid, borders_of, grid_of, standing_of
from planner.sweeps.document import sweep_document
from planner.sweeps.question import LOST, Answered, Question, Row, Told, canonical, without_plan

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


KEPT = 8  # catalogs and sessions that a process keeps for the next question
KEYS = {"bad-reference", "unknown-field", "no-offer"}  # what is wrong with a key, whatever its value
DECIDED = "devices and sellers, the mean of several futures"  # what rows tell: no journal of other rows is gone on with
MEAN_OF_CASES = "what it costs is the mean of {} cases (uncertainty)"
MOST_TRIED = 1000  # questions of a grid that are read ahead, where each is refused for its keys
_NUMBER = re.compile(r"[^=]+=\s*[+-]?\$?[0-9]+(?:\.[0-9]+)?\s*[A-Za-z%]*(?:/[A-Za-z]+)?\s*")  # a setting of a number
Kept = TypeVar("Kept")
Named = tuple[str, str | None]  # file of a scenario and case; ("", None): that of the session


def grid(*over: str) -> Grid:
    """Every combination of some values, as questions.

    Parameters
    ----------
    over
        ``"serving.assistant.qpm=300,600"``, ``"price:h100-*=-30%..+30%"``,
        ``"training.pretrain-8b.deadline=7d..60d/5"``;
        case=, catalog=, prices= (dates) and seed= are axes, too.

    Raises
    ------
    UsageError
        One cannot be read, two vary the same, or there are too many questions.
    """
    return grid_of(over)


def sweep(
    session: Session | ScenarioLike,
    questions: Grid | Iterable[Question],
    scheduler: str | None = None,
    *,
    workers: int = 1,
    journal: StrPath | None = None,
    plans: StrPath | None = None,
    borders: int | None = None,
    security: Any = None,
    tell: Callable[[Progress], None] | None = None,
    hear: Callable[[str], None] | None = None,
    over: Callable[[], bool] | None = None,
    standing: bool = True,
) -> Sweep:
    """Every question answered: each by a plan that is proven and verified, or by a row that says why there is none.

    Parameters
    ----------
    session
        Or a scenario, the path of its file, or the name of one that ships.
    questions
        A grid, or any questions.
    scheduler
        Address of a Dask scheduler, as "tcp://127.0.0.1:8786"; it needs the extra `cluster`.
    workers
        Processes of this machine, where there is no scheduler; 1: none besides this.
    journal
        File of the answers found so far: whatever was killed goes on from there.
    plans
        Folder for the plan of each question, named by the hash that it bears.
    borders
        How often the interval in which a decision turns is halved, each time by solving its middle; None: not at all,
        and no borders are told.
    security
        Of the connection to the scheduler: a `distributed.Security`.
    tell, hear
        Are told how far the sweep is, and where its dashboard is.
    over
        Whether the time is up: what was not begun by then is left out, and a row says so.
    standing
        Where days are varied, what it costs to keep the plan of the earliest is asked, too.

    Raises
    ------
    InputError, UsageError
        The scenario or a catalog is invalid; a grid varies a key that no question can have; more workers than can be.
    StoppedError
        There is no scheduler at the address, it has no workers, or they run other versions.
    OutputError
        The journal or a plan cannot be written, or another sweep holds the journal.
    """
    workers = checked_workers(workers)
    borders = None if borders is None else checked_count(borders, "borders", most=MOST_HALVINGS)
    held = session if isinstance(session, Session) else Session(session)
    if isinstance(held.time_limit_s, Deadline):
        hint = "give the session a limit in seconds, which is that of each question"
        raise UsageError.of("not-together", "the deadline of a session cannot be that of many questions", hint=hint)
    grid = questions if isinstance(questions, Grid) else None
    asked = list(grid.questions if grid is not None else questions)  # type: ignore[arg-type]
    answer = Answering.of(held, asked, plans=plans is not None)
    if grid is not None:
        answer.demand_keys(asked)
    lines: AbstractContextManager[LineFile | None] = nullcontext()
    if journal is not None:
        lines = LineFile(journal, begins=BEGINS)
    with lines as kept, _runner(answer, scheduler, workers, security, hear) as runner:
        asker = Asker(
            key=answer.key,
            runner=runner,
            journal=Journal(kept),
            plans=None if plans is None else _Plans(plans),
            tell=tell,
            over=over,
        )
        rows = asker.rows(asked)
        held_on = standing_of(grid, rows, asker.quietly, answer.dates) if grid is not None and standing else None
        found: list[Border] = []
        if grid is not None and borders is not None:
            found = borders_of(grid, rows, asker.quietly, borders)
    values = grid.points if grid is not None else [()] * len(asked)
    document = sweep_document(
        held.scenario,
        held.catalog,
        grid.axes if grid is not None else (),
        list(zip(asked, values, rows)),
        found,
        halvings=borders or 0,
        options=answer.options,
        standing=held_on,
    )
    return Sweep(document=document, asked=asker.asked, broken=asker.journal.broken)


def _runner(
    answer: Answering, scheduler: str | None, workers: int, security: Any, hear: Callable[[str], None] | None
) -> AbstractContextManager[Runner]:
    if scheduler is not None:
        from planner.sweeps.cluster import cluster

        return cluster(answer, scheduler, answer.digest, security=security, hear=hear)
    if workers > 1:
        return Processes(answer, workers)
    return nullcontext(partial(in_turn, answer))


class _Plans:
    """Plan files of a folder, each named by the hash that it bears."""

    def __init__(self, folder: StrPath) -> None:
        self._folder = Path(folder)

    def _path(self, sha256: str) -> Path:
        return self._folder / f"{sha256}.plan.json"

    def has(self, sha256: str) -> bool:
        """Whether it is there, and is what its name says."""
        try:
            return digest_of(json.loads(read_text(self._path(sha256)))) == sha256
        except (PlanError, ValueError, RecursionError, AttributeError, TypeError):
            return False

    def add(self, sha256: str, text: str) -> None:
        write_text(self._path(sha256), text)


class Answering:
    """Answers questions, with all that they share: it is sent to each worker once.

    Parameters
    ----------
    held
        The session whose ways, rates and catalog are taken over.
    catalogs
        By folder and date, those that questions name.
    scenarios
        By file and case, those that questions name.
    plans
        Whether the texts of plan files are wanted.
    """

    def __init__(
        self,
        held: Session,
        catalogs: dict[tuple[str, str], Catalog],
        scenarios: dict[Named, Scenario],
        *,
        plans: bool = False,
    ) -> None:
        self.held, self.catalogs, self.scenarios, self.plans = held, catalogs, scenarios, plans
        self.options: dict[str, object] = {
            **{name: held.options[name] for name in ("solver", "gap", "threads", "seed")},
            "allow_suspect": held.allow_suspect,
            "tie_tolerance": held.tie_tolerance,
        }
        self.digest = _digest(
            __version__,
            DECIDED,
            _versions(),
            held.scenario.resolved,
            [held.scenario.file, held.scenario.case],
            [held.catalog.digest, held.catalog.own_prices],
            [self.options, held.time_limit_s],
            program_digest(held.candidates.whole),  # also stands for the files that the scenario names
        )
        self._named = {name: _digest(scenario.resolved, _files(scenario)) for name, scenario in scenarios.items()}
        self._read: OrderedDict[tuple[Named, tuple[str, ...]], list[str]] = OrderedDict()
        self._priced: OrderedDict[tuple[str, str, tuple[str, ...]], Catalog] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, str, tuple[str, ...]], Session] = OrderedDict()
        self._first: tuple[Question, Session] | None = None  # of an earlier day, whose plan is held

    @classmethod
    def of(cls, held: Session, questions: Sequence[Question], *, plans: bool) -> Answering:
        """With the catalogs and scenarios that the questions name, read once.

        Parameters
        ----------
        held
            The session whose ways, rates and catalog are taken over.
        questions
            All that will be asked: the catalogs and the scenarios that they name are read now.
        plans
            Whether the texts of plan files are wanted.

        Raises
        ------
        InputError
            One of them cannot be read.
        """
        scenario = held.scenario
        catalogs: dict[tuple[str, str], Catalog] = {("", ""): held.catalog}
        scenarios: dict[Named, Scenario] = {("", None): scenario}
        for question in questions:
            name = (question.catalog, question.until)
            if name not in catalogs:
                catalogs[name] = _catalog(held, *name)
            if (named := _named(question)) not in scenarios:
                file = question.scenario or scenario.file
                scenarios[named] = load_scenario(file, settings=scenario.settings, case=question.case)
        return cls(held, catalogs, scenarios, plans=plans)

    @property
    def dates(self) -> dict[str, str]:
        """Of which day each catalog is that questions name."""
        return {folder: catalog.as_of for (folder, _), catalog in self.catalogs.items()}

    def key(self, question: Question) -> str:
        """Under which the answer is kept: of the question and all that it depends on, files that it names among it."""
        catalog = self.catalogs[question.catalog, question.until]
        known = [self.digest, self._named[_named(question)], catalog.digest, self._files(question)]
        if question.held is not None:
            known.append(self.catalogs[question.held].digest)
        return question.key(_digest(*known))

    def _files(self, question: Question) -> list[str]:
        """Digests of the files that a question names with words of its own; those of a number name none."""
        if all(map(_NUMBER.fullmatch, question.settings)):
            return []
        name = (_named(question), question.settings)
        try:
            return _kept(self._read, name, lambda: _files(with_settings(self.scenarios[name[0]], list(name[1]))))
        except PlanError:
            return []  # it will be refused, and no refusal is kept

    def __getstate__(self) -> dict[str, Any]:
        """Without what was made for single questions."""
        return {
            **self.__dict__,
            "_priced": OrderedDict(),
            "_sessions": OrderedDict(),
            "_read": OrderedDict(),
            "_first": None,
        }

    def __call__(self, question: Question) -> Answered:
        """The plan of a question as a row; whatever goes wrong with it is a row, too."""
        try:
            if question.held is not None:
                return Answered(row=self._held(question))
            plan = self._session(question).solve()
        except PlanError as error:
            return Answered(row=_refused(error))
        except MemoryError:
            told = Told(
                reference="out-of-memory", message="there was not enough memory", hint="fewer workers need less"
            )
            return Answered(row=without_plan(LOST, told))
        except Exception as error:
            message = f"this is a bug in plan: {type(error).__name__}"
            told = Told(reference="bug", message=message, hint="plan solve with the same flags writes a report")
            return Answered(row=without_plan("failed", told))
        return Answered(row=row_of(plan), plan=plan.to_json() if self.plans else None)

    def demand_keys(self, questions: Sequence[Question]) -> None:
        """Refuse at once what no question of a grid can have: a key that no scenario has, prices of no offer.

        Parameters
        ----------
        questions
            Tried one after the other until one can be asked, or is refused for something else.

        Raises
        ------
        InputError, UsageError
            As `plan solve` with the first question has it.
        """
        first: PlanError | None = None
        for question in questions[:MOST_TRIED]:
            try:
                with_settings(self.scenarios[_named(question)], list(question.settings))
                self._catalog(question)
                return
            except PlanError as error:
                if not {one.reference for one in error.problems} <= KEYS:
                    return
                first = first or error
        if first is not None:
            raise first

    def _held(self, question: Question) -> Row:
        """What the best plan of another catalog or day costs at the prices of a question."""
        assert question.held is not None
        before = replace(question, catalog=question.held[0], until=question.held[1], held=None)
        if self._first is None or self._first[0] != before:
            self._first = (before, self._session(before))  # days of one scenario follow each other
        cost = self._first[1].cost_at(self._catalog(question))
        if cost is None:
            return without_plan("stopped", Told(reference="no-proof", message="no plan is proven there", hint=""))
        return {**without_plan("feasible", None), "cost_microusd": cost, "cost_usd": cost / 1e6}

    def _session(self, question: Question) -> Session:
        scenario = self.scenarios[_named(question)]
        if question.settings:
            scenario = with_settings(scenario, list(question.settings))
        if scenario.hardware.catalog != self.held.scenario.hardware.catalog and not question.catalog:
            message = "the question names another catalog in its scenario, which is read once for all questions"
            raise UsageError.of("two-catalogs", message, hint="vary catalog=DIR, not hardware.catalog")
        if scenario.rates != self.held.scenario.rates and (question.prices or self.held.catalog.own_prices):
            message = "the question has rates of currencies of its own, but prices are read once for all questions"
            raise UsageError.of("two-rates", message, hint="write prices in USD, or ask in two sweeps")
        name = (question.catalog, question.until, question.prices)
        catalog = _kept(self._priced, name, lambda: self._catalog(question))
        # ways of a workload that did not change are those of a question at the same prices
        before = self._sessions.get(name, self.held)
        found = self.held.beside(scenario, catalog, known=before, seed=question.seed)
        self._sessions[name] = found
        self._sessions.move_to_end(name)
        if len(self._sessions) > KEPT:
            self._sessions.popitem(last=False)
        return found

    def _catalog(self, question: Question) -> Catalog:
        catalog = self.catalogs[question.catalog, question.until]
        for text in question.prices:
            catalog = replace(
                with_device_price(catalog, text, self.held.scenario.rates),
                own_prices=(*catalog.own_prices, f"--price {text}"),
            )
        return catalog


def _named(question: Question) -> Named:
    return question.scenario, question.case


def _kept(kept: OrderedDict[Any, Kept], name: Any, make: Callable[[], Kept]) -> Kept:
    """What is kept under a name, made where it is not there; what was not asked for longest goes."""
    found = kept.get(name)
    if found is None:
        found = kept[name] = make()
    kept.move_to_end(name)
    if len(kept) > KEPT:
        kept.popitem(last=False)
    return found


def _files(scenario: Scenario) -> list[str]:
    """Digests of what the files of a scenario hold: traffic and rates of fleets, shapes of models."""
    found = []
    for fleet in scenario.serving:
        for part in (fleet.traffic, fleet.rates):
            found += [sha256 for _, sha256 in part.files] if part is not None else []
    for workload in scenario.workloads:
        if workload.model is not None and workload.model.config is not None:
            found.append(_digest(repr(load_model(workload.model))))
    return found


def _catalog(held: Session, folder: str, until: str) -> Catalog:
    """Another catalog, or the session's at the prices of a day; prices of one's own stay on top."""
    own = OwnPrices.from_flags(held.catalog.own_prices, held.scenario.rates)
    if until and own.until:
        raise UsageError.of("two-dates", f"prices of which day? {own.until} and {until}", hint="leave --prices out")
    path = None if folder == DEFAULT else folder or held.catalog.named or None
    return load_priced(path, replace(own, until=until or own.until))


def row_of(plan: Plan) -> Row:
    """What a sweep keeps of a plan; of several futures what is expected, and that it is."""
    document: PlanDocument = plan.document
    summary, section, cost = document["summary"], document["uncertainty"], expected_microusd(document)
    if summary["cost_microusd"] is None or cost is None:
        told = None
        if document["status"] != "infeasible":
            messages = document["warnings"]
            told = Told(
                reference=document["status"], message=messages[-1] if messages else "no plan was found", hint=""
            )
        row = without_plan(document["status"], told)
        return {**row, "plan_sha256": document["sha256"]}
    rows: list[Any] = [row for one in document["workloads"] for row in one["allocations"]]
    finishes = [float(row["finish_hours"]) for row in rows if row.get("finish_hours") is not None]
    return {
        "status": document["status"],
        "cost_microusd": cost,
        "cost_usd": cost / 1e6,
        "bound_usd": (None if section["risk"] else section["bound_usd"]) if section else summary["bound_usd"],
        "devices": summary["devices"],
        "finish_hours": max(finishes, default=None),
        "decision": decision_of(document),
        "problem": None,
        "plan_sha256": document["sha256"],
        "warnings": [*document["warnings"], *([MEAN_OF_CASES.format(len(section["cases"]))] if section else [])],
    }


def decision_of(document: PlanDocument) -> str:
    """Workloads in the order of the plan, with their devices by name, and of whom they are had on which terms."""
    parts = []
    for workload in document["workloads"]:
        sellers: dict[str, set[str]] = {}
        for row in workload["allocations"]:
            terms = "" if row["price_model"] in ("on_demand", "owned") else f" {row['price_model']}"
            sellers.setdefault(str(row["device"]), set()).add(f"{row['provider']}{terms}")
        devices = [f"{device} ({', '.join(sorted(of))})" for device, of in sorted(sellers.items())]
        parts.append(f"{workload['name']}: {' + '.join(devices) or 'nothing'}")
    return "; ".join(parts)


def _refused(error: PlanError) -> Row:
    first = error.problems[0] if error.problems else None
    if first is None:
        return without_plan("failed", Told(reference="failed", message=str(error)[:500], hint=""))
    status = "stopped" if error.exit_code == 6 else "failed" if error.exit_code == 1 else "refused"
    return without_plan(status, Told(reference=first.reference, message=first.message[:500], hint=first.hint[:500]))


def _digest(*parts: Any) -> str:
    import hashlib

    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def _versions() -> dict[str, str]:
    """Of what answers come from besides the planner: other versions may decide ties otherwise."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("highspy", "numpy", "pulp", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


MOST = 10_000  # scenarios or catalogs


def compare_catalogs(
    scenarios: Sequence[StrPath],
    catalogs: Sequence[StrPath],
    scheduler: str | None = None,
    *,
    settings: Sequence[str] = (),
    case: str | None = None,
    prices: Iterable[str] = (),
    price: Iterable[str] = (),
    asked: dict[str, Any] | None = None,
    **how: Any,
) -> CatalogTable:
    """Every scenario solved on every catalog, and each held against the first catalog.

    Parameters
    ----------
    scenarios
        Files, or names of those that ship.
    catalogs
        Folders or frozen files, or "default" for the one that ships.
    scheduler
        As for `planner.sweep`.
    settings, case
        Of every scenario.
    prices, price
        Put on every catalog, as after ``--prices`` and ``--price``.
    asked
        Options of the session that solves: solver, gap, threads, seed, allow_suspect.
    how
        Arguments of `planner.sweep` that say where questions are answered: workers, journal, security, tell, over.

    Raises
    ------
    UsageError
        There is none of either, or one is named twice.
    InputError, StoppedError, OutputError
        As `planner.sweep`.
    """
    named = [("scenario", scenarios), ("case", () if case is None else (case,)), ("catalog", catalogs)]
    axes = tuple(_axis(name, values) for name, values in named if name != "case" or values)
    first, there = axes[0].texts[0], axes[-1].texts[0]
    scenario = load_scenario(first, settings=tuple(settings), case=case)
    catalog = load_priced(None if there == DEFAULT else there, OwnPrices.of(prices, price, scenario.rates))
    held = Session(scenario, catalog, **(asked or {}))
    found = sweep(held, Grid(axes=axes), scheduler, standing=False, **how)
    return CatalogTable(document=found.document, asked=found.asked, broken=found.broken)


def _axis(name: str, values: Sequence[StrPath]) -> Axis:
    texts = tuple(map(str, values))
    if not 1 <= len(texts) <= MOST:
        raise UsageError.of("out-of-range", f"{len(texts):,} of {name}", hint=f"from 1 to {MOST:,}")
    if len(set(texts)) < len(texts):
        raise UsageError.of("given-twice", f"a {name} is named twice", hint="name each once")
    return Axis(name=name, texts=texts)
