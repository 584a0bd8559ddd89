"""Small catalogs that extend the shipped one, written for a test."""

from __future__ import annotations

from pathlib import Path

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog, Offer

HEAD = "schema: catalog/v1\nextends: default\n"


def written(folder: Path, text: str, **files: str) -> Path:
    """A folder with a catalog.yaml and other files, "devices/mine.yaml" as devices__mine_yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "catalog.yaml").write_text(text, encoding="utf-8")
    for name, content in files.items():
        stem, _, suffix = name.replace("__", "/").rpartition("_")
        (folder / f"{stem}.{suffix}").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{stem}.{suffix}").write_text(content, encoding="utf-8")
    return folder


def extended(folder: Path, text: str, **files: str) -> Catalog:
    """The catalog of a folder whose catalog.yaml goes on with a text after `extends: default`."""
    return load_catalog(written(folder, HEAD + text, **files))


def offers_of(catalog: Catalog) -> dict[str, Offer]:
    """Offers by id."""
    return {offer.id: offer for offer in catalog.offers}
