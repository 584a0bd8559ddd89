"""The chapters of the model: which rooms of `planner/equations` each tells, and what they are for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One page: a file name, a title, an introduction, and the rooms in the order of reading."""

    page: str
    title: str
    introduction: str
    rooms: tuple[str, ...]


_SIZE_AND_WORK = """\
Everything begins with two counts: how many weights a model has, and how many operations one token costs. Both
are sums over the matrices of the model's layers, read from its configuration, so that grouped-query attention,
latent attention, experts, sliding windows and linear attention are counted as they are and not as a GPT of the
same size. The closed forms of the papers check the sums, in the tests (`tests/published/equations`).

Two conventions matter when figures of different sources are compared. *Model* FLOPs are what the mathematics
needs, *hardware* FLOPs add what recomputation repeats; and attention is counted in full or causally. Tokens per
second mean the same in every convention, so predictions are held against those."""

_TRAINING_MEMORY = """\
A training device holds model states (weights, gradients, optimizer), activations that wait for the backward
pass, the logits of the loss, weights gathered for the layer in use, communication buffers, and what allocator
and driver keep for themselves. A layout fits when the sum on its *fullest* rank, taken to the upper end of the
error band, is no more than what the device can hand out.

Activations are counted matrix by matrix, because optimisers of memory act on single matrices: flash attention
does away with the scores, selective recomputation with the attention core, full recomputation with all but the
layer's input. The closed forms of Korthikanti et al. are the published answer for GPT layers and check the
sums, in the tests. How many micro-batches are alive at once is a matter of the pipeline's schedule: [training
time](training-time.md)."""

_TRAINING_TIME = """\
A step is the sum of its pieces: matrix products at a rate that falls for small tiles and short inner sizes,
attention, memory traffic of everything else, and the communication that computation does not hide. Rates are
those of the vendor times a fitted efficiency of the device's family; which rows they were fitted on, and how
far they are off on rows that they were not fitted on, is told in [validation](../validation.md).

Collective operations follow the alpha-beta model: a start-up time for each step of the algorithm and a time for
each byte. A pipeline idles while it fills and drains; the more virtual stages, the less. Where a job runs on
unlike machines, each group takes the share of the batch that lets all groups finish together."""

_RUNS = """\
A run of weeks is longer than its steps. Devices fail at a rate that grows with their number, each failure loses
the work since the last checkpoint and the time to restart, and checkpoints themselves stop the job. The
interval between checkpoints is the one that loses least unless the scenario gives one. On spot machines,
preemptions are chance, so that deadlines are held against a quantile of the finish, not its mean.

What is rented by the hour is billed in whole increments of the provider, boot and set-up before the run included, and
for some minimum; the run itself begins when the machines are ready, and deadlines are counted from then."""

_SERVING_MEMORY = """\
A serving device holds its share of the weights in their storage format, the engine's workspace, and, in what is
left, the cache of keys and values. How many sequences fit decides the throughput of a replica at least as much
as its arithmetic does. The cache is counted by the kind of each layer: grouped heads, latent vectors, windows
that forget, states of constant size."""

_SERVING_SPEED = """\
One forward step of an engine reads the weights that its tokens touch and the cache of its sequences,
multiplies, exchanges between ranks, and launches kernels from a host that has a speed of its own. The step
time, and how many sequences share it, give the time per output token; prefill of new prompts takes its share of
the steps. The closed-loop equations describe benchmarks, where a fixed number of clients waits for its answers,
so that published measurements can be compared with predictions on equal terms."""

_SERVING_FLEETS = """\
Users feel percentiles, not means. Requests arrive at random, in bursts or not, with prompts and answers of
random length; they wait for the engine's next step, for prefill, and for a free place. From these waits come
the percentiles of the time to the first token and of the time per token that latency targets name, and from the
highest rate that still meets them the number of replicas, with spares. A discrete-event simulation of the
chosen replicas (`plan solve --simulate`) checks the formulas on your own traffic."""

_RULES_AND_BANDS = """\
The rules of thumb are what one would write on a napkin. They are printed beside every plan as a cross-check,
and `estimator: rule` plans by them alone; their docstrings say what each silently assumes. The bands say how
far a prediction may be off: quantiles of measured over predicted, on rows that were not fitted to. Deadlines,
memory and latency targets are held at the `confidence` that the scenario asks for."""


CHAPTERS = (
    Chapter(
        page="size-and-work",
        title="Size and work: parameters and FLOPs",
        introduction=_SIZE_AND_WORK,
        rooms=(
            "parameters",
            "flops",
            "kinds_of_attention",
        ),
    ),
    Chapter(
        page="training-memory",
        title="Training memory: what one device holds",
        introduction=_TRAINING_MEMORY,
        rooms=(
            "recipes",
            "memory",
            "device_memory",
            "activations",
            "layer_parts",
        ),
    ),
    Chapter(
        page="training-time",
        title="Training time: one step on many devices",
        introduction=_TRAINING_TIME,
        rooms=(
            "step_time",
            "communication",
            "pipeline",
            "mixed",
        ),
    ),
    Chapter(
        page="runs",
        title="Whole runs: failures, checkpoints, scale",
        introduction=_RUNS,
        rooms=(
            "reliability",
            "preemption",
            "machine_costs",
        ),
    ),
    Chapter(
        page="serving-memory",
        title="Serving memory: weights and cache",
        introduction=_SERVING_MEMORY,
        rooms=(
            "serving_memory",
            "kv_cache",
        ),
    ),
    Chapter(
        page="serving-speed",
        title="Serving speed: one replica",
        introduction=_SERVING_SPEED,
        rooms=(
            "serving",
            "serving_load",
        ),
    ),
    Chapter(
        page="serving-fleets",
        title="Serving fleets: waiting, percentiles, replicas",
        introduction=_SERVING_FLEETS,
        rooms=(
            "lengths",
            "queueing",
            "replicas",
        ),
    ),
    Chapter(
        page="rules-and-bands",
        title="Rules of thumb and error bands",
        introduction=_RULES_AND_BANDS,
        rooms=(
            "rules",
            "bands",
        ),
    ),
)
