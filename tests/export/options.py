"""Parsers made of recorded lists of options: what the engine's own parser would accept of a command line."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import NoReturn

RECORDED = Path(__file__).parent / "recorded"
TYPES = {"int": int, "float": float, "text": str}


class Parser(argparse.ArgumentParser):
    """Raises where argparse would leave the program."""

    def error(self, message: str) -> NoReturn:
        raise AssertionError(message)


def recorded_version(engine: str) -> str:
    """The version in the first line of a list."""
    return (RECORDED / f"{engine}.csv").read_text(encoding="utf-8").split(",", 1)[0].rpartition(" ")[2]


def parser_of(engine: str) -> Parser:
    """Every option of an engine, with its type and choices."""
    parser = Parser(allow_abbrev=False, add_help=False)
    lines = (RECORDED / f"{engine}.csv").read_text(encoding="utf-8").splitlines()[1:]
    for row in csv.DictReader(lines):
        if row["kind"] == "switch":
            parser.add_argument(row["option"], action=argparse.BooleanOptionalAction)
        else:
            chosen = row["choices"].split() or None
            parser.add_argument(row["option"], type=TYPES[row["kind"]], choices=chosen)
    return parser
