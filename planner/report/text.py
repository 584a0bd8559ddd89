"""Blocks drawn for a terminal or a log, at a width of 80 to 120 characters."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from planner.carriers import dataclass
from planner.report import escape
from planner.report.blocks import Block, Cards, Grid, Headline, Items, Lines, Said, Timeline

NARROWEST, WIDEST = 80, 120
_GAP = 2
_SHORTEST_BAR, _LONGEST_BAR = 12, 54
_TOLD = re.compile(r"\b(plan (?:solve|live|explain|report|export)) ")  # where a command begins that is told
_SHELL_WORDS = re.compile(r"""(?:--[a-z-]+\ (?!-))?(?:[^\s'"]|'[^']*'|"[^"]*")+""")  # an option with its value
# what is there to be typed, whole: settings of a command, and keys of a scenario with what they hold
_TYPED = re.compile(
    r"""(?:\bplan\ [a-z]+\ )?--[a-z-]+(?:[ =](?:'[^']*'|"[^"]*"|[^\s'"]+))?|[a-z_.]+:\ (?:\{[^}]*\}|\[[^\]]*\])""",
    re.VERBOSE,
)
_GOES_ON = " \\"  # at the end of a line, for a shell
_CODES = {"bold": "1", "dim": "2", "bad": "31", "good": "32", "fair": "33"}


@dataclass(frozen=True, slots=True)
class Style:
    """Colours, or none: without them no escape byte is ever written."""

    colour: bool = False

    def __call__(self, text: str, *tones: str) -> str:
        """Text in the tones named; unchanged when colour is off."""
        codes = ";".join(_CODES[tone] for tone in tones if tone)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colour and codes and text.strip() else text


def draw(blocks: Iterable[Block], *, width: int = 100, style: Style | None = None) -> str:
    """All blocks, an empty line between two of them, ending in a newline.

    Parameters
    ----------
    blocks
        Those that show nothing are left out.
    width
        Kept within 80 to 120.  [characters]
    style
        Colours; None = none.
    """
    width = max(NARROWEST, min(WIDEST, width))
    style = style or Style()
    parts = ["\n".join(line.rstrip() for line in _draw(block, width, style)) for block in blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def _draw(block: Block, width: int, style: Style) -> list[str]:
    if isinstance(block, Headline):
        return _headline(block, width, style)
    if isinstance(block, Lines):
        return _lines(block, width, style)
    if isinstance(block, Items):
        return _items(block, width, style)
    if isinstance(block, Cards):
        return _cards(block, width, style)
    if isinstance(block, Said):
        return _said(block, width, style)
    return _grid(block.grid(_bar_size(block, width)) if isinstance(block, Timeline) else block, width, style)


def _bar_size(block: Timeline, width: int) -> int:
    """What the other columns leave of the page for the bars."""
    heads = [column.head for column in (*block.before, *block.after)]
    cut = [[escape.terminal(cell) for cell in (*before, *after)] for before, _, after in block.rows]
    room = width - 1 - _SHORTEST_BAR - _GAP
    whole = [column.right for column in (*block.before, *block.after)]
    taken = sum(fit([heads, *cut], room, whole=whole)) + _GAP * len(heads)
    return max(_SHORTEST_BAR, min(_LONGEST_BAR, width - 1 - taken))


def _headline(block: Headline, width: int, style: Style) -> list[str]:
    left = f"{block.word}  {escape.terminal(block.text)}"
    right = [escape.terminal(line) for line in block.right]
    first = style(block.word, "bold", block.tone) + style(left[len(block.word) :], "bold")
    indent = cells(left) + 3
    if right and indent + max(map(cells, right)) <= width:
        indent = max(indent, min(62, width - max(map(cells, right))))
        rest = [" " * indent + line for line in right[1:]]
        return [first + " " * (indent - cells(left)) + style(right[0], "bold"), *rest]
    folded = [piece for line in right for piece in wrap_command(line, width, indent="  ", hanging="    ")]
    return [*_restyled(wrap(left, width, hanging="  "), block, style), *folded]


def _restyled(lines: list[str], block: Headline, style: Style) -> list[str]:
    head = style(block.word, "bold", block.tone) + style(lines[0][len(block.word) :], "bold")
    return [head, *(style(line, "bold") for line in lines[1:])]


def _lines(block: Lines, width: int, style: Style) -> list[str]:
    drawn = []
    for number, line in enumerate(block.lines):
        cut = wrap_command if block.commands and _TOLD.search(line) else wrap
        pieces = cut(escape.terminal(line), width, hanging="  ")
        drawn += [style(piece, "bold") if block.strong_first and number == 0 else piece for piece in pieces]
    return drawn


def _items(block: Items, width: int, style: Style) -> list[str]:
    drawn = _title(block.title, width, style, block.tone)
    for item in block.items:
        drawn += wrap(escape.terminal(item), width, indent="  · ", hanging="    ")
    return drawn if block.items else []


def _cards(block: Cards, width: int, style: Style) -> list[str]:
    rows = [[escape.terminal(cell) for cell in cut] for cut, _ in block.rows]
    if not rows:
        return []
    sizes = fit(rows, width - 2, whole=[False] * (len(rows[0]) - 1) + [True])
    rights = [False] * (len(sizes) - 1) + [True]
    below = " " * (2 + min(sizes[0], 24) + _GAP)
    drawn = []
    for cut, (_, lines) in zip(rows, block.rows):
        first, *rest = _row(cut, sizes, rights)
        drawn += ["  " + style(first[: sizes[0]], "bold") + first[sizes[0] :], *("  " + line for line in rest)]
        for line in lines:
            drawn += wrap(escape.terminal(line), width, indent=below, hanging=below)
    return drawn


def _said(block: Said, width: int, style: Style) -> list[str]:
    drawn = []
    for sentence, *commands in block.rows:
        lines = wrap(escape.terminal(sentence), width - 2)
        if block.most_lines and len(lines) > block.most_lines:
            lines = _shortened(escape.terminal(sentence), lines[: block.most_lines], width - 2)
        drawn += [f"{style(block.mark, 'bold', block.tone) if not n else ' '} {line}" for n, line in enumerate(lines)]
        drawn += [line for one in commands for line in wrap_command(escape.terminal(one), width, indent="  ")]
    return drawn


def _shortened(sentence: str, lines: list[str], width: int) -> list[str]:
    """The first lines of a sentence, that end in "…" because there is more; never within something to type."""
    last = lines[-1]
    while cells(last) > width - 2:
        last = last.rpartition(" ")[0] or last[:-1]
    kept = " ".join([*lines[:-1], last])
    for typed in _TYPED.finditer(sentence):
        if typed.start() < len(kept) < typed.end():
            kept = sentence[: typed.start()]
    return wrap(kept.rstrip(" ,;:") + " …", width)


def _grid(block: Grid, width: int, style: Style) -> list[str]:
    if not block.rows and not block.notes:
        return []
    heads = [column.head for column in block.columns]
    rows = [[escape.terminal(cell) for cell in row] for row in block.rows]
    if block.grouped:
        rows = [_unrepeated(row, rows[number - 1] if number else None) for number, row in enumerate(rows)]
    sizes = fit([heads, *rows], width - 1, whole=[column.right for column in block.columns])
    drawn = _title(block.title, width, style) if block.title else []
    rights = [column.right for column in block.columns]
    drawn += [" " + style(line.rstrip(), "dim") for line in _row(heads, sizes, rights)]
    for row in rows:
        drawn += [" " + line for line in _row(row, sizes, rights)]
    for note in block.notes:
        drawn += wrap(escape.terminal(note), width, indent=" ", hanging="   ")
    return drawn


def _title(title: str, width: int, style: Style, tone: str = "") -> list[str]:
    return [style(line, "bold", tone) for line in wrap(escape.terminal(title), width, indent=" ", hanging="   ")]


def _unrepeated(row: list[str], above: list[str] | None) -> list[str]:
    """A row without its first cell when that says what the row above said."""
    return ["", *row[1:]] if above and len(row) > 1 and row[0] == above[0] and row[0] != "" else row


def _row(row: Sequence[str], sizes: Sequence[int], rights: Sequence[bool]) -> list[str]:
    pieces = [wrap(cell, size) for cell, size in zip(row, sizes)]
    height = max(map(len, pieces))
    lines = []
    for number in range(height):
        cut = [piece[number] if number < len(piece) else "" for piece in pieces]
        lines.append((" " * _GAP).join(_pad(text, size, right) for text, size, right in zip(cut, sizes, rights)))
    return lines


def _pad(text: str, size: int, right: bool) -> str:
    blank = " " * max(0, size - cells(text))
    return blank + text if right else text + blank


def fit(rows: Sequence[Sequence[str]], width: int, *, whole: Sequence[bool] = ()) -> list[int]:
    """Column widths that fit: natural ones, then the widest cut to its longest word, at last into words.

    Parameters
    ----------
    rows
        Cells, those of the head among them, as many in each row.
    width
        For all columns and the gaps between them.  [characters]
    whole
        Of each column: numbers with their unit, cut only when nothing else is left to cut; empty = no column.
    """
    count = len(rows[0])
    sizes = [max(cells(row[number]) for row in rows) for number in range(count)]
    words = [max(max(map(cells, row[n].split()), default=0) for row in rows) for n in range(count)]
    kept = [size if keep else word for size, word, keep in zip(sizes, words, whole or [False] * count)]
    short = [size if keep else min(word, 14) for size, word, keep in zip(sizes, words, whole or [False] * count)]
    room = width - _GAP * (count - 1)
    for floor in (kept, short, [min(word, 6) for word in words]):
        while sum(sizes) > room:
            slack = [size if size > low else 0 for size, low in zip(sizes, floor)]
            widest = max(range(count), key=slack.__getitem__)
            if not slack[widest]:
                break
            sizes[widest] -= 1
    return [max(1, size) for size in sizes]


def cells(text: str) -> int:
    """Columns a text takes on a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap(text: str, width: int, *, indent: str = "", hanging: str = "") -> list[str]:
    """Lines of at most `width` columns; inner runs of blanks are kept while they fit.

    Parameters
    ----------
    text
        One paragraph; blanks at its end are dropped.
    width
        With indentation.  [characters]
    indent, hanging
        What the first line and the others begin with.
    """
    lines, line, prefix = [], "", indent
    for blank, word in re.findall(r"(\s*)(\S+)", text):
        if line and cells(prefix + line + blank + word) > width:
            lines.append(prefix + line)
            line, blank, prefix = "", "", hanging
        line += blank + word
        while cells(prefix + line) > width:
            head, line = _cut(line, width - cells(prefix))
            lines.append(prefix + head)
            prefix = hanging
    return [*lines, prefix + line]


def wrap_command(text: str, width: int, *, indent: str = "", hanging: str = "  ") -> list[str]:
    """Lines of a command, or of a sentence that ends in one, that a shell takes as one command when they are copied.

    Where it is broken a backslash says that it goes on, and a word is not broken unless it is longer than a line.

    Parameters
    ----------
    text, width, indent, hanging
        As for `wrap`; hanging begins each line after the first, beside the indentation.
    """
    told = _TOLD.search(text)
    plain = wrap(text, width, indent=indent, hanging=indent + hanging)
    if told is None or plain[-1].endswith(text[told.start() :]):
        return plain
    prefix, room = indent + hanging, width - len(_GOES_ON)
    *lines, line = wrap(text[: told.start()] + told[1].replace(" ", "_"), room, indent=indent, hanging=prefix)
    line = line.removesuffix(told[1].replace(" ", "_")) + told[1]  # the name of a command stays in one line
    for pair in _SHELL_WORDS.findall(text[told.end() :]):
        for word in [pair] if cells(prefix + pair) <= room else pair.split(" ", 1) if pair[0] == "-" else [pair]:
            if cells(f"{line} {word}") <= room:
                line += f" {word}"
                continue
            lines.append(line + _GOES_ON)
            *cut, line = _pieces(word, room, prefix)
            lines += cut
    return [*lines, line]


def _pieces(word: str, room: int, indent: str) -> Iterator[str]:
    """Lines of one word of a command: pieces in quotes of their own, which a shell joins as none is indented."""
    try:
        (value,) = shlex.split(word)
    except ValueError:
        yield from wrap(word, room, indent=indent)
        return
    quoted = word
    while cells(indent + quoted) > room:
        size = min(len(value), room)
        while size > 1 and cells(indent + shlex.quote(value[:size])) > room:
            size -= 1
        size = value.rfind(" ", size // 2, size) + 1 or size
        yield indent + shlex.quote(value[:size]) + _GOES_ON.strip()
        value, indent = value[size:], ""
        quoted = shlex.quote(value)
    yield indent + quoted


def _cut(text: str, width: int) -> tuple[str, str]:
    """Break a word that is longer than a line."""
    taken = 0
    for number, character in enumerate(text):
        taken += _cells_of(character)
        if taken > width and number:
            return text[:number], text[number:]
    return text[:1], text[1:]
