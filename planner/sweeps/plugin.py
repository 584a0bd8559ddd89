"""What questions share, as a plugin of the workers of a Dask scheduler; imported where that is installed."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin

from planner.sweeps.question import Answer, Versions, forget, know


class Sharing(WorkerPlugin):  # type: ignore[misc]  # Any: not looked at
    """Sent to each worker once, to those too that join later.

    Parameters
    ----------
    digest
        Hash of what is shared.
    answer
        What answers, with all that is shared.
    versions
        Of the client: a worker of others refuses.
    """

    def __init__(self, digest: str, answer: Answer, versions: Versions) -> None:
        self.digest, self.answer, self.versions = digest, answer, versions

    def setup(self, worker: Any) -> None:
        """A worker begins."""
        know(self.digest, self.answer, self.versions)

    def teardown(self, worker: Any) -> None:
        """The sweep is over."""
        forget(self.digest)
