"""What a fleet is asked for: rate, lengths by bucket, burstiness and the week's profile, from numbers or files."""

from planner.traffic.lengths import LengthMoments
from planner.traffic.model import Traffic

__all__ = ["LengthMoments", "Traffic"]
