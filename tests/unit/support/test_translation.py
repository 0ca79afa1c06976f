"""Messages: English texts that are told in the language of the user."""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from msprobe_ms.support import translation
from msprobe_ms.support.errors import UsageError, told_briefly
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import (
    from_plain,
    language,
    speaking,
    texts_in,
    to_plain,
    tr,
    tr_beginning,
    tr_count,
    tr_join,
    tr_sentence,
    translated,
)


@pytest.fixture
def chinese() -> Iterator[None]:
    with speaking("zh"):
        yield


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "MSPROBE_LANG": "en"}, "en"),
        ({"MSPROBE_LANG": "zh", "LC_ALL": "C"}, "zh"),
        ({"MSPROBE_LANG": "fr", "LANG": "zh_CN"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh_CN"}, "zh"),
    ],
)
def test_the_variable_then_the_locale_choose_the_language(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MSPROBE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language() == expected


def test_a_message_is_its_english_text(chinese: None) -> None:
    message = tr("{name} is called {times} in the target", name="relu", times=tr_count("once", "{count} times", 1))
    assert message == "relu is called once in the target"
    assert f"{message}!" == "relu is called once in the target!"


def test_a_message_and_those_within_it_are_told_in_the_language(chinese: None) -> None:
    both = tr_join(" and ", [tr("target"), tr("golden")])
    assert both == "target and golden"
    assert translated(both) == "待比对侧 and 标杆侧"
    assert (
        translated("  " + tr("every value is finite")) == "  every value is finite"
    )  # another message than that below
    assert translated(tr("  every value is finite")) == "  所有值都是有限的"
    assert translated(tr_count("1 value compared", "{count} values compared", count=3)) == "已比对 3 个值"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (tr("{side} file: {where}", side=tr("target"), where="a.npy"), "待比对侧文件：a.npy"),
        (tr("{side} file: {where}", side="rank0", where="a.npy"), "rank0 文件：a.npy"),
        (tr_join(", ", [tr("target"), "rank0"]), "待比对侧，rank0"),
        (tr_join(", ", ["L0", "L1"]), "L0, L1"),
        (tr_join(tr(" and "), ["L0", tr("golden")]), "L0、标杆侧"),
        (tr_join(": ", [tr_count("1 value compared", "{count} values compared", 2), "x"]), "已比对 2 个值：x"),
        (tr_join(", ", [tr("target"), "L0", "L1"]), "待比对侧，L0，L1"),
        (tr_join(": ", ["seed", tr("{target}, golden {golden}", target=1, golden=2)]), "seed：1，标杆侧 2"),
        ("  " + tr("target"), "  待比对侧"),
        (tr("{heading}: {sentence}", heading=tr("RIGHT"), sentence="relu"), "RIGHT（正确）：relu"),
        (tr("{side:<12}{path:>4}", side=tr("target"), path="a"), "待比对侧       a"),
    ],
)
def test_what_fills_a_chinese_message_is_spaced_as_chinese_is(message: str, told: str, chinese: None) -> None:
    assert translated(message) == told


def test_a_beginning_and_a_sentence_stay_messages(chinese: None) -> None:
    reason = tr("{difference}, though {agree}: {look}", difference="x", agree=tr("its inputs agree"), look="y")
    assert tr_beginning(reason) == "x, though its inputs agree"
    assert translated(tr_beginning(reason)) == "x，而其输入一致"
    assert tr_sentence(reason) == "X, though its inputs agree: y."
    assert translated(tr_sentence(reason)) == "x，而其输入一致：y。"
    assert (tr_beginning("a: b"), tr_sentence("is it?")) == ("a", "Is it?")


@pytest.mark.parametrize("text", [tr("the input of {name}", name="a"), tr_beginning(tr("a {name}: b", name="c"))])
def test_a_message_travels_to_other_processes(text: str, chinese: None) -> None:
    there = pickle.loads(pickle.dumps(text))
    assert (there, translated(there)) == (text, translated(text))


@pytest.mark.parametrize(
    "text",
    [
        "plain text",
        tr("the input of {name}", name=tr("target")),
        tr_count("1 value differs", "{count} values differ", 2),
        tr_join(", ", [tr("target"), "fc1"]),
        tr("1e{decade:+03d} to 1e{other_decade:+03d}", decade=np.int64(-3), other_decade=2),
        tr("{name} (agrees)", name=np.complex64(1j)),
    ],
)
def test_a_message_is_told_again_from_a_file(text: str, chinese: None) -> None:
    again = json.loads(
        json.dumps(to_plain(text)), object_hook=lambda each: from_plain(each) if "text" in each else each
    )
    assert (str(again), translated(again)) == (str(text), translated(text))


@pytest.mark.parametrize(
    "change",
    [
        {"template": 1}, {"template": "{count:99999999}"}, {"plural": 1}, {"values": []}, {"values": {"count": [1]}},
        {"plural": "{count} values", "values": {}},
    ],
)  # fmt: skip
def test_of_a_damaged_message_its_text_is_left(change: dict[str, Any], chinese: None) -> None:
    whole = {"text": "1 value", "template": "{count} value", "plural": None, "values": {"count": 1}}
    assert translated(from_plain(whole | change)) == "1 value"


def test_errors_are_told_where_they_are_shown(chinese: None) -> None:
    inner = UsageError(tr("it has no counterpart"))
    error = UsageError(tr("elements: {error}", error=inner))
    assert str(error) == "elements: it has no counterpart"
    assert translated(error) == "元素：没有对应项"

    def fails() -> None:
        raise error

    with pytest.raises(UsageError, match="元素：没有对应项"):
        told_briefly(fails)()


def test_logs_are_told_in_the_language(chinese: None) -> None:
    record = logging.LogRecord("msprobe_ms", logging.WARNING, "", 0, tr("-v 1 is read as 2"), (), None)
    assert "-v 1 按 2 读取" in logger.handlers[0].format(record)
    record = logging.LogRecord("msprobe_ms", logging.WARNING, "", 0, "%s; %d", (tr("-v 1 is read as 2"), 3), None)
    assert "-v 1 按 2 读取; 3" in logger.handlers[0].format(record)


@pytest.mark.parametrize("content", [None, b"", b"no catalogue"])
def test_a_broken_catalogue_means_english(content: bytes | None, tmp_path, monkeypatch, chinese: None) -> None:
    if content is not None:
        place = tmp_path / "locale" / "zh_CN" / "LC_MESSAGES" / "msprobe_ms.mo"
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
    monkeypatch.setattr(translation.resources, "files", lambda _: tmp_path)
    translation._catalogue.cache_clear()
    try:
        assert translated(tr("interrupted")) == "interrupted"
        assert texts_in("page") == {}
    finally:
        translation._catalogue.cache_clear()


def test_a_translation_with_other_fields_means_english(monkeypatch, chinese: None) -> None:
    message = tr("the input of {name}", name="a")
    monkeypatch.setattr(translation._catalogue("zh"), "gettext", lambda _: "{nobody} 的输入")
    assert translated(message) == "the input of a"


def test_the_language_is_what_it_was_afterwards() -> None:
    before = os.environ.get("MSPROBE_LANG")
    with speaking("zh"):
        assert os.environ["MSPROBE_LANG"] == "zh"
    assert os.environ.get("MSPROBE_LANG") == before


def test_the_page_has_its_texts(chinese: None) -> None:
    assert texts_in("page")["Error along execution"] == "执行过程中的误差"
    with speaking("en"):
        assert texts_in("page") == {}


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.EROFS])
def test_what_the_system_says_of_a_file_is_told(number: int) -> None:
    told = translated(tr("{path}: {strerror}", path="a.json", strerror=os.strerror(number)))
    assert told.startswith("a.json：")
    assert os.strerror(number) not in told
