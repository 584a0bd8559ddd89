"""All that asks a question again: trade-offs, comparisons, reasons, other plans; what stands beside a plan."""
