"""Why sizes of a layout that are fixed go together on no machine that may be used, and what to change.

What the model itself rules out is refused earlier (`planner.plan.pins.check_pins`), what memory or time rule out stands
in the ledger; between them lie machines, ranks and batches that do not add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from planner.candidates.layouts import SMALLEST_CONTEXT_CHUNK, laid_out, nearest_multiple, splits_tensors
from planner.candidates.ledger import Ledger
from planner.candidates.offers import Site, shape_cap, sites_of
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion
from planner.candidates.serving_layouts import LARGEST_SPAN, cache_splits
from planner.candidates.training_question import TrainingQuestion
from planner.errors import InputError
from planner.estimate.engines import CONTEXT_PARALLEL_ENGINES, no_split
from planner.estimate.frameworks import COUNTS_AS
from planner.estimate.serving_tiers import fleet_engine, no_drafts
from planner.estimate.software import SOFTWARE

Sizes = Mapping[str, Sequence[int]]
SIZES = ("tp", "pp", "dp", "ep", "cp")  # of a replica
LEAST = 1  # of a size that is left open
FEW_STEPS = 100  # of a batch that is advised


def why_nothing_fits(listed: Candidates, name: str) -> tuple[str, str]:
    """What of the layout of a workload goes together nowhere, and the way out beside the nearest layout; "" unknown."""
    question = listed.questions[name]
    try:
        sites = sites_of(listed.scenario, listed.catalog, Ledger(workload=name))
    except InputError:  # a price model on which nothing is sold: told elsewhere
        return "", ""
    reasons: Iterator[tuple[str, str]] = iter(())
    if isinstance(question, TrainingQuestion) and question.job.layout is not None and sites:
        reasons = _of_job(question, question.job.layout.sizes, sites)
    elif isinstance(question, ServingQuestion) and question.fleet.layout is not None and sites:
        reasons = _of_fleet(question, question.fleet.layout.sizes, sites)
    return next(reasons, ("", ""))


def _of_job(question: TrainingQuestion, sizes: Sizes, sites: Sequence[Site]) -> Iterator[tuple[str, str]]:
    able = [site for site in sites if "training" in site.device.uses] or sites
    yield from _of_software(question, sizes)
    least, widest = min(sizes.get("tp", (LEAST,))), max(site.domain for site in able)
    if least > widest:
        stages, whole = least // widest, least % widest == 0 and "pp" not in sizes
        yield _beyond(least, widest), f"tp{widest} pp{stages} is on as many devices" if whole else ""
    elif not any(laid_out(np.asarray(sizes.get("tp", (LEAST,))), site.domain).any() for site in able):
        yield f"{least} tensor ranks leave devices of a machine over", ""
    short = question.rules.sequence_length < 2 * SMALLEST_CONTEXT_CHUNK  # which nobody splits unless it is fixed
    if {"ep", "dp", "tp"} <= sizes.keys() and (short or "cp" in sizes):
        ranks = [(ep, dp * tp * cp) for ep, dp, tp, cp in _every(sizes, "ep", "dp", "tp", "cp")]
        if all(among % ep for ep, among in ranks):
            ep, among = ranks[0]
            yield f"the {among} ranks of a stage (dp·cp·tp) do not share out over ep {ep}", ""
    yield from _of_batch(question, sizes)
    devices = min(dp * tp * pp * cp for dp, tp, pp, cp in _every(sizes, "dp", "tp", "pp", "cp"))
    most = max(
        site.shape.devices * (shape_cap(question.scenario, site) if site.inter_node_bytes_per_s is not None else 1)
        for site in able
    )
    if devices > most:
        yield f"it takes {devices} devices at least, and {most} may be had for one job", ""


def _of_software(question: TrainingQuestion, sizes: Sizes) -> Iterator[tuple[str, str]]:
    """Sizes that a program does not have whose layouts are all that is planned of it: TRL's tensors, say."""
    software = SOFTWARE.get(question.job.framework or "")
    if software is None or software.name not in COUNTS_AS:
        return
    has = {"tp": software.beside_tensors, "pp": software.under_pipeline, "vpp": software.virtual,
           "cp": software.context, "ep": software.experts}  # fmt: skip
    for size, able in has.items():
        if not able and min(sizes.get(size, (LEAST,))) > 1:
            yield f"{software.program} has no layouts with {size} above 1", ""


def _of_batch(question: TrainingQuestion, sizes: Sizes) -> Iterator[tuple[str, str]]:
    """Data ranks and micro-batches of which no batch that is allowed is a multiple."""
    low, high = question.rules.batch_range
    steps = []
    for dp, micro, vpp, pp in _every(sizes, "dp", "micro_batch", "vpp", "pp"):
        step = dp * micro * (pp if vpp > 1 else 1)
        steps.append(step)
        asked = np.asarray(question.rules.batches, dtype=np.float64)
        if nearest_multiple(asked, np.full(len(asked), step), (low, high)).any():
            return
    step = min(steps)
    named = " and ".join(f"{one} {sizes[one][0]}" for one in ("dp", "micro_batch", "pp", "vpp") if one in sizes)
    first, last = f"{np.ceil(low):,.0f}", f"{np.floor(high):,.0f}"
    within = first if first == last else f"{first} to {last}"
    near = max(round(float(question.rules.batches[0]) / step), 1) * step * question.rules.sequence_length
    tokens = question.job.tokens * question.job.epochs
    yield (
        f"with {named} a global batch is a multiple of {step:,} sequences, and none is within the {within} "
        "of its global_batch",
        f"or write global_batch: {near} tokens" if near * FEW_STEPS <= tokens else "",
    )


def _of_fleet(question: ServingQuestion, sizes: Sizes, sites: Sequence[Site]) -> Iterator[tuple[str, str]]:
    able = [site for site in sites if "serving" in site.device.uses] or sites
    engine, arch = fleet_engine(question.fleet), question.arch
    refused = [
        no_split(
            engine,
            dict(zip(SIZES, split)),
            machine_devices=site.shape.devices,
            joined_devices=site.domain,
            vendor=site.device.vendor,
            family=arch.family,
            kv_cache=question.fleet.kv_cache,
        )[0]
        for site in able
        for split in _every(sizes, *SIZES)
    ]
    if all(refused):
        yield refused[0], ""
    drafted = no_drafts(engine, question.fleet, arch.family, min(sizes.get("pp", (LEAST,))))
    if drafted:
        yield drafted, ""
    if (shared := min(sizes.get("cp", (LEAST,)))) > 1:
        yield from _of_cache(question, sizes, shared, engine)
    if "ep" in sizes and {"tp", "dp"} <= sizes.keys():
        ranks = {tp * dp for tp, dp in _every(sizes, "tp", "dp")}
        if not {1, *ranks} & set(sizes["ep"]):
            yield f"experts are spread over all {min(ranks)} ranks of a stage (tp·dp), or over one", ""
    known = [site for site in able if site.inter_node_bytes_per_s is not None]
    degrees = sizes.get("tp", (LEAST,))
    if known and not any(tp <= site.domain or tp % site.domain == 0 for tp in degrees for site in known):
        yield f"{min(degrees)} tensor ranks fill no whole machines", ""
    devices = sorted({tp * pp * dp for tp, pp, dp in _every(sizes, "tp", "pp", "dp")})
    largest = max(site.shape.devices for site in able)
    if devices[0] > largest and not known:
        yield (
            f"{devices[0]} devices are more than the {largest} of a machine, and no network between them is known",
            ("assume_inter_node says how fast it is"),
        )
    spans = [count / site.shape.devices for count in devices for site in able]
    joined = [count / site.shape.devices for count in devices for site in known]
    whole = any(span.is_integer() and span <= LARGEST_SPAN for span in joined)
    if not whole and not any(span <= 1 for span in spans):
        if min(spans) > LARGEST_SPAN:
            yield f"{devices[0]} devices are more than {LARGEST_SPAN} machines of {largest}, the most of a replica", ""
        else:
            yield f"{devices[0]} devices are more than a machine of {largest} has, and fill no whole ones", ""


def _of_cache(question: ServingQuestion, sizes: Sizes, cp: int, engine: str) -> Iterator[tuple[str, str]]:
    """Tensor ranks share out the tokens of a cache where they would hold copies of its heads."""
    if engine not in CONTEXT_PARALLEL_ENGINES:
        yield f"{engine} does not share out the tokens of a cache (cp)", ""
        return
    degrees = sizes.get("tp", tuple(2**power for power in range(11)))
    able = [tp for tp in degrees if splits_tensors(question.arch, tp) and cp in cache_splits(question.arch, tp)]
    if "tp" not in sizes and able:
        heads = f"tensor ranks that would hold copies of its heads, {min(able)} of them at least"
        yield f"cp {cp} shares out a cache among {heads}", f"or write layout: {{tp: {min(able)}, cp: {cp}}}"
    elif not able:
        copies = max(cache_splits(question.arch, tp)[-1] for tp in degrees if splits_tensors(question.arch, tp))
        many = f"{copies} at most" if copies > 1 else "and none would"
        yield f"cp {cp} shares out a cache among tensor ranks that would hold copies of its heads, {many}", ""


def _beyond(least: int, widest: int) -> str:
    return (
        f"tensor ranks of a job stay within the fast links of a machine, {widest} devices at most of what may be used: "
        f"tp {least} is beyond"
    )


def _every(sizes: Sizes, *names: str) -> Iterable[tuple[int, ...]]:
    return product(*(sizes.get(name, (LEAST,)) for name in names))
