"""What scripts run, found by a real shell: programs of these names print their arguments in place of working."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

STUBS = ("vllm", "python3", "torchrun", "llama-server", "trtllm-serve")
_END = "\x01end\x01"


def stub_folder(folder: Path) -> Path:
    """A folder of stubs, each of which prints its name and arguments, NUL between them, then a mark."""
    for name in STUBS:
        stub = folder / name
        stub.write_text(f"#!/bin/sh\nprintf '%s\\0' {name} \"$@\" '{_END}'\n")
        stub.chmod(0o755)
    return folder


def words_of(scripts: Sequence[str], stubs: Path, env: Mapping[str, str]) -> list[list[str]]:
    """The words that each script gives to its program; one shell runs them all, each in a shell of its own inside."""
    folder = stubs / "scripts"
    folder.mkdir(exist_ok=True)
    for number, script in enumerate(scripts):
        (folder / f"{number}.sh").write_text(script, encoding="utf-8")
    loop = f'for n in $(seq 0 {len(scripts) - 1}); do bash "{folder}/$n.sh"; done; true'
    path = f"{stubs}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", loop], env={**env, "PATH": path}, capture_output=True, check=True, cwd=folder, timeout=60
    )
    words = ran.stdout.decode("utf-8").split("\0")[:-1]
    found: list[list[str]] = [[]]
    for word in words:
        if word == _END:
            found.append([])
        else:
            found[-1].append(word)
    assert len(found) == len(scripts) + 1, ran.stderr.decode()
    assert not (folder / "pwned").exists()  # what a hostile name would have made
    return found[:-1]


def options_of(words: Sequence[str]) -> dict[str, str | None]:
    """Options of a command by name; None where one stands alone. Words before the first option are under ""."""
    found: dict[str, str | None] = {"": " ".join(word for word in words if not word.startswith("--"))}
    name = None
    plain: list[str] = []
    for word in words:
        if word.startswith("--"):
            name, joint, value = word.partition("=")
            found[name] = value if joint else None
            name = None if joint else name
        elif name is not None:
            found[name], name = word, None
        else:
            plain.append(word)
    return {**found, "": " ".join(plain)}


def expanded(text: str, env: Mapping[str, str]) -> str:
    """Arguments of a container as Kubernetes hands them over: $(NAME) becomes a value, $$ becomes $.

    After k8s.io/kubernetes third_party/forked/golang/expansion: an unknown name stays as it is written.
    """

    def one(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else env.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", one, text)


def yaml_documents(text: str) -> list[Any]:
    """Documents of a YAML file by the safe loader, the fast one where PyYAML was built with it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(text, Loader=loader))
