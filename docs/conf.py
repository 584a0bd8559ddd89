"""The site: the Markdown of this folder and an API reference from docstrings. `make site` builds it."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import planner

ROOT = Path(__file__).resolve().parents[1]

project = "plan"
author = "The authors of plan"
release = version = planner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["generate", "notebooks"]
root_doc = "index"
html_theme = "furo"
html_title = f"plan {release}"
html_theme_options = {"source_repository": "", "navigation_with_keys": True}
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
# pages in the order of the contents at the left
TREES = {
    "index": """getting-started
tutorials/engineer
tutorials/infrastructure-lead
tutorials/reserve-or-rent
tutorials/finance
gallery
faq
beside-other-tools
commands
scenario
catalog
sweeps
live
python
api
model
glossary
validation
reliability
corrections
architecture
decisions/README""",
    "model": ":glob:\n\nmodel/*",
    "decisions/README": ":glob:\n\n0*",
}
_LINK = re.compile(r"\]\((?!\w+:|#|/)([^)\s]+?)(#[^)\s]*)?\)")


def links_to_files(app: Any, name: str, source: list[str]) -> None:
    """A link to what is no page is shown as the file's path, since a site has no code and no data; and the contents."""
    page = Path(app.env.doc2path(name))

    def shown(found: re.Match[str]) -> str:
        target = (page.parent / found[1]).resolve()
        if target.is_relative_to(Path(app.srcdir)) and target.suffix in (".md", ".png", ".svg"):
            return found[0]
        path = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else posixpath.normpath(found[1])
        return f"] (`{path}`)"

    source[0] = _LINK.sub(shown, source[0]).replace("```csv\n", "```text\n")  # nothing colours tables
    if tree := TREES.get(name):
        source[0] += f"\n```{{toctree}}\n:hidden:\n{tree}\n```\n"


def setup(app: Any) -> None:
    """What this site adds to Sphinx."""
    app.connect("source-read", links_to_files)
