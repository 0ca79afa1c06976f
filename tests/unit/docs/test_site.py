"""The documentation's site: every page is in its navigation, and its links lead somewhere in either language.

``make site`` builds it, and tests what was built (tests/site).
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

#: Modules that scripts import, from the package's folder.
PUBLIC = (
    "__init__",
    "mindspore",
    "pytorch",
    "maca",
    "msit",
    "compat/msprobe/__init__",
    "compat/msprobe/pytorch/__init__",
)

#: Names of pages that are made up; put together here, so that nothing looks for them.
DOCS = "docs"


def site_module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"docs_site_{name}", ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = site_module("pages")


def test_every_page_is_in_the_navigation_once_and_in_both_languages() -> None:
    pages = PAGES.Pages(ROOT, chinese=False)
    there = [path for pattern in PAGES.PATTERNS for path in ROOT.glob(pattern.replace("**.md", "**/*.md"))]
    names = {path.relative_to(ROOT).with_suffix("").as_posix() for path in there} - {"README"}
    of_their_own = {name for name in names if name.startswith(("docs/decisions/0", "docs/zh/"))}
    assert sorted(pages.names()) == sorted(names - of_their_own), "docs/site/navigation.yaml"
    assert all(part["en"] and part["zh"] and part["pages"] for part in pages.navigation)


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "site" / "api.md").read_text("utf-8")
    for module in PUBLIC:
        tree = ast.parse((ROOT / "msprobe_ms" / f"{module}.py").read_text("utf-8"))
        (names,) = (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
        for name in set(names) - {"__version__"}:
            assert re.search(rf"auto(class|function):: (msprobe\.)?{name}$", reference, re.MULTILINE), (module, name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two pages, of which one is translated, and a file that is no page."""
    for name, text in {
        "setup.py": 'REPOSITORY = "https://example.org/it"\n',
        "README.md": "# Start\n",
        "docs/site/navigation.yaml": "- {en: Use, zh: 使用, pages: [docs/one, docs/two]}\n",
        f"{DOCS}/one.md": "# One\n",
        f"{DOCS}/two.md": "# Two\n",
        f"{DOCS}/zh/one.md": "# 一\n",
        "docs/img/a.png": "",
        "configs/one.json": "{}",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("chinese", "page", "text", "expected"),
    [
        (False, "docs/one", "[two](two.md#a) [![x](img/a.png)](two.md)", "[two](two.md#a) [![x](img/a.png)](two.md)"),
        (False, "docs/one", "[file](../configs/one.json)", "[file](https://example.org/it/blob/main/configs/one.json)"),
        (False, "docs/one", "[none](three.md)", "[none](three.md)"),  # Sphinx refuses it
        (False, "docs/one", "```text\n[two](two.md)\n[a](../configs/one.json)\n```\n", None),
        (False, "docs/one", "[out](https://example.org/two.md), [here](#a)", None),
        (True, "docs/zh/one", "[two](two.md)", "[two](../two.md)"),  # nobody has translated it
        (False, "docs/one", "[中文](zh/one.md)", '<a href="../zh/docs/zh/one.html">中文</a>'),
        (True, "docs/zh/one", "[English](../one.md)", '<a href="../../../docs/one.html">English</a>'),
        (True, "docs/two", "[one](one.md#first)", "[one](zh/one.md)"),  # whose headings are others
        (
            True,
            "docs/zh/one",
            "![x](../img/a.png) [start](../../README.md)",
            "![x](../img/a.png) [start](../../README.md)",
        ),
    ],
)
def test_links_lead_to_pages_of_the_same_language(
    repository: Path, chinese: bool, page: str, text: str, expected: str | None
) -> None:
    assert PAGES.Pages(repository, chinese=chinese).prepared(page, text) == (expected or text)


def test_where_the_repository_has_no_address_its_files_are_named_without_a_link(repository: Path) -> None:
    (repository / "setup.py").write_text('REPOSITORY = ""\n', "utf-8")
    pages = PAGES.Pages(repository, chinese=False)
    assert pages.prepared("docs/one", "see [a file](../configs/one.json).") == "see a file."


def test_the_chinese_site_has_english_pages_where_there_is_no_other(repository: Path) -> None:
    pages = PAGES.Pages(repository, chinese=True)
    start = pages.prepared("README", "# Start\n")
    assert start.startswith("# Start\n") and ":caption: 使用\n\n/docs/zh/one\n/docs/two\n" in start
    assert f"{DOCS}/one.md" in pages.excluded() and f"{DOCS}/two.md" not in pages.excluded()
    (repository / DOCS / "zh/README.md").write_text("# 开始\n\n[一](one.md)\n", "utf-8")
    assert pages.prepared("README", "# Start\n").startswith(f"# 开始\n\n[一]({DOCS}/zh/one.md)\n")


def test_each_page_knows_its_like_in_the_other_language(repository: Path) -> None:
    english, chinese = (PAGES.Pages(repository, chinese=each) for each in (False, True))
    names = ("docs/one", "docs/two", "README", "search")
    assert [english.in_other_language(name) for name in names] == [
        "zh/docs/zh/one.html", "zh/docs/two.html", "zh/index.html", "zh/index.html",
    ]  # fmt: skip
    assert [chinese.in_other_language(name) for name in ("docs/zh/one", *names[1:])] == [
        "../docs/one.html", "../docs/two.html", "../index.html", "../index.html",
    ]  # fmt: skip


def test_chinese_is_found_by_pairs_of_characters_and_words_by_themselves() -> None:
    terms = site_module("chinese_terms").terms
    assert terms("梯度溢出, layer_norm与PyTorch 2.13") == [
        "梯度",
        "度溢",
        "溢出",
        "layer_norm",
        "与",
        "PyTorch",
        "2",
        "13",
    ]
    assert set(terms("溢出")) < set(terms("梯度溢出检测"))


def test_two_columns_of_a_docstring_are_a_list() -> None:
    lines = ["Compare.", "", "``a``, ``b``  the first", "          and more", "``c``       x", "", "Returns one."]
    expected = ["Compare.", "", "``a``, ``b``", "    the first", "    and more", "``c``", "    x", "", "Returns one."]
    assert site_module("docstrings").columns_as_definitions(lines) == expected


def test_a_notebook_is_shown_with_what_it_printed() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": ["print(1)\n", "2"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"text/html": ["<script>"]}},
            ],
        },
    ]
    assert site_module("notebook").as_markdown(json.dumps({"cells": cells})) == (
        "# Title\ntext\n\n```python\nprint(1)\n2\n```\n\n```text\n1\n```\n\n```text\n2\n```\n"
    )
