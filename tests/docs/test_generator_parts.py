"""The small parts of the generator: Markdown that stays whole, notes and figures that are as they must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import decisions_page
import markup
import pytest
import readme_part
import scenario_page

from tests.docs import links


def test_text_stays_in_its_cell_and_opens_no_tag() -> None:
    assert markup.table(("a", "b"), [["x | y", "two\n lines"]]) == "| a | b |\n| --- | --- |\n| x \\| y | two lines |"
    assert markup.prose("a < b and [x](y)") == "a &lt; b and [x]\\(y)"


def test_paragraphs_are_folded_and_lose_nothing() -> None:
    text = " ".join(f"word{number}" for number in range(80)) + "\n\nnext"
    folded = markup.paragraphs(text)
    assert folded.split() == text.split()
    assert max(map(len, folded.splitlines())) <= markup.WIDTH
    assert folded.endswith("\n\nnext")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "b"], "c": True}, "{a: [1, b], c: true}"),
        ("h100-*", '"h100-*"'),
        ("a: b", '"a: b"'),
        ("30 days", "30 days"),
        (0.5, "0.5"),
        (128256, "128256"),
    ],
)
def test_values_are_shown_as_yaml(value: Any, text: str) -> None:
    from planner.yamlfile import parse_yaml

    assert scenario_page._flow(value) == text
    assert parse_yaml(f"key: {text}\n", "x.yaml").data == {"key": value}


@pytest.mark.parametrize("title", ["Exports and more", "Files", "What may happen"])
def test_anchors_of_the_reference_are_those_of_hosts(title: str) -> None:
    assert links.anchors(f"## {title}\n") == {scenario_page.anchor(title)}


@pytest.mark.parametrize(
    ("first", "title"), [("# 0001 · one way", "One way"), ("# 0001: Another", "Another"), ("# 0001 Plain", "Plain")]
)
def test_notes_are_listed_by_their_titles(
    first: str, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions_page, "FOLDER", tmp_path)
    (tmp_path / "0001-note.md").write_text(f"{first}\n\ntext\n", encoding="utf-8")
    assert f"| 0001 | [{title}](0001-note.md) |" in decisions_page.decisions_page()["decisions/README.md"]


@pytest.mark.parametrize("first", ["no title", "# 0002 Another number", "## 0001 Too deep"])
def test_a_note_without_its_number_is_an_error(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions_page, "FOLDER", tmp_path)
    (tmp_path / "0001-note.md").write_text(f"{first}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="0001"):
        decisions_page.decisions_page()


def readme_of(tmp_path: Path, readme: str, rows: list[str]) -> str:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    table = "\n".join(["| Rows | number | measured | figure | reached | spread |", "|---|---|---|---|---|---|", *rows])
    (tmp_path / "docs" / "validation.md").write_text(f"# Validation\n\n{table}\n", encoding="utf-8")
    return readme_part.readme_part()["../README.md"]


ROWS = [f"| {name} | 10 | {number}.5 % | ≤ 5 % | {'yes' if number < 5 else 'NO'} | |"
        for number, name in enumerate(readme_part.QUOTED)]  # fmt: skip


def test_the_readme_quotes_what_validation_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readme_part, "ROOT", tmp_path)
    text = readme_of(tmp_path, f"before\n{readme_part.BEGIN}\nold\n{readme_part.END}\nafter\n", ROWS)
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| 10 | 4.5 % | ≤ 5 %, reached |" in text
    assert "| 10 | 5.5 % | ≤ 5 %, **not reached** |" in text


def test_a_figure_that_validation_no_longer_has_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readme_part, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="no row"):
        readme_of(tmp_path, f"{readme_part.BEGIN}\n{readme_part.END}\n", ROWS[1:])


def test_a_readme_without_the_part_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readme_part, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="no part"):
        readme_of(tmp_path, "nothing\n", ROWS)
