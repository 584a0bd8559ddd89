"""Every planted mistake gives exactly one error, at its line and column, with a way out."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.scenario import load_scenario
from tests.faults.faults_table import BROKEN, TABLE


def test_table_and_files_agree() -> None:
    assert set(TABLE) == {path.name for path in BROKEN.glob("*.yaml")}
    assert len(TABLE) >= 60


@pytest.mark.parametrize("name", sorted(TABLE))
def test_broken_scenario(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(BROKEN / name)
    assert caught.value.exit_code == 3
    problems = caught.value.problems
    found = [(p.places[-1].line, p.places[-1].column, p.reference) for p in problems]
    assert found == [(e.line, e.column, e.reference) for e in TABLE[name]], str(caught.value)
    for problem, expected in zip(problems, TABLE[name], strict=True):
        assert expected.hint in problem.hint, str(problem)
        assert problem.hint
        assert problem.places[-1].file == str(BROKEN / name)
        text = (BROKEN / name).read_text(encoding="utf-8").splitlines()[expected.line - 1]
        assert (
            text.replace("\t", " ")[problem.places[-1].cut :].lstrip().startswith(problem.places[-1].text.strip("… "))
        )
