"""Tasks of MLPerf Inference with language models: lengths of their data sets, and latencies that a run must keep."""

from __future__ import annotations

from functools import lru_cache

from planner.carriers import dataclass
from planner.csvtable import Columns, kinds_of, read_table
from planner.validate.rows import HOUSE

TASKS_TABLE = "mlperf_tasks.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of rounds v3.1 to v5.1; latencies are 99th percentiles [s], None where the rules have none."""

    task: str
    rounds: str
    input_tokens: float
    output_tokens: float
    variation: float  # coefficient of variation of both lengths (assumed)
    beams: int
    requests: int  # of the data set, or as many as an offline run sends at least
    server_ttft_s: float | None = None
    server_tpot_s: float | None = None
    server_latency_s: float | None = None  # of the whole answer
    interactive_ttft_s: float | None = None
    interactive_tpot_s: float | None = None
    source: str
    lengths_source: str
    as_of: str
    status: str

    def limits(self, scenario: str) -> tuple[float, float] | None:
        """First token and time per token that a scenario of the task must keep [s]; None where it has no such run."""
        text = scenario.lower()
        if "offline" in text:
            return (float("inf"), float("inf"))
        if "interactive" in text:
            pair = (self.interactive_ttft_s, self.interactive_tpot_s)
        elif self.server_latency_s:  # an answer as a whole: what its tokens may take
            pair = (self.server_latency_s, self.server_latency_s / self.output_tokens)
        else:
            pair = (self.server_ttft_s, self.server_tpot_s)
        return (pair[0], pair[1]) if pair[0] and pair[1] else None


@lru_cache(maxsize=1)
def mlperf_tasks() -> tuple[Task, ...]:
    """Every task of the table."""
    columns = Columns(kinds=kinds_of(Task), required=("task", "input_tokens", "output_tokens", "source", "as_of"))
    return tuple(Task(**cells) for _, cells in read_table(HOUSE / TASKS_TABLE, columns))


def task_of(model: str | None) -> Task | None:
    """The task of a model as results name it (llama2-70b-99.9, llama3.1-8b-edge); None for one not in the table."""
    name = (model or "").lower()
    found = [task for task in mlperf_tasks() if name == task.task or name.startswith(f"{task.task}-")]
    return max(found, key=lambda task: len(task.task), default=None)


def unknown_task(model: str | None, scenario: str) -> str | None:
    """Why a run of MLPerf cannot be told: no known rule has its task, or its scenario; None when it can be."""
    task = task_of(model)
    if task is None:
        known = ", ".join(one.task for one in mlperf_tasks())
        return f"MLPerf task '{model}' is not known, and so neither are its lengths and limits; known: {known}"
    if task.limits(scenario) is None:
        return f"MLPerf task {task.task} has no limits for '{scenario}'"
    return None
