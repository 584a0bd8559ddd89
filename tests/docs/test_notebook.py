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
from collections import Counter
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
def shown(notebook: dict[str, Any]) -> list[dict[str, str]]:
    """What a notebook would show of the expression that each code cell ends with."""
    results: list[dict[str, str]] = []
    space: dict[str, Any] = {}
    with contextlib.chdir(NOTEBOOK.parent):
        for cell in code_cells(notebook):
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), "cell", "exec"), space)
            value = (
                eval(compile(ast.Expression(last.value), "cell", "eval"), space) if isinstance(last, ast.Expr) else None
            )
            results.append(shown_as(value))
    return results


def shown_as(value: Any) -> dict[str, str]:
    """What a notebook keeps of a value: a drawing, a table, else its text; nothing of None."""
    if hasattr(value, "_repr_svg_"):
        return {"image/svg+xml": value._repr_svg_()}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_()}
    return {} if value is None else {"text/plain": repr(value)}


def output(data: dict[str, str]) -> dict[str, Any]:
    kept = {kind: text.splitlines(keepends=True) for kind, text in data.items()}
    return {"data": kept, "execution_count": None, "metadata": {}, "output_type": "execute_result"}


def test_outputs_are_those_shown(notebook: dict[str, Any], shown: list[dict[str, str]]) -> None:
    wanted = [[output(one)] if one else [] for one in shown]
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        for cell, outputs in zip(code_cells(notebook), wanted, strict=True):
            cell["outputs"] = outputs
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [cell["outputs"] for cell in code_cells(notebook)] == wanted
    kinds = Counter(kind for one in shown for kind in one)
    assert kinds["image/svg+xml"] >= 3
    assert kinds["text/html"] >= 3
    assert kinds["text/plain"] >= 5


def test_numbers_in_the_text_came_out(notebook: dict[str, Any], shown: list[dict[str, str]]) -> None:
    texts = "".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    outputs = " ".join(one.get("text/plain", "") for one in shown)
    claims = re.findall(r"\*\*(.+?)\*\*", texts)
    assert len(claims) >= 2
    assert [claim for claim in claims if claim not in outputs] == []


def test_answers_show_themselves(shown: list[dict[str, str]]) -> None:
    plan = next(one["text/html"] for one in shown if "text/html" in one)
    assert "pretrain-8b" in plan
    assert "<table" in plan
    assert len(plan) < 20_000
    drawn = [one["image/svg+xml"] for one in shown if "image/svg+xml" in one]
    assert all("<title>" in drawing and "<script" not in drawing for drawing in drawn)


def test_the_notebook_is_small_and_holds_nothing_of_a_machine(notebook: dict[str, Any]) -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 150_000
    assert not [folder for folder in ("home", "work", "tmp", "root", "Users") if f"/{folder}/" in text]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 4)
