"""The commands: one file each, a thin skin on the library."""

import time


def start() -> None:
    """What the scripts call: the clock of a time limit runs before anything is imported."""
    began_s = time.monotonic()
    from planner.cli.main import main

    main(began_s)
