"""The site that ``make site`` has built: complete, and readable without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from repository import ROOT

SITE = ROOT / "build" / "site"
LANGUAGES = {"en": SITE, "zh": SITE / "zh"}
#: What a browser fetches by itself, by element.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The identifiers, links and fetched addresses of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.identifiers: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.identifiers |= {each for each in (given.get("id"), given.get("name")) if each}
        if tag == "a" and (link := given.get("href")):
            self.links.append(link)
        if tag in FETCHED and (address := given.get(FETCHED[tag])):
            self.fetched.append(address)


parsed = cache(Page)


def pages() -> list[Path]:
    found = sorted(SITE.rglob("*.html"))
    assert len(found) > 60, "make site builds it"
    return found


def test_the_start_page_shows_where_everything_is() -> None:
    for folder in LANGUAGES.values():
        start = parsed(folder / "index.html")
        assert {"docs/tutorial.html", "docs/site/api.html"} <= set(start.links)
        assert any(re.fullmatch(r"docs/(zh/)?compare\.html", link) for link in start.links)
    assert "./zh/index.html" in parsed(SITE / "index.html").links
    assert "./../index.html" in parsed(SITE / "zh" / "index.html").links


def test_every_link_and_anchor_leads_somewhere() -> None:
    for page in pages():
        for link in parsed(page).links:
            address = urlsplit(unescape(link))
            if address.scheme:
                continue
            target = (page.parent / unquote(address.path)).resolve() if address.path else page
            assert target.is_file(), (page, link)
            if address.fragment and target.suffix == ".html":
                anchors = parsed(target).identifiers
                assert unquote(address.fragment) in anchors, (page, link)


def test_nothing_is_fetched_from_elsewhere() -> None:
    for page in pages():
        for address in parsed(page).fetched:
            parts = urlsplit(address)
            assert not parts.scheme and not parts.netloc, (page, address)
            assert not parts.path or (page.parent / unquote(parts.path)).resolve().is_file(), (page, address)
    for sheet in SITE.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet


def test_the_reference_has_signatures_and_what_they_mean() -> None:
    reference = (SITE / "docs" / "site" / "api.html").read_text("utf-8")
    for name in ("PrecisionDebugger.start", "compare", "load", "pytorch.record"):
        assert f'id="msprobe_ms.{name}"' in reference
    text = re.sub(r"<[^>]+>", "", reference)
    assert "layer_mapping: str" in text and "ignore call indices while pairing" in text
    assert "<dt><code" in reference, "two columns of a docstring are a list"


def test_the_tutorial_shows_what_its_cells_printed() -> None:
    text = re.sub(r"<[^>]+>", "", (SITE / "docs" / "tutorial.html").read_text("utf-8"))
    assert "&lt;divergent: 63 values compared, 1 origin&gt;" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_search_finds_words_without_a_server(language: str) -> None:
    """Its index is a script, which a page from a disk may load, other than JSON."""
    folder = LANGUAGES[language]
    index = (folder / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(") and '"md5"' in index and "tutori" in index
    assert "searchindex.js" in (folder / "search.html").read_text("utf-8")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_what_is_searched_for_is_split_as_the_index_was() -> None:
    script = (SITE / "zh" / "_static" / "language_data.js").read_text("utf-8")
    query = "梯度溢出, layer_norm与PyTorch 2.13"
    index = "var Search = {_index: {terms: {梯度: 0, 溢出: 0}, titleterms: {度溢: 0}}}"
    program = f"var window = globalThis;\n{index}\n{script}\nconsole.log(JSON.stringify(splitQuery({query!r})))"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '["梯度","度溢","溢出","layer_norm","与","PyTorch","2","13"]'
    program = program.replace("度溢: 0", "")
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('["梯度","溢出","layer_norm"'), "a pair that is in no page finds none"


QUESTIONS = {
    "en": [
        "dump is empty", "nothing was recorded", "loss NaN", "names differ", "out of memory", "distributed", "overflow",
        "dtypes differ", "which step", "read the table", "how much slower", "random numbers", "convert weights",
        "which level", "NaN first", "dump too large", "compare ranks", "graph mode", "loss differs", "result columns",
        "md5", "dump one API", "Norm 0", "loss changes", "N/A", "training slow", "compare different frameworks",
        "missing API", "seed", "statistics or tensor",
    ],
    "zh": [
        "dump 是空的", "loss 是 NaN", "名称不同", "内存不足", "分布式训练", "溢出", "dtype 不同", "哪个 step",
        "怎样看表格", "会慢多少", "随机数", "转换权重", "dump 为空", "选哪个 level", "第一个 NaN", "名称不一致",
        "dump 太大", "多卡比对", "图模式", "loss 不一致", "比对结果 列", "md5", "只采集一个 API", "Norm 为 0",
        "loss 改变", "N/A", "训练变慢", "固定随机种子", "跨框架比对", "溢出检测", "统计量 还是 tensor", "API 没有采集",
    ],
}  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("language", QUESTIONS)
def test_what_users_ask_most_is_found_first(language: str) -> None:
    folder, questions = LANGUAGES[language], QUESTIONS[language]
    command = ["node", str(Path(__file__).with_name("search.js")), str(folder), *questions]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    answers = {question: page for question, page in zip(questions, found, strict=True) if not page.endswith("/faq")}
    assert not answers, answers
