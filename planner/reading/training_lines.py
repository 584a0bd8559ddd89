"""What a line of a trainer's log says: steps and their times, throughput, memory; one function a trainer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from itertools import pairwise
from statistics import median

from planner.carriers import dataclass
from planner.reading.measured_points import number_of

_MOST_STEPS = 5_000_000
_GIB = 2.0**30
_WHOLE_S = 20.0  # between clocks that tell whole seconds, so that their error is 5 % at most
_MOST_BARS = 64  # progress bars of different lengths
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
    clocked: bool = False  # step times are differences of clocks
    mean_s: float = 0.0  # of a step, where the log tells the run's time only
    bars: dict[int, list[tuple[int, float]]] = field(default_factory=dict)  # length -> steps done, seconds since
    micro: list[tuple[int, int, float]] = field(default_factory=list)  # of micro-batches: number, steps done, seconds
    tokens: float = 0.0  # of an optimizer step, where the log says
    all_tokens_per_s: float = 0.0  # of all devices, by the line above that of one
    generating: list[float] = field(default_factory=list)  # seconds of a step in which answers are made (verl)
    _before: tuple[int, float] | None = None
    _logged: int = 0

    def step(self, number: int, seconds: float | None = None) -> None:
        """One logged step; one that comes again means that the run began again from a checkpoint."""
        self.lines += 1
        if number < self._logged and number in self.seconds:
            self.restarts += 1
        self._logged = number
        self.last = max(number, 0) if number < self.last and number not in self.seconds else max(number, self.last)
        if seconds is not None and math.isfinite(seconds) and 0 < seconds < 1e7 and len(self.seconds) < _MOST_STEPS:
            self.seconds[number] = seconds

    def tick(self, number: int, clock_s: float, least_s: float = 0.0) -> None:
        """A clock beside a step: the steps since the last one took their share of the time between.

        Parameters
        ----------
        number
            Of the step.
        clock_s
            When it was done, from any beginning.  [s]
        least_s
            Clocks that are nearer to each other are passed over.  [s]
        """
        steps, passed_s = (number - self._before[0], clock_s - self._before[1]) if self._before else (0, 0.0)
        if steps > 0 and 0 < passed_s < least_s:
            return
        if steps > 0 and passed_s > 0 and len(self.seconds) < _MOST_STEPS:
            self.seconds[number] = passed_s / steps
            self.clocked = True
        self._before = (number, clock_s)

    def settle(self) -> None:
        """Times of micro-batches, or of a progress bar: of the one as long as the run, else of the longest."""
        if self.tokens and self.sequence:
            self.batch = self.batch or self.tokens / self.sequence
        ends = [later for earlier, later in pairwise(self.micro) if later[1] > earlier[1]]  # of optimizer steps
        if len(ends) > 1:
            (first, before, _), (last, after, _) = ends[0], ends[-1]
            if after > before and last > first:
                self.mean_s = median(seconds for *_, seconds in self.micro) * (last - first) / (after - before)
        length = self.of if self.of in self.bars else max(self.bars, key=lambda each: self.bars[each][-1][1], default=0)
        for number, clock_s in self.bars.get(length, ()) if not self.seconds else ():
            self.tick(number, clock_s, _WHOLE_S)
            self.last, self.of = max(self.last, number), length

    def wrong(self, line: int) -> None:
        """A line of a step that cannot be read."""
        self.bad += 1
        self.first_bad = self.first_bad or line


_MEGATRON = re.compile(r"iteration\s+(\d+)/\s*(\d+)\s*\|(?! lr:)")
_MEGATRON_TIME = re.compile(r"elapsed time per iteration \((m?s)\):\s*([0-9.eE+-]+)(?:/[0-9.eE+-]+)?")
_FLOPS = re.compile(
    r"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPS_per_GPU|tflops|TFLOPs|TFLOP/s/device|approx flops per GPU"
    r"|GPU utilization):\s*([0-9.,]+(?:[eE][+-]?[0-9]+)?)"
)
_BATCH = re.compile(r"global[ _]batch[ _]size:\s*([0-9.]+)(?![\w.])")  # 1.02K is rounded
_MEMORY = re.compile(r"max allocated:\s*([0-9.]+)\s*\|")
_DEEPSPEED = re.compile(
    r"(?:global_step=(\d+)|(?<!\d)\d{1,12}/(\d{1,12})),\s*"  # or the epoch and the steps in it
    r"(?:RunningAvgSamplesPerSec|SamplesPerSec)=([0-9.eE+-]+)"
)
_PIPELINE = re.compile(r"steps: (\d+) loss: \S+ iter time \(s\): ([0-9.eE+-]+) samples/sec: ([0-9.eE+-]+)")
_MAXMEM = re.compile(r"MaxMemAllocated=([0-9.]+)\s*GB")
_MAXTEXT = re.compile(r"completed step: (\d+), seconds: ([0-9.eE+-]+)")
_NEMO = re.compile(r"train_step_timing in s[:=] ?([0-9.eE+-]+)")
_NEMO_STEP = re.compile(r"global_step[:=] ?(\d+)")
_TITAN = re.compile(r"step:\s*(\d+)\s+loss:")
_TITAN_RUN = re.compile(r"global batch size (\d{1,9}),.{0,80}?sequence length (\d{1,9}), total steps (\d{1,12})")
_TPS = re.compile(
    r"(?:\b[tw]ps|Tokens/s/device|throughput/device/(?:tokens_per_sec(?:ond)?|TPS)|tokens per GPU \(tokens/s/GPU\)"
    r"|tokens_per_second_per_gpu')[:=]\s*'?([0-9.,eE+-]+)"
)
_TITAN_MEMORY = re.compile(r"memory:\s*([0-9.]+)GiB")
_NEMO_MEMORY = re.compile(r"max_memory_(?:allocated|reserved): (\d+)")
_TITAN_SECONDS = re.compile(r"(?:elapsed_time_per_step|step_time|time_end_to_end\(s\)):\s*([0-9.eE+-]+)")
_CLOCK = re.compile(r"\b(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{3,6}))?")
_TRAINER = re.compile(r"'(?:loss|train_runtime)': '?[0-9.].{0,2000}?'epoch': ")
_TRAINER_RUN = re.compile(r"'train_runtime': '?([0-9.]+).{0,400}?'train_steps_per_second': '?([0-9.]+)")
_TRAINER_HEAD = re.compile(r"Total ((?:optimization )?steps|(?:train )?batch size)[^=|]{0,80}= ([0-9,]{1,15})")
_TRAINER_MEMORY = re.compile(r"(?i)'memory/max_(?:mem_|memory_)?allocated ?(?:\(gib\))?': '?([0-9.]+)")
_BAR = re.compile(r"\s*\d{1,3}%\|[^|]*\| ?(\d{1,12})/(\d{1,12}) \[(?:(\d{1,5}):)?(\d\d):(\d\d)<")
_NANO = re.compile(r"^iter (\d+): loss \S+, time ([0-9.]+)(ms|s)\b")
_NANO_TOKENS = re.compile(r"^tokens per iteration will be: ([0-9,]{1,20})")
_NANO_SETTING = re.compile(r"^(?:Overriding: )?(block_size|max_iters) = (\d{1,12})\b")
_LIT = re.compile(r"\biter (\d+) step (\d+)(?: \||:) loss .{0,200}?iter time: ([0-9.]+) ?ms")
_KARPATHY = re.compile(r"^step +(\d+)(?:/(\d+))? .{0,200}?\bdt: ?([0-9.]+) ?(ms|s)\b")  # build-nanogpt and nanochat
_C = re.compile(r"^step +(\d+)/(\d+) \| .{0,200}?\| ([0-9.]+) ms \|")  # llm.c
_SPEEDRUN = re.compile(r"^step:(\d+)/(\d+) .{0,200}?step_avg:([0-9.]+)ms")  # modded-nanogpt
_NUMBER = r":(?:np\.float\d\d\()?([0-9.eE+-]+)"  # numpy 2 prints its name
_VERL = re.compile(r"\bstep:(\d{1,12}) - [A-Za-z_]")
_VERL_TIME = re.compile(r"\b(?:timing_s/step|perf/time_per_step|train/time\(s\))" + _NUMBER)
_VERL_MORE = {
    "generating": re.compile(r"\btiming_s/gen" + _NUMBER),
    "tokens": re.compile(r"\bperf/total_num_tokens" + _NUMBER),
    "of a device": re.compile(r"\bperf/throughput" + _NUMBER),
    "memory": re.compile(r"\bperf/max_memory_allocated_gb" + _NUMBER),
}
_TUNE = re.compile(r"^Step (\d+) \| .{0,2000}?\bloss:")
_TUNE_BAR = re.compile(
    r"^\d+\|(\d{1,12})\|Loss: [^:]{1,40}: *\d{1,3}%\|[^|]*\| ?\d+/\d+ \[(?:(\d{1,5}):)?(\d\d):(\d\d)<"
)
# a record a step of LLaMA-Factory (trainer_log.jsonl) and of ms-swift (logging.jsonl), with the time since the begin
_RECORD = re.compile(r'"(?:current_steps": (\d+), "total_steps": |global_step/max_steps": "(\d+)/)(\d+)')
_SINCE = re.compile(r'"elapsed_time": "(?:(\d+)(?: days?, |d ))?(?:(\d+)(?::|h ))?(?:(\d+)(?::|m ))?(\d+)s?"')
_TRON = re.compile(r"\biteration: (\d+) / (\d+) \| .{0,200}?\belapsed_time_per_iteration_ms: ([0-9.]+)([KM]?)")
_OF_MANY = re.compile(r"\[(?:batch|step)=(\d+)/(\d+)")  # Composer and OLMo: figures stand in the lines below
_PACE = re.compile(r"\bthroughput/(?:batches_per_sec(?:ond)?|device/(?:batches_per_second|BPS))[:=] ?([0-9.]+)")
_ALL_TOKENS = re.compile(r"\bthroughput/(device/)?tokens_per_sec[:=] ?([0-9.]+)")  # of all devices, and of one
_FAIRSEQ = re.compile(r"\bups(?:=|\": \")[0-9.]+\b.{0,1000}?\bnum_updates(?:=|\": \")(\d{1,12})\b")
_FAIRSEQ_MORE = re.compile(r"\b(wpb|bsz|wall)(?:=|\": \")([0-9.]{1,20})")
_THOUSANDS = {"": 1.0, "K": 1e3, "M": 1e6}
_SEQUENCE = re.compile(r"(?:^|\s)(?:--seq-length[ =]|seq_length \.+ |--max_seq_len )(\d{1,9})\b")
_WORLD = re.compile(
    r"(?:using world size: |distributed_world_size'?[=:] ?|world_size \.+ |Num GPUs(?: used)? = |\b[Nn]um_devices: "
    r"|registered\. Starting with )"
    r"(\d{1,7})\b"
)
_MESH = re.compile(
    r"Building (?:\d-D )?device mesh with (?:\[[^\]]{0,200}\], \[([0-9, ]{1,80})\]|parallelism: (.{1,200}))"
)
_SIDES = re.compile(r"\b(?:pp|dp|dp_replicate|dp_shard|cp|tp)=(\d{1,6})\b")  # experts lie within these
MARKS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "Megatron-LM": (_MEGATRON, "lines such as iteration 10/ 1000 | elapsed time per iteration (ms)"),
    "DeepSpeed": (_DEEPSPEED, "lines with SamplesPerSec"),
    "MaxText": (_MAXTEXT, "lines with completed step: N, seconds:"),
    "NeMo": (_NEMO, "lines with train_step_timing in s:"),
    "torchtitan": (_TITAN, "lines with step: N loss: and tps:"),
    "Hugging Face Trainer": (_TRAINER, "lines with 'loss': and 'epoch':"),
    "DeepSpeed's pipelines": (_PIPELINE, "lines with iter time (s): and samples/sec:"),
    "nanoGPT": (re.compile(_NANO.pattern, re.M), "lines as iter 10: loss 4.2, time 250.00ms"),
    "nanochat": (re.compile(_KARPATHY.pattern, re.M), "lines as step 10/1000 | loss: 4.2 | dt: 250.00ms"),
    "LitGPT": (_LIT, "lines with iter N step N and iter time:"),
    "llm.c": (re.compile(_C.pattern, re.M), "lines as step 10/1000 | loss 4.2 | … | 250.00 ms |"),
    "modded-nanogpt": (re.compile(_SPEEDRUN.pattern, re.M), "lines with step:N/N and step_avg:"),
    "LLaMA-Factory or ms-swift": (_RECORD, 'records with "current_steps" or "global_step/max_steps"'),
    "nanotron": (_TRON, "lines with iteration: N / N | … elapsed_time_per_iteration_ms:"),
    "Composer or OLMo": (
        re.compile(rf"{_OF_MANY.pattern}[^|]{{0,4000}}?{_PACE.pattern}"),
        "[batch=N/N] or [step=N/N] above throughput/batches_per_sec",
    ),
    "verl": (
        re.compile(rf"{_VERL.pattern}.{{0,8000}}?{_VERL_TIME.pattern}"),
        "lines as step:10 - … timing_s/step:61.2 - …",
    ),
    "fairseq": (_FAIRSEQ, "lines with ups=, num_updates= and wall="),
    "torchtune": (re.compile(f"{_TUNE.pattern}|{_TUNE_BAR.pattern}", re.M), "lines as Step 10 | loss:1.2"),
}
_EARLY = (
    "seq",
    "world",
    "Num GPUs",
    "um_devices",
    "Starting with",
    "device mesh",
    "iteration ",
    "SamplesPerSec",
    "completed step",
    "train_step_timing",
    "step:",
    "max allocated",
    "iter time",
    "GPU utilization",
    "total steps",
    "'epoch'",
    "Total ",
    "%|",
    "iter ",
    "iteration will",
    "block_size",
    "max_iters",
    "step ",
    "step_avg",
    "_steps",
    "iteration: ",
    "[batch=",
    "[step=",
    "throughput/",
    "Step ",
    "num_updates",
)


def _megatron(line: str, steps: Steps, number: int) -> bool:
    found = False
    for part in _MEGATRON.finditer(line):  # ranks may share a line
        rest = line[part.end() : part.end() + 2000]
        if "elapsed time" not in rest:  # another trainer's line
            continue
        seconds = _MEGATRON_TIME.search(rest)
        value = number_of(seconds.group(2)) if seconds else None
        if value is None or seconds is None:
            steps.wrong(number)
            continue
        steps.of = max(steps.of, int(part.group(2)[:12]))
        steps.step(int(part.group(1)[:12]), value / 1e3 if seconds.group(1) == "ms" else value)
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
    step = int((match.group(1) or match.group(2))[:12])
    steps.step(step)
    if match.group(1):  # of an epoch it counts micro-batches
        _tick(line, steps, step)
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
    step = int(match.group(1)[:12])
    steps.step(step, number_of(seconds.group(1)) if seconds else None)
    if seconds is None:
        _tick(line, steps, step)
    return True


def _verl(line: str, steps: Steps, number: int) -> bool:
    """verl: all figures of a step stand in one line; how many devices there are follows from three of them."""
    match, seconds = _VERL.search(line), _VERL_TIME.search(line)
    if match is None or seconds is None:
        return False
    value = number_of(seconds.group(1))
    if value is None:
        steps.wrong(number)
        return False
    steps.step(int(match.group(1)), value)
    told = {
        key: number_of(found.group(1)) or 0.0 for key, pattern in _VERL_MORE.items() if (found := pattern.search(line))
    }
    for key, into in (("generating", steps.generating), ("of a device", steps.tokens_per_s)):
        if told.get(key):
            into.append(told[key])
    if told.get("of a device") and told.get("tokens") and value > 0:
        steps.devices = round(told["tokens"] / (value * told["of a device"])) or steps.devices
    steps.memory_bytes = max(steps.memory_bytes, told.get("memory", 0.0) * _GIB)
    return True


def _tick(line: str, steps: Steps, step: int) -> None:
    """The clock of a line that tells no step time."""
    clock = _CLOCK.search(line)
    if clock is None:
        return
    day, time, part = clock.groups()
    try:
        clock_s = datetime.fromisoformat(f"{day}T{time}.{part or '0'}+00:00").timestamp()
    except ValueError:
        return
    steps.tick(step, clock_s, 0.0 if part else _WHOLE_S)


def _trainer(line: str, steps: Steps, number: int) -> bool:
    """Hugging Face Trainer and what builds on it: progress bars, records of losses, the run's time at its end."""
    bar = _BAR.match(line)
    if bar:
        done, length, hours, minutes, seconds = (int(each or 0) for each in bar.groups())
        if length in steps.bars or len(steps.bars) < _MOST_BARS:
            marks = steps.bars.setdefault(length, [])
            if len(marks) < _MOST_STEPS:
                marks.append((done, 3600.0 * hours + 60.0 * minutes + seconds))
    for head in _TRAINER_HEAD.finditer(line):  # Unsloth has both in one line
        value = int(head.group(2).replace(",", "") or 0)
        steps.of, steps.batch = (value, steps.batch) if head.group(1).endswith("steps") else (steps.of, value)
    run = _TRAINER_RUN.search(line)
    runtime, pace = (number_of(run.group(1)), number_of(run.group(2))) if run else (None, None)
    if runtime and pace:
        steps.mean_s = runtime / steps.of if steps.of else 1 / pace
        steps.last = steps.of or steps.last
    if _TRAINER.search(line) is None:
        return False
    steps.lines += 1
    return True


def _nano(line: str, steps: Steps, number: int) -> bool:
    setting, tokens, match = (pattern.match(line) for pattern in (_NANO_SETTING, _NANO_TOKENS, _NANO))
    if setting and setting.group(1) == "block_size":
        steps.sequence = int(setting.group(2))
    elif setting:
        steps.of = int(setting.group(2))
    if tokens:
        steps.tokens = float(tokens.group(1).replace(",", "") or 0)
    if match is None:
        return False
    value = number_of(match.group(2))
    steps.step(int(match.group(1)[:12]), value and value * (1e-3 if match.group(3) == "ms" else 1.0))
    return True


def _karpathy(line: str, steps: Steps, number: int) -> bool:
    match = _KARPATHY.match(line)
    if match is None:
        return False
    value = number_of(match.group(3))
    steps.of = max(steps.of, int((match.group(2) or "0")[:12]))
    steps.step(int(match.group(1)[:12]), value and value * (1e-3 if match.group(4) == "ms" else 1.0))
    return True


def _lit(line: str, steps: Steps, number: int) -> bool:
    """LitGPT times micro-batches, of which an optimizer step has several."""
    match = _LIT.search(line)
    if match is None:
        return False
    seconds, step = number_of(match.group(3)), int(match.group(2)[:12])
    steps.step(step)
    if seconds and len(steps.micro) < _MOST_STEPS:
        steps.micro.append((int(match.group(1)[:12]), step, seconds / 1e3))
    return True


def _in_ms(pattern: re.Pattern[str]) -> Callable[[str, Steps, int], bool]:
    def take(line: str, steps: Steps, number: int) -> bool:
        match = pattern.match(line)
        if match is None:
            return False
        value = number_of(match.group(3))
        steps.of = max(steps.of, int(match.group(2)[:12]))
        steps.step(int(match.group(1)[:12]), value and value / 1e3)
        return True

    return take


def _tune(line: str, steps: Steps, number: int) -> bool:
    """torchtune: a line of figures a step in its file, a bar for each epoch where it runs."""
    bar, match = _TUNE_BAR.match(line), _TUNE.match(line)
    if bar:
        step, *clock = (int(each or 0) for each in bar.groups())
        steps.step(step)
        steps.tick(step, 3600.0 * clock[0] + 60.0 * clock[1] + clock[2], _WHOLE_S)
    elif match:
        steps.step(int(match.group(1)[:12]))
        speed, memory = (re.search(rf"\b{name}:([0-9.eE+-]+)", line)
                         for name in ("tokens_per_second_per_gpu", "peak_memory_alloc"))  # fmt: skip
        if speed and (value := number_of(speed.group(1))) and len(steps.tokens_per_s) < _MOST_STEPS:
            steps.tokens_per_s.append(value)
        if memory:
            steps.memory_bytes = max(steps.memory_bytes, (number_of(memory.group(1)) or 0.0) * _GIB)
    return bool(bar or match)


def _record(line: str, steps: Steps, number: int) -> bool:
    match, since = _RECORD.search(line), _SINCE.search(line)
    if match is None:
        return False
    step = int((match.group(1) or match.group(2))[:12])
    steps.of = max(steps.of, int(match.group(3)[:12]))
    steps.step(step)
    if since:
        days, hours, minutes, seconds = (float(each or 0) for each in since.groups())
        steps.tick(step, ((days * 24 + hours) * 60 + minutes) * 60 + seconds, _WHOLE_S)
    return True


def _tron(line: str, steps: Steps, number: int) -> bool:
    match = _TRON.search(line)
    if match is None:
        return False
    value = number_of(match.group(3))
    steps.of = max(steps.of, int(match.group(2)[:12]))
    steps.step(int(match.group(1)[:12]), value and value * _THOUSANDS[match.group(4)] / 1e3)
    return True


def _of_many(line: str, steps: Steps, number: int) -> bool:
    match, pace = _OF_MANY.search(line), _PACE.search(line)
    if match:
        steps.of = max(steps.of, int(match.group(2)[:12]))
        steps.step(int(match.group(1)[:12]))
    elif pace and steps.last and (value := number_of(pace.group(1))):
        steps.step(steps.last, 1 / value)
        steps.lines -= 1  # the line above was counted
    return bool(match or pace)


def _fairseq(line: str, steps: Steps, number: int) -> bool:
    """fairseq: tokens and sentences of an update, and whole seconds since the run began."""
    match = _FAIRSEQ.search(line)
    if match is None:
        return False
    step, told = int(match.group(1)), {name: number_of(value) for name, value in _FAIRSEQ_MORE.findall(line)}
    steps.step(step)
    steps.tokens, steps.batch = told.get("wpb") or steps.tokens, told.get("bsz") or steps.batch
    if (wall_s := told.get("wall")) is not None:
        steps.tick(step, wall_s, _WHOLE_S)
    return True


_TAKES = (_verl, _megatron, _timed(_MAXTEXT), _nemo, _deepspeed, _timed(_PIPELINE), _titan, _nano, _karpathy, _lit,
          _in_ms(_C), _in_ms(_SPEEDRUN), _tune, _record, _tron, _of_many, _fairseq,
          _trainer)  # fmt: skip


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


def breaks_off(line: str) -> bool:
    """Whether a line without an end stops within a figure of a step, of which nobody knows how it went on."""
    told = []
    for some in (line, line.rstrip("0123456789.eE+-")):
        steps = Steps()
        take_line(some, steps, 0)
        rates = steps.samples_per_s, steps.tokens_per_s, steps.tflops
        told.append((steps.lines, steps.seconds, steps.mean_s, steps.micro, *rates))
    return told[0] != told[1]


def plain_text(text: str) -> str:
    """Without colours of a terminal."""
    return _ANSI.sub("", text)


def _more(line: str, steps: Steps) -> None:
    """Throughput, memory and batch of a line."""
    for pattern, into in ((_FLOPS, steps.tflops), (_TPS, steps.tokens_per_s)):
        match = pattern.search(line) if "num_updates" not in line else None  # wps of fairseq are of all devices
        value = number_of(match.group(1).rstrip(",")) if match else None
        if value is not None and value > 0 and len(into) < _MOST_STEPS:
            into.append(value)
    for key, pattern in (("sequence", _SEQUENCE), ("devices", _WORLD)):
        found = pattern.search(line)
        if found:
            setattr(steps, key, int(found.group(1)))
    if mesh := _MESH.search(line):
        sides = mesh.group(1).split(",") if mesh.group(1) else _SIDES.findall(mesh.group(2))
        steps.devices = math.prod(int(side) for side in sides if side.strip()) or steps.devices
    if tokens := _ALL_TOKENS.search(line):
        value = number_of(tokens.group(2)) or 0.0
        if tokens.group(1) and steps.all_tokens_per_s and value:
            steps.devices = round(steps.all_tokens_per_s / value)
        steps.all_tokens_per_s = 0.0 if tokens.group(1) else value
    head = _TITAN_RUN.search(line)
    if head:
        steps.batch, steps.sequence, steps.of = float(head.group(1)), int(head.group(2)), int(head.group(3))
    pipeline = _PIPELINE.search(line)
    if pipeline:
        steps.samples_per_s.append(number_of(pipeline.group(3)) or 0.0)
    batch = _BATCH.search(line)
    if batch:
        steps.batch = number_of(batch.group(1)) or steps.batch
    for pattern, unit in ((_MEMORY, 2.0**20), (_TITAN_MEMORY, _GIB), (_NEMO_MEMORY, 1.0),
                          (_TRAINER_MEMORY, _GIB)):  # fmt: skip
        for match in pattern.finditer(line):
            steps.memory_bytes = max(steps.memory_bytes, (number_of(match.group(1)) or 0.0) * unit)
