"""The one bounded reader and the one atomic writer; nothing else opens a file.

Reading takes regular files only (a FIFO or a device is refused without being opened), up to a
size, as UTF-8. Writing goes to a temporary file beside the target, is forced to disk, and
takes the target's name in one step: a reader sees the old file or the new one, never half.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO, BinaryIO, cast

from planner.errors import InputError, OutputError, Place, PlanError, Problem
from planner.spelling import closest

StrPath = str | os.PathLike[str]

DEFAULT_LIMIT_BYTES = 64_000_000
MOST_LINE_BYTES = 1_000_000  # of a file of lines
_LINE_BYTES = 4096  # read at once where one line is looked for
_CHUNK_BYTES = 1 << 20
LOCK_WAIT_S = 5.0  # for a file that another run holds
_HOUSE = Path(__file__).parent
_COUNTER = itertools.count()
_outside: ContextVar[bool] = ContextVar("outside", default=False)
# where a command writes what it was asked for, and files that it has read, by device and number
_output: ContextVar[tuple[Path, set[tuple[int, int]]] | None] = ContextVar("output", default=None)
_TEMPORARY = re.compile(r"\.plan-(\d+)-\d+-.*\.tmp")
_SWEEP_AFTER_S = 60.0  # a dead writer's file is left alone this long
_SWEEP_ALWAYS_AFTER_S = 86_400.0  # even when its pid lives: pids are used again


def read_bytes(path: StrPath, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """Bytes of a regular file of at most `limit_bytes`; `InputError` for anything else."""
    name = os.fspath(path)
    try:
        # Looked at before it is opened: opening some devices does something.
        _demand_regular(Path(name).stat(), name)
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
            _demand_regular(_noted(os.fstat(handle)), name)
            data = stream.read(limit_bytes + 1)
    except OSError as error:
        raise _unreadable(name, error) from None
    except ValueError:  # NUL in the name
        raise _refuse("file-not-found", f"{name!r} is no file name", hint="check the path") from None
    if len(data) > limit_bytes:
        raise _refuse("too-large", f"{name} has more than {limit_bytes:,} bytes", name, "split it, or thin it out")
    return data


@contextlib.contextmanager
def stream_of(path: StrPath) -> Iterator[BinaryIO]:
    """A regular file to be read bit by bit, whatever its length; `InputError` for anything else."""
    name = os.fspath(path)
    try:
        _demand_regular(Path(name).stat(), name)
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb", buffering=0) as stream:  # noqa: PTH123 - a descriptor, not a path
            _demand_regular(_noted(os.fstat(handle)), name)
            yield cast(BinaryIO, stream)
    except OSError as error:
        raise _unreadable(name, error) from None
    except ValueError:  # NUL in the name
        raise _refuse("file-not-found", f"{name!r} is no file name", hint="check the path") from None


def scratch() -> IO[bytes]:
    """An empty file that nobody else sees and that goes with the process."""
    return tempfile.TemporaryFile()


def kept_of(stream: BinaryIO, *, limit_bytes: int) -> IO[bytes]:
    """What a pipe gives, in a file that nobody else sees and that goes with the process."""
    kept = scratch()
    copied = 0
    while block := stream.read(1_048_576):
        copied += len(block)
        if copied > limit_bytes:
            raise _refuse("too-large", f"stdin gave more than {limit_bytes:,} bytes", "", "name a file instead")
        kept.write(block)
    kept.seek(0)
    return kept


def files_below(folder: StrPath, most: int) -> list[Path]:
    """Regular files of a folder and of those in it, sorted by path, hidden ones left out; at most so many."""
    found = (path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(itertools.islice(found, most))


def read_text(path: StrPath, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> str:
    """Text of a regular UTF-8 file of at most `limit_bytes`; a byte order mark is dropped."""
    name = os.fspath(path)
    return as_text(read_bytes(name, limit_bytes=limit_bytes), name)


def as_text(data: bytes, name: str) -> str:
    """Bytes of the file `name` as UTF-8 text; a byte order mark is dropped."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        place = Place(file=name, line=line, column=column)
        message = f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x}"
        raise InputError(
            Problem(reference="bad-encoding", message=message, places=(place,), hint="save the file as UTF-8")
        ) from None


def read_package_text(relative: str, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> str:
    """Text of a file that ships inside the package, named from the folder `planner/`."""
    return read_text(_HOUSE / relative, limit_bytes=limit_bytes)


def list_files(folder: StrPath, pattern: str = "*") -> list[Path]:
    """Regular files of one folder that match a glob, sorted by name; an absent folder holds none."""
    return sorted(path for path in Path(folder).glob(pattern) if path.is_file())


def stamps_of(folder: StrPath, ending: str = "") -> tuple[tuple[str, int, int], ...]:
    """Path, time of the last change in ns and length in bytes of every file below a folder, sorted by path.

    Parameters
    ----------
    folder
        With those in it, but for bytecode.
    ending
        Of the names that count.
    """
    found, folders = [], [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith(ending):
                    of = entry.stat()
                    found.append((entry.path, of.st_mtime_ns, of.st_size))
    return tuple(sorted(found))


def data_folder(name: str) -> Path:
    """Folder of shipped data, "hardware" or "scenarios": in the package, else in the checkout around it."""
    packaged = _HOUSE / "_data" / name
    if packaged.is_dir():
        return packaged
    checkout = _HOUSE.parent
    # The neighbours of an installed package are strangers: only a checkout of ours will do.
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise _refuse("data-missing", f"the shipped folder '{name}' is not there", "", "install plan again")


def contained_path(folder: StrPath, relative: str) -> Path:
    """The path `relative` inside `folder`, links followed; `InputError` when it leads outside."""
    if not relative or not relative.isprintable() or "\\" in relative:
        raise _refuse("unsafe-path", f"{relative!r} is not a usable path", "", "write it with / and plain letters")
    parts = relative.split("/")
    if relative.startswith(("/", "~")) or ".." in parts or re.match(r"[A-Za-z]:", relative):
        message = f"'{relative}' leads out of the folder of the file that names it"
        raise _refuse("unsafe-path", message, "", "move the file beside the scenario and name it from there")
    base = Path(folder).resolve()
    try:
        target = _followed(base / relative)
    except (OSError, RuntimeError):
        raise _refuse("unsafe-path", f"'{relative}' is a circle of links", hint="name the file itself") from None
    if not target.is_relative_to(base):
        message = f"'{relative}' is a link that leads out of the folder of the file that names it"
        raise _refuse("unsafe-path", message, "", "copy the file instead of linking to it")
    return target


def _followed(path: Path) -> Path:
    """Where a path leads, links followed, whether or not there is something; an error where they lead in a circle.

    From Python 3.13 on `Path.resolve` ends in the middle of a circle without a word.
    """
    target = path.resolve()
    if target.is_symlink():
        raise OSError(f"{path} is a circle of links")
    return target


@contextlib.contextmanager
def outside_allowed(allowed: bool = True) -> Iterator[None]:
    """Let scenarios and plans name files anywhere, for as long as the block runs (`--allow-outside`)."""
    before = _outside.set(allowed or _outside.get())
    try:
        yield
    finally:
        _outside.reset(before)


@contextlib.contextmanager
def output_at(out: StrPath | None) -> Iterator[None]:
    """Refuse to replace what was read in this block by what it writes at `out`, or below it; None: nothing is refused.

    Files are the same by what they are, not by how they are called: links and folders in their names change nothing.
    """
    kept: tuple[Path, set[tuple[int, int]]] | None = None
    with contextlib.suppress(ValueError):  # NUL in the name: nothing is written there
        kept = None if out is None else (Path(os.path.realpath(os.fspath(out))), set())
    before = _output.set(kept)
    try:
        yield
    finally:
        _output.reset(before)


def _noted(status: os.stat_result) -> os.stat_result:
    """The status of a file that is read, which is kept for `output_at`."""
    kept = _output.get()
    if kept is not None:
        kept[1].add((status.st_dev, status.st_ino))
    return status


def _demand_no_input(target: Path, name: str) -> None:
    kept = _output.get()
    if kept is None or not target.is_relative_to(kept[0]) or not target.exists():
        return
    status = target.stat()
    if (status.st_dev, status.st_ino) in kept[1]:
        problem = Problem(
            reference="not-written",
            message=f"{name} was read for this: it is not replaced by what follows from it",
            places=(Place(file=name),),
            hint="name another file with --out",
        )
        raise OutputError(problem)


def leads_out(folder: StrPath, path: StrPath) -> bool:
    """Whether a path leads out of a folder, links followed."""
    try:
        return not _followed(Path(path)).is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError, ValueError):  # a circle of links, a NUL
        return True


def demand_inside(folder: StrPath, path: StrPath) -> None:
    """Refuse a path that a scenario or a plan names outside of a folder, links followed, unless that was allowed.

    Raises
    ------
    InputError
        It leads out.
    """
    if not _outside.get() and leads_out(folder, path):
        message = f"'{os.fspath(path)}' lies outside of the folder of the file that names it"
        raise _refuse("unsafe-path", message, "", "move it there, or allow it: --allow-outside")


def write_text(path: StrPath, text: str) -> None:
    """Write a text file whole or not at all; folders on the way are made. `OutputError` otherwise."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: StrPath, data: bytes) -> None:
    """Write a file whole or not at all; folders on the way are made. `OutputError` otherwise."""
    name = os.fspath(path)
    try:
        target = _target_of(name)
        mode = _replaceable_mode(target, name)
        _demand_no_input(target, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep_stale(target.parent)
        temporary = target.parent / f".plan-{os.getpid()}-{next(_COUNTER)}-{target.name[:80]}.tmp"
        with _removed_on_failure(temporary):
            _write_whole(temporary, data, mode)
            os.replace(temporary, target)  # noqa: PTH105 - named for what it promises
        _force_folder(target.parent)
    except OSError as error:
        raise _unwritable(name, error) from None
    except ValueError:
        raise OutputError.of("not-written", f"{name!r} is no file name", hint="choose another with --out") from None


def demand_file_name(path: StrPath) -> None:
    """Refuse, before anything is worked out, a name under which no file can be written: a folder, say.

    Raises
    ------
    OutputError
        It is none.
    """
    name = os.fspath(path)
    try:
        if name.endswith(os.sep):
            raise _taken(name, folder=True)
        _replaceable_mode(_target_of(name), name)
    except (OSError, ValueError):  # writing tells more
        return


class LineFile:
    """A text file that grows by whole lines, each forced to disk; one process at a time; of any size.

    A last line without its end is what a killed writer left: it is cut off, and nothing else ever is. A file that
    another run holds is waited for a little, then `OutputError`; one that does not begin as ours do is not touched:
    `InputError`.
    """

    def __init__(self, path: StrPath, *, begins: str = "", wait_s: float = LOCK_WAIT_S) -> None:
        self.name = os.fspath(path)
        try:
            Path(self.name).parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
            self._handle = os.open(self.name, flags, 0o666)
        except OSError as error:
            raise _unwritable(self.name, error) from None
        except ValueError:  # NUL in the name
            raise OutputError.of("not-written", f"{self.name!r} is no file name", hint="choose another") from None
        try:
            _demand_regular(os.fstat(self._handle), self.name)
            _lock(self._handle, self.name, wait_s)
            first, size = os.pread(self._handle, len(begins.encode()), 0), os.fstat(self._handle).st_size
            if first != begins.encode()[: len(first)]:
                raise _refuse("not-a-journal", f"{self.name} is something else", self.name, "name another file")
            self._end = self._there = _end_of_lines(self._handle, size)
            if self._end < size:
                os.ftruncate(self._handle, self._end)
            _force_folder(Path(self.name).parent)
        except OSError as error:
            os.close(self._handle)
            raise _unwritable(self.name, error) from None
        except PlanError:
            os.close(self._handle)
            raise

    @property
    def lines(self) -> list[str]:
        """Whole lines that were there when it was opened."""
        return [line for _, line in self.places()]

    def places(self) -> Iterator[tuple[int, str]]:
        """The same one after the other, each with its place; one that is longer than any of ours is told as empty."""
        rest, place = b"", 0
        while (at := place + len(rest)) < self._there:
            data = rest + self._read(at, min(_CHUNK_BYTES, self._there - at))
            *whole, rest = data.split(b"\n")
            for line in whole:
                yield place, line.decode("utf-8", "replace") if len(line) <= MOST_LINE_BYTES else ""
                place += len(line) + 1
            if len(rest) > MOST_LINE_BYTES:
                yield place, ""
                place, rest = self._after(place + len(rest)), b""

    def line_at(self, place: int) -> str:
        """The line that begins at a place."""
        data, newline = b"", b""
        while not newline and len(data) <= MOST_LINE_BYTES and place + len(data) < self._end:
            more, newline, _ = self._read(place + len(data), _LINE_BYTES).partition(b"\n")
            data += more
        return data.decode("utf-8", "replace")

    def _read(self, place: int, count: int) -> bytes:
        try:
            data = os.pread(self._handle, count, place)
        except OSError as error:
            raise _unreadable(self.name, error) from None
        if not data:  # shorter than it was: somebody else cuts it, whatever the lock says
            raise _refuse("file-changed", f"{self.name} was changed while it was read", self.name, "run it again")
        return data

    def _after(self, place: int) -> int:
        """Where the line ends in which a place lies."""
        while place < self._there:
            data = self._read(place, min(_CHUNK_BYTES, self._there - place))
            if (found := data.find(b"\n")) >= 0:
                return place + found + 1
            place += len(data)
        return place

    def append(self, line: str) -> int:
        """Add one line, which is on the disk when this returns; its place. Of one that does not fit nothing stays."""
        place = self._end
        try:
            data = memoryview(line.replace("\n", " ").encode("utf-8") + b"\n")
            count = len(data)
            while data:
                data = data[os.write(self._handle, data) :]
            os.fsync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, place)
            hint = "make room, or name a file elsewhere: the lines that are there stay, and it goes on from them"
            raise _unwritable(self.name, error, hint) from None
        self._end = place + count
        return place

    def close(self) -> None:
        """Let others have it."""
        os.close(self._handle)

    def __enter__(self) -> LineFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_of_lines(handle: int, size: int) -> int:
    """Where the last whole line ends, looked for from the end."""
    end = size
    while end > 0:
        begin = max(end - _CHUNK_BYTES, 0)
        if (found := os.pread(handle, end - begin, begin).rfind(b"\n")) >= 0:
            return begin + found + 1
        end = begin
    return 0


def _lock(handle: int, name: str, wait_s: float) -> None:
    """Hold a file alone; the lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                problem = Problem(
                    reference="locked",
                    message=f"{name} is in use by another run",
                    places=(Place(file=name),),
                    hint="wait for it, or name another file",
                )
                raise OutputError(problem) from None
            time.sleep(0.05)


def sweep_stale(folder: StrPath) -> list[Path]:
    """Remove temporary files that a killed writer left in a folder; those that were removed."""
    swept = []
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is None:
                continue
            with contextlib.suppress(OSError):
                age_s = now - entry.stat(follow_symlinks=False).st_mtime
                dead = age_s > _SWEEP_AFTER_S and not _alive(int(match.group(1)))
                if dead or age_s > _SWEEP_ALWAYS_AFTER_S:
                    os.unlink(entry.path)  # noqa: PTH108 - the entry is no Path
                    swept.append(Path(entry.path))
    return swept


def _demand_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _refuse("not-a-file", f"{name} is a folder", name, "name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise _refuse("not-a-file", f"{name} is not a regular file", name, "pipes and devices are not read")


def _refuse(reference: str, message: str, name: str = "", hint: str = "") -> InputError:
    places = (Place(file=name),) if name else ()
    return InputError(Problem(reference=reference, message=message, places=places, hint=hint))


def _unreadable(name: str, error: OSError) -> InputError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return _refuse("file-not-found", f"there is no file {name}", "", _neighbours(name))
    reason = error.strerror or type(error).__name__
    return _refuse("file-unreadable", f"{name} cannot be read: {reason}", name, "check its rights")


def _neighbours(name: str) -> str:
    """Files of the same kind in the same folder, as a hint."""
    path = Path(name)
    try:
        if path.is_symlink():
            return f"it is a link to {path.readlink()}, which is not there"
        there = sorted(path.parent.iterdir())
        names = [entry.name for entry in there if entry.suffix == path.suffix]
        alike = [str(entry) for entry in there if entry.stem == path.stem and entry.suffix]
        stems = {entry.stem: str(entry) for entry in there if entry.suffix == path.suffix}
        alike = alike or [stems[near] for near in closest(path.stem, stems)]
    except (OSError, ValueError):
        return f"there is no folder {path.parent} either"
    if alike and path.suffix:
        return f"did you mean {' or '.join(alike[:3])}?"
    return "in that folder: " + ", ".join(names[:6]) if names and path.suffix else "check the path"


def _target_of(name: str) -> Path:
    """Where a file is written: a link stays a link, its target is replaced."""
    if not name:
        raise OutputError.of("not-written", "the name of the file to write is empty", hint=_NAMED)
    return Path(os.path.realpath(name))


def _taken(name: str, *, folder: bool) -> OutputError:
    kind, hint = ("a folder", "name a file in it") if folder else ("no regular file", _NAMED)
    return _not_written(name, f"it is {kind}", hint)


def _replaceable_mode(target: Path, name: str) -> int | None:
    """Rights of the file to be replaced, None when there is none yet."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise _taken(name, folder=stat.S_ISDIR(status.st_mode))
    return stat.S_IMODE(status.st_mode)


def _write_whole(temporary: Path, data: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(temporary, flags, 0o666)
    with open(handle, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
        if mode is not None:
            os.fchmod(handle, mode)
        stream.write(data)
        stream.flush()
        os.fsync(handle)


@contextlib.contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:  # an interrupt too must not leave the file behind
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _force_folder(folder: Path) -> None:
    """Make the new name itself durable; not every file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


_NAMED = "name a file; on the command line - is stdout"
_ELSEWHERE = "is it yours to write, and is there room? name another place; on the command line with --out"


def _unwritable(name: str, error: OSError, hint: str = _ELSEWHERE) -> OutputError:
    above = next((one for one in Path(name).parents if _is_file(one)), None)  # where a folder is wanted
    if above is not None and hint == _ELSEWHERE:
        hint = f"{above} is a file: name another place; on the command line with --out"
    return _not_written(name, error.strerror or type(error).__name__, hint)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # nobody may look
        return False


def _not_written(name: str, reason: str, hint: str) -> OutputError:
    problem = Problem(
        reference="not-written",
        message=f"{name} could not be written: {reason}",
        places=(Place(file=name),),
        hint=hint,
    )
    return OutputError(problem)
