"""Small files of the formats that people have, written for the tests of `planner/reading/`; none is a copy."""

from __future__ import annotations

import csv
import io
import json
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tests.reading import deployment_writers
from tests.reading.cluster_writers import SMALL as CLUSTERS
from tests.reading.market_writers import SMALL as PRICES
from tests.reading.trace_writers import SMALL as TRACES

Request = tuple[float, int, int]  # seconds from the start, prompt, answer
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
START = datetime(2025, 3, 3, 9, 0, 0, tzinfo=UTC)


def requests(count: int = 400, seed: int = 1) -> list[Request]:
    """Requests that come in bursts, with long-tailed lengths."""
    lots = random.Random(seed)
    found, at = [], 0.0
    for _ in range(count):
        at += lots.expovariate(2.0) * (0.1 if lots.random() < 0.7 else 4.0)
        found.append((round(at, 6), int(lots.lognormvariate(6, 1)) + 1, int(lots.lognormvariate(4, 0.8)) + 1))
    return found


def azure(rows: Sequence[Request]) -> str:
    """Wall clock with seven digits and no zone."""
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for at, given, made in rows:
        lines.append(f"{(START + timedelta(seconds=at)).strftime('%Y-%m-%d %H:%M:%S.%f')}0,{given},{made}")
    return "\r\n".join(lines) + "\r\n"


def burstgpt(rows: Sequence[Request]) -> str:
    """Seconds from a midnight, columns with blanks, and sessions in between."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["Timestamp", "Session ID", "Elapsed time", "Model", "Request tokens", "Response tokens",
                     "Total tokens", "Log Type"])  # fmt: skip
    for number, (at, given, made) in enumerate(rows):
        writer.writerow([at + 86400, number % 7, 1.5, "ChatGPT", given, made, given + made, "Conversation log"])
    return text.getvalue()


def mooncake(rows: Sequence[Request], shared: int = 3) -> str:
    """Milliseconds from the start, ids of blocks of 512 tokens of which the first ones are shared."""
    lines, fresh = [], 1000
    for at, given, made in rows:
        blocks = -(-given // 512)
        ids = [*range(min(shared, blocks)), *range(fresh, fresh + max(blocks - shared, 0))]
        fresh += max(blocks - shared, 0)
        record = {"timestamp": round(at * 1000), "input_length": given, "output_length": made, "hash_ids": ids}
        lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def litellm(rows: Sequence[Request]) -> str:
    """One JSON array; times with an offset, tokens below `usage`."""
    return json.dumps([
        {"request_id": f"r{n}", "startTime": (START + timedelta(seconds=at)).isoformat(), "model": "m",
         "status": "success",
         "usage": {"prompt_tokens": given, "completion_tokens": made}}
        for n, (at, given, made) in enumerate(rows)
    ], indent=1)  # fmt: skip


def vllm_bench(concurrency: int = 8, **more: object) -> str:
    """A result of vLLM's bench serve."""
    result: dict[str, object] = {
        "backend": "vllm", "model_id": MODEL, "num_prompts": 100, "request_rate": "inf",
        "max_concurrency": concurrency, "duration": 50.0, "completed": 100, "failed": 0, "total_input_tokens": 102400,
        "total_output_tokens": 12800, "request_throughput": 2.0, "output_throughput": 256.0,
        "total_token_throughput": 2304.0, "mean_ttft_ms": 120.5, "median_ttft_ms": 100.25, "p99_ttft_ms": 300.0,
        "mean_tpot_ms": 12.0, "median_tpot_ms": 11.5, "p99_tpot_ms": 20.0, "mean_itl_ms": 12.2,
    }  # fmt: skip
    return json.dumps(result | more)


def sglang_bench() -> str:
    """Two runs, a line each; Infinity as no strict JSON has it."""
    lines = []
    for clients in (4, 16):
        record = json.loads(vllm_bench(clients, total_throughput=2304.0, mean_e2e_latency_ms=1500.0))
        del record["total_token_throughput"]
        record["request_rate"] = float("inf")
        record["server_info"] = {"model_path": "org/model", "tp_size": 2, "version": "0.5.1"}
        lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def vllm_console() -> str:
    """A result as printed."""
    return """noise before
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  50.00
Total input tokens:                      102400
Total generated tokens:                  12800
Request throughput (req/s):              2.00
Output token throughput (tok/s):         256.00
Total Token throughput (tok/s):          2304.00
---------------Time to First Token----------------
Mean TTFT (ms):                          120.50
Median TTFT (ms):                        100.25
P99 TTFT (ms):                           300.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          12.00
Median TPOT (ms):                        11.50
==================================================
"""


def guidellm() -> str:
    """A report with one benchmark; latencies of whole requests in seconds."""

    def spread(mean: float) -> dict[str, object]:
        return {"successful": {"mean": mean, "median": mean * 0.9, "percentiles": {"p95": mean * 2, "p99": mean * 3}},
                "errored": {"mean": 0.0}}  # fmt: skip

    metrics = {"requests_per_second": spread(2.0), "request_concurrency": spread(8.0), "request_latency": spread(1.5),
               "prompt_token_count": spread(1024.0), "output_token_count": spread(128.0),
               "time_to_first_token_ms": spread(120.0), "inter_token_latency_ms": spread(12.0),
               "output_tokens_per_second": spread(256.0), "tokens_per_second": spread(2304.0)}  # fmt: skip
    return json.dumps({"benchmarks": [{"type_": "generative_benchmark", "metrics": metrics, "worker": {}}]})


def aiperf() -> str:
    """Metrics with units; the unit of the first token is seconds here, which must be obeyed."""
    return json.dumps({
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "request_latency": {"unit": "ms", "avg": 1500.0, "p50": 1400.0, "p99": 3000.0},
        "time_to_first_token": {"unit": "s", "avg": 0.12, "p50": 0.1, "p99": 0.3},
        "inter_token_latency": {"unit": "ms", "avg": 12.0, "p50": 11.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 256.0},
        "input_config": {"endpoint": {"model_names": ["org/model"]}, "loadgen": {"concurrency": 8}},
    }, indent=2)  # fmt: skip


def inference_perf() -> str:
    """Latencies in seconds below successes."""

    def spread(mean: float) -> dict[str, float]:
        return {"mean": mean, "median": mean * 0.9, "p90": mean * 1.5, "p99": mean * 2}

    latency = {"request_latency": spread(1.5), "time_to_first_token": spread(0.12),
               "normalized_time_per_output_token": spread(0.9), "time_per_output_token": spread(0.012)}  # fmt: skip
    return json.dumps({
        "load_summary": {"count": 100, "requested_rate": 2.0, "achieved_rate": 2.0},
        "successes": {"count": 100, "latency": latency, "prompt_len": spread(1024.0), "output_len": spread(128.0),
                      "throughput": {"input_tokens_per_sec": 2048.0, "output_tokens_per_sec": 256.0,
                                     "total_tokens_per_sec": 2304.0, "requests_per_sec": 2.0}},
        "failures": {"count": 0},
    })  # fmt: skip


def llmperf() -> str:
    """Flat keys, in seconds."""
    return json.dumps({
        "version": "2023-08-31", "model": "org/model", "num_concurrent_requests": 8, "mean_input_tokens": 1024,
        "mean_output_tokens": 128, "results_ttft_s_mean": 0.12, "results_ttft_s_quantiles_p50": 0.1,
        "results_inter_token_latency_s_mean": 0.012, "results_end_to_end_latency_s_mean": 1.5,
        "results_mean_output_throughput_token_per_s": 256.0, "results_num_completed_requests": 100,
        "results_num_completed_requests_per_min": 120.0,
    })  # fmt: skip


def trtllm_console() -> str:
    """Labels with blanks and tabs."""
    return """===========================================================
= PERFORMANCE OVERVIEW
===========================================================
Request Throughput (req/sec):                 \t  2.0000
Total Output Throughput (tokens/sec):         \t  256.0000
Total Token Throughput (tokens/sec):          \t  2304.0000
Average request latency (ms):                 \t  1500.0000
Average time-to-first-token [TTFT] (ms):      \t  120.0000
Average time-per-output-token [TPOT] (ms):    \t  12.0000
"""


def llama_bench() -> str:
    """A prompt test and a decode test at a depth."""
    head = {"build_number": 6000, "gpu_info": "Some GPU", "model_type": "llama 8B Q4_0"}
    rows = [{"n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 1500.5},
            {"n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 50.25}]  # fmt: skip
    return "\n".join(json.dumps(head | row) for row in rows) + "\n"


def megatron(steps: int = 30, sequence: int = 2048, batch: int = 64) -> str:
    """The log of a run of 100 steps that was looked at after some, with arguments before and memory lines between."""
    lines = ["noise", f"  seq_length ...................................... {sequence}",
             "  world_size ...................................... 32"]  # fmt: skip
    for step in range(1, steps + 1):
        took = 9000.0 if step == 1 else 2000.0 + step
        lines.append(
            f" [2025-08-01 07:19:37] iteration {step:8d}/     100 | consumed samples: {step * batch:12d} | elapsed"
            f" time per iteration (ms): {took} | throughput per GPU (TFLOP/s/GPU): 150.5 |"
            f" global batch size: {batch:5d} |"
        )
        if step == 1:
            lines.append(
                "[Rank 0] (after 1 iterations) memory (MB) | allocated: 9000.0 | max allocated: 12000.0 | reserved: 1"
            )
    return "\n".join(lines) + "\n"


def deepspeed() -> str:
    """Both forms of the step counter."""
    return "".join(
        f"[2023-04-18 01:46:59,171] [INFO] [timer.py:199:stop] epoch=0/micro_step={n}/global_step={n},"
        f" RunningAvgSamplesPerSec=100.0, CurrSamplesPerSec={100 + n}.0, MemAllocated=4.0GB, MaxMemAllocated=20.0GB\n"
        for n in (10, 20, 30)
    )


def nemo() -> str:
    """Progress lines of NeMo 2."""
    return "".join(
        f"Training epoch 0, iteration {n}/99 | lr: 1e-06 | global_batch_size: 128 | global_step: {n} |"
        f" max_memory_reserved: 120000000000 | reduced_train_loss: 11.9 | train_step_timing in s: {6 + n / 100} |"
        f" TFLOPS_per_GPU: 1.25e+03 | consumed_samples: {n * 128}\n"
        for n in range(45, 50)
    )


def maxtext() -> str:
    """Lines of MaxText's metric logger."""
    return "".join(
        f"I0706 16:50:26.230209 140 metric_logger.py:214] completed step: {n}, seconds: {20.0 if n == 1 else 0.5},"
        f" TFLOP/s/device: 80.5, Tokens/s/device: 16000.0, loss: 0.6\n"
        for n in range(1, 9)
    )


def torchtitan() -> str:
    """Console lines with colour."""
    return "".join(
        f"\x1b[31mstep: {n:2d}  \x1b[32mloss: {9 - n:.5f}  \x1b[33mgrad_norm:  9.6  \x1b[34mmemory: 40.00GiB(51.44%)"
        f"  \x1b[36mtps: 4,376  \x1b[37mtflops: 253.41  mfu: 25.62%\x1b[0m\n"
        for n in range(1, 6)
    )


def trainer_state() -> str:
    """A finished run of a Trainer."""
    history: list[dict[str, float]] = [{"epoch": n / 10, "loss": 2.0, "step": n * 100} for n in range(1, 11)]
    history.append({"epoch": 1.0, "step": 1000, "train_runtime": 500.0, "train_samples_per_second": 16.0,
                    "train_steps_per_second": 2.0})  # fmt: skip
    return json.dumps({"epoch": 1.0, "global_step": 1000, "max_steps": 1000, "log_history": history,
                       "train_batch_size": 8}, indent=2)  # fmt: skip


def mllog() -> str:
    """A run of 100 s with a step time of its own."""
    events: list[tuple[int, str, object]] = [
        (0, "submission_benchmark", "llama"), (1, "global_batch_size", 64), (1000, "run_start", None),
        (50_000, "tracked_stats", {"train_step_time": 1.5}), (101_000, "run_stop", None),
    ]  # fmt: skip
    return "".join(
        ":::MLLOG " + json.dumps({"namespace": "", "time_ms": 1700000000000 + at, "event_type": "POINT_IN_TIME",
                                  "key": key, "value": value, "metadata": {}}) + "\n"
        for at, key, value in events
    )  # fmt: skip


def golden() -> str:
    """Recorded curves of Megatron-LM's tests."""
    return json.dumps({
        "lm loss": {"start_step": 1, "end_step": 3, "step_interval": 1, "values": {"1": 10.5, "2": 10.4, "3": 10.1}},
        "iteration-time": {"start_step": 1, "end_step": 3, "step_interval": 1,
                           "values": {"1": "nan", "2": 0.5, "3": 0.7}},
    })  # fmt: skip


def _varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def _framed(record: bytes) -> bytes:
    return struct.pack("<Q", len(record)) + b"\0\0\0\0" + record + b"\0\0\0\0"


def _text(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def events(count: int = 5) -> bytes:
    """A TensorBoard event file: a step every two seconds, a scalar as a float or as a tensor."""
    data = _framed(b"\x09" + struct.pack("<d", 1.7e9) + _text(3, b"brain.Event:2"))
    for n in range(1, count + 1):
        tensor = _varint(1 << 3) + b"\x01" + _varint(4 << 3 | 2) + b"\x04" + struct.pack("<f", float(n))
        value = _text(1, b"train/loss") + (b"\x15" + struct.pack("<f", float(n)) if n % 2 else _text(8, tensor))
        record = b"\x09" + struct.pack("<d", 1.7e9 + 2.0 * n) + _varint(2 << 3) + _varint(n) + _text(5, _text(1, value))
        data += _framed(record)
    return data


def wandb() -> str:
    """A step every three seconds."""
    return "Step,Runtime,loss\n" + "".join(f"{n},{3.0 * n},{5 - n / 10}\n" for n in range(1, 11))


def usage() -> str:
    """Two buckets of an hour each."""
    return json.dumps({"object": "page", "data": [
        {"object": "bucket", "start_time": 1736600400 + 3600 * n, "end_time": 1736604000 + 3600 * n,
         "results": [{"input_tokens": 1000, "output_tokens": 200, "num_model_requests": 10,
                      "input_cached_tokens": 250}]}
        for n in range(2)
    ]})  # fmt: skip


def servegen() -> str:
    """Windows without a first line of names."""
    return "".join(
        f"{600 * n},{n % 3 / 2},{2.0 if n % 3 else 0},{'Gamma' if n % 3 else ''},0.4,0.5\n" for n in range(12)
    )


def vllm_log() -> str:
    """Statistics between other lines."""
    return "INFO 03-03 vLLM API server version 0.9.1\n" + "".join(
        f"INFO 03-03 09:0{n}:00 [loggers.py:111] Engine 000: Avg prompt throughput: {100 * n}.0 tokens/s,"
        f" Avg generation throughput: {10 * n}.5 tokens/s, Running: {n} reqs, Waiting: 0 reqs,"
        f" GPU KV cache usage: {n}.5%, Prefix cache hit rate: 40.0%\n"
        for n in range(1, 6)
    )


def points_table() -> str:
    """A publisher's own table: throughput named by its unit, batch sizes."""
    return ("Hardware,Num of Hardware,Framework,Model,Input Output Length,Batch Size,Latency,Throughput\n"
            "GPU X,1,vLLM,org/model,128,16,2.0,2048.0\nGPU X,2,vLLM,org/model,128,16,1.0,999.0\n")  # fmt: skip


def model_config() -> str:
    """A decoder that sees, quantised, as its publisher writes it."""
    return json.dumps({
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
        "transformers_version": "4.54.0", "quantization_config": {"quant_method": "fp8"},
        "text_config": {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 6, "head_dim": 16,
                        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
                        "vocab_size": 1000, "max_position_embeddings": 4096},
        "vision_config": {"hidden_size": 32, "image_size": 28, "patch_size": 14, "intermediate_size": 64,
                          "num_attention_heads": 2, "num_hidden_layers": 3, "vision_use_head": False},
    }, indent=1)  # fmt: skip


def quant_config() -> str:
    """What ModelOpt leaves beside the weights."""
    return json.dumps({"producer": {"name": "modelopt", "version": "0.31.0"},
                       "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
                                        "exclude_modules": ["lm_head"]}})  # fmt: skip


def adapter_config() -> str:
    """What PEFT leaves beside an adapter."""
    return json.dumps({"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8, "lora_alpha": 16,
                       "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"})  # fmt: skip


def megatron_script() -> str:
    """A launch script with names of its own."""
    return ("#!/bin/bash\nTP=4\nexport SEQ=${SEQ:-2048}\n# --global-batch-size 7\n"
            "ARGS=(\n  --num-layers 32\n  --hidden-size 4096\n  --seq-length $SEQ\n  --micro-batch-size 2\n"
            "  --global-batch-size 512  # --bf16 said here is no argument\n  --train-iters 1000\n"
            "  --tensor-model-parallel-size ${TP}\n"
            "  --pipeline-model-parallel-size $UNSET\n  --use-distributed-optimizer\n  --fp16\n)\n"
            "torchrun pretrain_gpt.py ${ARGS[@]}\n")  # fmt: skip


def titan_toml() -> str:
    """A preset of torchtitan."""
    return ('[model]\nname = "llama3"\nflavor = "8B"\nhf_assets_path = "./assets/hf/Llama-3.1-8B"\n[training]\n'
            "local_batch_size = 2\nglobal_batch_size = 64\nseq_len = 8192\nsteps = 10\n[parallelism]\n"
            "data_parallel_shard_degree = -1\ntensor_parallel_degree = 2\n[activation_checkpoint]\n"
            'mode = "selective"\n')  # fmt: skip


def deepspeed_config() -> str:
    """Settings, of which some are left to the trainer."""
    return json.dumps({"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": True},
                       "zero_optimization": {"stage": 2}})  # fmt: skip


def axolotl() -> str:
    """A fine-tune."""
    return ("base_model: meta-llama/Llama-3.2-3B\ndatasets:\n  - path: a/b\nsequence_len: 512\n"
            "micro_batch_size: 16\nbf16: true\nfsdp_config:\n  sharding_strategy: FULL_SHARD\n"
            "  activation_checkpointing: true\n")  # fmt: skip


def accelerate() -> str:
    """What `accelerate config` writes."""
    return ("distributed_type: FSDP\nmixed_precision: 'bf16'\nnum_processes: 2\nfsdp_config:\n"
            "  fsdp_sharding_strategy: SHARD_GRAD_OP\n")  # fmt: skip


def maxtext_script() -> str:
    """Settings behind a program."""
    return ("python3 -m maxtext.train base.yml model_name=llama3.1-8b remat_policy=full \\\n"
            "  per_device_batch_size=1.0 max_target_length=4096 ici_tensor_parallelism=8"
            " dcn_fsdp_parallelism=2\n")  # fmt: skip


def nemo_config() -> str:
    """Sections, of which one has what another trainer has on top."""
    return ("trainer:\n  num_nodes: 16\n  devices: 8\n  precision: bf16\n  max_steps: 100\nmodel:\n"
            "  micro_batch_size: 1\n  global_batch_size: 2048\n  rampup_batch_size: null\n"
            "  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 8\n"
            "  virtual_pipeline_model_parallel_size: 6\n  encoder_seq_length: 2048\n"
            "  optim:\n    name: mcore_distributed_optim\n")  # fmt: skip


def torchtune_config() -> str:
    """Components by their names in code."""
    return ("model:\n  _component_: torchtune.models.llama3_1.llama3_1_70b\ntokenizer:\n"
            "  _component_: torchtune.models.llama3.llama3_tokenizer\n  max_seq_len: 4096\nbatch_size: 2\nepochs: 3\n"
            "optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\ndtype: bf16\nfsdp_cpu_offload: True\n"
            "enable_activation_checkpointing: True\nenable_activation_offloading: True\n")  # fmt: skip


def neox_config() -> str:
    """YAML in braces, with dashes and underscores."""
    return ('# a run\n{\n  "pipe-parallel-size": 1,\n  "model-parallel-size": 2,\n  "num-layers": 24,\n'
            '  "hidden-size": 2048,\n  "num-attention-heads": 16,\n  "seq-length": 2048,\n'
            '  "zero_optimization": {"stage": 1},\n  "train_micro_batch_size_per_gpu": 4,\n'
            '  "fp16": {"enabled": true},\n  "checkpoint-activations": true,\n}\n')  # fmt: skip


def nano() -> str:
    head = "Overriding: block_size = 1024\nmax_iters = 600\ntokens per iteration will be: 491,520\n"
    times = {0: 9000.0} | dict.fromkeys(range(10, 100, 10), 250.5)
    return head + "step 0: train loss 10.9894, val loss 10.9897\n" + "".join(
        f"iter {at}: loss 9.1, time {time:.2f}ms, mfu -100.00%\n" for at, time in times.items())  # fmt: skip


def lit(steps: int = 5) -> str:
    """LitGPT, with 16 micro-batches in a step, from amid a step."""
    return "".join(
        f"Epoch 1 | iter {at} step {at // 16} | loss train: 10.5, val: n/a | iter time: 402.50 ms"
        f"{' (step)' if at % 16 == 0 else ''} remaining time: 1 day, 3:00:00\n" for at in range(7, 16 * steps + 4)
    )  # fmt: skip


def tune() -> str:
    return "".join(
        f"Step {at} | loss:1.23 lr:2e-05 tokens_per_second_per_gpu:{1000 + at} peak_memory_active:20.1 "
        "peak_memory_alloc:19.5 peak_memory_reserved:22.0 \n" for at in range(1, 4)
    )  # fmt: skip


def tune_bars() -> str:
    """torchtune as it runs: a bar for each epoch, whose clock begins anew."""
    bars = [(epoch, 50 * epoch + at, at) for epoch in range(2) for at in range(1, 51)]
    return "\r".join(
        f"{epoch + 1}|{step}|Loss: 1.234:  9%|▏ | {at}/50 [{at * 3 // 60:02d}:{at * 3 % 60:02d}<01:40,  3.00s/it]"
        for epoch, step, at in bars
    )  # fmt: skip


LLM_C = "".join(f"step {at:4d}/18865 | loss 7.5 (+0.1z)| norm 1.2 (+nanz)| lr 6e-4 | 1234.50 ms | 45.3% bf16 MFU | 9\n"
            for at in range(1, 9))  # fmt: skip
SPEEDRUN = "".join(f"step:{at}/1750 train_loss:3.2 train_time:{at * 123}ms step_avg:123.40ms\n" for at in range(1, 9))

# name -> kind, and how a file of it is made
SMALL: Mapping[str, tuple[str, Callable[[], str | bytes]]] = {
    "azure.csv": ("requests-table", lambda: azure(requests())),
    "burstgpt.csv": ("requests-table", lambda: burstgpt(requests())),
    "mooncake.jsonl": ("requests-json", lambda: mooncake(requests())),
    "litellm.json": ("requests-json", lambda: litellm(requests())),
    "vllm.json": ("bench-vllm", vllm_bench),
    "sglang.jsonl": ("bench-vllm", sglang_bench),
    "vllm.txt": ("bench-console", vllm_console),
    "trtllm.txt": ("bench-console", trtllm_console),
    "guidellm.json": ("bench-guidellm", guidellm),
    "aiperf.json": ("bench-aiperf", aiperf),
    "inference_perf.json": ("bench-inference-perf", inference_perf),
    "llmperf.json": ("bench-llmperf", llmperf),
    "llama.jsonl": ("bench-llama", llama_bench),
    "points.csv": ("bench-table", points_table),
    "megatron.log": ("training-log", megatron),
    "deepspeed.log": ("training-log", deepspeed),
    "nemo.log": ("training-log", nemo),
    "maxtext.log": ("training-log", maxtext),
    "nanogpt.log": ("training-log", nano),
    "litgpt.log": ("training-log", lit),
    "torchtune.log": ("training-log", tune),
    "torchtune_bars.log": ("training-log", tune_bars),
    "llm_c.log": ("training-log", lambda: LLM_C),
    "speedrun.log": ("training-log", lambda: SPEEDRUN),
    "torchtitan.log": ("training-log", torchtitan),
    "trainer_state.json": ("training-trainer", trainer_state),
    "mllog.txt": ("training-mllog", mllog),
    "golden.json": ("training-golden", golden),
    "events.tfevents": ("training-tensorboard", events),
    "wandb.csv": ("training-metrics", wandb),
    "usage.json": ("usage", usage),
    "servegen.csv": ("rate-windows", servegen),
    "vllm.log": ("vllm-log", vllm_log),
    **CLUSTERS,
    **TRACES,
    **PRICES,
    "config.json": ("model-config", model_config),
    "hf_quant_config.json": ("quant-config", quant_config),
    "adapter_config.json": ("adapter-config", adapter_config),
    "megatron.sh": ("train-config", megatron_script),
    "titan.toml": ("train-config", titan_toml),
    "ds_config.json": ("train-config", deepspeed_config),
    "axolotl.yaml": ("train-config", axolotl),
    "accelerate.yaml": ("train-config", accelerate),
    "maxtext.sh": ("train-config", maxtext_script),
    "nemo.yaml": ("train-config", nemo_config),
    "torchtune.yaml": ("train-config", torchtune_config),
    "neox.yml": ("train-config", neox_config),
    "production_stack.yaml": ("deployment", deployment_writers.production_stack),
    "llm_d.yaml": ("deployment", deployment_writers.llm_d),
    "kserve.yaml": ("deployment", deployment_writers.kserve),
    "dynamo.yaml": ("deployment", deployment_writers.dynamo),
    "compose.yaml": ("deployment", deployment_writers.compose),
    "kueue.yaml": ("queues", deployment_writers.kueue),
}
