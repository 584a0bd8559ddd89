"""Headers of weights: counts and bytes are exact, whatever the file says of its lengths."""

import contextlib
import json
import os
import random
import struct
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.reading.kinds import read
from planner.reading.source import Source

SAMPLES = os.environ.get("PLAN_SAMPLES")


def safetensors(shapes: dict[str, tuple[str, list[int], int]]) -> bytes:
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, size) in shapes.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * at


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensors: list[tuple[str, list[int], int]], version: int = 3) -> bytes:
    made = b"GGUF" + struct.pack("<IQQ", version, len(tensors), 3)
    made += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    made += text("llama.block_count") + struct.pack("<II", 4, 22)
    made += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    for name, shape, kind in tensors:
        made += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, 0)
    return made


def figures(path: Path) -> dict[str, object]:
    return {each.label: each.value for each in read(Source(path)).look}


def test_safetensors_are_counted_exactly_over_shards(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(safetensors({"w": ("BF16", [3, 5], 30), "norm": ("F32", [7], 28)}))
    (tmp_path / "b.bin").write_bytes(safetensors({"v": ("F8_E4M3", [2, 2, 2], 8), "scalar": ("F32", [], 4)}))
    reading = read(Source(tmp_path / "a.bin", tmp_path / "b.bin"))
    found = {each.label: each.value for each in reading.look}
    assert (reading.kind, reading.taken) == ("safetensors", 4)
    assert found["elements"] == 15 + 7 + 8 + 1
    assert found["weight bytes"] == 30 + 28 + 8 + 4
    assert found["bytes as F32"] == 32


def test_a_shape_that_its_offsets_contradict_is_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(safetensors({"w": ("BF16", [3, 5], 30), "lie": ("F32", [7], 27)}))
    reading = read(Source(tmp_path / "a.bin"))
    assert reading.taken == 1
    assert reading.skipped.reasons == {"shape and data offsets disagree": (1, 3)}


@pytest.mark.parametrize("version", [2, 3])
def test_gguf_blocks_are_counted_exactly(tmp_path: Path, version: int) -> None:
    tensors = [("q", [256, 4], 12), ("q8", [32, 3], 8), ("n", [5], 0)]
    (tmp_path / "m").write_bytes(gguf(tensors, version))
    found = figures(tmp_path / "m")
    assert found["elements"] == 1024 + 96 + 5
    assert found["weight bytes"] == 4 * 144 + 3 * 34 + 20
    assert read(Source(tmp_path / "m")).understood["llama.block_count"] == "22"


def test_a_gguf_that_ends_early_says_so(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(gguf([("n", [5], 0)])[:-40])
    reading = read(Source(tmp_path / "m"))
    assert reading.taken == 0
    assert any("ends inside its header" in note for note in reading.notes)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 90_000_000) + b'{"dtype": 1, "data_offsets": 2',
        b"GGUF" + struct.pack("<IQQ", 3, 2**63, 1),
        b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 0, 2**60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**62),
    ],
)
def test_hostile_lengths_are_refused_in_words(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(InputError):
        read(Source(tmp_path / "m"))


def test_an_index_gives_files_and_bytes(tmp_path: Path) -> None:
    index = {"metadata": {"total_size": 123}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": 4}}
    (tmp_path / "i.json").write_text(json.dumps(index))
    reading = read(Source(tmp_path / "i.json"))
    found = {each.label: each.value for each in reading.look}
    assert (reading.taken, reading.skipped.count, found["files"], found["weight bytes"]) == (2, 1, 2, 123)


def test_changed_bytes_never_give_a_traceback(tmp_path: Path) -> None:
    chance = random.Random(22)
    whole = [gguf([("q", [256, 4], 12)]), safetensors({"w": ("BF16", [3, 5], 30)})]
    for number in range(400):
        data = bytearray(whole[number % 2])
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / "m").write_bytes(bytes(data[: chance.randint(1, len(data))]))
        with contextlib.suppress(InputError):
            read(Source(tmp_path / "m"))


@pytest.mark.skipif(not SAMPLES, reason="PLAN_SAMPLES names no folder of samples")
def test_samples_of_weights_are_read() -> None:
    for folder, kind in (("gguf_header", "gguf"), ("safetensors_header", "safetensors"),
                         ("safetensors_index", "weight-index")):  # fmt: skip
        files = sorted(Path(str(SAMPLES), folder).iterdir())
        assert files
        for file in files:
            reading = read(Source(file))
            assert (reading.kind, reading.skipped.count) == (kind, 0)
            if kind == "safetensors":
                data = file.read_bytes()
                header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
                last = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
                assert {each.label: each.value for each in reading.look}["weight bytes"] == last


def test_a_gguf_of_other_byte_order_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    path.write_bytes(b"GGUF" + (3).to_bytes(4, "big") + bytes(16))
    with pytest.raises(InputError, match="big-endian"):
        read(Source(path))
