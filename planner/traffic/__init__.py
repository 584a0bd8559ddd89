"""What a fleet is asked for: rate, lengths by bucket, burstiness and the week's profile, from numbers or files."""

from planner.traffic.model import LengthMoments, Traffic

__all__ = ["LengthMoments", "Traffic"]
