"""What a line of a trainer's log says: steps and their times, throughput, memory; one function a trainer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field

from planner.carriers import dataclass
from planner.reading.points import number_of

_MOST_STEPS = 5_000_000
_GIB = 2.0**30
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(slots=True, kw_only=True)
class Steps:
    """Steps of one run, as far as they are logged: number -> seconds, and what else each line says."""

    seconds: dict[int, float] = field(default_factory=dict)
    of: int = 0  # steps in all, where the log says
    batch: float = 0.0  # sequences of an optimizer step
    sequence: int = 0  # tokens of one, where the log says
    devices: int = 0
    tflops: list[float] = field(default_factory=list)  # [1e12/s] of a device
    tokens_per_s: list[float] = field(default_factory=list)  # of a device
    memory_bytes: float = 0.0  # most of a device
    samples_per_s: list[float] = field(default_factory=list)
    last: int = 0
    restarts: int = 0
    tool: str = ""
    lines: int = 0  # that say something about a step
    bad: int = 0
    first_bad: int = 0

    def step(self, number: int, seconds: float | None = None) -> None:
        """One logged step; one that comes again means that the run began again from a checkpoint."""
        self.lines += 1
        if number <= self.last and number in self.seconds and self.last - number >= 1:
            self.restarts += 1
        self.last = max(number, 0) if number < self.last and number not in self.seconds else max(number, self.last)
        if seconds is not None and math.isfinite(seconds) and 0 < seconds < 1e7 and len(self.seconds) < _MOST_STEPS:
            self.seconds[number] = seconds

    def wrong(self, line: int) -> None:
        """A line of a step that cannot be read."""
        self.bad += 1
        self.first_bad = self.first_bad or line


_MEGATRON = re.compile(r"iteration\s+(\d+)/\s*(\d+)\s*\|(?! lr:)")
_MEGATRON_MS = re.compile(r"elapsed time per iteration \(ms\):\s*([0-9.eE+-]+)(?:/[0-9.eE+-]+)?")
_FLOPS = re.compile(r"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPS_per_GPU|tflops|TFLOP/s/device):\s*([0-9.,eE+-]+)")
_BATCH = re.compile(r"global[ _]batch[ _]size:\s*([0-9.]+)")
_MEMORY = re.compile(r"max allocated:\s*([0-9.]+)\s*\|")
_DEEPSPEED = re.compile(
    r"(?:global_step=(\d+)|(?<!\d)(\d{1,12})/\d{1,12}),\s*"
    r"(?:RunningAvgSamplesPerSec|SamplesPerSec)=([0-9.eE+-]+)"
)
_MAXMEM = re.compile(r"MaxMemAllocated=([0-9.]+)\s*GB")
_MAXTEXT = re.compile(r"completed step: (\d+), seconds: ([0-9.eE+-]+)")
_NEMO = re.compile(r"train_step_timing in s: ([0-9.eE+-]+)")
_NEMO_STEP = re.compile(r"global_step: (\d+)")
_TITAN = re.compile(r"step:\s*(\d+)\s+loss:")
_TPS = re.compile(r"(?:tps|Tokens/s/device):\s*([0-9.,eE+-]+)")
_TITAN_MEMORY = re.compile(r"memory:\s*([0-9.]+)GiB")
_NEMO_MEMORY = re.compile(r"max_memory_(?:allocated|reserved): (\d+)")
_TITAN_SECONDS = re.compile(r"(?:elapsed_time_per_step|step_time|time_end_to_end\(s\)):\s*([0-9.eE+-]+)")
_SEQUENCE = re.compile(r"(?:^|\s)(?:--seq-length[ =]|seq_length \.+ |--max_seq_len )(\d{1,9})\b")
_WORLD = re.compile(r"(?:using world size: |world_size \.+ )(\d{1,7})\b")
MARKS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "Megatron-LM": (_MEGATRON, "lines such as iteration 10/ 1000 | elapsed time per iteration (ms)"),
    "DeepSpeed": (_DEEPSPEED, "lines with SamplesPerSec"),
    "MaxText": (_MAXTEXT, "lines with completed step: N, seconds:"),
    "NeMo": (_NEMO, "lines with train_step_timing in s:"),
    "torchtitan": (_TITAN, "lines with step: N loss: and tps:"),
}
_EARLY = (
    "seq",
    "world",
    "iteration ",
    "SamplesPerSec",
    "completed step",
    "train_step_timing",
    "step:",
    "max allocated",
)


def _megatron(line: str, steps: Steps, number: int) -> bool:
    found = False
    for part in _MEGATRON.finditer(line):  # ranks may share a line
        rest = line[part.end() : part.end() + 2000]
        if "elapsed time" not in rest:  # another trainer's line
            continue
        seconds = _MEGATRON_MS.search(rest)
        value = number_of(seconds.group(1)) if seconds else None
        if value is None:
            steps.wrong(number)
            continue
        steps.of = max(steps.of, int(part.group(2)[:12]))
        steps.step(int(part.group(1)[:12]), value / 1e3)
        found = True
    return found


def _deepspeed(line: str, steps: Steps, number: int) -> bool:
    match = _DEEPSPEED.search(line)
    if match is None:
        return False
    current = re.search(r"CurrSamplesPerSec=([0-9.eE+-]+)", line)
    value = number_of(current.group(1) if current else match.group(3))
    if value is None:
        steps.wrong(number)
        return False
    steps.step(int((match.group(1) or match.group(2))[:12]))
    steps.samples_per_s.append(value)
    memory = _MAXMEM.search(line)
    if memory:
        steps.memory_bytes = max(steps.memory_bytes, (number_of(memory.group(1)) or 0.0) * _GIB)
    return True


def _timed(pattern: re.Pattern[str]) -> Callable[[str, Steps, int], bool]:
    def take(line: str, steps: Steps, number: int) -> bool:
        match = pattern.search(line)
        if match is None:
            return False
        value = number_of(match.group(2))
        if value is None:
            steps.wrong(number)
            return False
        steps.step(int(match.group(1)[:12]), value)
        return True

    return take


def _nemo(line: str, steps: Steps, number: int) -> bool:
    match = _NEMO.search(line)
    if match is None:
        return False
    step, value = _NEMO_STEP.search(line), number_of(match.group(1))
    if value is None:
        steps.wrong(number)
        return False
    steps.step(int(step.group(1)[:12]) if step else steps.last + 1, value)
    total = re.search(r"iteration (\d+)/(\d+)", line)
    if total and step and total.group(1) == step.group(1):  # else it counts the steps of an epoch
        steps.of = max(steps.of, int(total.group(2)[:12]) + 1)
    return True


def _titan(line: str, steps: Steps, number: int) -> bool:
    match = _TITAN.search(line)
    if match is None:
        return False
    seconds = _TITAN_SECONDS.search(line)
    steps.step(int(match.group(1)[:12]), number_of(seconds.group(1)) if seconds else None)
    return True


_TAKES = (_megatron, _timed(_MAXTEXT), _nemo, _deepspeed, _titan)


def says_something(line: str) -> bool:
    """Whether a line may say something of a run: a quick look before the patterns."""
    return any(word in line for word in _EARLY)


def take_line(line: str, steps: Steps, number: int) -> None:
    """What a line says of a run, added to its steps.

    Parameters
    ----------
    line
        As `plain_text` leaves it.
    number
        Of the line in its file.
    """
    _more(line, steps)
    any(take(line, steps, number) for take in _TAKES)


def plain_text(text: str) -> str:
    """Without colours of a terminal."""
    return _ANSI.sub("", text)


def _more(line: str, steps: Steps) -> None:
    """Throughput, memory and batch of a line."""
    for pattern, into in ((_FLOPS, steps.tflops), (_TPS, steps.tokens_per_s)):
        match = pattern.search(line)
        value = number_of(match.group(1).rstrip(",")) if match else None
        if value is not None and value > 0 and len(into) < _MOST_STEPS:
            into.append(value)
    for key, pattern in (("sequence", _SEQUENCE), ("devices", _WORLD)):
        found = pattern.search(line)
        if found:
            setattr(steps, key, int(found.group(1)))
    batch = _BATCH.search(line)
    if batch:
        steps.batch = number_of(batch.group(1)) or steps.batch
    for pattern, unit in ((_MEMORY, 2.0**20), (_TITAN_MEMORY, _GIB), (_NEMO_MEMORY, 1.0)):
        for match in pattern.finditer(line):
            steps.memory_bytes = max(steps.memory_bytes, (number_of(match.group(1)) or 0.0) * unit)
