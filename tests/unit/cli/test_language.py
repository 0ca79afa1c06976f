"""Every command in Chinese: by --lang, wherever it stands, by MSPROBE_LANG and by the locale."""

from __future__ import annotations

import argparse
import gzip
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import openpyxl
import pytest
from repository import ROOT

from msprobe_ms.cli.language import asked_language
from msprobe_ms.cli.main import _parser, main
from msprobe_ms.cli.parser import HelpFormatter
from msprobe_ms.support.translation import speaking

GOLDEN = ROOT / "samples" / "golden" / "step0"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
#: English words that stay in a Chinese page or help: names of figures, formats, of what users type and read.
_STAYS = re.compile(
    r"\b(DIVERGENT|CONSISTENT|INCOMPLETE|NaN|inf|dtype|shape|step|rank|dump|loss|max|min|mean|norm|Max|Min|Mean|Norm|"
    r"golden|msprobe[-\w]*|MindSpore|PyTorch|pytorch|mindspore|Python|Enter|Esc|Cell|API|Chrome|Firefox|Safari|null|"
    r"statistics|tensor|task|list|MB|md|epsilon|weight|bias|dropout|csv|xlsx|html|json|txt|prove|node|advisor_\w+|"
    r"compare_\w+|L0|forward|File|line|in)\b"
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden sample, in which all that comes from the first LayerNorm on is something else."""
    folder = tmp_path_factory.mktemp("target") / "step0" / "rank0"
    folder.mkdir(parents=True)
    content = json.loads((GOLDEN / "rank0" / "dump.json").read_text())
    names = [name for name in content["data"] if ".forward." in name]
    first = next(place for place, name in enumerate(names) if "input_norm" in name)
    for output in (output for name in names[first:] for output in content["data"][name]["output"]):
        output.update({name: output[name] * 1.3 + 0.1 for name in ("Max", "Min", "Mean", "Norm")})
    (folder / "dump.json").write_text(json.dumps(content))
    for name in ("stack.json", "construct.json"):
        (folder / name).write_bytes((GOLDEN / "rank0" / name).read_bytes())
    return folder.parent


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["compare", "--lang", "zh", "-h"], "zh"),
        (["--lang=zh", "doctor"], "zh"),
        (["compare", "-h", "--lang", "en"], "en"),
        (["compare", "--lang", "fr"], None),
        (["compare", "--lang"], None),
        (["compare"], None),
    ],
)
def test_the_language_is_read_before_all_else(words: list[str], expected: str | None) -> None:
    assert asked_language(words) == expected


def test_a_comparison_says_in_chinese_what_it_writes_in_english(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, statuses = {}, {}
    for name in ("en", "zh"):
        words = ["compare", "-tp", str(target), "-gp", str(GOLDEN), "-o", str(tmp_path / name), "--csv", "--exit-code"]
        statuses[name] = main([*words, "--lang", name])
        said[name] = capsys.readouterr().out
    assert statuses == {"en": 1, "zh": 1}
    assert said["en"].startswith("DIVERGENT: the error begins in forward, at\n")
    assert said["zh"].startswith("DIVERGENT（不一致）：误差在前向中始于\n")
    assert not list(english(said["zh"])), said["zh"]
    assert written(tmp_path / "en", "*.csv") == written(tmp_path / "zh", "*.csv")
    summaries = [json.loads(written(tmp_path / name, "*.json")) for name in ("en", "zh")]
    for each in summaries:
        each.pop("files", None)
    assert without_times(summaries[0]) == without_times(summaries[1])
    advice = written(tmp_path / "zh", "advisor*").decode()
    assert "专家建议：output.0 的相对偏差为" in advice and "检测类型：问题节点\n" in advice
    assert not any(title in advice for title in ("Detection Type", "Row in", "Suspect Nodes", "Expert Advice"))


def test_the_page_in_chinese_has_no_english_sentence(target: Path, tmp_path: Path) -> None:
    assert main(["--lang", "zh", "compare", "-tp", str(target), "-gp", str(GOLDEN), "-o", str(tmp_path), "-c"]) == 0
    text = written(tmp_path, "*.html").decode()
    page = Page(text)
    assert page.language == "zh-CN"
    left = [each for each in page.texts if list(english(each))]
    assert not left
    # What the script shows of the data: reasons of the rows, titles of metrics, of the index.
    index = json.loads(page.scripts["index"])
    told = [index["title"], *(metric["title"] for metric in index["metrics"]), *index["tolerated"]]
    told += [text for origin in index["origins"] for text in (origin["reason"], *origin["details"])]
    told += page.json("reasons", index)
    assert told
    assert not [each for each in told if list(english(each))]
    assert json.loads(page.scripts["texts"])["Error along execution"] == "执行过程中的误差"


def test_the_legend_of_a_table_is_in_chinese_and_its_columns_are_not(target: Path, tmp_path: Path) -> None:
    for name in ("en", "zh"):
        main(
            ["compare", "-tp", str(target), "-gp", str(GOLDEN), "-o", str(tmp_path / name), "--lang", name, "--no-html"]
        )
    books = [openpyxl.load_workbook(next((tmp_path / name).glob("*.xlsx"))) for name in ("en", "zh")]
    rows = [[tuple(cell.value for cell in row) for row in book.worksheets[0].iter_rows()] for book in books]
    assert rows[0] == rows[1]
    meanings = [row[1].value for row in books[1]["Legend"].iter_rows(min_row=2)]
    assert all(map(_CHINESE.search, meanings))


def test_a_language_that_is_not_there_is_refused_or_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSPROBE_LANG", "xx")
    assert main(["config", "--list"]) == 0 == main(["config", "--list"])
    assert [record.getMessage() for record in caplog.records] == ["MSPROBE_LANG=xx is ignored; accepted are en, zh"]
    monkeypatch.setenv("MSPROBE_LANG", "zh")
    with pytest.raises(SystemExit):
        main(["compare", "--lang", "fr"])
    assert "（可选：en、zh）" in capsys.readouterr().err


def test_headings_in_chinese_have_its_colon() -> None:
    with speaking("zh"):
        headings = [line for parser in parsers_of(_parser()) for line in parser.format_help().splitlines()]
    assert not [line for line in headings if line.endswith(":") and _CHINESE.search(line)]


def test_every_help_is_in_chinese() -> None:
    with speaking("zh"):
        parsers = list(parsers_of(_parser()))
        assert len(parsers) > 20
        for parser in parsers:
            for action in parser._actions:
                shown = HelpFormatter("msprobe")._get_help_string(action)
                assert not shown or shown == argparse.SUPPRESS or _CHINESE.search(shown) or not list(english(shown)), (
                    shown
                )
            assert not parser.epilog or _CHINESE.search(parser.format_help().split("\n\n")[-1]), parser.prog


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["compare", "-tp"], "msprobe compare: 错误：参数 -tp/--target_path/-mp/--my-path：需要一个值"),
        (["compare", "--nod", "x", "--colour"], "msprobe compare: 错误：无法识别的参数：--colour"),
        (["merge_result"], "msprobe merge_result: 错误：缺少以下参数：-i/--input_dir"),
        (["compare", "--profile", "owm"], "（是否想输入 own？）"),
        (["completion", "fish"], "无效的取值："),
        (["compare", "--rank", "a"], "'a' 不是数字"),
    ],
)
def test_mistakes_are_told_in_chinese(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words[:1], "--lang", "zh", *words[1:]])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("用法：")
    assert expected in told


def test_errors_are_told_in_the_language_of_the_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSPROBE_LANG", "zh")
    assert main(["compare", "-tp", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "msprobe: compare：缺少 -gp；参见 msprobe compare -h\n"
    assert main(["--lang", "en", "compare", "-tp", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "msprobe: compare: -gp is missing; see msprobe compare -h\n"


class Page(HTMLParser):
    """What a page shows without its script, and the data that it holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.scripts: dict[str, str] = {}
        self.language: str | None = None
        self._inside: list[str] = []
        self._id = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.language = named.get("lang") or self.language
        if tag in ("script", "style", "bdi", "code"):
            self._inside.append(tag)
            self._id = named.get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "bdi", "code"):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)
        elif self._inside[-1] == "script":
            self.scripts[self._id] = data

    def json(self, column: str, index: dict) -> list[str]:
        (chunk,) = index["columns"][column]["chunks"]
        return json.loads(gzip.decompress(b64decode(self.scripts[chunk])))


def parsers_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from parsers_of(inner)


def english(text: str) -> Iterator[str]:
    """Yield what is an English sentence in a text: three words in a row, names and paths left out."""
    plain = re.sub(r"\S*[./_]\S*|-{1,2}[\w-]+", " … ", text)
    plain = _STAYS.sub("…", plain)
    yield from re.findall(r"[A-Za-z]{2,}(?:[ ,;:]+[A-Za-z]{2,}){1,}", plain)


def written(folder: Path, pattern: str) -> bytes:
    return next(folder.glob(pattern)).read_bytes()


def without_times(content: object) -> str:
    return re.sub(r"\d{14}|/(en|zh)/", "", json.dumps(content))
