"""The rows of a plan: what is chosen, where it stands, what it does and costs."""
