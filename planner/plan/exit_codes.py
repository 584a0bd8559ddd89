"""What the status of an answer means to the shell that asked."""

EXIT_CODES = {"optimal": 0, "feasible": 5, "infeasible": 4, "stopped": 6, "failed": 6}
