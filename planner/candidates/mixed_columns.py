"""More mixes among the ways of a scenario, by name: what a search found, or what a plan file says it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.candidates.mixed_search import Mix, evaluate
from planner.candidates.mixed_space import MixSpace
from planner.candidates.mixed_table import choices_of, with_mixes
from planner.candidates.search import Candidates, with_tables
from planner.candidates.training_table import TrainingTable

Named = tuple[tuple[str, int], ...]  # offer and shapes of each group, by offer


def mixes_of(candidates: Candidates) -> dict[str, list[Named]]:
    """Every mix among the ways of each job, by name."""
    found = {name: sorted(choices_of(_table(candidates.tables[name]))) for name in candidates.spaces}
    return {name: mixes for name, mixes in found.items() if mixes}


def with_named_mixes(candidates: Candidates, named: Mapping[str, Sequence[Named]]) -> Candidates:
    """The candidates with more mixes; the order in which they are named does not matter.

    Raises
    ------
    KeyError
        A job cannot be mixed, or an offer is not to be had in that number.
    """
    more = {name: _found(candidates.spaces[name], mixes) for name, mixes in sorted(named.items())}
    tables = {name: with_mixes(_table(candidates.tables[name]), candidates.spaces[name], m) for name, m in more.items()}
    if all(tables[name] is candidates.tables[name] for name in tables):
        return candidates
    median = {
        name: tables[name]
        if candidates.median_tables[name] is candidates.tables[name]
        else with_mixes(_table(candidates.median_tables[name]), candidates.spaces[name], mixes)
        for name, mixes in more.items()
    }
    mixed = with_tables(candidates, tables, {})  # which has more columns, and others for no rates
    return replace(mixed, rerated=candidates.rerated, median_tables={**candidates.median_tables, **median})


def _table(table: object) -> TrainingTable:
    assert isinstance(table, TrainingTable)
    return table


def _found(space: MixSpace, named: Sequence[Named]) -> list[Mix]:
    places = {source.name: number for number, source in enumerate(space.job.sources)}
    mixes = []
    for one in sorted({tuple(sorted((str(offer), int(nodes)) for offer, nodes in mix)) for mix in named}):
        mix = evaluate(space.job, tuple(sorted(_place(space, places, offer, nodes) for offer, nodes in one)))
        if mix is not None:
            mixes.append(mix)
    return mixes


def _place(space: MixSpace, places: Mapping[str, int], offer: str, nodes: int) -> tuple[int, int]:
    source = places[offer]
    blocks = {block.nodes: number for number, block in enumerate(space.job.sources[source].blocks)}
    return source, blocks[nodes]
