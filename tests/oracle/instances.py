"""Random small scenarios with catalogs of their own, as text: what a user would write.

Three devices, a handful of offers, two or three workloads, and limits drawn around what the
workloads need, so that about half of the instances are infeasible and a joint limit often binds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

DEVICES = """\
schema: catalog/devices/v1
vendor: nvidia
defaults: {as_of: 2026-11-21, status: user, frameworks: [pytorch], uses: [training, serving]}
devices:
"""
DEVICE = """\
  - id: %(id)s
    kind: gpu
    family: ampere
    aliases: []
    memory: {label: %(gib)d GB, capacity: %(gib)d GiB, bandwidth: %(bandwidth)d GB/s, type: HBM}
    peak_dense: {fp32: 20 TFLOP/s, fp16: %(peak)d TFLOP/s, bf16: %(peak)d TFLOP/s}
    links:
      scale_up: {name: link, one_way_all: %(link)d GB/s, one_way_pair: %(link)d GB/s, pattern: switched, max_devices: 8}
      host: {name: pcie, one_way: 31 GB/s}
    power: {tdp: %(tdp)d W}
    source: [random instance]
"""
RULE = """\
schema: catalog/rule/v1
defaults: {as_of: 2026-11-21, status: user}
error:
  {device: A100, runs: 23, median: 18.7 %, mean: 20.0 %, max: 43 %, bias: 0.9 %,
   elsewhere: 20 % to 40 %, source: random instance}
families:
  ampere: {mfu: 40 %, derivation: random instance, source: random instance}
"""
TRAINING = """\
schema: catalog/training/v1
defaults: {as_of: 2026-11-21, status: user, source: random instance}
families:
  ampere:
    constants: {gemm: 0.75, memory: 0.8, host_s: 0.0007}
    time_band: {p10: 0.86, p50: 1.01, p90: 1.2, rows: 9, sources: 3, median_error: 0.1, mean_error: 0.1, p90_error: 0.2}
    expert_time_band: {p10: 0.8, p50: 1, p90: 1.5, rows: 9, sources: 3,
      median_error: 0.2, mean_error: 0.2, p90_error: 0.4}
    memory_band: {p10: 0.9, p50: 1, p90: 1.08, rows: 9, sources: 1,
      median_error: 0.04, mean_error: 0.05, p90_error: 0.1}
    by_source: {}
    validity: {}
"""
SHAPE_COLUMNS = (
    "shape,kind,device,devices,compute_share,memory_bytes_per_device,vcpus,host_memory_gib,scale_up_devices,"
    "inter_node_gbit_per_s_per_device,network_kind,network_status,cluster_required,max_shapes_per_job,"
    "as_of,status,source,network_source,note"
)
OFFER_COLUMNS = (
    "offer,provider,shape,region,zone,country,price_model,price_usd_per_hour_per_shape,max_shapes,"
    "as_of,status,quality,source,note"
)


@dataclass(frozen=True)
class Instance:
    """A scenario file and the hardware folder that it is solved with."""

    seed: int
    scenario: Path
    hardware: Path


def write_instance(seed: int, folder: Path) -> Instance:
    """Write instance `seed` below a folder."""
    rng = random.Random(seed)
    hardware = folder / "hardware"
    shapes = _write_catalog(rng, hardware)
    scenario = folder / "scenario.yaml"
    scenario.write_text(_scenario(rng, shapes))
    return Instance(seed=seed, scenario=scenario, hardware=hardware)


def _write_catalog(rng: random.Random, hardware: Path) -> list[str]:
    """Write the folder; ids of the shapes in it."""
    identifiers = []
    for name in ("devices", "shapes", "offers", "calibration"):
        (hardware / name).mkdir(parents=True)
    (hardware / "catalog.yaml").write_text("schema: catalog/v1\nname: random\nas_of: 2026-11-21\ncurrency: USD\n")
    (hardware / "calibration" / "rule.yaml").write_text(RULE)
    (hardware / "calibration" / "training.yaml").write_text(TRAINING)
    specs = [
        {
            "id": f"dev-{letter}",
            "gib": rng.choice([24, 40, 48, 80]),
            "bandwidth": rng.choice([600, 900, 1500, 2000]),
            "peak": rng.choice([70, 125, 181, 312]),
            "link": rng.choice([32, 150, 300]),
            "tdp": rng.choice([150, 300, 400]),
        }
        for letter in "abc"
    ]
    (hardware / "devices" / "all.yaml").write_text(DEVICES + "".join(DEVICE % spec for spec in specs))
    shapes, offers = [SHAPE_COLUMNS], {"north": [OFFER_COLUMNS], "south": [OFFER_COLUMNS]}
    for spec in specs:
        for count in rng.sample([1, 2, 4], 2):
            shape = f"{spec['id']}x{count}"
            rate = rng.choice(["50", "100", ""])
            status = "seen" if rate else ""
            shapes.append(
                f"{shape},instance,{spec['id']},{count},,,,,{count},{rate},,{status},no,,2026-11-21,user,random,random,"
            )
            for provider in rng.sample(["north", "south"], rng.choice([1, 1, 2])):
                price = round(count * spec["peak"] / 100 * rng.uniform(0.4, 1.6), 6)
                offers[provider].append(
                    f"{provider}:r1:{shape}:on_demand,{provider},{shape},r1,,US,on_demand,{price},,2026-11-21,user,,random,"
                )
    for provider, rows in offers.items():
        own = [row for row in shapes[1:] if any(f",{row.split(',')[0]}," in offer for offer in rows[1:])]
        if own:
            identifiers += [f"{provider}/{row.split(',')[0]}" for row in own]
            (hardware / "shapes" / f"{provider}.csv").write_text("\n".join([SHAPE_COLUMNS, *own]) + "\n")
            (hardware / "offers" / f"{provider}.csv").write_text("\n".join(rows) + "\n")
    return identifiers


def _scenario(rng: random.Random, shapes: list[str]) -> str:
    jobs = [_job(rng, index) for index in range(rng.choice([1, 2]))]
    fleet = _fleet(rng)
    return "\n".join(
        [
            "schema: plan/v1",
            "name: oracle",
            "horizon: 200 h",
            "training:",
            *jobs,
            "serving:",
            fleet,
            "hardware:",
            "  share_nodes: false",
            *_quotas(rng, shapes),
            *_limits(rng),
            f"objective: {rng.choice(['cost', '[cost, time]'])}",
            f"estimator: {rng.choice(['rule', 'analytic', 'analytic'])}",
            f"confidence: {rng.choice(['p50', 'p75', 'p90', 'p95'])}",
            "",
        ]
    )


def _job(rng: random.Random, index: int) -> str:
    model = rng.choice(["gpt2", "pythia-1.4b", "qwen2.5-1.5b", "llama-3.2-3b"])
    size = {"gpt2": 0.12, "pythia-1.4b": 1.4, "qwen2.5-1.5b": 1.5, "llama-3.2-3b": 3.2}[model]
    tokens = rng.choice([2, 4, 8, 16]) / size
    start = f"\n    start: {rng.choice([0, 0, 0, 400])} h"
    count = f"\n    count: {rng.choice([1, 1, 2])}"
    return (
        f"  - name: job-{index}\n    model: {model}\n    tokens: {tokens:.3f}B\n"
        f"    deadline: {rng.choice([60, 120, 200, 300])} h{start}{count}\n    sequence_length: 1024\n"
        f"    global_batch: {rng.choice([64, 96, 256])} sequences\n    precision: fp16\n"
        f"    recompute: {rng.choice(['[none, full]', 'full', '[none, selective, full]'])}\n"
        f"    sharding: {rng.choice(['[none, zero-1]', '[zero-3]', '[none, zero-1, zero-2, zero-3]'])}"
    )


def _fleet(rng: random.Random) -> str:
    model = rng.choice(["llama-3.2-3b", "qwen2.5-7b"])
    throughput = f"\n    throughput: {rng.choice([300, 700])} tokens/s" if rng.random() < 0.5 else ""
    return (
        f"  - name: fleet\n    model: {model}\n    weights: fp16\n    qpm: {rng.choice([100, 400, 1500])}\n"
        f"    input_tokens: 500\n    output_tokens: 100\n    spare_replicas: {rng.choice([0, 0, 1])}\n"
        f"    min_replicas: {rng.choice([0, 0, 2])}\n    estimator: rule{throughput}"
    )


def _quotas(rng: random.Random, shapes: list[str]) -> list[str]:
    lines = ["  quotas:"]
    for letter in rng.sample("abc", rng.choice([1, 2, 3])):
        lines.append(f"    - {{device: dev-{letter}, max_devices: {rng.choice([2, 3, 4, 6, 8, 10])}}}")
    if rng.random() < 0.4:
        lines.append(f"    - {{provider: north, max_shapes: {rng.choice([1, 2, 3, 4])}}}")
    if rng.random() < 0.4:
        lines.append(f"  owned:\n    - {{shape: {rng.choice(shapes)}, count: {rng.choice([1, 2])}, price: $0.05/h}}")
    return lines


def _limits(rng: random.Random) -> list[str]:
    lines = ["limits:", f"  max_devices: {rng.choice([8, 12, 16])}"]
    if rng.random() < 0.5:
        lines.append(f"  budget: ${rng.choice([600, 1000, 1500, 2500, 4000])}")
    if rng.random() < 0.3:
        lines.append(f"  power: {rng.choice([1500, 2500, 4000])} W")
    if rng.random() < 0.3:
        lines.append(f"  spend: ${rng.choice([5, 10, 20])}/h")
    if rng.random() < 0.3:
        lines.append("  max_providers: 1")
    return lines
