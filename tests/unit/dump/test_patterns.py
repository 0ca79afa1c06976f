"""The grammar in which a configuration selects entries."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT

from msprobe_ms.dump.names import EntryName
from msprobe_ms.dump.patterns import PatternError, is_literal, matcher

DOCUMENT = (ROOT / "docs/config.md").read_text(encoding="utf-8")
TABLE = DOCUMENT.split("### Patterns")[1].split("### Ranges")[0]

word = st.text("abR_1", min_size=1, max_size=3)
modules = st.builds(
    EntryName, st.sampled_from(["Cell", "Module"]), st.lists(word, max_size=3).map(".".join), word,
    st.sampled_from(["forward", "backward", "parameters_grad"]), st.integers(0, 12),
)  # fmt: skip
apis = st.builds(
    EntryName, st.sampled_from(["Functional", "Tensor"]), st.lists(word, min_size=1, max_size=2).map(".".join),
    st.just(""), st.sampled_from(["forward", "backward"]), st.integers(0, 12),
)  # fmt: skip
entries = (modules | apis).map(str)
plain = st.text("abR_1.", min_size=1, max_size=4)


def documented() -> list[tuple[str, list[str], list[str]]]:
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in TABLE.split("\n") if row.startswith("| `")]
    return [tuple(re.findall(r"`(.+?)`", row[column]) for column in (0, 2, 3)) for row in rows]


def test_the_table_in_the_documentation() -> None:
    rows = documented()
    assert len(rows) == 7
    for (text,), hits, others in rows:
        assert hits and others, text
        assert [name for name in hits if not matcher(text)(name)] == [], text
        assert [name for name in others if matcher(text)(name)] == [], text


@given(plain, entries)
def test_plain_text_is_a_part_of_the_name(text: str, name: str) -> None:
    assert is_literal(text)
    assert matcher(text)(name) == (text in name)
    assert matcher(name)(name)


@given(st.lists(plain | st.just(""), min_size=2, max_size=4), entries)
def test_a_star_is_any_run_of_characters(parts: list[str], name: str) -> None:
    expected = re.search(".*".join(map(re.escape, parts)), name) is not None
    assert matcher("*".join(parts))(name) == expected
    assert not is_literal("*".join(parts))


@given(st.lists(plain, min_size=1, max_size=3), entries)
def test_a_regular_expression_matches_the_whole_name(parts: list[str], name: str) -> None:
    expression = ".+".join(map(re.escape, parts))
    assert matcher(f"name-regex({expression})")(name) == (re.fullmatch(expression, name) is not None)
    assert matcher(f"name-regex({re.escape(name)})")(name)


@given(modules, word)
def test_a_class_is_that_of_the_module(entry: EntryName, name: str) -> None:
    same = entry.class_name.replace("_", "").lower() == name.replace("_", "").lower()
    assert matcher(f"class:{name}")(str(entry)) == same
    assert matcher(f"class:{entry.class_name}")(str(entry))


@given(apis)
def test_the_class_of_an_api_is_its_own_name(entry: EntryName) -> None:
    for spelling in (entry.name.split(".")[-1], entry.name.split(".")[-1].upper()):
        assert matcher(f"class:{spelling}")(str(entry))
        assert not matcher(f"class:{spelling}x")(str(entry))


@pytest.mark.parametrize("name", ["Tensor.__add__.0.forward", "Tensor.add_.0.forward", "Primitive.a.Add.0.backward"])
def test_a_family(name: str) -> None:
    assert matcher("class:add")(name)
    assert not matcher("class:addmm")(name)


def test_saved_values_have_names_and_no_class() -> None:
    assert matcher("loss")("loss.0.debug")
    assert not matcher("class:loss")("loss.0.debug")
    assert not matcher("class:*")("loss.0.debug")
    assert not matcher("class:*")("no entry at all")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is in every name"),
        ("class:", 'is no class; use its bare name after the colon: "class:LayerNorm"'),
        ("class: Dense", 'is no class; use its bare name after the colon: "class:Dense"'),
        ("class:Dense.forward.0", 'is no class; use its bare name after the colon: "class:Dense"'),
        ("name-regex(", 'has no closing bracket; use "name-regex(…)"'),
        ("name-regex(a)b", 'has no closing bracket; use "name-regex(…)"'),
        ("name-regex([)", "holds no regular expression (unterminated character set at character 1 of it)"),
        ("name-regex(" + "(" * 9999 + ")" * 9999 + ")", None),
    ],
)
def test_what_is_no_pattern(text: str, problem: str | None) -> None:
    with pytest.raises(PatternError) as refused:
        matcher(text)
    assert problem is None or str(refused.value) == problem


def test_an_odd_regular_expression_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert matcher("name-regex([[a].+)")("a.b")
    assert not recwarn


def test_many_gaps_cost_no_time() -> None:
    """Read as a regular expression, this would go through every way of placing the parts."""
    assert not matcher("*a" * 40 + "*b")("a" * 4000)
    assert not matcher("class:" + "*a" * 40 + "*b")(f"Tensor.{'a' * 400}.0.forward")
