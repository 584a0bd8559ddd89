"""Logs of training runs: step times, memory and progress, as each trainer prints them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from planner.reading.kinds import Asked, Reading, read
from planner.reading.source import Source
from tests.reading import writers
from tests.reading.writers import LLM_C, SPEEDRUN, lit, nano, tune, tune_bars


def told(tmp_path: Path, content: str | bytes, asked: Asked | None = None) -> Reading:
    path = tmp_path / "run.log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(Source(path), asked)


def figures(reading: Reading) -> dict[str, float]:
    return {each.label: float(each.value) for each in reading.look}


MEDIAN = "step time, median without the first"
SAID = {
    "megatron": {MEDIAN: 2.016, "last step": 30, "steps in all": 100, "global batch": 64,
                 "memory, most of a device": 12000 * 2**20 / 1e9,
                 "useful operations, median": 150.5, "left at this pace": 70 * 2.016},
    "deepspeed": {"samples, median": 120.0, "last step": 30, "memory, most of a device": 20 * 2**30 / 1e9},
    "nemo": {MEDIAN: 6.475, "last step": 49, "steps in all": 100, "memory, most of a device": 120.0},
    "maxtext": {MEDIAN: 0.5, "last step": 8, "tokens, median": 16000.0},
    "torchtitan": {"last step": 5, "tokens, median": 4376.0, "memory, most of a device": 40 * 2**30 / 1e9},
    "trainer_state": {"step time, mean": 0.5, "last step": 1000, "samples": 16.0},
    "mllog": {"time of the run": 100.0, "step time, median": 1.5, "global batch size": 64},
    "golden": {MEDIAN: 0.6, "last step": 3},
    "events": {"train/loss, last of 5": 5.0, "step time, median by the clock": 2.0},
    "wandb": {MEDIAN: 3.0, "last step": 10},
}  # fmt: skip


@pytest.mark.parametrize("trainer", SAID)
def test_figures_are_those_of_the_log(trainer: str, tmp_path: Path) -> None:
    found = figures(told(tmp_path, getattr(writers, trainer)()))
    for label, value in SAID[trainer].items():
        assert found[label] == pytest.approx(value), label


@pytest.mark.parametrize("trainer", ["megatron", "deepspeed", "nemo", "maxtext"])
def test_a_log_that_is_still_written_gives_no_figure_of_half_a_number(trainer: str, tmp_path: Path) -> None:
    """Copied while a run goes on, a log of Megatron-LM told 4.1 s a step: its last line was of 81 ms, of 8101."""
    lines = getattr(writers, trainer)().splitlines()
    last = next(
        line for line in reversed(lines) if re.search(r"(iteration \(ms\): |PerSec=|in s: |seconds: )[\d.]", line)
    )
    cut = re.sub(r"((iteration \(ms\): |CurrSamplesPerSec=|in s: |seconds: )\d).*", r"\1", last)
    assert cut != last
    whole, half = told(tmp_path, "\n".join(lines) + "\n"), told(tmp_path, "\n".join([*lines, cut]))
    assert half.skipped.reasons == {"the last line, half written": (1, len(lines) + 1)}
    assert figures(half) == figures(whole)
    assert figures(told(tmp_path, "\n".join(lines))) == figures(whole)  # a line that is there, without its end


def test_a_job_under_way_is_written(tmp_path: Path) -> None:
    asked = Asked(model="llama-3.1-8b", accelerator="dgx-h100", devices=4, name="mine")
    reading = told(tmp_path, writers.megatron(), asked)
    (piece,) = reading.pieces
    (job,) = piece.fragment["training"]
    assert job["progress"] == f"{64 * 2048 * 30 / 1e6:.6f}".rstrip("0") + "M"
    assert job["tokens"] == f"{64 * 2048 * 100 / 1e6:.6f}".rstrip("0") + "M"
    assert job["step_time"] == {"measured": "2.016 s", "shape": "dgx-h100", "count": 4}


@pytest.mark.parametrize(
    ("accelerator", "devices", "shape", "count"),
    [
        pytest.param("dgx-h100", 32, "dgx-h100", 4, id="devices in all, as the option says"),
        pytest.param("dgx-h100", 0, "dgx-h100", 4, id="as the log says itself"),
        pytest.param("h100-sxm-80gb", 0, "onprem/dgx-h100", 4, id="a device, of which no scenario has a shape"),
        pytest.param("p5.48xlarge", 64, "aws/p5.48xlarge", 4, id="the log is surer than memory"),
    ],
)
def test_a_step_time_is_of_machines_that_hold_its_devices(
    accelerator: str, devices: int, shape: str, count: int, tmp_path: Path
) -> None:
    """64 H100 of a run became 64 machines of 8: its rest was planned on an eighth of the speed that it had."""
    asked = Asked(model="llama-3.1-8b", accelerator=accelerator, devices=devices)
    reading = told(tmp_path, writers.megatron(), asked)
    (job,) = reading.pieces[0].fragment["training"]
    assert figures(reading)["devices"] == 32
    assert (job["step_time"]["shape"], job["step_time"]["count"]) == (shape, count)
    assert any("--devices 64 is not taken" in note for note in reading.notes) == (devices == 64)


def test_devices_that_fill_no_machines_give_no_step_time(tmp_path: Path) -> None:
    reading = told(tmp_path, nano(), Asked(model="gpt2", accelerator="dgx-h100", devices=12))
    assert "step_time" not in reading.pieces[0].fragment["training"][0]
    assert any("12 devices are no whole number of machines 'dgx-h100'" in note for note in reading.notes)


def test_a_run_that_began_again_is_told(tmp_path: Path) -> None:
    text = writers.megatron(20)
    again = [line for line in text.splitlines() if "iteration" in line][9:]
    reading = told(tmp_path, text + "\n".join(again) + "\n")
    assert figures(reading)["restarts from an earlier step"] == 1


def test_a_cut_event_file_gives_what_is_whole(tmp_path: Path) -> None:
    reading = told(tmp_path, writers.events()[:-5])
    assert figures(reading)["train/loss, last of 4"] == 4.0
    assert reading.skipped.reasons == {"the last record, half written": (1, 6)}


def test_several_ranks_share_a_line(tmp_path: Path) -> None:
    lines = writers.megatron(6).splitlines()
    joined = "\n".join([*lines[:-2], lines[-2] + lines[-1]])
    assert figures(told(tmp_path, joined))["last step"] == 6


def of_steps(line: str, steps: range = range(1, 12)) -> str:
    """A line for each step; N is its number, @ the clock of a run with 2 s a step."""
    return "".join(line.replace("N", str(n)).replace("@", f"2025-03-01 10:00:{2 * n:02d}") + "\n" for n in steps)


HUGGING = (
    "  Total optimization steps = 1,218\n  Total train batch size (w. parallel, distributed) = 128\n"
    "Map: 100%|###| 90/90 [00:50<00:00, 1.8it/s]\n"
    + "\r".join(f"  1%|#  | {n}/1218 [01:{n:02d}<9:10:11,  1.00s/it]" for n in range(0, 60, 10))
    + "\n{'loss': '1.5', 'learning_rate': '2e-05', 'memory/max_allocated (GiB)': 39.5, 'epoch': 0.1}\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(of_steps(" iteration N/ 90 | elapsed time per iteration (s): 105.5 | TFLOPs: 150.9 |"),
            {MEDIAN: 105.5, "useful operations, median": 150.9}, id="Megatron-DeepSpeed, in seconds"),
        pytest.param(of_steps("[@,500] [timer.py:1:stop] 0/N, SamplesPerSec=12.5"), {"last step": 11},
            id="DeepSpeed, epoch and micro-batch"),
        pytest.param(of_steps("[@,500] [timer.py:1:stop] epoch=0/micro_step=8/global_step=N, "
            "RunningAvgSamplesPerSec=3, CurrSamplesPerSec=3.5"),
            {MEDIAN: 2.0, "samples, median": 3.5}, id="DeepSpeed by its clock"),
        pytest.param(of_steps("steps: N loss: 1.5 iter time (s): 1.25 samples/sec: 640.5"),
            {MEDIAN: 1.25, "samples, median": 640.5}, id="pipelines of DeepSpeed"),
        pytest.param("2025-03-01 10:00:00,0 - root - INFO - Training starts at step 1, with local batch size 1, "
            "global batch size 64, gradient accumulation steps 1, sequence length 8192, total steps 90 (warmup 2)\n"
            + of_steps("@,500 - root - INFO - step: N  loss: 5.1  memory: 40.0GiB(50%)  wps: 5,001  mfu: 40%"),
            {MEDIAN: 2.0, "tokens, median": 5001.0, "steps in all": 90, "global batch": 64}, id="torchtitan of 2024"),
        pytest.param("\r".join(of_steps(
            "Epoch 0: : N%|# | N/90 [00:09<01:00, global_step=N, train_step_timing in s=2.5]")
            .splitlines()), {MEDIAN: 2.5, "last step": 11}, id="NeMo 1, a bar over itself"),
        pytest.param(HUGGING, {MEDIAN: 1.0, "last step": 50, "steps in all": 1218, "global batch": 128,
            "memory, most of a device": 39.5 * 2**30 / 1e9}, id="Hugging Face Trainer, progress bar"),
        pytest.param("Total optimization steps = 500\n{'loss': 1.5, 'epoch': 0.1}\n{'train_runtime': 1000.0, "
            "'train_samples_per_second': 30, 'train_steps_per_second': 0.5, 'epoch': 3.0}\n",
            {"step time, mean": 2.0, "last step": 500}, id="Hugging Face Trainer, at its end"),
        pytest.param("epoch,step,train_loss,val_loss,train_step_timing in s,lr\n"
            + of_steps("0,N,2.1,,1.5,0.1") + "0,11,,2.2,,0.1\n", {MEDIAN: 1.5, "last step": 11}, id="Lightning"),
        pytest.param("epoch,step,train_loss,val_loss,lr,x\n" + of_steps("0,N,2.1,,0.1,1"), {"last step": 11},
            id="Lightning without times"),
        pytest.param('"Step","a - iteration-time","a - iteration-time__MIN"\n' + of_steps('"N","3.5","0.5"'),
            {MEDIAN: 3.5}, id="a curve of W&B"),
        pytest.param("step,loss,step_time_ms\n" + of_steps("N,1.5,250"), {MEDIAN: 0.25}, id="milliseconds"),
    ],
)  # fmt: skip
def test_other_versions_and_trainers_print_the_same_otherwise(
    text: str, said: dict[str, float], tmp_path: Path
) -> None:
    reading = told(tmp_path, text)
    found = figures(reading)
    assert {label: found.get(label) for label in said} == pytest.approx(said)


def test_clocks_of_whole_seconds_are_taken_over_many_steps(tmp_path: Path) -> None:
    text = of_steps("@ - root - INFO - step: N  loss: 5.1  tps: 5,001", range(1, 27))
    assert figures(told(tmp_path, text))[MEDIAN] == pytest.approx(2.0)
    near = text.splitlines()[:6]
    assert MEDIAN not in figures(told(tmp_path, "\n".join(near) + "\n"))


def test_results_without_a_step_show_none(tmp_path: Path) -> None:
    found = figures(told(tmp_path, '{"train_runtime": 100.0, "train_steps_per_second": 0.5, "epoch": 3.0}'))
    assert "last step" not in found
    assert found["step time, mean"] == 2.0


def test_an_mllog_tells_its_speed_and_how_it_ended(tmp_path: Path) -> None:
    text = (
        ':::MLLOG {"key": "tracked_stats", "value": {"throughput": 12.5}, "time_ms": 1}\n'
        ':::MLLOG {"key": "run_stop", "value": null, "time_ms": 9, "metadata": {"status": "aborted"}}\n'
    )
    reading = told(tmp_path, text)
    assert figures(reading)["samples, median"] == 12.5
    assert "The run ended as 'aborted'." in reading.notes


def test_a_curve_of_step_times_goes_before_the_clock(tmp_path: Path) -> None:
    found = figures(told(tmp_path, writers.events().replace(b"train/loss", b"steptime_s")))
    assert found["step time, median"] == 3.0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Step;_runtime;train/loss\n" + "".join(f"{n}0;{25 * n},0;2,5\n" for n in range(1, 9)), id="comma"),
        pytest.param("Step,Timestamp,loss\n" + "".join(f"{n}0,2025-01-01T10:0{n // 2}:{n % 2 * 30:02d}Z,2.5\n" for n in
                     range(1, 9)), id="written"),
        pytest.param("Step,timestamp,loss\n" + "".join(f"{n}0,{1_700_000_000_000 + n * 25_000},2.5\n" for n in
                     range(1, 9)), id="milliseconds"),
    ],
)  # fmt: skip
def test_clocks_of_tables_are_read_as_they_are_written(text: str, tmp_path: Path) -> None:
    assert figures(told(tmp_path, text))[MEDIAN] == (3.0 if "T10:" in text else 2.5)


@pytest.mark.parametrize(
    ("text", "tool", "shown"),
    [
        (nano(), "nanoGPT", {MEDIAN: 0.2505, "last step": 90, "steps in all": 600, "global batch": 480}),
        (lit(), "LitGPT", {"step time, mean": 16 * 0.4025, "last step": 5}),
        (lit().replace(" |", ":", 1).replace("Epoch 1: ", "", 1), "LitGPT", {"step time, mean": 16 * 0.4025}),
        (tune(), "torchtune", {"tokens, median": 1002.0, "memory, most of a device": 19.5 * 2**30 / 1e9}),
        (tune_bars(), "torchtune", {MEDIAN: 3.0, "last step": 100}),
        (LLM_C, "llm.c", {MEDIAN: 1.2345, "steps in all": 18865}),
        (SPEEDRUN, "modded-nanogpt", {MEDIAN: 0.1234, "steps in all": 1750}),
    ],
)  # fmt: skip
def test_figures_of_smaller_trainers(text: str, tool: str, shown: dict[str, float], tmp_path: Path) -> None:
    reading = told(tmp_path, text)
    found = figures(reading)
    assert (reading.kind, reading.tool) == ("training-log", tool)
    for label, value in shown.items():
        assert found[label] == pytest.approx(value), label


@pytest.mark.parametrize("form", ["simple", "json"])
def test_updates_of_fairseq_take_the_time_between_its_walls(form: str, tmp_path: Path) -> None:
    """Its words a second are of all devices, and its pace is told to one figure or two."""
    lines = ["2023-05-01 10:00:00 | INFO | fairseq_cli.train | {'distributed_world_size': 16, 'arch': 'gpt'}"]
    for n in range(1, 6):
        told_of = {"epoch": 1, "wps": "412545", "ups": "0.8", "wpb": "524288", "bsz": "256"}
        told_of |= {"num_updates": str(100 * n), "train_wall": "99", "wall": str(13 + 127 * n)}
        simple = ", ".join(f"{key}={value}" for key, value in told_of.items() if key != "epoch")
        said = f"epoch 001:    {100 * n} / 2000 {simple}" if form == "simple" else json.dumps(told_of)
        lines.append(f"2023-05-01 10:0{n}:00 | INFO | train_inner | {said}")
    reading = told(tmp_path, "\n".join(lines) + "\n")
    found = figures(reading)
    assert (reading.tool, reading.taken) == ("fairseq", 5)
    assert (found[MEDIAN], found["last step"], found["global batch"]) == (pytest.approx(1.27), 500, 256)
    assert "tokens, median" not in found


def test_micro_batches_are_no_steps(tmp_path: Path) -> None:
    """Where too few steps end, how many micro-batches one has is not known."""
    reading = told(tmp_path, lit(1))
    assert not any("step time" in label for label in figures(reading))
    assert any("micro-batches" in note for note in reading.notes)
    assert reading.pieces == []


def test_tokens_of_a_run_of_nanogpt(tmp_path: Path) -> None:
    (piece,) = told(tmp_path, nano(), Asked(model="gpt2", accelerator="dgx-h100", devices=8)).pieces
    (job,) = piece.fragment["training"]
    assert (job["tokens"], job["progress"], job["sequence_length"]) == ("294.912M", "44.2368M", 1024)


def resumed(*, begun: int, steps: int = 1000) -> str:
    """The state of a Trainer that went on from a checkpoint: its time, and the sum of losses, are of what followed."""
    state = json.loads(writers.trainer_state())
    losses = {step: 4.0 - step / 500 for step in range(50, steps + 1, 50)}
    history = [{"loss": loss, "step": step} for step, loss in losses.items()]
    summed = sum(50 * loss for step, loss in losses.items() if step > begun)
    end = {"step": steps, "train_runtime": 500.0, "train_loss": summed / steps, "train_steps_per_second": 2.0}
    return json.dumps(state | {"global_step": steps, "max_steps": steps, "log_history": [*history, end]})


@pytest.mark.parametrize(("begun", "step_time_s"), [(0, 0.5), (500, 1.0), (800, 2.5)])
def test_the_time_of_a_resumed_run_is_of_the_steps_since(begun: int, step_time_s: float, tmp_path: Path) -> None:
    reading = told(tmp_path, resumed(begun=begun))
    assert figures(reading)["step time, mean"] == pytest.approx(step_time_s, rel=0.01)
    assert any("resumed at about step" in note for note in reading.notes) == bool(begun)


def test_a_run_that_ended_before_and_went_on_tells_the_time_of_what_followed(tmp_path: Path) -> None:
    state = json.loads(writers.trainer_state())
    state["log_history"] += [{"loss": 1.5, "step": 1500}, {"step": 2000, "train_runtime": 1000.0}]
    reading = told(tmp_path, json.dumps(state | {"global_step": 2000, "max_steps": 2000}))
    assert figures(reading)["step time, mean"] == 1.0


def test_steps_of_a_table_are_those_of_the_trainer_not_of_what_was_logged(tmp_path: Path) -> None:
    rows = [f"{n},{5 + 20 * n},2.5,{10 + 10 * n}" for n in range(5)]
    reading = told(tmp_path, "\n".join(["_step,_runtime,train/loss,train/global_step", *rows]) + "\n")
    assert (figures(reading)[MEDIAN], figures(reading)["last step"]) == (2.0, 50)
    assert reading.understood["steps"] == "train/global_step"
    logged = told(tmp_path, "\n".join(["_step,_runtime,train/loss", *(row.rsplit(",", 1)[0] for row in rows)]) + "\n")
    assert figures(logged)[MEDIAN] == 20.0
    assert "counts what was logged" in logged.understood["steps"]


def test_of_several_runs_in_a_table_the_one_that_is_read_is_named(tmp_path: Path) -> None:
    text = "Step,one - iteration-time,two - iteration-time\n10,2,4\n20,2,4\n30,2,4\n"
    reading = told(tmp_path, text)
    assert figures(reading)[MEDIAN] == 2.0
    assert any("2 runs; one is read" in note for note in reading.notes)
    assert not told(tmp_path, text.replace("two - ", "one - x")).notes[0].startswith("It holds")


def test_a_table_without_a_time_says_so(tmp_path: Path) -> None:
    reading = told(tmp_path, "_step,train/loss,timing/data\n10,2.5,1\n20,2.4,1\n30,2.3,1\n")
    assert any("No column tells a time" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("text", "tool", "shown"),
    [
        pytest.param("".join(f'{{"current_steps": {n}0, "total_steps": 500, "elapsed_time": "0:{n:02d}:00"}}\n'
                             for n in range(1, 9)),
                     "LLaMA-Factory or ms-swift", {MEDIAN: 6.0, "steps in all": 500}, id="LLaMA-Factory"),
        pytest.param("".join(f'{{"loss": 1.5, "global_step/max_steps": "{n}0/500", "elapsed_time": "{n}m 0s"}}\n'
                             for n in range(1, 9)),
                     "LLaMA-Factory or ms-swift", {MEDIAN: 6.0, "last step": 80}, id="ms-swift"),
        pytest.param(of_steps("[INFO|DP=0]: iteration: N / 500 | consumed_tokens: 2.1M | "
                              "elapsed_time_per_iteration_ms: 1.25K | global_batch_size: 1.02K | lm_loss: 8.1"),
                     "nanotron", {MEDIAN: 1.25, "steps in all": 500, "global batch": None}, id="nanotron"),
        pytest.param(of_steps("[batch=N/90]:\n\t Train throughput/batches_per_sec: 0.5\n"
                              "\t Train throughput/device/tokens_per_sec: 16384"),
                     "Composer or OLMo", {MEDIAN: 2.0, "tokens, median": 16384.0}, id="Composer"),
        pytest.param(of_steps("@\tINFO\t[step=N/90,epoch=0]\n    throughput/device/tokens_per_second=12,345\n"
                              "    throughput/device/batches_per_second=0.2"),
                     "Composer or OLMo", {MEDIAN: 5.0, "tokens, median": 12345.0}, id="OLMo"),
        pytest.param(of_steps("[batch=N/90]:\n\t Train throughput/batches_per_sec: 0.25\n"
                              "\t Train throughput/tokens_per_sec: 262144.0\n"
                              "\t Train throughput/device/batches_per_sec: 0.0039\n"
                              "\t Train throughput/device/tokens_per_sec: 4096.0"),
                     "Composer or OLMo", {MEDIAN: 4.0, "tokens, median": 4096.0, "devices": 64}, id="LLM Foundry"),
        pytest.param(of_steps("INFO [step=N/90,epoch=1]\n    throughput/device/BPS=0.25\n"
                              "    throughput/device/TPS=8,123"),
                     "Composer or OLMo", {MEDIAN: 4.0, "tokens, median": 8123.0}, id="OLMo-core"),
        pytest.param(of_steps("step N/21400 (0.1%) | loss: 8.1 | grad norm: 0.5 | dt: 480.00ms | tok/sec: 1,092,100"),
                     "nanochat", {MEDIAN: 0.48, "steps in all": 21400}, id="nanochat"),
        pytest.param(of_steps("step    N | loss: 6.1 | lr 6e-04 | norm: 1.2 | dt: 340.00ms | tok/sec: 1541234.10"),
                     "nanochat", {MEDIAN: 0.34}, id="build-nanogpt"),
    ],
)  # fmt: skip
def test_trainers_that_write_records_or_several_lines_a_step(
    text: str, tool: str, shown: dict[str, float | None], tmp_path: Path
) -> None:
    reading = told(tmp_path, text)
    found = figures(reading)
    assert (reading.kind, reading.tool) == ("training-log", tool)
    assert {label: found.get(label) for label in shown} == shown


def test_losses_in_lines_that_end_as_those_of_windows(tmp_path: Path) -> None:
    lines = [f"{step} {8 - step / 10:.4f}" for step in range(1, 21)]
    for ending in ("\n", "\r\n"):
        assert figures(told(tmp_path, ending.join([*lines, ""]).encode())) == {"loss, last": 6.0, "last step": 20}


LOSSES = "".join(f"{{'loss': {2 - n / 100:.2f}, 'grad_norm': 0.45, 'epoch': {n / 100}}}\n" for n in range(1, 20))
TITAN = "".join(f"2025-09-25 11:40:{n:02d},000 - root - INFO - step: {n:2d}  loss: 8.1  tps: 810\n" for n in range(20))


@pytest.mark.parametrize(
    ("head", "text", "shown"),
    [
        ("==((====))==  Unsloth - 2x faster free finetuning | Num GPUs = 1\n"
         "\\        /    Total batch size = 8 | Total steps = 60\n", LOSSES,
         {"devices": 1, "global batch": 8, "steps in all": 60}),
        ("==((====))==  Unsloth | Num GPUs used = 8\n   \\   /|    Num Epochs = 1 | Total steps = 60\n"
         "\\        /    Data Parallel GPUs = 8 | Total batch size (2 x 4 x 8) = 64\n", LOSSES,
         {"devices": 8, "global batch": 64, "steps in all": 60}),
        ("2025-09-25 11:39:44,702 - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [32, 8]\n", TITAN,
         {"devices": 256}),
        ("2025-09-25 11:39:44,702 - INFO - Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=4, "
         "cp=1, tp=8, ep=8, etp=1\n", TITAN, {"devices": 64}),
        ("All distributed processes registered. Starting with 16 processes\n", TITAN, {"devices": 16}),
        ("Num_devices: 32, shape (1, 1, 32, 1)\n", TITAN, {"devices": 32}),
    ],
)  # fmt: skip
def test_a_run_tells_its_devices(head: str, text: str, shown: dict[str, float], tmp_path: Path) -> None:
    found = figures(told(tmp_path, head + text))
    assert {label: found.get(label) for label in shown} == shown


VERL = ("step:{n} - global_seqlen/mean:15000.0 - actor/pg_loss:0.01 - perf/mfu/actor:0.41 - "
        "perf/max_memory_allocated_gb:61.5 - timing_s/gen:20.1 - timing_s/update_actor:30.2 - timing_s/step:{s} - "
        "perf/total_num_tokens:1310720 - perf/time_per_step:{s} - perf/throughput:{tps}\n")  # fmt: skip


@pytest.mark.parametrize(("before", "numbers"), [
    ("", "{}"), ("(TaskRunner pid=3120) ", "{}"), ("(main_task pid=77) \x1b[36m", "np.float64({})"),
])  # fmt: skip
def test_steps_of_verl(before: str, numbers: str, tmp_path: Path) -> None:
    lines = [VERL.format(n=n, s=numbers.format(60.0 + n), tps=numbers.format(1310720 / (60.0 + n) / 16))
             for n in range(1, 6)]  # fmt: skip
    reading = told(tmp_path, "".join(before + line for line in lines), Asked(model="qwen3-8b"))
    shown = figures(reading)
    assert (reading.tool, shown[MEDIAN], shown["devices"], shown["last step"]) == ("verl", 63.5, 16, 5)
    assert shown["of it making answers, median"] == 20.1
    assert shown["memory, most of a device"] == pytest.approx(61.5 * 2**30 / 1e9)
    assert not reading.pieces
    assert any("makes answers and rates them" in note for note in reading.notes)


def test_fine_tuning_by_verl_is_a_job(tmp_path: Path) -> None:
    line = "step:{n} - train/loss:0.512 - train/lr(1e-3):0.0098 - train/time(s):2.5\n"
    reading = told(tmp_path, "".join(line.format(n=n) for n in range(1, 6)), Asked(model="qwen3-8b"))
    assert (reading.tool, figures(reading)[MEDIAN]) == ("verl", 2.5)
    assert [piece.what for piece in reading.pieces] == ["scenario"]
