"""The example notebook runs from top to bottom, gives the outputs that it shows, and says in bold only what came out.

No Jupyter is needed: the cells are run in order in one process, in the notebook's own folder.
`PLAN_UPDATE_GOLDEN=1` writes the outputs anew; the words around them are for a person to mend.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "example.ipynb"


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return document


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def shown(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """What a notebook would show of the expression that each code cell ends with."""
    results: list[dict[str, Any]] = []
    space: dict[str, Any] = {}
    with contextlib.chdir(NOTEBOOK.parent):
        for cell in code_cells(notebook):
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), "cell", "exec"), space)
            value = (
                eval(compile(ast.Expression(last.value), "cell", "eval"), space) if isinstance(last, ast.Expr) else None
            )
            html = value._repr_html_() if hasattr(value, "_repr_html_") else None
            plain = isinstance(value, tuple | list | dict | str | int)
            results.append({"text": repr(value) if plain else None, "html": html})
    return results


def output(text: str) -> dict[str, Any]:
    return {"data": {"text/plain": [text]}, "execution_count": None, "metadata": {}, "output_type": "execute_result"}


def test_outputs_are_those_shown(notebook: dict[str, Any], shown: list[dict[str, Any]]) -> None:
    wanted = [[output(one["text"])] if one["text"] is not None else [] for one in shown]
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        for cell, outputs in zip(code_cells(notebook), wanted, strict=True):
            cell["outputs"] = outputs
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [cell["outputs"] for cell in code_cells(notebook)] == wanted
    assert sum(map(len, wanted)) >= 5


def test_numbers_in_the_text_came_out(notebook: dict[str, Any], shown: list[dict[str, Any]]) -> None:
    texts = "".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    outputs = " ".join(one["text"] or "" for one in shown)
    claims = re.findall(r"\*\*(.+?)\*\*", texts)
    assert len(claims) >= 2
    assert [claim for claim in claims if claim not in outputs] == []


def test_answers_show_themselves(shown: list[dict[str, Any]]) -> None:
    plan = next(one["html"] for one in shown if one["html"])
    assert "pretrain-8b" in plan
    assert "<table" in plan
    assert len(plan) < 20_000


def test_the_notebook_is_small_and_holds_nothing_of_a_machine(notebook: dict[str, Any]) -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert not re.search(r"/home/|/work/|/tmp/|/root/", text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 4)
