"""The Chinese pages say what the English ones say: the same headings, paragraphs, tables, code, links, figures.

Code blocks are equal but for comments, and for output, which is what the tool says in Chinese.
So where other tests run the code of an English page, the Chinese code runs too.
"""

from __future__ import annotations

import posixpath
import re
import runpy
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path

import polib
import pytest
from repository import ROOT

TOOL = runpy.run_path(str(ROOT / "tools" / "chinese_links.py"))
FOLDER = ROOT / "docs" / "zh"
CATALOGUE = ROOT / "msprobe_ms" / "locale" / "zh_CN" / "LC_MESSAGES" / "msprobe_ms.po"
ENGLISH = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))]
#: Pages that are in English alone, by the names that they have in docs/: those that maintainers read.
MISSING = {"architecture.md", "report_page_design.md"}
#: It lists English words with their translations, and so is no translation itself.
OF_ITS_OWN = "glossary.md"
#: Text blocks that draw or list something in words, by a text in them: the words are translated.
DRAWN = ("├──", "dump_tensor_data/  ")

_LINK = re.compile(r"(!?)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+")
_COMMENT = re.compile(r"(^|\s)#\s.*$", re.MULTILINE)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_CODE = re.compile(r"(`+)([^`]+)\1")
#: What stays of a line that is drawn: branches, files, numbers, words in capitals.
_DRAWING = re.compile(r"^[│├└ ]+|[\w<>]+(?:/|\.\w+)|\d+|\b[A-Z_]{4,}\b", re.ASCII)
#: Numbers, and words in capitals: verdicts, modes, variables.
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*|(?<![A-Za-z_])[A-Z][A-Z_]{4,}(?![A-Za-z_])")
_ENGLISH_SENTENCE = re.compile(r"(?:\b[A-Za-z][a-z'-]*[,;:]? ){8}")


class Page:
    """What is compared of a page."""

    def __init__(self, name: str) -> None:
        text = (ROOT / name).read_text("utf-8")
        fences = [(word, re.sub(f"^{indent}", "", code, flags=re.M)) for indent, word, code in _FENCE.findall(text)]
        text = _FENCE.sub("", text)
        self.name = name
        self.code = [*fences, *(("", code) for code in _INDENTED.findall(text))]
        self.prose = TOOL["LINK"].sub("", _INDENTED.sub("", text))
        self.links = [(bool(mark), link) for mark, link in _LINK.findall(text)]
        self.paragraphs = len(re.split(r"\n\s*\n", self.prose.strip()))
        self.headings = [len(marks) for marks in re.findall(r"^(#+) ", self.prose, re.M)]
        self.lists = re.findall(r"^( *)(?:([*-])|\d+\.) ", self.prose, re.M)
        self.rows = [line for line in self.prose.splitlines() if line.startswith("|")]


def is_translated(english: str) -> bool:
    return (ROOT / TOOL["chinese_name"](english)).is_file()


PAIRS = [name for name in ENGLISH if is_translated(name) and Path(name).name != OF_ITS_OWN]


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[Page, Page]:
    """An English page and its translation."""
    return Page(request.param), Page(TOOL["chinese_name"](request.param))


def test_every_page_is_translated_but_those_that_are_named() -> None:
    assert {Path(name).name for name in ENGLISH if not is_translated(name)} - {OF_ITS_OWN} == MISSING
    assert {path.name for path in FOLDER.iterdir()} <= {Path(name).name for name in ENGLISH}


def test_headings_paragraphs_lists_and_tables_are_the_same(pair: tuple[Page, Page]) -> None:
    english, chinese = pair
    assert chinese.headings == english.headings
    assert chinese.lists == english.lists
    assert chinese.paragraphs == english.paragraphs
    assert len(chinese.rows) == len(english.rows)
    for ours, theirs in zip(chinese.rows, english.rows, strict=True):
        assert _cells(ours) == _cells(theirs), ours


def test_code_is_the_same_but_for_comments(pair: tuple[Page, Page]) -> None:
    english, chinese = pair
    assert [language for language, _ in chinese.code] == [language for language, _ in english.code]
    for (_, ours), (_, theirs) in zip(chinese.code, english.code, strict=True):
        assert _without_words(_in_english(ours, theirs)) == _without_words(theirs)


def test_names_and_figures_are_the_same(pair: tuple[Page, Page]) -> None:
    english, chinese = pair
    for ours, theirs in zip(chinese.rows, english.rows, strict=True):
        assert _names(ours) == _names(theirs), ours
    assert _names(chinese.prose) == _names(english.prose)
    assert not _figures(english.prose) - _figures(chinese.prose)


def test_links_lead_to_the_same_places_in_chinese_where_they_are(pair: tuple[Page, Page]) -> None:
    english, chinese = pair
    assert Counter(chinese.links) == Counter((picture, _led(link, english.name)) for picture, link in english.links)


def test_no_sentence_is_left_in_english(pair: tuple[Page, Page]) -> None:
    prose = _CODE.sub("", pair[1].prose)
    assert not _ENGLISH_SENTENCE.findall(prose)


def test_emphasis_is_seen_as_such(pair: tuple[Page, Page]) -> None:
    """Chinese has no spaces where Markdown needs one, between `**` after a sign and a letter."""
    for line in pair[1].prose.splitlines():
        parts = line.split("**")
        for before, within, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
            assert within[-1].isalnum() or not after[:1].isalnum(), within
            assert within[0].isalnum() or not before[-1:].isalnum(), within


def _led(link: str, page: str) -> str:
    """What a link of an English page has to be in its translation."""
    if "://" in link:
        return link
    file, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
    there: str = TOOL["from_chinese"](page, target, anchor)
    return there if file else f"#{there.partition('#')[2]}"


def _cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row))


def _without_words(code: str) -> str:
    """Code without what may be translated: comments, and the words of what is drawn."""
    if any(sign in code for sign in DRAWN):
        return "\n".join(" ".join(_DRAWING.findall(line)) for line in code.splitlines())
    return _COMMENT.sub(r"\1#", code)


def _names(text: str) -> Counter[str]:
    """What stands as code; of what the tool says, the English."""
    names = (" ".join(name.split()) for _, name in _CODE.findall(text))
    return Counter(": ".join(_said().get(part, part) for part in re.split("：|: ", name)) for name in names)


@cache
def _said() -> dict[str, str]:
    """What the catalogue holds of texts without fields: Chinese → English."""
    whole = [each for each in polib.pofile(str(CATALOGUE)) if each.msgctxt is None and "{" not in each.msgid]
    return {each.msgstr: each.msgid for each in whole if _CHINESE.search(each.msgstr)}


@cache
def _told() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    """What the messages of the catalogue can be: in Chinese, and in English."""
    found = []
    for each in polib.pofile(str(CATALOGUE)):
        chinese, english = (each.msgstr or each.msgstr_plural[0]).strip(), (each.msgid_plural or each.msgid).strip()
        if each.msgctxt is None and _CHINESE.search(chinese) and "\n" not in english:
            found.append((_pattern(chinese), _pattern(english)))
    return found


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(" ?".join(map(re.escape, re.split(r" ?\{\w+[^{}]*\} ?", template))).replace(" ?", ".*"))


def _in_english(ours: str, theirs: str) -> str:
    """Lines of output; those that the tool says so in Chinese are the English ones, behind the name of an error too."""
    lines, english = ours.split("\n"), theirs.split("\n")
    if len(lines) != len(english):
        return ours
    return "\n".join(
        other if _CHINESE.search(line) and _are_one(_said_in(line), _said_in(other)) else line
        for line, other in zip(lines, english, strict=True)
    )


def _are_one(ours: str, theirs: str) -> bool:
    """Whether the Chinese and the English text are one message, or several that only signs join."""
    if any(a.fullmatch(ours) and b.fullmatch(theirs) for a, b in _told()):
        return True
    places = product(re.finditer("[，：]", ours), re.finditer("[,:] ", theirs))
    return any(
        _are_one(ours[: a.start()], theirs[: b.start()]) and _are_one(ours[a.end() :], theirs[b.end() :])
        for a, b in places
    )


def _said_in(line: str) -> str:
    return line.strip().removeprefix("AssertionError: ")


def _figures(text: str) -> Counter[str]:
    return Counter(_FIGURE.findall(text))
