"""What the reference of scenarios says beside the keys: how to write one, quantities, what each mapping is for."""

from __future__ import annotations

HEAD = """\
# Scenarios

<!-- made by `make docs` from planner/scenario and the scenarios; change those -->"""

INTRODUCTION = (
    """\
A scenario is one YAML file that asks the question: what to train and serve, by when and how fast, on what
hardware, within which limits. `plan init` writes one with comments; `plan schema` prints the JSON Schema that
editors complete and check with, and the first line below tells them where it is. Shipped examples are in
[scenarios](../scenarios).""",
    """\
```yaml
# yaml-language-server: $schema=../planner/scenario/scenario.schema.json
schema: plan/v1
name: smallest
training:
  - {name: pretrain, model: llama-3.1-8b, tokens: 20B, deadline: 30 days}
```""",
    """\
Unknown keys, doubled keys and numbers without their unit are errors, with line, column and a way out, all of
them at once. Nothing is half-read: a key that is not acted on is refused. What you leave out takes its default,
and the plan lists every default that it rests on under "Assumed".""",
    """\
Every key can be changed from the command line, `--set training.pretrain.deadline='14 days'`, where a workload
is named by its name; `overrides:` gives such changes a name, `scenarios:` combines them, and `--case NAME`
picks one. `include:` reads other files of the same folder first; what they say holds where this file is silent.""",
)

QUANTITIES = (
    ("time", "`90 s`, `10 min`, `12 h`, `30 days`, `2 weeks`, `1 month` (730 h)"),
    (
        "tokens, parameters",
        "`8192`, `64k`, `4M tokens`, `200B`, `2T`: k, M, B, T as they stand; `K`, `b`, `m` are refused",
    ),
    ("memory, data", "`80 GB` is 80·10⁹ bytes, `80 GiB` is 80·2³⁰ bytes"),
    ("rates of data", "`100 Gbit/s`, `2 GB/s`"),
    ("shares", "`30 %` or `0.3`"),
    (
        "money and prices",
        "`$60000`, `$2.49/h`, `$500/day`, `$900/month`, `$14000/year`; with a rate in `currency` also `€2.30/h`, "
        "`2.30 EUR/h`",
    ),
    ("power, mass", "`120 kW`, `5 t`"),
    ("counts", "bare numbers; also `64k`"),
    ("dates", "`2026-12-01`, or `2026-12-01 08:00`"),
    ("names and patterns", '`h100-sxm-80gb`, `"h100-*"`, `"us-*"`: quote what has a star'),
)

# mapping of the schema -> heading, what it is for
MAPPINGS = {
    "Scenario": (
        "The file",
        "It needs a `schema`, a `name` and at least one workload, in `training` or `serving`.",
    ),
    "TrainingJob": (
        "Training jobs",
        "One item a job. The planner tries every legal layout (data, tensor, pipeline, virtual-pipeline, context and "
        "expert parallelism, sharding, recomputation, micro-batch) on every allowed offer and count that may meet the "
        "deadline; narrow it only where you know better.",
    ),
    "ModelRef": (
        "Models",
        "A model is a preset's name or one of these. With a bare size only the rules of thumb apply.",
    ),
    "Batch": ("Batches", "A range, in tokens or in sequences; a bare `4M tokens` is a range of one value."),
    "Stack": ("Software stacks", "The software choices that change the memory of a training step."),
    "Failures": (
        "Failures",
        "How often devices fail and what it costs to go on. `failures: none` spends all wall-clock time on steps.",
    ),
    "Lora": ("Adapters", "Low-rank adapters on frozen weights: gradients and optimizer states of the adapters alone."),
    "LayoutPin": (
        "Layouts of jobs",
        "Sizes and policies that are fixed, or lists to choose from; in words, `tp2 pp1 zero-1 mb2`, too. A layout "
        "that cannot be is refused with the nearest that works; `plan explain SCENARIO --layout tp2` prices one "
        "beside the plan.",
    ),
    "ReplicaPin": (
        "Layouts of replicas",
        "Sizes of each replica that are fixed, or lists to choose from; in words, `tp8 pp2`, too. With `tp` or `pp` a "
        "replica may span machines over any network: its stages, or whole machines of its tensor ranks (`tp: 16`).",
    ),
    "StepTime": (
        "Measured steps",
        "A run under way tells its own speed; with `progress` the rest of it is planned anew. A bare time is "
        "short for `{measured: time}`.",
    ),
    "GivenLayout": ("Layouts of measured steps", "What is not given is taken to be the fastest layout that fits."),
    "Data": (
        "Data",
        "Where training data lie. Running elsewhere costs the transfer out and the storage of a copy.",
    ),
    "ServingFleet": (
        "Serving fleets",
        "One item a fleet. What it is asked for comes from `qpm` or `users` and lengths, a histogram, or a trace; what "
        "a replica can do is predicted, or read from the throughput or profile that you measured.",
    ),
    "Lengths": ("Lengths", "A bare number is a mean; a list is a histogram."),
    "Bucket": ("Classes of lengths", "One class of a histogram."),
    "Slo": (
        "Latency targets",
        "Percentiles at the peak, held at the upper end of the error band (`confidence`).",
    ),
    "EngineLimits": ("Engine limits", "As you start the engine; the defaults are those of the engine for the device."),
    "Speculative": ("Speculative decoding", "A draft proposes, the model checks."),
    "Autoscaling": ("Autoscaling", "Replicas that come and go with the load profile."),
    "Hardware": (
        "Hardware",
        'What may be used, on which terms. Everything else is filtered out and counted under "Not considered".',
    ),
    "Owned": (
        "Owned hardware",
        "Machines that are there: their running cost counts, what they cost anyway (`sunk`) does not. One `price`, or "
        "its parts in place of it: `capital`, `power`, `staff`, each of one shape; the plan tells what of the cost is "
        "which.",
    ),
    "Capital": (
        "Capital of owned hardware",
        "(price − residual) / (years × 8760 h) is paid for every hour that it is used; hours in which it stands idle "
        "are in no plan. Not beside `sunk`: what was paid counts once.",
    ),
    "Energy": ("Power of owned hardware", "watts × pue × price of a kWh is paid for every hour that it is used."),
    "Quota": (
        "Quotas",
        "At least one of `max_devices` and `max_shapes`; what is left out matches everything that is rented, by the "
        "hour or under contracts, your own among them. What you own counts against no quota.",
    ),
    "BetweenZones": ("Networks between zones", "For a job that may be mixed over zones; without it, it is not."),
    "Discount": ("Discounts", "What is left out matches everything."),
    "Contract": (
        "Contracts",
        "A price that was negotiated or read elsewhere, used like an offer of the catalog.",
    ),
    "Flex": ("Flex starts", "Capacity that comes when it comes."),
    "Spot": ("Spot", "Needed where spot offers are allowed: no price list says how often shapes are taken away."),
    "Limits": ("Limits", "They hold for the whole plan; `max_devices`, `power` and `spend` at the peak."),
    "SiteLimit": ("Limits of sites", "At least a place and a limit."),
    "Uncertainty": (
        "What may happen",
        "Each case is a scenario with a plan of its own, under common contracts.",
    ),
    "Risk": ("Risk", "Mean cost and the mean of the worst cases, weighed."),
    "ReportOptions": ("Reports", "They change how a budget is told, never the plan."),
}
