"""Time of a training run by the rule tier: the founding rule plus what each split costs.

Per optimizer step a rank makes m passes over T = b s / c tokens. What the penalties assume:

* tensor parallel: per layer two all-reduces of 2 T h bytes forward, two backward, two more when a
  full recomputation repeats the forward pass; nothing of it hides behind compute;
* context parallel: the ring of keys and values forward, twice that backward; it hides behind the
  attention core, whose time is its share of the model FLOPs;
* expert parallel: per MoE layer two all-to-alls forward, two backward, two when recomputed; exposed;
* data parallel: gradients are reduced (ZeRO: scattered, weights gathered) once a step behind the last
  backward pass, two thirds of a pass, with ZeRO-2 without a pipeline scattered behind each; ZeRO-3
  without a pipeline gathers twice and scatters once in every pass, behind that pass; only what is
  left over counts;
* pipeline: the bubble, the fullest stage when layers do not divide, and transfers between stages,
  which an interleaved schedule hides as far as there is compute beside them.

Contention of communication with compute is left out; calibrated step times are another tier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture, core_forward_flop_per_token
from planner.carriers import dataclass
from planner.equations import communication as com
from planner.equations import flops, pipeline, rules
from planner.equations import memory as mem
from planner.equations.activations import EXPERT_IMBALANCE
from planner.equations.step_time import exposed_s
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, Layout, expert_tensor_degree, shares_nothing
from planner.estimate.machine import Group, Machine
from planner.estimate.terms import Terms
from planner.estimate.training_spec import TrainingSpec

Values = NDArray[np.float64]

BACKWARD_SHARE = 2.0 / 3.0  # of a pass: the backward makes two of three products
TERMS = (
    *("compute", "recompute", "tensor_parallel", "context_parallel", "expert_parallel"),
    *("data_parallel", "pipeline_bubble", "ragged_batch", "large_batch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Arrays that the penalties share. Times are of the whole run unless the name says per pass."""

    arch: Architecture
    spec: TrainingSpec
    layout: Layout  # floats
    machine: Machine
    micro_batches: Values
    passes: Values  # passes of a rank in the whole run: steps x m
    steps: Values
    compute_s: Values
    tokens: Values  # T of one pass of a rank
    layers: Values  # of a mean stage

    @property
    def pass_s(self) -> Values:
        """Compute of one pass of one rank."""
        return self.compute_s / self.passes


def rule_time(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Terms:
    """Wall seconds of a run, term by term.

    Parameters
    ----------
    arch
        The model.
    spec
        The job, from its first token on; no split costs anything where the share of the peak was measured.
    layout
        How it is split: one layout or many.
    machine
        Its sustained rate, and its links.
    """
    run = _run(arch, spec, layout, machine)
    zero = np.zeros(np.shape(run.compute_s))
    terms = dict.fromkeys(TERMS, zero)
    terms["compute"] = run.compute_s
    if not spec.measured_mfu:
        terms["recompute"] = run.compute_s * _recompute_share(run)
        terms["tensor_parallel"] = _tensor_parallel(run)
        terms["context_parallel"] = _context_parallel(run)
        terms["expert_parallel"] = _expert_parallel(run)
        terms["data_parallel"] = _data_parallel(run)
        busy = run.compute_s + terms["recompute"] + terms["tensor_parallel"]
        terms["pipeline_bubble"] = _pipeline(run, busy + terms["context_parallel"] + terms["expert_parallel"])
        slots = run.micro_batches * run.layout.dp * run.layout.micro_batch
        terms["ragged_batch"] = run.compute_s * (slots / run.layout.global_batch - 1.0)
    if spec.critical_batch_tokens is not None:
        batch_tokens = rules.tokens_per_step(run.layout.global_batch, spec.sequence_length)
        factor = rules.critical_batch_token_factor(batch_tokens, spec.critical_batch_tokens)
        terms["large_batch"] = np.asarray(sum(terms[name] for name in TERMS) * (factor - 1.0))
    return Terms(terms)


def _run(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> _Run:
    lay = layout.as_floats()
    hours = rules.training_hours(
        spec.tokens, arch.active_parameters, spec.epochs, lay.devices, machine.sustained_flop_per_s
    )
    per_step = rules.tokens_per_step(lay.global_batch, spec.sequence_length)
    steps = np.asarray(rules.optimizer_steps(spec.tokens, spec.epochs, per_step))
    m = lay.micro_batches
    return _Run(
        arch=arch,
        spec=spec,
        layout=lay,
        machine=machine,
        micro_batches=m,
        passes=steps * m,
        steps=steps,
        compute_s=np.asarray(hours) * 3600.0,
        tokens=lay.micro_batch * (spec.sequence_length / lay.cp),
        layers=float(arch.layer_count) / lay.pp,
    )


def attention_share(arch: Architecture, sequence_length: float, *, eager: bool) -> float:
    """Forward FLOPs of the attention cores over the model FLOPs of a token; eager computes masked scores too.

    Parameters
    ----------
    arch
        The model.
    sequence_length
        [tokens]
    eager
        Whether attention computes scores that are masked.
    """
    forward = 0.0
    for group in arch.layers:
        forward += group.count * float(core_forward_flop_per_token(group, sequence_length, causal=not eager))
    return forward / float(flops.model_flop_per_token(arch.matmul_parameters, forward)) if forward else 0.0


def _recompute_share(run: _Run) -> Values:
    """Extra compute: 30 % for full; selective repeats the attention core, which flash repeats anyway."""
    level = run.layout.recompute
    eager = run.spec.attention == "eager"
    selective = attention_share(run.arch, run.spec.sequence_length, eager=True) if eager else 0.0
    full = np.asarray(rules.full_recompute_time_factor()) - 1.0
    return np.where(level == RECOMPUTE_FULL, full, np.where(level == RECOMPUTE_SELECTIVE, selective, 0.0))


def _forward_passes(run: _Run) -> Values:
    """Passes that communicate like a forward one: forward and backward, one more when recomputed."""
    return np.where(run.layout.recompute == RECOMPUTE_FULL, 3.0, 2.0)


def _value_bytes(spec: TrainingSpec) -> float:
    """Bytes of a weight or activation on the wire."""
    return 4.0 if spec.precision == "fp32" else 2.0


def _known(run: _Run, degree: Values, time: Values) -> Values:
    """Infinite where a model of unknown shape is split in a way that its shape decides."""
    return time if run.arch.layers else np.where(degree > 1, np.inf, 0.0)


def _tensor_parallel(run: _Run) -> Values:
    t = run.layout.tp
    if np.all(t == 1):
        return np.zeros(np.shape(t))
    message = pipeline.stage_transfer_bytes(run.tokens, run.arch.hidden_size, 1, _value_bytes(run.spec))
    one = Group(machine=run.machine, ranks=t, stride=1.0).all_reduce_s(message)
    return _known(run, t, run.passes * run.layers * 2.0 * _forward_passes(run) * one)


def _context_parallel(run: _Run) -> Values:
    c = run.layout.cp
    total = np.zeros(np.shape(run.compute_s))
    if np.all(c == 1):
        return total
    for group in run.arch.layers:
        heads = group.query_heads if group.attention == "mla" else group.kv_heads  # MLA sends whole keys and values
        message = com.context_ring_bytes(run.tokens, heads, group.head_size, group.value_head_size, run.layout.tp, c)
        ring = Group(machine=run.machine, ranks=c, stride=run.layout.tp).neighbour_s(message)
        total = total + (group.count / run.layout.pp) * 3.0 * ring  # forward once, backward twice
    attention_s = run.pass_s * 3.0 * attention_share(run.arch, run.spec.sequence_length, eager=False)
    return _known(run, c, run.passes * np.maximum(total - attention_s, 0.0))


def _expert_parallel(run: _Run) -> Values:
    ep = run.layout.ep
    total = np.zeros(np.shape(run.compute_s))
    if np.all(ep == 1):
        return total
    ranks = Group(machine=run.machine, ranks=ep, stride=1.0)
    for group in run.arch.layers:
        if group.experts:
            routed = run.tokens / run.layout.tp * group.experts_per_token * EXPERT_IMBALANCE
            size = _value_bytes(run.spec)
            exchange = ranks.all_to_all_s(pipeline.stage_transfer_bytes(routed, run.arch.hidden_size, 1, size))
            total = total + (group.count / run.layout.pp) * 2.0 * _forward_passes(run) * exchange
    return _known(run, ep, run.passes * total)


def _data_parallel(run: _Run) -> Values:
    lay, spec = run.layout, run.spec
    if shares_nothing(lay):
        return np.zeros(np.shape(run.compute_s))
    recipe = mem.state_recipe(spec.optimizer, spec.precision, spec.framework)
    gather = scatter = reduce = np.asarray(0.0)
    for group, parameters in _shard_groups(run):
        gather = gather + group.all_gather_s(parameters * _value_bytes(spec))
        scatter = scatter + group.all_gather_s(parameters * recipe.gradient)
        reduce = reduce + group.all_reduce_s(parameters * recipe.gradient)
    stage = mem.effective_sharding_stage(lay.sharding, lay.pp, run.micro_batches)
    once = np.where(stage == 0, reduce, gather + scatter)
    hides = run.pass_s * _free_share(run)
    exposed = run.steps * np.maximum(once - BACKWARD_SHARE * hides, 0.0)
    before = (run.passes - run.steps) * np.maximum(scatter - BACKWARD_SHARE * hides, 0.0)  # micro-batches but the last
    exposed = exposed + np.where(stage == 2, before, 0.0)
    per_pass = run.passes * np.maximum(2.0 * gather + scatter - hides, 0.0)
    return np.where((stage == 3) & (lay.pp == 1), per_pass, exposed)


def _shard_groups(run: _Run) -> list[tuple[Group, Values]]:
    """Ranks that share dense weights, and those that share experts, with the parameters of a mean rank."""
    lay = run.layout
    expert = float(sum(group.count * group.expert_parameters for group in run.arch.layers))
    dense = Group(machine=run.machine, ranks=lay.dp * lay.cp, stride=lay.tp)
    result = [(dense, (run.arch.parameters - expert) / (lay.tp * lay.pp))]
    if expert:
        et = expert_tensor_degree(lay.tp, lay.ep)
        ranks = mem.expert_shard_devices(lay.dp, lay.cp, lay.tp, lay.ep, et)
        shared = Group(machine=run.machine, ranks=ranks, stride=lay.ep * et)
        result.append((shared, expert / (lay.ep * et * lay.pp)))
    return result


def _free_share(run: _Run) -> Values:
    """Share of a pass that context parallelism does not already use to hide its ring."""
    share = 3.0 * attention_share(run.arch, run.spec.sequence_length, eager=False)
    return np.where(run.layout.cp > 1, 1.0 - share, 1.0)


def _pipeline(run: _Run, busy_s: Values) -> Values:
    """Bubble, fullest stage and transfers of all steps."""
    lay = run.layout
    p, v = lay.pp, lay.vpp
    if np.all(p == 1):
        return np.zeros(np.shape(busy_s))
    layers = max(float(run.arch.layer_count), 1.0)
    fullest = mem.layers_of_fullest_stage(layers, p)
    uneven = pipeline.uneven_stage_fraction(layers, fullest, p) if run.arch.layers else 0.0
    stride = lay.devices / p  # stages are farthest apart
    transfer = Group(machine=run.machine, ranks=p, stride=stride).neighbour_s(
        pipeline.stage_transfer_bytes(run.tokens, run.arch.hidden_size, lay.tp, _value_bytes(run.spec))
    )
    mean = busy_s / run.passes
    exposed = exposed_s(2.0 * v * transfer, np.where(v > 1, mean, 0.0))  # interleaved parts send beside compute
    whole = pipeline.pipeline_time_s(run.micro_batches, p, v, mean * (1.0 + uneven), mean, exposed)
    return np.where(p > 1, run.steps * whole - busy_s, 0.0)
