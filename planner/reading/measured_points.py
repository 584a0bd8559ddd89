"""Measured points of serving engines: figures by what their names mean, and the rows that validation takes."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from planner.carriers import dataclass
from planner.reading.columns import english, plain
from planner.reading.kinds import Asked, Piece, Reading
from planner.units import counted

MOST_POINTS = 20_000
_SHOWN = 24
_LATENCIES = {
    "ttft": re.compile(r"ttft|time to first token|first time to token|timetofirsttoken|first token latency"),
    "tpot": re.compile(r"\btpot|time per output token|latency ms per token"),
    "itl": re.compile(r"\bitl\b|inter token latency|intertokenlatency"),
    "e2e": re.compile(
        r"e2el|\be2e\b(?!.*\btok)|request latency|end to end latency|end2end latency|^response time\b"
        r"|^(?:mean|average|median|p\d\d) latency( m?s)?$"
    ),
}
_NOT_LATENCY = re.compile(r"normalized|per s\b|throughput|slo|sla|goodput|requests|second token|first output token")
_STATS = (
    (re.compile(r"\b(mean|avg|average)\b"), "mean"),
    (re.compile(r"\b(median|p50|50th)\b"), "median"),
    (re.compile(r"\b(?:p|percentile ?)(\d{1,5}(?:\.\d+)?)\b"), "p"),
    (re.compile(r"\b(\d{1,2}(?:\.\d+)?)(?:(?:th|st|nd|rd)\b| percentile\b)"), "p"),
    (re.compile(r"\b(std|stddev|stdev|min|max|mode|variance)\b"), ""),
)
# column of planner/measurements/serving.csv -> names without case, blanks and signs
_MEANS: Mapping[str, tuple[str, ...]] = {
    "output_tokens_per_s_total": (
        "outputthroughput", "outputtokenthroughput", "outputtokenspersec", "outputtokenspersecond",
        "outputtokenthroughputtoks", "outputtokensthroughput", "totaloutputthroughputtokenssec",
        "throughputtokenspersec", "tokenspersec", "outputtokenssec", "resultsmeanoutputthroughputtokenpers",
        "throughputtokenpers", "outputtokenthroughputavgtokenssec", "outputtps", "systemoutputthroughputtoks",
        "throughputaveragetokenss", "predictedpersecond", "outputtokpersec",
        "outputthroughputtokpersec", "outputthroughputtokenspersec", "outputtokenthroughputtps",
        "throughputtokpersec", "tokpersec", "outputtoks", "outputtputtoks",
    ),
    "total_tokens_per_s": (
        "totaltokenthroughput", "totalthroughput", "totaltokenspersec", "totaltokenthroughputtoks",
        "totaltokenthroughputtokenssec", "throughputtokenspersectotal", "tokenspersecond",
        "totaltokenthroughputavgtokenssec", "systemtotalthroughputtoks", "totaltokpersec",
        "totalthroughputtokpersec", "totalthroughputtokenspersec", "totaltps", "totaltokentputtoks", "totaltputtoks",
    ),
    "requests_per_s": (
        "requestthroughput", "requestspersecond", "requestspersec", "requestthroughputreqs", "requestthroughputreqsec",
        "achievedqps", "requestthroughputavgrequestssec", "throughputrequestspersec", "qps", "averageqps", "reqpersec",
        "throughputreqpersec", "tputreqs",
    ),
    "concurrency": (
        "maxconcurrency", "numconcurrentrequests", "clientconcurrency", "concurrency", "maxrequestconcurrency",
        "batchsize", "concurrentrequests", "requestconcurrency", "numusers",
        "maximumrequestconcurrency", "maxreqeuestconcurrency", "conc", "numberofconcurrency",
        "avgnumconcurrentrequests", "numberofconcurrentrequests", "numconcurrency", "concurrentusers", "bs",
        "ofmaxconcurrency",
    ),
    "request_rate": ("requestrate", "requestedrate", "targetqps", "trafficrequestrate", "offeredrate",
                     "requestrateconfiguredrps"),
    "input_tokens": (
        "numberinputtokensmean",
        "inputtokens", "isl", "inputlen", "randominputlen", "meaninputtokens", "inputtokenlength", "inputlength",
        "prompttokens", "inputoutputlength", "avginputseqlength", "inputsequencelengthavg", "promptlenmean",
        "inputsequencelengthavgtokens", "averageinputtokensperrequest", "avginputlength", "averageinputlengthtokens",
    ),
    "output_tokens": (
        "numberoutputtokensmean",
        "outputtokens", "osl", "outputlen", "randomoutputlen", "meanoutputtokens", "outputtokenlength", "outputlength",
        "predictedn",
        "inputoutputlength", "avgoutputseqlength", "outputsequencelengthavg", "outputlenmean",
        "outputsequencelengthavgtokens", "averageoutputtokensperrequest", "avgoutputlength",
        "averageoutputlengthtokens",
    ),
    "model": ("modelid", "modelpath", "model", "modelname", "hfmodel", "modeltype"),
    "accelerator": ("accelerator", "gputype", "gpuname", "gpumodelname", "hardware", "gpu", "chipname", "device", "hw"),
    "n_accel": ("numgpus", "numofhardware", "gpucount", "ngpus", "chipcount", "devices", "numdevices", "numhardware",
                "numgpu", "worldsize"),
    "tp": ("tpsize", "tensorparallelsize", "tp"),
    "pp": ("ppsize", "pipelineparallelsize", "pp"),
    "dp": ("dpsize", "dataparallelsize"),
    "ep": ("epsize", "expertparallelsize"),
    "engine": ("engine", "backend", "framework", "inferenceengine", "softwareframework"),
    "engine_version": ("engineversion", "version", "softwareframeworkversion"),
    "weight_precision": ("precision", "weightprecision", "quantization", "modelprecision"),
    "_completed": (
        "completed", "successfulrequests", "numrequests", "requestcount", "requestcountavgrequests",
        "resultsnumcompletedrequests", "successescount", "succeedrequests", "ofreq", "successfulreq",
    ),
    "_failed": ("failed", "failedrequests", "failurescount", "errorrequestcountavgrequests", "resultsnumerrors"),
    "_total_input": ("totalinputtokens", "totalinput"),
    "_total_output": ("totaloutputtokens", "totalgeneratedtokens"),
    "_tokens_per_s": ("tokenthroughput", "tokenthroughputtokenssec", "tokenthroughputtokss", "tokensthroughput",
                      "tputtoks"),
    "_duration": ("duration", "benchmarkdurations", "elapsedtime", "benchmarkduration"),
    "output_tokens_per_s_per_device": (
        "throughputtokenspersecperchip", "pergpuoutputthroughputtpsgpu", "outputtputpergpu",
        "outputthroughputpergputoks",
    ),
    "_total_per_device": ("tputpergpu",),
    "_prefill_devices": ("numprefillgpu",),
    "_decode_devices": ("numdecodegpu",),
}  # fmt: skip
_BY_NAME = {name: column for column, names in reversed(list(_MEANS.items())) for name in names}
_RATES = {
    "requests_per_s": "requests/s", "output_tokens_per_s_total": "output tokens/s",
    "prefill_tokens_per_s": "prompt tokens/s", "total_tokens_per_s": "tokens/s",
}  # fmt: skip
_FLAGS = {"--model": "model", "--accelerator": "accelerator", "--devices": "n_accel"}
_UNSAID = {"", "auto", "n/a", "none", "null"}
_CLIENT = re.compile(r"(?i)openai|https?\b|pytorch$|tensorrt$")  # what a harness speaks, or a backend of TensorRT-LLM
_SAME_RATE = 0.05
_WORDS = {"model", "accelerator", "engine", "engine_version", "weight_precision"}
COLUMNS = (
    "id", "source", "model", "accelerator", "n_accel", "tp", "pp", "ep", "dp", "engine", "engine_version",
    "weight_precision", "input_tokens", "output_tokens", "scenario", "concurrency", "request_rate",
    "output_tokens_per_s_total", "output_tokens_per_s_per_device", "total_tokens_per_s", "requests_per_s", "ttft_ms",
    "ttft_stat", "tpot_ms", "tpot_stat", "e2e_latency_ms", "prefill_tokens_per_s",
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Point:
    """One measured point: cells of the measurement table, and every latency by its statistic.  [ms]"""

    cells: dict[str, Any] = field(default_factory=dict)
    latency_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    at: int = 1  # line or place in the file

    def best(self, name: str) -> tuple[float, str] | None:
        """A latency by the statistic that says most: the median, else the mean, else whatever there is."""
        found = self.latency_ms.get(name, {})
        return next(((found[stat], stat) for stat in ("median", "mean", *sorted(found)) if stat in found), None)


def words_of(key: str) -> str:
    """A key as words without case: Mean TTFT (ms) gives mean ttft ms."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", key)
    return re.sub(r"[^a-z0-9.]+", " ", re.sub(r"\.(?!\d)|(?<!\d)\.", " ", spaced.lower())).strip()


_IN_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?(?:[%x ]*)")


def number_of(value: Any) -> float | None:
    """A finite number; None for anything else, "inf" too, and for commas that stand between no thousands: 2,5."""
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, str) and "," in (value := value.strip().rstrip("%x ,")):
        value = value.replace(",", "") if _IN_THOUSANDS.fullmatch(value) else ""
    try:
        number = float(value.rstrip("%x ")) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def latency_key(key: str, default_ms: float) -> tuple[str, str, float] | None:
    """Which latency a key is, of which statistic, and the milliseconds in its unit; None for any other key."""
    words = words_of(key)
    if _NOT_LATENCY.search(words):
        return None
    name = next((name for name, pattern in _LATENCIES.items() if pattern.search(words)), None)
    if name is None:
        return None
    stat = "mean"
    for pattern, means in _STATS:
        match = pattern.search(words)
        if match:
            stat = _percentile(match.group(1)) if means == "p" else means
            break
    if not stat:
        return None
    unit = re.search(r"\b(ms|msec|milliseconds|us|usec|ns|s|sec|secs|seconds)\b", words)
    factor = {"m": 1.0, "u": 1e-3, "n": 1e-6, "s": 1e3}[unit.group(1)[0]] if unit else default_ms
    return name, stat, factor


def _percentile(digits: str) -> str:
    """p99 of 99, p99.9 of 99.9 and of 999, p0.1 of 001; the median of 50, and "" of 100, which is the largest."""
    if digits == "100":
        return ""
    share = float(digits) if "." in digits or len(digits) <= 2 else float(f"{digits[:2]}.{digits[2:]}")
    return "median" if share == 50 else f"p{share:g}"


def point_of(flat: Mapping[str, Any], *, default_ms: float, at: int = 1) -> Point:
    """The figures of one run by the meaning of their names; `default_ms` is the unit of times that name none.

    Parameters
    ----------
    flat
        Key -> value of one run; a key of what lies deeper has dots, and its last part counts where the whole is not
        known.
    default_ms
        Milliseconds in the unit of times whose keys name none.  [ms]
    at
        Line or place of the run in the file.
    """
    point = Point(at=at)
    rank: dict[str, int] = {}
    for key, value in flat.items():
        latency = latency_key(english(key), default_ms)
        if latency is not None:
            name, stat, factor = latency
            number = number_of(value)
            if number is not None and number >= 0:
                point.latency_ms.setdefault(name, {}).setdefault(stat, number * factor)
            continue
        spelled = re.sub(r"(?i)/ ?s(ec)?\b", " per sec", english(key))
        for stem in (plain(key), plain(key.rsplit(".", 1)[-1]), plain(spelled), plain(english(key))):
            column = _BY_NAME.get(stem)
            if column is None:
                continue
            columns = [column] if stem != "inputoutputlength" else ["input_tokens", "output_tokens"]
            for each in columns:
                _put(point, rank, each, stem, value)
            break
    _derive(point)
    return point


def _put(point: Point, rank: dict[str, int], column: str, stem: str, value: Any) -> None:
    content: Any = number_of(value)
    if column in _WORDS:
        content = value.strip()[:200] if isinstance(value, str) and value.strip().lower() not in _UNSAID else None
        if column == "engine" and content and _CLIENT.match(content):
            content = None
    if content is None or (column not in _WORDS and content < 0):
        return
    place = _MEANS[column].index(stem)
    if place < rank.get(column, 1000):
        rank[column] = place
        point.cells[column] = content


def _derive(point: Point) -> None:
    """Lengths from totals; whole counts; runs of which nothing succeeded keep no figures."""
    cells = point.cells
    done = cells.get("_completed")
    if done:
        for column, total in (("input_tokens", "_total_input"), ("output_tokens", "_total_output")):
            if cells.get(total):
                cells[column] = cells[total] / done
    if done == 0 and "_failed" in cells:
        point.latency_ms.clear()
        for column in ("output_tokens_per_s_total", "total_tokens_per_s", "requests_per_s"):
            cells.pop(column, None)
    prompts, answers = cells.get("_prefill_devices"), cells.get("_decode_devices")
    if prompts and answers:
        cells["n_accel"] = prompts + answers
        if each := cells.pop("output_tokens_per_s_per_device", None):  # told of those that make answers alone
            cells.setdefault("output_tokens_per_s_total", each * answers)
    _derive_tokens(cells)
    rate, kept_up = cells.get("request_rate"), cells.get("requests_per_s")
    if rate and kept_up and cells.get("concurrency") and abs(kept_up / rate - 1) < _SAME_RATE:
        del cells["concurrency"]  # a bound that did not bind: requests came at their rate
    if "scenario" not in cells:
        if cells.get("concurrency"):
            cells["scenario"] = "closed loop, fixed concurrency"
        elif cells.get("request_rate"):
            cells["scenario"] = "open loop"
        else:
            cells["scenario"] = "all requests at once"


def _derive_tokens(cells: dict[str, Any]) -> None:
    """Tokens a second that do not say which, where the requests a second and their lengths prove it."""
    tokens, requests = cells.get("_tokens_per_s"), cells.get("requests_per_s")
    given, made = cells.get("input_tokens"), cells.get("output_tokens")
    if not (tokens and requests and given and made):
        return
    for column, each in (("output_tokens_per_s_total", made), ("total_tokens_per_s", given + made)):
        if abs(tokens / (requests * each) - 1) < _SAME_RATE:
            cells.setdefault(column, tokens)
            return


def measured(point: Point) -> bool:
    """Whether a point holds anything that was measured."""
    names = ("output_tokens_per_s_total", "total_tokens_per_s", "requests_per_s", "prefill_tokens_per_s",
             "output_tokens_per_s_per_device")  # fmt: skip
    return bool(point.latency_ms) or any(point.cells.get(name) for name in names)


def reading_of(reading: Reading, points: Iterable[Point], asked: Asked, stem: str) -> Reading:
    """Points as figures for people and as rows for `plan validate serving` and `plan calibrate serving`.

    Parameters
    ----------
    reading
        Takes figures, notes, pieces and what was skipped; it is given back.
    points
        In the order of the file; those without anything measured are skipped, and 20,000 are kept at most.
    asked
        Its model, accelerator and devices win over those of the points.
    stem
        Names the rows: their source, the beginning of their ids, and the file.
    """
    kept: list[Point] = []
    for point in points:
        if measured(point):
            kept.append(point)
        else:
            failed = point.cells.get("_completed") == 0 and point.cells.get("_failed")
            reading.skipped.add("every request failed" if failed else "nothing measured in it", point.at)
        if len(kept) >= MOST_POINTS:
            reading.note(f"the first {MOST_POINTS:,} points are read")
            break
    for point in kept:
        if asked.model:
            point.cells["model"] = asked.model
        if asked.accelerator:
            point.cells["accelerator"] = asked.accelerator
        if asked.devices:
            point.cells["n_accel"] = asked.devices
        if not point.cells.get("n_accel") and (point.cells.get("tp") or 0) > 0:
            parts = (point.cells.get(name) or 1 for name in ("tp", "pp", "dp"))
            point.cells["n_accel"] = math.prod(max(int(part), 1) for part in parts)
        each, devices = point.cells.get("_total_per_device"), point.cells.get("n_accel")
        if each and devices:
            point.cells.setdefault("total_tokens_per_s", each * devices)
    reading.taken, reading.of = len(kept), "measured points"
    _look(reading, kept)
    _rows_piece(reading, kept, stem)
    return reading


def _look(reading: Reading, points: list[Point]) -> None:
    for point in points[:_SHOWN]:
        cells = point.cells
        load = (
            f"{cells['concurrency']:g} at once" if cells.get("concurrency")
            else f"{cells['request_rate']:g} requests/s" if cells.get("request_rate")
            else "one batch" if _unsized(point) else "all at once"
        )  # fmt: skip
        for name in ("ttft", "tpot", "itl", "e2e"):
            for stat, value in point.latency_ms.get(name, {}).items():
                if stat in ("mean", "median", "p95", "p99"):
                    reading.show(f"{load}: {name.upper()} {stat}", value, "ms")
        for column, unit in _RATES.items():
            if cells.get(column):
                reading.show(f"{load}: throughput", cells[column], unit)
    if len(points) > _SHOWN:
        reading.note(f"figures of the first {_SHOWN} points are shown; -o json shows the same, --out writes all")
    models = sorted({str(point.cells["model"]) for point in points if point.cells.get("model")})
    if models:
        reading.understood["model"] = ", ".join(models[:4])
    versions = {str(point.cells["engine_version"]) for point in points if point.cells.get("engine_version")}
    if len(versions) == 1 and not reading.version:
        reading.version = versions.pop()
    lengths = {(round(point.cells["input_tokens"]), round(point.cells["output_tokens"])) for point in points
               if point.cells.get("input_tokens") and point.cells.get("output_tokens")}  # fmt: skip
    if lengths:
        few = sorted(lengths)[:4]
        reading.understood["lengths"] = ", ".join(f"{given}+{made} tokens" for given, made in few)
    reading.understood["latencies"] = "in ms; TPOT without the first token, ITL between tokens"


def _unsized(point: Point) -> bool:
    """Whether it is of a batch that nobody says the sequences of, as results of vllm bench latency are."""
    return point.cells.get("scenario") == "static batch" and not point.cells.get("concurrency")


def _rows_piece(reading: Reading, points: list[Point], stem: str) -> None:
    if any(map(_unsized, points)):
        reading.note("how many sequences a batch has, and how long they are, stands in the command alone "
                     "(--batch-size, --input-len, --output-len): such a latency becomes no row")  # fmt: skip
        points = [point for point in points if not _unsized(point)]
    whole = [point for point in points if point.cells.get("model") and point.cells.get("accelerator")
             and (point.cells.get("n_accel") or 0) >= 1]  # fmt: skip
    if len(whole) < len(points):
        missing = [flag for flag, name in _FLAGS.items() if any(not point.cells.get(name) for point in points)]
        few = len(points) - len(whole)
        become = f"{counted(few, 'point')} {'becomes' if few == 1 else 'become'} no measurement rows"
        reading.note(f"{become}: the file does not say {', '.join(missing)}")
    if not whole:
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for number, point in enumerate(whole, start=1):
        row = {name: _cell(name, value) for name, value in point.cells.items() if name in COLUMNS}
        row["id"], row["source"] = f"{stem}-{number:04d}", stem
        ttft = point.best("ttft")
        if ttft and ttft[0] > 0:
            row["ttft_ms"], row["ttft_stat"] = f"{ttft[0]:.6g}", ttft[1]
        tpot = point.best("tpot") or point.best("itl")
        if tpot and tpot[0] > 0:
            row["tpot_ms"], row["tpot_stat"] = f"{tpot[0]:.6g}", tpot[1]
        e2e = point.latency_ms.get("e2e", {}).get("mean")
        if e2e:
            row["e2e_latency_ms"] = f"{e2e:.6g}"
        writer.writerow(row)
    says = f"{len(whole):,} measurement rows: plan validate serving --data, plan calibrate serving --data"
    reading.pieces.append(Piece(what="rows", name=f"{stem}.rows.csv", text=text.getvalue(), says=says))


def _cell(name: str, value: Any) -> Any:
    if name in _WORDS or name == "scenario":
        return " ".join(str(value).split())
    if name in ("n_accel", "tp", "pp", "ep", "dp"):
        return int(value) if value and 1 <= value < 1e6 else ""
    return f"{value:.8g}" if value else ""
