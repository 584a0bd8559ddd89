"""Catalogs beside each other over many scenarios, and ways to read it."""

from __future__ import annotations

from typing import Any

from planner.answers.sweep import Sweep
from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CatalogTable(Sweep):
    """A sweep over scenarios and catalogs, each catalog held against the first."""

    @property
    def same(self) -> bool:
        """Whether every catalog decides the same for the same money in every scenario."""
        from planner.sweeps.catalogs import beside

        return all(one.same for one in beside(self.document))

    def exceeds(self, share: float) -> bool:
        """Whether some plan costs more than that on the first catalog by more than a share, or is lost."""
        from planner.sweeps.catalogs import beside

        return any(one.exceeds(share) for one in beside(self.document))

    def to_frame(self) -> Any:
        """One row a scenario and catalog, as a pandas DataFrame."""
        import pandas as pd

        from planner.sweeps.catalogs import flat_comparison

        return pd.DataFrame(flat_comparison(self.document))

    def __str__(self) -> str:
        from planner.report.sweep_view import render_catalog_table

        return render_catalog_table(self.document, "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import blocks_html
        from planner.report.sweep_view import catalog_table_blocks

        return blocks_html(catalog_table_blocks(self.document))
