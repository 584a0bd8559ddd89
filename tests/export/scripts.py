"""Exported scripts of training, started for real with a stand-in of torchrun, and what arrives there."""

from __future__ import annotations

import argparse
import csv
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.export.shells import stub_folder, words_of

RECORDED = Path(__file__).parent / "recorded"
BLANKS = {
    name: f"/blank {name.lower()}"
    for name in ("MEGATRON_DIR", "DATA_PATH", "TOKENIZER", "CHECKPOINT_DIR", "TRAIN_SCRIPT", "DATASET", "DATASET_PATH",
                 "HF_ASSETS", "MODEL", "DATASET_FILES", "DATASET_TYPE")
} | {"LEARNING_RATE": "3e-4", "MASTER_ADDR": "node-0", "RUN": "1"}  # fmt: skip
_SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node-[0-1]", "SLURM_ARRAY_TASK_ID": "1"}
_SLURM_STUBS = {
    "srun": 'while [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n',
    "scontrol": 'printf "node-0\\nnode-1\\n"\n',
    "sbcast": 'test "$1" = --force && test -s "$2"\n',
}


@dataclass(frozen=True)
class Started:
    """What torchrun was given."""

    launcher: argparse.Namespace
    program: str
    options: list[str]


def recorded_parser(name: str) -> argparse.ArgumentParser:
    """A parser of the options that a program was read to have; it takes nothing else, and no abbreviations."""
    parser = argparse.ArgumentParser(prog=name, allow_abbrev=False, exit_on_error=False)
    kinds = {"int": int, "float": float, "str": str}
    with (RECORDED / f"{name}.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            if row["type"] == "flag":
                parser.add_argument(row["option"], action="store_true")
                continue
            choices = row["choices"].split() or None
            parser.add_argument(row["option"], type=kinds[row["type"]], nargs=row["nargs"] or None, choices=choices)
    return parser


def torchrun_words(scripts: list[str], folder: Path, **environment: str) -> list[list[str]]:
    """The words that torchrun gets from each script, with every blank filled in; none where it was not started."""
    folder.mkdir(exist_ok=True)
    stubs = stub_folder(folder)
    for name, body in _SLURM_STUBS.items():
        (stubs / name).write_text("#!/bin/sh\n" + body)
        (stubs / name).chmod(0o755)
    found = words_of(scripts, stubs, {"LC_ALL": "C.UTF-8", **_SLURM, **BLANKS, **environment})
    return [words[1:] for words in found]


def started(script: str, folder: Path | None) -> Started:
    """The words of a script, parsed: torchrun's own, the program, and what the program is given.

    Without a folder no shell is asked: the words are read off the text, with blanks put in their places.
    """
    words = _read_off(script) if folder is None else torchrun_words([script], folder)[0]
    started = ("torchtitan.train", "trl.scripts.sft", "axolotl.cli.train")
    cut = next(number for number, word in enumerate(words) if word in started or word.startswith("/blank "))
    launcher = recorded_parser("torchrun").parse_args(words[:cut])
    return Started(launcher=launcher, program=words[cut], options=words[cut + 1 :])


def _read_off(script: str) -> list[str]:
    text = script[script.rindex("torchrun \\\n") + len("torchrun") :].replace("\\\n", " ")
    for name, value in BLANKS.items():
        text = text.replace(f"${name}", value)
    return shlex.split(text)


def syntax_error(script: str) -> str:
    """What `bash -n` says of a script; nothing when it is one."""
    answer = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    return answer.stderr
