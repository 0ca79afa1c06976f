"""Thresholds of judging: all of the file can be changed, and every mistake in a user's file is one clear error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.accuracy.judging.thresholds import Thresholds, load_thresholds
from msprobe_ms.support.errors import UsageError


def loaded(folder: Path, text: str) -> Thresholds:
    path = folder / "thresholds.yaml"
    path.write_text(text, encoding="utf-8")
    return load_thresholds(path)


def leaves(table: Mapping[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, *above, key)
        else:
            yield *above, key


@pytest.mark.parametrize("path", sorted(leaves(load_thresholds().tables)), ids=".".join)
def test_every_threshold_can_be_changed(path: tuple[str, ...], tmp_path: Path) -> None:
    text = "".join(f"{'  ' * depth}{key}:\n" for depth, key in enumerate(path[:-1]))
    changed = loaded(tmp_path, f"{text}{'  ' * (len(path) - 1)}{path[-1]}: 0.123\n")
    assert changed.number(*path) == 0.123
    others = [each for each in leaves(load_thresholds().tables) if each != path]
    assert all(changed.number(*each) == load_thresholds().number(*each) for each in others)


def test_the_figures_of_the_generations() -> None:
    thresholds = load_thresholds()
    assert thresholds.table("v110", "float32") == {
        "small_value": 1e-6, "small_value_atol": 1e-9, "benchmark_atol": 1e-9, "rtol": 1e-6,
    }  # fmt: skip
    assert thresholds.number("v110", "bfloat16", "rtol") == 4e-3
    assert thresholds.table("latest", "float16") == {
        "small_value": 2.0**-10, "small_value_atol": 2.0**-16, "benchmark_atol": 1e-16, "rtol": 2.0**-10,
    }  # fmt: skip
    assert thresholds.table("latest", "float32") == {
        "small_value": 2.0**-20, "small_value_atol": 2.0**-30, "benchmark_atol": 2.0**-30, "rtol": 2.0**-20,
    }  # fmt: skip
    assert thresholds.number("latest", "bfloat16", "rtol") == 2.0**-8
    assert thresholds.table("least_denominator") == {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-14}
    growth = thresholds.table("own", "growth")
    assert growth["float16"] == 2.0**-13 and growth["bfloat16"] == 2.0**-16  # epsilon of float32 over theirs
    assert thresholds.table("v110", "float64") == {}


def test_apis_are_named_by_the_user(tmp_path: Path) -> None:
    assert loaded(tmp_path, "own:\n  apis: {gelu: 10, my_op: 2}\n").table("own", "apis") == {"gelu": 10.0, "my_op": 2.0}


@pytest.mark.parametrize("text", ["", "# nothing\n", "own:\n", "verdict: {}\n"])
def test_nothing_changes_nothing(text: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, text).tables == load_thresholds().tables


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "verdicts: {}",
            "line 1: the file: 'verdicts' is no threshold (did you mean \"verdict\"?); accepted: verdict, ",
        ),
        ("v110:\n  float64: {}", "line 2: v110: 'float64' is no threshold"),
        ("verdict:\n  cosine: high", "line 2: verdict.cosine: 'high'; accepted: a number of 0 or more (it is 0.99 by"),
        ("verdict:\n  cosine: -1", "line 2: verdict.cosine: '-1'; accepted: a number of 0 or more"),
        ("verdict:\n  cosine: .inf", "line 2: verdict.cosine: '.inf'"),
        ("verdict:\n  cosine: 1\n  cosine: 2", "line 3: verdict: cosine appears twice"),
        ("own: 3", "line 1: own holds '3'; accepted: a mapping with keys out of roundings, composite, "),
        ("own:\n  apis: [gelu]", "line 2: own.apis holds a list; accepted: a mapping with keys out of names of APIs"),
        ("own:\n  apis: {gelu: {}}", "line 2: own.apis.gelu: a mapping; accepted: a number of 0 or more"),
        ("{", "line "),
    ],
)
def test_mistakes_are_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(f"thresholds.yaml: {told}")) as error:
        loaded(tmp_path, text)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.yaml: cannot be read"):
        load_thresholds(tmp_path / "no.yaml")
