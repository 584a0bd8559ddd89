"""Why this plan, why not another, and why none."""
