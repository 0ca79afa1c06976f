"""How Sphinx builds the documentation: ``make site``, once in English and once (``-t zh``) in Chinese.

The source is the repository itself, so that pages are where readers of the repository find them. ``pages.py`` has what
Sphinx cannot know of them, ``navigation.yaml`` their order.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from chinese_search import ChineseSearch  # noqa: E402
from docstrings import columns_as_definitions  # noqa: E402
from notebook import as_markdown  # noqa: E402
from pages import PATTERNS, SUFFIXES, Pages  # noqa: E402

import msprobe_ms  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CHINESE = tags.has("zh")  # noqa: F821 - Sphinx puts it here
PAGES = Pages(HERE.parents[1], chinese=CHINESE)

project = "msprobe_ms"
project_copyright = "msprobe_ms contributors"
version = release = msprobe_ms.__version__
language = "zh_CN" if CHINESE else "en"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
source_suffix = dict.fromkeys(SUFFIXES, "markdown")
include_patterns = PATTERNS
exclude_patterns = PAGES.excluded()
# Examples leave out what does not matter with `…`, which no lexer of their language knows.
suppress_warnings = ["misc.highlighting_failure"]

myst_heading_anchors = 6
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_display_short_literal_types = True

html_search_scorer = str(HERE / "scorer.js")
html_theme = "furo"
html_title = "msprobe_ms"
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
pygments_style, pygments_dark_style = "default", "github-dark"
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html", "language.html", "sidebar/search.html", "sidebar/scroll-start.html",
        "sidebar/navigation.html", "sidebar/scroll-end.html",
    ]
}  # fmt: skip


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    text = as_markdown(source[0]) if app.env.doc2path(name).suffix == ".ipynb" else source[0]
    source[0] = PAGES.prepared(name, text)


def _docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = columns_as_definitions(lines)


def _other_language(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    context["other_language"] = context["pathto"]("", 1) + PAGES.in_other_language(name)
    context["other_language_name"] = "English" if CHINESE else "中文"


def _leave_out_of_search(app: Sphinx, doctree: object) -> None:
    """Decisions are for maintainers; their titles would come before the pages that answer a user."""
    if app.env.docname.startswith("docs/decisions/"):
        app.env.metadata[app.env.docname]["nosearch"] = "true"


def _finish(app: Sphinx, failure: Exception | None) -> None:
    """The start page under the name by which folders are opened."""
    if failure is None:
        (app.outdir / "index.html").write_bytes((app.outdir / "README.html").read_bytes())


def setup(app: Sphinx) -> None:
    app.add_search_language(ChineseSearch)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("doctree-read", _leave_out_of_search)
    app.connect("html-page-context", _other_language)
    app.connect("build-finished", _finish)
