"""What a candidate runs on: rates of one device and of the links around it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.communication import (
    LINK_EFFICIENCY,
    NETWORK_LATENCY_S,
    SCALE_UP_LATENCY_S,
    all_to_all_s,
    hierarchical_all_gather_s,
    hierarchical_all_reduce_s,
    point_to_point_s,
)
from planner.estimate.constants import StepConstants

Values = NDArray[np.float64]
# nodes beyond which a network slows no further: collectives run in levels, trees and rails of bounded size, and the
# largest groups of the measured rows are of this many pairs of nodes
_MOST_CROWDED = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Rates of one device, one way; numbers or arrays. nan = unknown: what needs it takes forever.

    Three tiers of links: the fast domain of `scale_up_devices` (NVLink, ICI), the node of
    `node_devices` (PCIe when the fast domain is smaller), the network between nodes.
    """

    peak_flop_per_s: Any  # dense, of the used precision
    mfu: Any  # share of the peak that training sustains
    linear_flop_per_s: Any = 0.0  # dense peak of the linear products; differs from the above with fp8 and fp4
    multiprocessors: Any = 0.0  # 0: a systolic array, no waves of tiles
    link_efficiency: Any = LINK_EFFICIENCY
    network_efficiency: Any = LINK_EFFICIENCY
    network_scale: Any = 0.0  # slowdown of the network with every doubling of the nodes that take part
    memory_bytes: Any = float("nan")
    memory_bandwidth_bytes_per_s: Any = float("nan")
    pair_bytes_per_s: Any  # fast domain, to one other device
    all_bytes_per_s: Any  # fast domain, to all others together
    scale_up_devices: Any = 1
    node_devices: Any = 1
    host_bytes_per_s: Any = 0.0  # PCIe
    inter_node_bytes_per_s: Any = float("nan")  # network, share of one device
    pcie: Any = 0.0  # 1 where devices of the fast domain talk over PCIe: a shared bus, through the host
    constants: StepConstants = field(default_factory=StepConstants)  # of the device family; the analytic tier's
    family: str = ""  # of the device
    overheads: tuple[tuple[str, float], ...] = ()  # fitted, by framework: device work over that of a tuned stack

    @property
    def sustained_flop_per_s(self) -> Values:
        """Model FLOP/s that one device sustains in training."""
        return np.asarray(np.asarray(self.mfu, dtype=np.float64) * self.peak_flop_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks that talk to each other: `ranks` of them, `stride` devices apart.

    Consecutive devices fill a node; tensor-parallel ranks are neighbours, then context, data, pipeline.
    """

    machine: Machine
    ranks: Any
    stride: Any

    def all_reduce_s(self, message_bytes: Any) -> Values:
        """All-reduce, in two levels when the group spans nodes."""
        return self._levels(hierarchical_all_reduce_s, message_bytes)

    def all_gather_s(self, message_bytes: Any) -> Values:
        """All-gather or reduce-scatter, in two levels when the group spans nodes."""
        return self._levels(hierarchical_all_gather_s, message_bytes)

    def all_to_all_s(self, message_bytes: Any) -> Values:
        """All-to-all; the part that leaves the node goes over the network at the same time."""
        members, nodes = self._members_and_nodes()
        with np.errstate(divide="ignore", invalid="ignore"):
            inside_s = all_to_all_s(message_bytes, members, self._inside_rate(members), SCALE_UP_LATENCY_S)
            across_s = np.asarray(message_bytes) * (1.0 - members / self.ranks) / self._network_rate(nodes)
        return self._when_used(np.maximum(inside_s, across_s + (nodes - 1.0) * NETWORK_LATENCY_S))

    def dispatch_s(self, row_bytes: Any, copies: Any) -> Values:
        """Rows to the `copies` ranks that hold their experts: once to each node, then once to each rank in it."""
        members, nodes = self._members_and_nodes()
        away = _distinct(nodes, copies) * (1.0 - 1.0 / nodes)
        inside = _distinct(np.asarray(self.ranks, dtype=np.float64), copies) * (1.0 - 1.0 / np.asarray(self.ranks))
        with np.errstate(divide="ignore", invalid="ignore"):
            across_s = np.asarray(row_bytes) * away / self._network_rate(nodes)
            inside_s = np.asarray(row_bytes) * inside / self._inside_rate(members)
        latency = np.where(nodes > 1, NETWORK_LATENCY_S, 0.0) + SCALE_UP_LATENCY_S
        return self._when_used(np.maximum(across_s, inside_s) + latency)

    def neighbour_s(self, message_bytes: Any) -> Values:
        """One message to the next rank of the group; the slowest neighbour counts."""
        _, nodes = self._members_and_nodes()
        pair = np.where(self._inside_fast_domain(), self.machine.pair_bytes_per_s, self._slow_rate())
        with np.errstate(divide="ignore", invalid="ignore"):
            near_s = point_to_point_s(message_bytes, pair * self.machine.link_efficiency, SCALE_UP_LATENCY_S)
            far_s = point_to_point_s(message_bytes, self._network_rate(nodes), NETWORK_LATENCY_S)
        return self._when_used(np.where(nodes > 1, far_s, near_s))

    def _levels(self, collective: Any, message_bytes: Any) -> Values:
        members, nodes = self._members_and_nodes()
        rates = (self._inside_rate(members), self._network_rate(nodes))
        with np.errstate(divide="ignore", invalid="ignore"):
            time = collective(message_bytes, members, nodes, *rates, SCALE_UP_LATENCY_S, NETWORK_LATENCY_S)
        return self._when_used(time)

    def _members_and_nodes(self) -> tuple[Values, Values]:
        """Ranks of the group in one node, and nodes that it spans."""
        node = np.maximum(self.machine.scale_up_devices, self.machine.node_devices)
        members = np.clip(np.floor(node / np.asarray(self.stride, dtype=np.float64)), 1.0, self.ranks)
        return members, np.ceil(np.asarray(self.ranks) / members)

    def _inside_fast_domain(self) -> NDArray[np.bool_]:
        machine = self.machine
        span = np.asarray(self.ranks, dtype=np.float64) * self.stride
        whole_node = np.asarray(machine.scale_up_devices) >= machine.node_devices
        return np.asarray(whole_node | (span <= machine.scale_up_devices))

    def _slow_rate(self) -> Values:
        """Rate inside a node whose fast domain is smaller than the node."""
        return np.asarray(np.minimum(self.machine.all_bytes_per_s, self.machine.host_bytes_per_s))

    def _inside_rate(self, members: Values) -> Values:
        """Rate inside the node; infinite where no two ranks share a node, so that nothing is charged."""
        rate = np.where(self._inside_fast_domain(), self.machine.all_bytes_per_s, self._slow_rate())
        return np.asarray(np.where(members > 1, rate * self.machine.link_efficiency, np.inf))

    def _network_rate(self, nodes: Values) -> Values:
        """Rate of a device's share of the network; infinite where the group stays in one node."""
        rate = np.asarray(self.machine.inter_node_bytes_per_s, dtype=np.float64) * self.machine.network_efficiency
        doublings = np.log2(np.clip(nodes, 2.0, 2.0 * _MOST_CROWDED) / 2.0)
        crowded = 1.0 + self.machine.network_scale * doublings
        return np.where(nodes > 1, rate / crowded, np.inf)

    def _when_used(self, time: Any) -> Values:
        """0 for a group of one, infinite where a needed rate is unknown."""
        known = np.where(np.isnan(time), np.inf, time)
        return np.where(np.asarray(self.ranks) > 1, known, 0.0)


def _distinct(places: Values, draws: Any) -> Values:
    """Expected number of different places that `draws` even draws hit."""
    return np.asarray(places * (1.0 - (1.0 - 1.0 / places) ** np.asarray(draws)))


def sustained(machine: Machine, constants: StepConstants) -> Machine:
    """The machine with the shares of its links that a family sustains."""
    return replace(
        machine,
        link_efficiency=constants.link,
        network_efficiency=constants.network,
        network_scale=constants.scale,
    )
