"""What a router in front of a fleet needs: which share of each kind of request goes to which allocation."""

from __future__ import annotations

from typing_extensions import TypedDict

from planner.export import quoting
from planner.export.header import Target, header_lines
from planner.export.launch import Bucket, ExportFile, ServingLaunch


def routing_files(launch: ServingLaunch, target: Target) -> list[ExportFile]:
    """The allocation's row of the routing table; nothing where all requests come to one allocation alike."""
    if not launch.pools and len(launch.buckets) <= 1:
        return []
    return [ExportFile(name=f"{launch.stem}.routing.json", text=quoting.json(routing_table(launch, target)))]


class BucketRouted(TypedDict):
    """Requests of a kind that this allocation takes at the planned peak, and which share of all that is."""

    name: str
    input_tokens: float | None
    output_tokens: float | None
    requests_per_s: float
    share: float


class RoutingTable(TypedDict):
    """The allocation's row of the routing table."""

    about: list[str]
    fleet: str
    pool: str
    other_pools: list[str]
    role: str
    replicas: int
    planned_requests_per_s_per_replica: float
    buckets: list[BucketRouted]


def routing_table(launch: ServingLaunch, target: Target) -> RoutingTable:
    """Shares of the requests of each bucket at the planned peak that this allocation takes."""
    return {
        "about": header_lines(launch, target),
        "fleet": launch.workload,
        "pool": launch.stem,
        "other_pools": list(launch.pools),
        "role": launch.role,
        "replicas": launch.replicas,
        "planned_requests_per_s_per_replica": launch.requests_per_s,
        "buckets": [_bucket(bucket) for bucket in launch.buckets],
    }


def _bucket(bucket: Bucket) -> BucketRouted:
    peak, routed = bucket.peak_requests_per_s, bucket.routed_requests_per_s
    return {
        "name": bucket.name,
        "input_tokens": bucket.input_tokens,
        "output_tokens": bucket.output_tokens,
        "requests_per_s": routed,
        "share": min(routed / peak, 1.0) if peak > 0 else 0.0,
    }
