"""The manifest and the job script of the page on sweeps are read by parsers of their kind."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_manifest_is_one_cluster_whose_service_finds_its_scheduler() -> None:
    (made,) = [yaml.safe_load(text) for text in blocks("yaml")]
    assert (made["apiVersion"], made["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    worker, scheduler = made["spec"]["worker"]["spec"], made["spec"]["scheduler"]
    for spec in (worker, scheduler["spec"]):
        (container,) = spec["containers"]
        validated(container)
    ports = {one["name"]: one["containerPort"] for one in scheduler["spec"]["containers"][0]["ports"]}
    for one in scheduler["service"]["ports"]:
        assert ports[one["targetPort"]] == one["port"]
    assert scheduler["service"]["selector"]["dask.org/cluster-name"] == made["metadata"]["name"]
    assert scheduler["service"]["type"] == "ClusterIP"  # what it runs is anybody's code


def validated(container: dict[str, Any]) -> None:
    """By the models of Kubernetes' own client: every key is one of a container, every argument a text."""
    from kubernetes.client.models.v1_container import V1Container

    known = set(V1Container.attribute_map.values())
    assert set(container) <= known
    assert all(isinstance(one, str) for one in container["args"])


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_the_job_script_parses() -> None:
    (script,) = blocks("bash")
    assert script.startswith("#!/bin/bash\n#SBATCH ")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=30)
    directives = re.findall(r"^#SBATCH (--[a-z-]+)=", script, re.MULTILINE)
    assert len(directives) == script.count("#SBATCH")
