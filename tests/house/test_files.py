"""Reading takes regular files of bounded size and nothing else; writing is whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner import files
from planner.errors import InputError, OutputError
from tests.tiers import cases

PLANNER = Path(files.__file__).parent.parent


def refusal(path: object, **options: int) -> str:
    with pytest.raises(InputError) as caught:
        files.read_text(path, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 3
    return caught.value.problems[0].reference


def test_reads_text_and_drops_the_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf\xc3\xa9\r\n")
    assert files.read_text(tmp_path / "a") == "é\r\n"


def test_limit_is_exact(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert len(files.read_text(tmp_path / "a", limit_bytes=10)) == 10
    assert refusal(tmp_path / "a", limit_bytes=9) == "too-large"


def test_refuses_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert refusal(tmp_path / "fifo") == "not-a-file"  # and does not wait for a writer
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert refusal(tmp_path / "s") == "not-a-file"
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    assert refusal(tmp_path / "link") == "not-a-file"
    assert refusal(tmp_path) == "not-a-file"
    assert refusal("/dev/zero") == "not-a-file"
    assert refusal("/dev/null") == "not-a-file"


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "llama.yaml").touch()
    with pytest.raises(InputError) as caught:
        files.read_text(tmp_path / "lama.yaml")
    assert caught.value.problems[0].reference == "file-not-found"
    assert "llama.yaml" in caught.value.problems[0].hint
    with pytest.raises(InputError) as caught:
        files.read_text(tmp_path / "llama.yml")
    assert caught.value.problems[0].hint == f"did you mean {tmp_path / 'llama.yaml'}?"
    assert refusal(tmp_path / "absent" / "a.yaml") == "file-not-found"
    assert refusal(tmp_path / "llama.yaml" / "a") == "file-not-found"
    assert refusal("a\0b") == "file-not-found"
    assert refusal("a" * 5000) == "file-unreadable"
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert refusal(tmp_path / "circle") == "file-unreadable"


def test_bad_encoding_is_placed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("ab\ncdé ".encode() + b"\xff\n")
    with pytest.raises(InputError) as caught:
        files.read_text(tmp_path / "a")
    place = caught.value.problems[0].places[0]
    assert (caught.value.problems[0].reference, place.line, place.column) == ("bad-encoding", 2, 5)


@pytest.mark.parametrize(
    "relative",
    ["../a", "a/../../b", "/etc/passwd", "~/a", "C:/a", "..\\a", "a\0b", "", "a\nb", "out", "out/secret", "hop/secret",
     "circle", "./../a", "sub/../../a"],
)  # fmt: skip
def test_contained_path_refuses(relative: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "out").symlink_to(outside)
    (inside / "hop").symlink_to(inside / "out")  # a link to a link: the middle one leads out
    (inside / "circle").symlink_to(inside / "circle")
    if relative == "circle":
        with pytest.raises(InputError):
            files.read_text(files.contained_path(inside, relative))
        return
    with pytest.raises(InputError) as caught:
        files.contained_path(inside, relative)
    assert caught.value.problems[0].reference == "unsafe-path"


def test_contained_path_accepts_what_stays_inside(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("x")
    (tmp_path / "b").symlink_to(tmp_path / "sub" / "a")
    assert files.contained_path(tmp_path, "sub/a") == (tmp_path / "sub" / "a").resolve()
    assert files.contained_path(tmp_path, "b") == (tmp_path / "sub" / "a").resolve()


def test_write_makes_folders_and_replaces(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "a.json"
    files.write_text(target, "one")
    target.chmod(0o640)
    files.write_text(target, "two é")
    assert target.read_text(encoding="utf-8") == "two é"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["a.json"]


def test_write_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def refuses_to_write(path: object) -> None:
    with pytest.raises(OutputError) as caught:
        files.write_text(path, "x")  # type: ignore[arg-type]
    assert caught.value.exit_code == 8
    assert caught.value.problems[0].hint


def test_name_taken_by_a_folder_or_a_pipe(tmp_path: Path) -> None:
    refuses_to_write(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    refuses_to_write(tmp_path / "fifo")
    (tmp_path / "file").touch()
    refuses_to_write(tmp_path / "file" / "a")
    refuses_to_write("a\0b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "file"]


def test_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    (folder / "a").write_text("old")
    folder.chmod(0o555)
    code = f"from planner.files import write_text; write_text({str(folder / 'a')!r}, 'new')"
    # Root writes anywhere: the child steps down to nobody first.
    drop = "import os; os.getuid() or (os.setgid(65534), os.setuid(65534)); "
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    path = os.pathsep.join([str(PLANNER), *filter(None, sys.path)])
    run = subprocess.run([sys.executable, "-c", f"import planner.files; {drop}{code}"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": path}, check=False)  # fmt: skip
    folder.chmod(0o755)
    assert "OutputError" in run.stderr, run.stderr
    assert (folder / "a").read_text() == "old"
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_failure_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refuses_to_write(tmp_path / "a")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


def test_killed_writer_leaves_old_or_new(tmp_path: Path) -> None:
    """kill -9 at 24 moments while a child writes 200 kB again and again."""
    target = tmp_path / "a"
    code = (
        "import sys; from planner.files import write_text\n"
        "i = 0\n"
        "while True:\n"
        "    i += 1\n"
        f"    write_text({str(target)!r}, f'{{i:09d}}\\n' * 20_000)\n"
    )
    rng = random.Random(7)
    env = {**os.environ, "PYTHONPATH": str(PLANNER)}
    for _ in range(cases(6, 24)):
        child = subprocess.Popen([sys.executable, "-c", code], env=env)
        seen = target.stat().st_mtime_ns if target.exists() else 0
        deadline = time.monotonic() + 20
        while (not target.exists() or target.stat().st_mtime_ns == seen) and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
        lines = target.read_text().splitlines()
        assert len(lines) == 20_000
        assert len(set(lines)) == 1
    for path in tmp_path.glob(".plan-*.tmp"):
        os.utime(path, (1, 1))
    files.sweep_stale(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_sweep_leaves_the_young_the_living_and_strangers(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    old = time.time() - 120
    names = {
        f".plan-{gone.pid}-0-a.tmp": old,  # dead and old: goes
        f".plan-{gone.pid}-1-a.tmp": time.time(),  # young
        f".plan-{os.getpid()}-0-a.tmp": old,  # its writer lives
        f".plan-{os.getpid()}-1-a.tmp": old - 90_000,  # too old for any writer: goes
        "notes.tmp": old - 90_000,
    }
    for name, age in names.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    swept = {path.name for path in files.sweep_stale(tmp_path)}
    assert swept == {f".plan-{gone.pid}-0-a.tmp", f".plan-{os.getpid()}-1-a.tmp"}
    assert files.sweep_stale(tmp_path / "absent") == []


def test_data_folder_of_the_checkout() -> None:
    assert files.data_folder("hardware") == PLANNER / "hardware"
    with pytest.raises(InputError):
        files.data_folder("no-such-folder")


def test_list_files(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml", "c.csv"):
        (tmp_path / name).touch()
    (tmp_path / "d.yaml").mkdir()
    assert [path.name for path in files.list_files(tmp_path, "*.yaml")] == ["a.yaml", "b.yaml"]
    assert files.list_files(tmp_path / "absent") == []


def test_package_text() -> None:
    assert "plan/v1" in files.read_package_text("scenario/scenario.schema.json")


def test_a_file_that_is_not_there_is_told_the_nearest_name(tmp_path: Path) -> None:
    for name in ("quoted.yaml", "amz.yaml", "log.csv"):
        (tmp_path / name).write_text("a")
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    for name, told in (
        ("quotd.yaml", "did you mean"),
        ("zzz.yaml", "in that folder: "),
        ("log.txt", "log.csv?"),
        ("gone.yaml", "it is a link to nowhere.yaml, which is not there"),
    ):
        with pytest.raises(InputError) as caught:
            files.read_text(tmp_path / name)
        assert told in caught.value.problems[0].hint


def test_a_file_where_a_folder_is_wanted_is_named(tmp_path: Path) -> None:
    """It asked whether the folder was one's own to write; an export of one file had been written by that name."""
    (tmp_path / "out").write_text("an export of one file")
    with pytest.raises(OutputError) as caught:
        files.write_text(tmp_path / "out" / "pre.yaml", "text")
    assert f"{tmp_path / 'out'} is a file: name another place" in caught.value.problems[0].hint
