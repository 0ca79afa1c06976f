"""The catalogue holds every message of the sources, translated; and what users are told is a message.

``python tools/messages.py`` (make messages) brings the catalogue up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polib
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, CHINESE = ROOT / "msprobe_ms", ROOT / "docs" / "zh"
sys.path.insert(0, str(ROOT / "tools"))

from messages import CATALOGUE, compiled, fields, messages, of_module  # noqa: E402

#: Modules whose texts stay English → why.
ENGLISH = {
    "__init__.py": "what Python says of an attribute",
    "config/__init__.py": "what Python says of an attribute",
    "dump/opened/calls.py": "what Python says of a key",
    "dump/opened/step.py": "what Python says of a key",
    "accuracy/judging/peer_rules.py": "texts of msprobe",
    "cli/parser.py": "what argparse says, which the parser tells as a message",
    "comparison/export/dot.py": "a format",
    "comparison/export/onnx_file.py": "a format",
    "comparison/export/vis_db.py": "a format",
    "comparison/kernels/table.py": "columns of msprobe",
    "comparison/pairing/rules/data.py": "a yaml file, which is read again",
    "comparison/reporting/advisor.py": "texts of msprobe 1.1.0 and of MindStudio",
    "comparison/reporting/profiles/latest.py": "texts of msprobe 26.x",
    "comparison/reporting/profiles/maca.py": "texts of MetaX",
    "comparison/reporting/profiles/v110.py": "texts of msprobe 1.1.0",
}
#: Functions that print or log what they are given, and those that make a message.
_TELLS = {
    "print",
    "print_lines",
    "print_verdict",
    "warning",
    "info",
    "error",
    "critical",
    "mistaken",
    "_wrong",
    "_say",
    "_say_once",
    "_refuse",
}
_MESSAGE = {"tr", "tr_count", "tr_join"}
#: Texts that are told as they are.
_AS_THEY_ARE = re.compile(
    r"msprobe:? ?|NA|(?:DIVERGENT|CONSISTENT)|#|--[a-z]|[\w.-]+=\"|compare_|(?:Forward|Backward) Test|\w+ %s"
)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _entries() -> dict[tuple[str | None, str], polib.POEntry]:
    return {(each.msgctxt, each.msgid): each for each in polib.pofile(str(CATALOGUE))}


def _said(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def test_the_catalogue_holds_what_the_sources_say() -> None:
    said = {(each.context, each.text): each.plural for each in messages()}
    held = {key: entry.msgid_plural or None for key, entry in _entries().items()}
    assert held == said


def test_every_message_is_translated() -> None:
    catalogue = polib.pofile(str(CATALOGUE))
    assert not [entry.msgid for entry in catalogue if not entry.translated()]
    assert not catalogue.fuzzy_entries()
    assert not catalogue.obsolete_entries()


def test_translations_have_the_fields_of_their_messages() -> None:
    for entry in _entries().values():
        for text in _said(entry):
            assert fields(text) == fields(entry.msgid_plural or entry.msgid), entry.msgid


def test_plural_forms_are_whole() -> None:
    plurals = [entry for entry in _entries().values() if entry.msgid_plural]
    assert plurals
    for entry in plurals:
        assert list(entry.msgstr_plural) == [0], entry.msgid  # Chinese has one form
        assert set(fields(entry.msgid)) <= set(fields(entry.msgid_plural)), entry.msgid


def test_the_catalogue_is_compiled() -> None:
    assert CATALOGUE.with_suffix(".mo").read_bytes() == compiled(polib.pofile(str(CATALOGUE)))


def test_one_thing_has_one_term() -> None:
    """The glossary says which words are not used; they are in no translation and on no page."""
    glossary = (CHINESE / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| (\S+) \| \S+ \|$", glossary.partition("## 不使用的说法")[2], re.MULTILINE)[1:]
    others = [word for row in rows for word in row.split("、")]
    assert "实参" in others
    wrong = re.compile("|".join(f"(?<![相绝]){word}" for word in others))  # 相对比例 has two words
    texts = {path.name: path.read_text("utf-8") for path in CHINESE.glob("*.md") if path.name != "glossary.md"}
    texts |= {entry.msgid: text for entry in _entries().values() for text in _said(entry)}
    assert not [(name[:60], found[0]) for name, text in texts.items() if (found := wrong.search(text))]


def test_of_an_empty_dump_the_log_speaks_in_one_way() -> None:
    """Pages and errors tell which words to look for."""
    said = {text for entry in _entries().values() if "nothing was recorded:" in entry.msgid for text in _said(entry)}
    assert len(said) > 3 and all("没有采集到内容：" in text for text in said)


def test_chinese_stands_apart_from_other_words() -> None:
    close = re.compile("[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]")
    assert not [text for entry in _entries().values() for text in _said(entry) if close.search(text)]


def test_what_users_are_told_is_a_message() -> None:
    told = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (name := path.relative_to(PACKAGE).as_posix()) not in ENGLISH
        and not name.startswith(("compat/msprobe/", "compat/modules/"))
        for line, text in unmarked(_tree(path))
    ]
    assert not told, "\n".join(told)


@pytest.mark.parametrize(
    "source",
    [
        'raise UsageError(f"{path}: it is no such file")',
        'raise UsageError("it is no such file" if path else path)',
        'logger.warning("%s is no such file", path)',
        'print_lines([f"{count} files were read"])',
        'parser.add_argument(option, help=f"the file {name}")',
        'def lines():\n    yield f"{count} files were read"',
        'def line():\n    return "nothing was read"',
    ],
)
def test_texts_that_are_no_messages_are_found(source: str) -> None:
    assert len(list(unmarked(ast.parse(source)))) == 1
    assert not list(unmarked(ast.parse(re.sub(r"f?(\"[^\"]* [^\"]*\")", r"tr(\1)", source))))


def test_messages_are_no_f_strings() -> None:
    """Nothing could find their translation."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call) and _name(node) in _MESSAGE:
                assert not any(isinstance(each, ast.JoinedStr) for each in node.args), f"{path}:{node.lineno}"


def test_every_help_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        'parser.add_argument("-x", help="the file")\ngroup = parser.add_argument_group("files to read")\n'
    )
    import messages as tool

    tool.ROOT, root = tmp_path, tool.ROOT
    try:
        assert [each.text for each in of_module(module)] == ["the file", "files to read"]
    finally:
        tool.ROOT = root


def unmarked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield texts that are raised, printed, logged, yielded or returned as sentences, and are no messages."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not _is_text(node) or isinstance(parents.get(node), (ast.JoinedStr, ast.FormattedValue, ast.Expr)):
            continue
        text = _plain(node)
        if len(re.findall(r"[A-Za-z]{2,}", text)) < 2 or " " not in text.strip() or _AS_THEY_ARE.match(text):
            continue
        if (told := _is_told(node, parents)) and not (told == "line" and _is_markup(text)):
            yield node.lineno, text


def _is_told(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """What tells a text: a statement, a function, a line of a generator; "" for nothing, or where it is a message."""
    inner: ast.AST = node
    while (outer := parents.get(inner)) is not None:
        if isinstance(outer, (ast.FormattedValue, ast.Compare, ast.Subscript, ast.Dict, ast.keyword)):
            help_of_option = isinstance(outer, ast.keyword) and outer.arg == "help" and isinstance(node, ast.JoinedStr)
            return "help" if help_of_option else ""
        if isinstance(outer, ast.Call):
            if _name(outer) in _TELLS:
                return "call"
            if _name(outer) in _MESSAGE or not _name(outer).endswith("Error"):
                return ""
        if isinstance(outer, ast.Raise):
            return "raise"
        if isinstance(outer, (ast.Yield, ast.Return)):
            return "line" if _plain(node).strip().count(" ") >= 2 else ""
        if isinstance(outer, ast.stmt):
            return ""
        inner = outer
    return ""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _plain(node: ast.AST) -> str:
    """A text with its fields left out."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _is_markup(text: str) -> bool:
    return bool(re.search(r"<\w|</|\w:\S*;|\n", text))


def _name(node: ast.Call) -> str:
    return str(getattr(node.func, "id", getattr(node.func, "attr", "")))
