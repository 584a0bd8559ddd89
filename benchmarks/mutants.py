"""Faults of benchmarks/mutants.toml, put into a copy of the tree one at a time: does a test that runs the line notice?

Run ``python benchmarks/mutants.py --map`` once: it runs the suite under coverage and keeps in build/mutants which test
runs which line, and for how many CPU seconds (``--map -m campaign`` adds a tier, ``--map tests/export`` a folder). Then
``python benchmarks/mutants.py [ID or ROOM ...]`` prints for each the test that kills it, or that it survived: the
tests that run its line, shortest first, are given 60 CPU s and end at the first that fails. A test that fails without
the mutant too is told apart, and kills nothing. The test that noticed a mutant the last time is asked first; files of
tests that the map does not know, or that changed since, go by what they import.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "benchmarks" / "mutants.toml"
KEPT = ROOT / "build" / "mutants"  # git leaves build/ alone
LINES, TIMES, SOURCES = KEPT / "lines.sqlite", KEPT / "times.json", KEPT / "sources"
CPU_S = 60  # of the tests of one mutant
MOST_TESTS = 400  # of one mutant: naming thousands takes longer than running them
UNKNOWN_S = 1.0  # of a test without a time
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
OUT_OF_TIME = (-signal.SIGKILL, -signal.SIGXCPU)
Mutant = Mapping[str, str]


# ---- which test runs which line: this module is also the plugin of pytest that measures it


def pytest_configure(config: Any) -> None:
    """Measure lines from here on, if this is the run that makes the map."""
    if os.environ.get("MUTANTS_MAP"):
        config.pluginmanager.register(_Map())


class _Map:
    def __init__(self) -> None:
        import coverage

        self.known = _known()
        self.lines = coverage.Coverage(data_file=str(LINES), config_file=False, source=["planner"])
        self.lines.set_option("run:relative_files", True)
        self.lines.load()
        self.lines.start()
        self.begun_s = 0.0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.lines.switch_context(nodeid)
        self.begun_s = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.known["cpu_s"][nodeid] = round(time.process_time() - self.begun_s, 3)
        self.lines.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.lines.stop()
        self.lines.save()
        files = {test.split("::")[0] for test in self.known["cpu_s"]}
        self.known["files"] = {file: _sha256(ROOT / file) for file in sorted(files) if (ROOT / file).exists()}
        TIMES.write_text(json.dumps(self.known, indent=0, sort_keys=True))


def _known() -> dict[str, Any]:
    """CPU seconds of the tests of the map, and what their files were then."""
    found: dict[str, Any] = json.loads(TIMES.read_text()) if TIMES.exists() else {"cpu_s": {}, "files": {}}
    return found


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def make_map(arguments: Sequence[str]) -> int:
    """Run the suite, or what the arguments leave of it, and keep what ran."""
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "planner", SOURCES / "planner", ignore=shutil.ignore_patterns("__pycache__"))
    return _pytest(ROOT, ["-q", "--no-header", *arguments], {"MUTANTS_MAP": "1"}).returncode


class Ran:
    """What the map knows, if there is one, and what the imports of the tests say."""

    def __init__(self) -> None:
        import coverage

        self.data = coverage.CoverageData(basename=str(LINES))
        known = _known()
        self.times: dict[str, float] = known["cpu_s"]
        if self.times:
            self.data.read()
        self.by_file: dict[str, dict[int, list[str]]] = {}
        there = {file: sha256 for file, sha256 in known["files"].items() if (ROOT / file).exists()}
        self.mapped = {file for file, sha256 in there.items() if _sha256(ROOT / file) == sha256}
        self.texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.glob("tests/**/test_*.py"))}

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Files that import the mutated module and are not in the map; then the tests that run the line, by length.

        Of a line that runs at import these are all that run its file; without a map, all files of the room.
        """
        room = "tests/" + mutant["file"].split("/")[1].removesuffix(".py") + "/"
        return [*self._by_import(mutant, room), *self._by_line(mutant, room)]

    def _by_import(self, mutant: Mutant, room: str) -> list[str]:
        module = mutant["file"].removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        above, _, name = module.rpartition(".")
        said = re.compile(rf"from {module} import|import {module}\b|from {above} import .*\b{name}\b")
        new = {file: text for file, text in self.texts.items() if file not in self.mapped}
        direct = [file for file, text in new.items() if said.search(text)]
        rest = [file for file in new if file.startswith(room) and file not in direct] if not self.mapped else []
        return [*direct, *rest]

    def _by_line(self, mutant: Mutant, room: str) -> list[str]:
        lines = self._contexts(mutant["file"])
        begin, end = self._place(mutant)
        found = {test for number in range(begin, end + 1) for test in lines.get(number, ()) if test}
        if not found:
            found = {test for tests in lines.values() for test in tests if test}
        there = [test for test in found if test.split("::")[0] in self.texts]
        return sorted(there, key=lambda test: (self._size(test), not test.startswith(room), test))

    def _size(self, test: str) -> float:
        return round(self.times.get(test, UNKNOWN_S), 1)  # whole tenths: the order must not hang on noise

    def _contexts(self, file: str) -> dict[int, list[str]]:
        if file not in self.by_file:
            self.by_file[file] = self.data.contexts_by_lineno(file) if self.times else {}
        return self.by_file[file]

    def _place(self, mutant: Mutant) -> tuple[int, int]:
        """First and last line of the mutated text, in the sources as they were when the map was made."""
        now = (ROOT / mutant["file"]).read_text()
        at = now.index(mutant["old"])
        line = now[now.rfind("\n", 0, at) + 1 :].splitlines()[0].strip()
        then = SOURCES / mutant["file"]
        known = then.read_text().splitlines() if then.exists() else []
        numbers = [number for number, text in enumerate(known, 1) if text.strip() == line]
        begin = numbers[0] if len(numbers) == 1 else now.count("\n", 0, at) + 1
        return begin, begin + mutant["old"].count("\n")


# ---- one mutant


def main(arguments: Sequence[str]) -> int:
    """Print a line for each mutant, and how many of them were noticed; 1 when any survived."""
    if arguments[:1] == ["--map"]:
        return make_map(arguments[1:])
    asked = [one for one in mutants() if not arguments or {one["id"], one["id"].rpartition("-")[0]} & set(arguments)]
    if not asked:
        print("no such mutant or room: the names are those of benchmarks/mutants.toml")
        return 2
    ran, copy = Ran(), _copied()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    try:
        red = _failing(copy, sorted({one["noticed"] for one in asked if "noticed" in one}))
        for mutant in asked:
            verdict, told = _tried(mutant, ran, copy, red)
            counts[mutant["id"].rpartition("-")[0]][verdict] += 1
            print(f"{mutant['id']:14} {verdict:10} {told}", flush=True)
    finally:
        shutil.rmtree(copy)
    whole = sum(counts.values(), Counter[str]())
    for room, found in [*counts.items(), ("all rooms", whole)]:
        print(f"{room:14} " + ", ".join(f"{found[name]} {name}" for name in sorted(found)))
    left = whole.total() - whole["equivalent"]
    print(f"{whole['killed']} of {left} are noticed, {100 * whole['killed'] / max(left, 1):.1f} %")
    return 0 if whole["killed"] == left else 1


def mutants() -> Iterator[Mutant]:
    """Every mutant of the table."""
    seen: set[str] = set()
    for one in tomllib.loads(TABLE.read_text())["mutant"]:
        if one["old"] == one["new"] or one["id"] in seen:
            raise SystemExit(f"{one['id']}: it changes nothing, or stands twice")
        seen.add(one["id"])
        yield one


def times_there(mutant: Mutant) -> int:
    """How often the text that a mutant changes stands in its file: once, unless the file was rewritten."""
    file = ROOT / mutant["file"]
    return file.read_text().count(mutant["old"]) if file.exists() else 0


def _copied() -> Path:
    """The tree as it is, without what git leaves alone."""
    import tempfile

    copy = Path(tempfile.mkdtemp(prefix="mutants-"))
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def _tried(mutant: Mutant, ran: Ran, copy: Path, red: set[str]) -> tuple[str, str]:
    """What became of a mutant; `red` = tests that fail without any."""
    if mutant.get("equivalent"):
        return "equivalent", mutant["equivalent"]
    if times_there(mutant) != 1:
        return "not run", f"its text stands {times_there(mutant)} times in {mutant['file']}: name another line"
    last = mutant.get("noticed", "")
    if last and not any(test.startswith(last) for test in red) and _failing_with(mutant, copy, [last]):
        return "killed", last
    tests = ran.tests_of(mutant)[:MOST_TESTS]
    if not tests:
        return "not run", mutant["breaks"]
    without: list[str] = []
    while tests:
        failed = min(_failing_with(mutant, copy, tests), default="")
        if not failed:
            break
        if not _failing(copy, [failed]):
            return "killed", failed
        without.append(failed)
        tests = [test for test in tests if not test.startswith(failed)]
    told = f" (red without it: {', '.join(without)})" if without else ""
    return "survived", f"{mutant['breaks']}; {len(tests)} tests or files of tests{told}"


def _failing_with(mutant: Mutant, copy: Path, tests: Sequence[str]) -> set[str]:
    """The first test that fails with a mutant, if any does."""
    file = copy / mutant["file"]
    text = file.read_text()
    file.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        return _failing(copy, tests, "-x")
    finally:
        file.write_text(text)


def _failing(copy: Path, tests: Sequence[str], *options: str) -> set[str]:
    """Those that fail, of some tests or files of tests."""
    if not tests:
        return set()
    (copy / ".tests").write_text("\n".join(tests))
    plain = ["-q", "-rfE", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    done = _pytest(copy, [*plain, *options, "@.tests"], {})
    found = set(FAILED.findall(done.stdout))
    if not found and done.returncode not in (0, *OUT_OF_TIME):  # it does not even start
        return set(tests[:1])
    return found


def _pytest(folder: Path, arguments: Sequence[str], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    mapping = "MUTANTS_MAP" in more
    there = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "benchmarks")]), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *(["-p", "mutants"] if mapping else []), *arguments]
    limit = None if mapping else lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **there, **more}, text=True, check=False, preexec_fn=limit,
        stdout=None if mapping else subprocess.PIPE, stderr=None if mapping else subprocess.DEVNULL,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
