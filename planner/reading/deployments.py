"""Deployments of serving engines, a fleet as it stands: Helm values, KServe, Dynamo, Ray, compose, workloads.

Nothing is rendered or run: a name that a container's own environment sets is put in, no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from planner.carriers import dataclass
from planner.reading.engine_arguments import Engine, engine_of, fleets_of, listed, mapping, text_of, whole
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading
from planner.reading.source import Source, refused
from planner.yamlfile import parse_yaml

_LIMIT_BYTES = 4_000_000
_MOST_DOCUMENTS = 500
_MOST_ENGINES = 200
_DEEP = 12
_WORDS = r"vllm|sglang|trtllm|tensorrt-llm|llama-server|llama\.cpp|text-generation-inference|lmcache|dynamo"
# who wrote a file -> marks of it, all of which are there
_MARKS: Mapping[str, tuple[str, ...]] = {
    "Dynamo": (r"""(?m)^[ \t]*"?kind"?:\s*"?DynamoGraphDeployment\b""", r"apiVersion"),
    "KServe": (r"""(?m)^[ \t]*"?kind"?:\s*"?(LLM)?Inference(Service|ServiceConfig)\b|(Cluster)?ServingRuntime\b""",
               r"serving\.kserve\.io/"),
    "vLLM production stack": (r"(?m)^[ \t]*\"?servingEngineSpec\b", r"(?m)\bmodelSpec\b"),
    "llm-d": (r"(?m)^[ \t]*\"?(modelArtifacts|modelservice|sampleApplication)\b", r"(?m)^[ \t]+\"?decode\b|^decode\b"),
    "Dynamo graph": (r"""(?m)^[ \t]+"?ServiceArgs"?:""", r"""(?m)^[ \t]*"?\w*Worker"?:"""),
    "Ray Serve LLM": (r"\bllm_configs\b|\bmodel_loading_config\b", r"\bmodel_loading_config\b", r"\bmodel_id\b"),
    "NIM": (r"""(?m)^[ \t]*"?kind"?:\s*"?NIMService\b""", r"apps\.nvidia\.com/"),
    "Kubernetes": (r"""(?:^|[{,\n])[ \t]*"?kind"?:\s*"?(Deployment|StatefulSet|LeaderWorkerSet|Rollout|StormService"""
                   r"""|RoleBasedGroup|PodCliqueSet|Pod)\b""", r"containers", _WORDS),
    "Helm": (r"(?m)^replicaCount:", r"(?m)^image:", _WORDS),
    "Docker Compose": (r"(?m)^[ \t]{0,2}\"?services\"?:", r"(?m)^[ \t]*\"?image\"?:", _WORDS),
}  # fmt: skip
_QUEUE = r"""(?m)^[ \t]*"?kind"?:\s*"?ClusterQueue\b"""
_DEVICE = re.compile(r"(nvidia\.com/gpu|amd\.com/gpu|google\.com/tpu|gpu\.intel\.com/\w+|habana\.ai/gaudi|gpu)")
# labels of nodes that name their device
_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
           "cloud.google.com/gke-tpu-accelerator",
           "gpu.nvidia.com/model", "gpu.nvidia.com/class", "k8s.amazonaws.com/accelerator",
           "node.kubernetes.io/instance-type")  # fmt: skip
_OF_A_STACK = {"name", "repository", "tag", "modelURL", "replicaCount", "requestGPU", "requestGPUType", "vllmConfig",
               "lmcacheConfig", "env", "nodeSelectorTerms", "hf_token", "labels"}  # fmt: skip


def _match(source: Source) -> Match:
    if not source.is_text:
        return NOTHING
    best = NOTHING
    for tool, patterns in _MARKS.items():
        there = tuple(pattern for pattern in patterns if re.search(pattern, source.head_text))
        score = 0.96 * len(there) / len(patterns) if re.search(patterns[0], source.head_text) else 0.0
        if score > best.score:
            missing = () if len(there) == len(patterns) else (f"what else {tool} writes, or an engine",)
            best = Match(score=score, found=(tool,), missing=missing, tool=tool)
    return best


def _queue_match(source: Source) -> Match:
    if not source.is_text or not re.search(_QUEUE, source.head_text):
        return NOTHING
    return Match(score=0.96 if "kueue" in source.head_text else 0.5, found=("ClusterQueue",), tool="Kueue")


def _documents(source: Source, reading: Reading) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """First line and content of each document, of a List its items; what is no mapping is counted."""
    text, line = source.text(_LIMIT_BYTES), 1
    if re.search(r"(?m)^[ \t]*\{\{", text):
        raise refused(source, "bad-yaml", f"{source.name} is a template of Helm, not what it makes",
                      "helm template CHART --values VALUES > made.yaml, and read that; or read the values")  # fmt: skip
    parts = re.split(r"(?m)^---[^\n]*$", text)
    if len(parts) > _MOST_DOCUMENTS:
        reading.skipped.add(f"documents after the first {_MOST_DOCUMENTS}", 1, len(parts) - _MOST_DOCUMENTS)
    for part in parts[:_MOST_DOCUMENTS]:
        problems: list[Any] = []
        content = parse_yaml("\n" * (line - 1) + part, source.name, problems=problems).data if part.strip() else None
        for problem in problems:
            reading.skipped.add(problem.reference, problem.places[0].line or line if problem.places else line)
        items = content.get("items") if isinstance(content, Mapping) and content.get("kind") == "List" else [content]
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping):
                yield line, item
            elif item is not None:
                reading.skipped.add("no mapping of settings", line)
        line += part.count("\n")


@dataclass(slots=True, kw_only=True)
class _Found:
    """What the documents of a source tell, before engines are put together."""

    reading: Reading
    configs: dict[str, Mapping[str, Any]]  # file name -> settings, of ConfigMaps
    runtimes: dict[str, Mapping[str, Any]]  # of KServe, by name


def _read(source: Source, asked: Asked) -> Reading:
    tool = _match(source).tool
    reading = Reading(kind="deployment", title="deployment of serving engines", source=source.name, tool=tool,
                      of="groups of engines")  # fmt: skip
    documents = [each for part in source.parts for each in _documents(part, reading)]
    found = _Found(reading=reading, configs=_configs(documents), runtimes=_runtimes(documents))
    engines: list[Engine] = []
    for line, document in documents:
        for engine in _engines(document, found, line):
            if len(engines) >= _MOST_ENGINES:
                reading.skipped.add(f"groups after the first {_MOST_ENGINES}", line)
            else:
                engines.append(engine)
    if not engines and found.runtimes:  # a runtime by itself: settings of an engine, of no model and no number
        engines = [
            engine_of(name, [spec], replicas=None, line=1)
            for name, spec in list(found.runtimes.items())[:_MOST_ENGINES]
        ]
        reading.note("A runtime says neither the model nor how many: read it together with its InferenceService.")
    reading.taken = len(engines)
    if not engines:
        reading.note("No engine is told: what the chart brings by itself stands elsewhere (helm template CHART).")
        if not reading.skipped.count:
            reading.skipped.add("settings that tell of no engine", 1)
        return reading
    show_engines(reading, engines, asked)
    return reading


def _engines(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """Groups of equal engines of one document."""
    kind = str(document.get("kind") or "")
    for marks, tell in _FORMS:
        if kind in marks if kind else any(mark in document for mark in marks):
            yield from tell(document, found, line)
            return
    if kind not in ("ConfigMap", "ServingRuntime", "ClusterServingRuntime"):
        found.reading.skipped.add(f"{(kind or 'a document')[:60]}: tells of no engine", line)


def _note_others(reading: Reading, document: Mapping[str, Any], known: Iterable[str]) -> None:
    """Say which settings of a file are not carried over."""
    others = [str(key)[:60] for key, value in document.items() if key not in known and value not in (None, {}, [])]
    if others:
        reading.note(f"Not carried over: {', '.join(others[:30])}.")


def _configs(documents: list[tuple[int, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Files of settings that ConfigMaps hold, by their names."""
    found: dict[str, Mapping[str, Any]] = {}
    for _, document in documents:
        for name, text in mapping(document.get("data")).items() if document.get("kind") == "ConfigMap" else ():
            if isinstance(text, str) and str(name).endswith((".yaml", ".yml", ".json")):
                settings = parse_yaml(text, str(name)[:100], problems=[]).data
                if isinstance(settings, Mapping):
                    found[str(name)] = settings
    return found


def _runtimes(documents: list[tuple[int, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Containers of KServe's runtimes by the names of the runtimes."""
    found: dict[str, Mapping[str, Any]] = {}
    for _, document in documents:
        if document.get("kind") in ("ServingRuntime", "ClusterServingRuntime"):
            name = text_of(mapping(document.get("metadata")).get("name")) or "runtime"
            found[name] = mapping(next(iter(listed(mapping(document.get("spec")).get("containers"))), None))
    return found


def _production_stack(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    _note_others(found.reading, document, {"servingEngineSpec"})
    for spec in map(mapping, listed(mapping(document.get("servingEngineSpec")).get("modelSpec"))):
        cache = mapping(spec.get("lmcacheConfig"))
        role = {"kv_producer": "prefill", "kv_consumer": "decode"}.get(str(cache.get("kvRole")), "")
        _note_others(found.reading, spec, _OF_A_STACK)
        yield engine_of(
            text_of(spec.get("name")) or "engine",
            [{"image": spec.get("repository"), "args": mapping(spec.get("vllmConfig")).get("extraArgs"),
              "env": spec.get("env")}],
            settings=mapping(spec.get("vllmConfig")), model=text_of(spec.get("modelURL")), engine="vllm", role=role,
            replicas=_of_stack(spec), devices=None if spec.get("raySpec") else whole(spec.get("requestGPU")),
            device=_labelled(spec) or _typed(spec), line=line,
        )  # fmt: skip


def _of_stack(spec: Mapping[str, Any]) -> int | None:
    """Replicas of a model: as counted, else the fewest that scale themselves; None where neither is said."""
    if spec.get("raySpec"):  # one engine over machines, which are what is counted
        return 1
    if spec.get("replicaCount") is not None:
        return whole(spec["replicaCount"], least=0)
    return whole(mapping(spec.get("keda")).get("minReplicaCount"), least=0)


def _chart(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """Values of a chart for one engine, as vLLM's own and that of text-generation-inference."""
    image, named = mapping(document.get("image")), document.get("model")
    models = listed(document.get("gpuModels"))
    yield engine_of(
        text_of(document.get("fullnameOverride")) or "engine",
        [{"image": f"{text_of(image.get('repository'))}:{image.get('tag')}", "command": image.get("command"),
          "args": document.get("args") or document.get("extraArgs"), "env": document.get("env"),
          "resources": document.get("resources")}],
        model=text_of(mapping(named).get("id") or named), replicas=whole(document.get("replicaCount"), least=0),
        device=_labelled(document) or text_of(models[0] if models else None), line=line,
    )  # fmt: skip


def _llm_d(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    sample = mapping(document.get("sampleApplication"))
    if "sampleApplication" in document and "modelArtifacts" not in document:
        if sample.get("enabled") is False:
            found.reading.skipped.add("sampleApplication: not enabled", line)
            return
        document = {**sample, "modelArtifacts": {"uri": mapping(sample.get("model")).get("modelArtifactURI")}}
    _note_others(found.reading, document, {"modelArtifacts", "decode", "prefill", "enabled", "model"})
    artifacts = mapping(document.get("modelArtifacts"))
    model = text_of(artifacts.get("name")) or text_of(artifacts.get("uri"))
    both = all(
        mapping(document.get(role)) and mapping(document[role]).get("create", True) for role in ("decode", "prefill")
    )
    for role in ("decode", "prefill"):
        part = mapping(document.get(role))
        if not part or part.get("create") is False:
            continue
        yield engine_of(
            role if not model else f"{model.rsplit('/', 1)[-1]}-{role}",
            [mapping(each) for each in listed(part.get("containers"))],
            settings=_parallel(part.get("parallelism")), model=model, engine="vllm", role=role if both else "",
            replicas=whole(part.get("replicas"), least=0), nodes=_nodes(part.get("parallelism")), line=line,
            device=_labelled(part) or _labelled(mapping(part.get("extraConfig"))) or _labelled(document),
        )  # fmt: skip


def _parallel(value: Any) -> dict[str, Any]:
    """Sizes as charts call them: tensor, pipeline, data, expert."""
    names = {"tensor": "tp", "pipeline": "pp", "data": "dp"}
    said = {names[key]: size for key, size in mapping(value).items() if key in names and whole(size)}
    if mapping(value).get("expert") is True:
        said["enable-expert-parallel"] = True
    return said


def _nodes(value: Any) -> int:
    """Machines of one replica, where a chart says how many of its ranks of data one machine has."""
    ranks, local = whole(mapping(value).get("data")), whole(mapping(value).get("dataLocal"))
    return max(ranks // local, 1) if ranks and local else 1


def _llm_service(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    spec, name = mapping(document.get("spec")), text_of(mapping(document.get("metadata")).get("name"))
    model = mapping(spec.get("model"))
    prefill = mapping(spec.get("prefill"))
    for role, part in (("decode" if prefill else "", spec), ("prefill", prefill)):
        if not part:
            continue
        template = mapping(part.get("template"))
        yield engine_of(
            f"{name or 'engine'}-{role}".rstrip("-"), [mapping(each) for each in listed(template.get("containers"))],
            settings=_parallel(part.get("parallelism")), nodes=_nodes(part.get("parallelism")), role=role,
            engine="vllm", model=text_of(model.get("name")) or text_of(model.get("uri")),
            replicas=whole(part.get("replicas", 1), least=0), device=_labelled(template), line=line,
        )  # fmt: skip


def _service(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """KServe's InferenceService, with the runtime that it names where that is read, too."""
    predictor = mapping(mapping(document.get("spec")).get("predictor"))
    model, worker = mapping(predictor.get("model")), mapping(predictor.get("workerSpec"))
    runtime = text_of(model.get("runtime"))
    if runtime and runtime not in found.runtimes:
        found.reading.note(
            f"Its runtime '{runtime[:80]}' is not among the files: what that sets of the engine is not known."
        )
    containers = [mapping(each) for each in listed(predictor.get("containers"))] or [model]
    sizes = {"tp": worker.get("tensorParallelSize"), "pp": worker.get("pipelineParallelSize")}
    least, most = whole(predictor.get("minReplicas", 1), least=0), whole(predictor.get("maxReplicas"))
    if most and most != least:
        found.reading.note(
            f"It grows to {most} replicas by itself: the fleet takes the fewest; autoscaling: plans that."
        )
    yield engine_of(
        text_of(mapping(document.get("metadata")).get("name")) or "engine",
        [found.runtimes.get(runtime, {}), *containers],
        settings={key: size for key, size in sizes.items() if size}, replicas=least,
        nodes=(whole(sizes["pp"]) or 1) if worker else 1, device=_labelled(predictor),
        model=text_of(model.get("storageUri")) or text_of(mapping(model.get("storage")).get("path")),
        engine=text_of(mapping(model.get("modelFormat")).get("name")), line=line,
    )  # fmt: skip


def _dynamo(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    spec = mapping(document.get("spec"))
    services = spec.get("services") or spec.get("components")
    if isinstance(services, list):  # from v1beta1 on
        services = {text_of(mapping(each).get("name")) or f"part-{n}": each for n, each in enumerate(services)}
    for name, part in mapping(services).items():
        part = mapping(part)
        pod = mapping(part.get("extraPodSpec")) or mapping(mapping(part.get("podTemplate")).get("spec"))
        container = mapping(pod.get("mainContainer") or next(iter(listed(pod.get("containers"))), None))
        kind = str(part.get("componentType") or part.get("type") or "").lower()
        if kind not in ("worker", "prefill", "decode"):
            found.reading.skipped.add(f"{str(name)[:60]}: no worker", line)
            continue
        role = str(part.get("subComponentType") or (kind if kind != "worker" else "")).lower()
        nodes = whole(mapping(part.get("multinode")).get("nodeCount")) or 1
        engine = engine_of(
            str(name), [container, {"resources": part.get("resources")}],
            replicas=whole(part.get("replicas", 1), least=0), nodes=nodes, engine=text_of(spec.get("backendFramework")),
            settings=_said_in_files(container, found),
            role=role if role in ("prefill", "decode") else "", device=_labelled(pod), line=line,
        )  # fmt: skip
        engine.graph = text_of(mapping(document.get("metadata")).get("name"))
        yield engine


def _said_in_files(container: Mapping[str, Any], found: _Found) -> dict[str, Any]:
    """Settings of the files that arguments of a container name, where a ConfigMap beside holds them."""
    said: dict[str, Any] = {}
    for word in map(str, listed(container.get("args"))):
        settings = found.configs.get(word.rsplit("/", 1)[-1], {})
        for key, value in settings.items():
            inner = {f"{key}.{name}": each for name, each in value.items()} if isinstance(value, Mapping) else {}
            said.update(inner or {str(key): value})
    return said


def _compose(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    for name, part in mapping(document.get("services")).items():
        part = mapping(part)
        if not re.search(_WORDS, f"{part.get('image')} {part.get('command')}"):
            found.reading.skipped.add(f"{str(name)[:60]}: no serving engine", line)
            continue
        deploy = mapping(part.get("deploy"))
        reserved = mapping(mapping(deploy.get("resources")).get("reservations")).get("devices")
        held = [mapping(each) for each in listed(reserved)]
        count = sum(whole(each.get("count")) or len(listed(each.get("device_ids"))) for each in held)
        command = part.get("command")
        yield engine_of(
            str(name), [{"image": part.get("image"), "command": part.get("entrypoint"), "args": command,
                         "env": part.get("environment")}],
            replicas=whole(deploy.get("replicas", part.get("scale", 1)), least=0), devices=count or None, line=line,
        )  # fmt: skip


def _workload(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """A Deployment, a StatefulSet, groups of pods of a LeaderWorkerSet, or one pod."""
    spec, name = mapping(document.get("spec")), text_of(mapping(document.get("metadata")).get("name"))
    group = mapping(spec.get("leaderWorkerTemplate"))
    template = (
        mapping(spec.get("template")) or mapping(group.get("leaderTemplate")) or mapping(group.get("workerTemplate"))
    )
    pod = spec if document.get("kind") == "Pod" else mapping(template.get("spec"))
    containers = [mapping(each) for each in listed(pod.get("containers"))]
    engines = [
        each
        for each in containers
        if re.search(_WORDS, f"{each.get('image')} {each.get('command')} {each.get('args')}")
    ]
    if not engines:
        found.reading.skipped.add(f"{(name or 'a workload')[:60]}: no serving engine", line)
        return
    yield engine_of(name or "engine", engines[:1], replicas=whole(spec.get("replicas", 1), least=0),
                    nodes=whole(group.get("size")) or 1, device=_labelled(pod), line=line)  # fmt: skip


def _groups(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """Roles of what runs several kinds of pods together, each with its replicas."""
    graph, any_engine = text_of(mapping(document.get("metadata")).get("name")), False
    for name, replicas, pod in _pods(document.get("spec"), 1, graph):
        containers = [mapping(each) for each in listed(pod.get("containers"))]
        engine = next(
            (each for each in containers if re.search(_WORDS, f"{each.get('image')} {each.get('args')}")), None
        )
        if engine is None:
            continue
        role = next((role for role in ("prefill", "decode") if role in name.lower()), "")
        any_engine = True
        told = engine_of(name or "engine", [engine], replicas=replicas, role=role, device=_labelled(pod), line=line)
        told.graph = graph
        yield told
    if not any_engine:
        found.reading.skipped.add(f"{(graph or 'a group')[:60]}: no serving engine", line)


def _pods(value: Any, replicas: int, name: str, depth: int = 0) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Specifications of pods below a value: what they are called, how many, and what runs in them."""
    if depth > _DEEP:
        return
    if isinstance(value, Mapping):
        count = whole(value.get("replicas", 1), least=0)
        replicas, name = replicas * (1 if count is None else count), text_of(value.get("name")) or name
        if listed(value.get("containers")):
            yield name, replicas, value
            return
    for part in value.values() if isinstance(value, Mapping) else listed(value):
        yield from _pods(part, replicas, name, depth + 1)


def _nim(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """NVIDIA's service of one model, which the name of its image tells."""
    spec = mapping(document.get("spec"))
    image = text_of(mapping(spec.get("image")).get("repository"))
    yield engine_of(
        text_of(mapping(document.get("metadata")).get("name")) or "engine",
        [{"image": image, "env": spec.get("env"), "resources": spec.get("resources")}],
        replicas=whole(spec.get("replicas", 1), least=0), model=image.partition("/nim/")[2], device=_labelled(spec),
        line=line,
    )  # fmt: skip


def _ray(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """Models of Ray Serve, in a file of their own, of an application or of a service of Kubernetes."""
    text = mapping(document.get("spec")).get("serveConfigV2")
    if isinstance(text, str):
        document = mapping(parse_yaml(text, found.reading.source, problems=[]).data)
    parts = [document, *(mapping(mapping(each).get("args")) for each in listed(document.get("applications")))]
    for part in parts:
        configs = [("", each) for each in listed(part.get("llm_configs"))]
        configs += [(role, part[f"{role}_config"]) for role in ("prefill", "decode") if f"{role}_config" in part]
        for role, config in configs if "model_loading_config" not in part else [("", part)]:
            loading, deployed = (
                mapping(mapping(config).get(f"{key}_config")) for key in ("model_loading", "deployment")
            )
            if not loading:
                found.reading.skipped.add("a model whose settings stand elsewhere", line)
                continue
            least = mapping(deployed.get("autoscaling_config")).get("min_replicas", 1)
            number = whole(deployed.get("num_replicas"), least=0)
            settings = mapping(config.get("engine_kwargs"))
            yield engine_of(
                text_of(loading.get("model_id")) or "engine", [], settings=settings, role=role, line=line,
                replicas=whole(least, least=0) if number is None else number, engine="vllm",
                model=text_of(loading.get("model_source")) or text_of(loading.get("model_id")),
                device=text_of(config.get("accelerator_type")),
            )  # fmt: skip


def _graph(document: Mapping[str, Any], found: _Found, line: int) -> Iterator[Engine]:
    """Dynamo's components before they were resources of Kubernetes: settings of each, some of them in common."""
    common = mapping(document.get("Common"))
    apart = any("prefill" in str(name).lower() for name in document)
    for name, part in document.items():
        asked = mapping(mapping(part).get("ServiceArgs"))
        if "Worker" not in str(name) or not mapping(part):
            if name != "Common":
                found.reading.skipped.add(f"{str(name)[:60]}: no worker", line)
            continue
        shared = {key: common[key] for key in map(str, listed(part.get("common-configs"))) if key in common}
        settings = {key: value for key, value in part.items() if key not in ("ServiceArgs", "common-configs")}
        yield engine_of(
            str(name), [], settings=shared | settings, replicas=whole(asked.get("workers", 1), least=0),
            devices=whole(mapping(asked.get("resources")).get("gpu")), engine=str(name).removesuffix("Worker"),
            role="" if not apart else "prefill" if "prefill" in str(name).lower() else "decode", line=line,
        )  # fmt: skip


_Tell = Callable[[Mapping[str, Any], _Found, int], Iterator[Engine]]
# kinds, or keys of documents without one -> what tells of their engines
_FORMS: tuple[tuple[tuple[str, ...], _Tell], ...] = (
    (("DynamoGraphDeployment",), _dynamo),
    (("LLMInferenceService", "LLMInferenceServiceConfig"), _llm_service),
    (("InferenceService",), _service),
    (("Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout", "Pod"), _workload),
    (("StormService", "RoleBasedGroup", "PodCliqueSet"), _groups),
    (("NIMService",), _nim),
    (("RayService",), _ray),
    (("applications", "llm_configs", "model_loading_config"), _ray),
    (
        tuple(f"{engine}{part}Worker" for engine in ("", "Vllm", "SGLang", "TensorRTLLM") for part in ("", "Decode")),
        _graph,
    ),
    (("servingEngineSpec",), _production_stack),
    (("modelArtifacts", "sampleApplication"), _llm_d),
    (("services",), _compose),
    (("replicaCount",), _chart),
)


def _labelled(part: Mapping[str, Any]) -> str:
    """The device that a selector of nodes names; "" when none does."""
    selector = mapping(part.get("nodeSelector"))
    terms = [*listed(part.get("nodeSelectorTerms")), mapping(part.get("acceleratorTypes"))]
    affinity = mapping(mapping(part.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms += listed(required.get("nodeSelectorTerms"))
    for term in map(mapping, terms):
        said = [mapping(each) for each in listed(term.get("matchExpressions"))]
        said.append({"key": term.get("labelKey"), "values": term.get("labelValues")})
        for each in said:
            values = listed(each.get("values"))
            if len(values) == 1:
                selector = {**selector, str(each.get("key")): values[0]}
    return next((text_of(selector[key]) for key in _LABELS if selector.get(key)), "")


def _typed(spec: Mapping[str, Any]) -> str:
    """The device that `requestGPUType` names; "" where it is a resource of Kubernetes, as nvidia.com/gpu."""
    said = text_of(spec.get("requestGPUType"))
    return "" if "/" in said else said


def show_engines(reading: Reading, engines: list[Engine], asked: Asked) -> None:
    """Show what stands, and make the fleets that follow.

    Parameters
    ----------
    reading
        Takes figures, notes and the piece of a scenario.
    engines
        Groups of equal engines.
    asked
        Name, model and accelerator of it win over what the file says.
    """
    fleets = fleets_of(engines, reading, asked)
    counted = [engine for engine in engines if engine.replicas is not None and engine.devices]
    if counted or any(engine.replicas is not None for engine in engines):
        reading.show("replicas", sum(engine.replicas or 0 for engine in engines))
    if unsaid := [engine.title for engine in engines if engine.replicas is None]:
        reading.note(f"How many replicas of {', '.join(unsaid[:5])} there are is not said, or is no count: "
                     "min_replicas of the fleet holds it.")  # fmt: skip
    if counted:
        reading.show("devices", sum((engine.replicas or 0) * (engine.devices or 0) for engine in counted))
    for engine in engines[:20]:
        reading.understood[engine.title] = engine.said_of_it()[:200]
    fragment: dict[str, Any] = {"serving": [fleet for fleet, _ in fleets]}
    allowed = sorted({device for _, device in fleets if device})
    if allowed and all(device for _, device in fleets):
        fragment["hardware"] = {"allow": allowed}
        reading.note(f"Its devices are {', '.join(allowed)}: hardware.allow, unless the scenario has one.")
    elif not asked.accelerator:
        unsaid = [str(fleet["name"]) for fleet, device in fleets if not device][:5] if allowed else []
        whose = f"are those of {', '.join(unsaid)}" if unsaid else "these are"
        reading.note(f"No label says which devices {whose}: --accelerator h100-sxm-80gb names them.")
    names = [str(fleet["name"]) for fleet, _ in fleets]
    reading.note(
        "Its load stands elsewhere: plan read LOG --into the same scenario with --name "
        + f"{names[0]}, or qpm, input_tokens and output_tokens."
    )
    free = " ".join(f"--set serving.{name}.layout=null --set serving.{name}.min_replicas=0" for name in names[:2])
    reading.note(
        "Solved so, it is the fleet as it stands, with more replicas where the load wants them. Then what would be "
        f"better, and few changes: plan solve SCENARIO {free} --previous .plan/SCENARIO.plan.json --within 5%"
    )
    says = f"{len(fleets)} fleet{'s' if len(fleets) > 1 else ''} as {'they stand' if len(fleets) > 1 else 'it stands'}"
    reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment=fragment, says=says))


def _queues(source: Source, asked: Asked) -> Reading:
    """Quotas of Kueue: what of a cluster may be used."""
    reading = Reading(kind="queues", title="quotas of a Kubernetes cluster", source=source.name, tool="Kueue",
                      of="quotas")  # fmt: skip
    devices = 0
    for line, document in (each for part in source.parts for each in _documents(part, reading)):
        if document.get("kind") != "ClusterQueue":
            reading.skipped.add(f"{str(document.get('kind'))[:60]}: no queue", line)
            continue
        name = text_of(mapping(document.get("metadata")).get("name"))[:80]
        for quota in _quotas(document):
            resource = text_of(quota.get("name"))
            count = whole(quota.get("nominalQuota"), least=0)
            if not _DEVICE.fullmatch(resource):
                reading.skipped.add("a quota of no accelerators", line)
            elif count is None:
                reading.skipped.add("a quota of accelerators that is no count", line)
            else:
                reading.taken += 1
                devices += count
                reading.show(f"{resource} of {name}", count)
    if not reading.taken and not reading.skipped.count:
        reading.skipped.add("queues without quotas", 1)
    if devices:
        fragment = {"limits": {"max_devices": devices}}
        says = "limits.max_devices: the quotas of all queues"
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment=fragment, says=says))
        reading.note(
            "What queues borrow of their cohort is not counted; which devices they are, kubectl get nodes tells."
        )
    return reading


def _quotas(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for group in map(mapping, listed(mapping(document.get("spec")).get("resourceGroups"))):
        for flavor in map(mapping, listed(group.get("flavors"))):
            yield from map(mapping, listed(flavor.get("resources")))


KINDS = (
    Kind(name="deployment", title="deployment of serving engines",
         looks_for="Helm values of vLLM's production stack or llm-d, KServe, Dynamo, Ray, compose, workloads",
         recognise=_match, read=_read),
    Kind(name="queues", title="quotas of a Kubernetes cluster", looks_for="ClusterQueue of Kueue",
         recognise=_queue_match, read=_queues),
)  # fmt: skip
