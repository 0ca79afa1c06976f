"""Calls that are alike are read as if each were parsed, whatever else a dump.json holds and wherever it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.reading import alike_calls, json_stream, reader
from msprobe_ms.dump.reading.alike_calls import AlikeCalls
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError

pytestmark = pytest.mark.skipif(not AlikeCalls.is_built(), reason="the part in C is not built")

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SKETCHES = st.sampled_from(["A" * 86 + "==", "B" * 86 + "==", "/" * 172, "A" * 50, "é" * 60, "\\" * 50])
LEAVES = st.builds(
    lambda figures, more: {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], **figures, **more},
    st.fixed_dictionaries({"Max": FLOATS, "Min": FLOATS, "Mean": FLOATS, "Norm": FLOATS}),
    st.one_of(
        st.just({}),
        st.fixed_dictionaries({"Sketch": SKETCHES}),
        st.fixed_dictionaries({"Max": st.sampled_from([1, True, None, float("nan"), "NaN", 1e300])}),
        st.sampled_from(
            [{"md5": "0a1b2c3d"}, {"data_name": "a.npy"}, {"other": 0.5}, {"value": 0.25}, {"unwritten": True}]
        ),
    ),
)
PLAIN = st.sampled_from(
    [None, {"type": "int", "value": 3}, {"type": "float", "value": 0.5}, {"type": "str", "value": "x" * 50}, [], {}]
)
BODIES = st.fixed_dictionaries(
    {"input_args": st.lists(LEAVES | PLAIN, max_size=3), "output": st.lists(LEAVES, max_size=2)},
    optional={"input_kwargs": st.dictionaries(st.sampled_from("ab"), LEAVES | PLAIN), "recompute": st.just(True)},
)
BACKWARDS = st.fixed_dictionaries(
    {"output": st.lists(LEAVES, max_size=2), "input": st.lists(LEAVES | PLAIN, max_size=2)}
)
GRADIENTS = st.fixed_dictionaries({"weight": st.lists(LEAVES, max_size=2), "bias": LEAVES | PLAIN})
NAMES = st.sampled_from(
    [
        "Tensor.add.{}.forward",
        "Tensor.add.{}.backward",
        "Cell.a.B.forward.{}",
        "Cell.a.B.parameters_grad.{}",
        "parameters_grad.{}",
        "a.{}.debug",
    ]
)


def read(path: Path) -> str:
    """Everything of a dump, or why it cannot be read."""
    try:
        dump = read_dump(path)
    except DumpFormatError as error:
        return str(error)
    items = {name: [*map(repr, entry.items)] for name, entry in dump.entries.items()}
    return repr((items, dump.damage, dump.mode, [entry.recomputed for entry in dump.entries.values()]))


def is_read_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    with monkeypatch.context() as patched:
        patched.setattr(reader, "_MANY_CALLS", 0)
        patched.setattr(alike_calls, "_PARSED", 1)
        quick = read(path)
        patched.setattr(alike_calls, "_take", None)
        return quick == read(path)


@pytest.mark.parametrize("block", [64, 1 << 14])
@pytest.mark.parametrize("indent", [None, 1])
def test_all_items_are_those_that_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, indent: int | None
) -> None:
    monkeypatch.setattr(json_stream, "_BLOCK", block)
    monkeypatch.setattr(json_stream, "_LARGE_BLOCK", 4 * block)

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.lists(st.tuples(NAMES, BODIES | BACKWARDS | GRADIENTS), min_size=1, max_size=4), st.data())
    def check(kinds: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
        calls = {name.format(number): body for number in range(5) for name, body in kinds}
        text = json.dumps({"level": "mix", "data": calls}, indent=indent)
        if data.draw(st.booleans()):  # damage: an end, or another character
            place = data.draw(st.integers(1, len(text) - 1))
            text = (
                text[:place]
                + data.draw(st.sampled_from(["", '"', "-", ".5", "\x01", "}", "9" + text[place:]]))
                + (text[place + 1 :] if data.draw(st.booleans()) else "")
            )
        path = tmp_path / "dump.json"
        path.write_text(text, encoding="utf-8")
        assert is_read_alike(path, monkeypatch)

    check()


def leaf(number: float) -> dict[str, Any]:
    figures = {"Max": number, "Min": -number, "Mean": number / 3, "Norm": number * 7}
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], **figures}


def take_all(bodies: list[dict[str, Any]], name: str = "Tensor.add.{}.forward") -> tuple[list[str], ItemTable]:
    """The names of what needs no parsing, and its items."""
    names: list[str] = []
    table = ItemTable()

    def add(some: Any, hold: Any) -> None:
        names.extend(some)
        hold(some)

    alike = AlikeCalls(table, add)
    text = json.dumps({name.format(number): body for number, body in enumerate(bodies)})
    place = 1
    while text[place] != "}" and place:
        place, end = alike.take(text, place)
        place = max(place, end) if text[max(place, end)] == "}" else text.index('"', max(place, end))
    return names, table


def test_calls_are_taken_once_their_form_has_come_often() -> None:
    bodies = [
        {"input_args": [leaf(number / 7), {"type": "int", "value": 3}], "output": [leaf(0.25)]} for number in range(20)
    ]
    names, table = take_all(bodies)
    assert names == [f"Tensor.add.{number}.forward" for number in range(alike_calls._PARSED, 20)]
    assert [table.item(3 * place).maximum for place in range(len(names))] == [each / 7 for each in range(6, 20)]
    assert [table.item(3 * place + 1).maximum for place in range(len(names))] == [3] * len(names)


@pytest.mark.parametrize(
    "body",
    [
        {"input_args": [{"type": "float", "value": 0.5}]},
        {"input_args": [{**leaf(0.5), "other": 0.5}]},
        {"input_args": [leaf(0.5)], "scope": "a"},
        {"input_args": [{**leaf(0.5), "md5": "0a1b2c3d"}]},
        {"input_args": [{**leaf(0.5), "data_name": "x" * 50}]},
    ],
)
def test_what_holds_more_than_statistics_and_sketches_is_parsed(body: dict[str, Any]) -> None:
    assert take_all([body] * 20)[0] == []


def test_values_that_are_no_calls_are_parsed() -> None:
    for name in ("a.{}.debug", "parameters_grad.{}", "forward.{}"):
        assert take_all([{"weight": [leaf(0.5)]}] * 20, name)[0] == []


def test_a_parameter_that_is_called_as_what_tells_of_an_entry_is_parsed() -> None:
    assert take_all([{"scope": [leaf(0.5)]}] * 20, "Cell.a.B.parameters_grad.{}")[0] == []


def test_gradients_of_parameters_are_taken_without_the_list_around_them() -> None:
    names, table = take_all([{"weight": [leaf(number + 0.5)]} for number in range(20)], "Cell.a.B.parameters_grad.{}")
    assert [table.item(place).name for place in range(len(names))] == [f"{name}.weight" for name in names]
    assert [table.item(place).maximum for place in range(len(names))] == [each + 0.5 for each in range(6, 20)]


def test_items_have_their_own_figures_in_whichever_order_they_are_written() -> None:
    bodies = [
        {"output": [sketched(number + 0.5, "A")], "input": [sketched(number + 0.25, "Q")]} for number in range(20)
    ]
    names, table = take_all(bodies, "Tensor.add.{}.backward")
    taken, given = (
        [table.item(2 * place) for place in range(len(names))],
        [table.item(2 * place + 1) for place in range(len(names))],
    )
    assert {item.state for item in taken} == {"input"} and {item.sketch for item in taken} == {"Q" * 86 + "=="}
    assert [item.maximum for item in taken] == [each + 0.25 for each in range(6, 20)]
    assert [item.norm for item in given] == [7 * (each + 0.5) for each in range(6, 20)]


def sketched(number: float, letter: str) -> dict[str, Any]:
    return {**leaf(number), "Sketch": letter * 86 + "=="}


def test_a_dump_in_which_nothing_recurs_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike_calls, "_SOME_FORMS", 4)
    table = ItemTable()
    alike = AlikeCalls(table, lambda names, add: None)
    ends = [
        alike.take(f'"Tensor.add.0.forward": {{"output": [{{"type": "int", "value": {number}}}]}}}}', 0)[1]
        for number in range(12)
    ]
    assert all(ends[:5]) and not any(ends[8:])


@pytest.mark.processes
def test_everything_is_parsed_where_the_part_in_c_is_not_built() -> None:
    program = """
import sys
sys.modules["msprobe_ms.dump.reading._members"] = None
from msprobe_ms.dump.reading.alike_calls import AlikeCalls
assert not AlikeCalls.is_built()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


NUMBERS = {
    "beyond a double": "1" * 400 + ".5",
    "beyond a double with its exponent": "1" * 250 + ".5e99",
    "infinite": "1e400",
    "many digits": "0." + "3" * 5000,
    "small": "1.5E-99",
    "a zero": "-0.0",
    "a leading zero": "01.5",
    "no fraction": "1.",
    "a sign": "+1.5",
    "no number": "-",
    "NaN": "NaN",
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_are_no_doubles_are_read_or_refused_alike(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = (
        '{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Min": 0.5, "Mean": 0.5, "Norm": 1, "Max": '
    )
    calls = [
        f'"Tensor.add.{place}.forward": {{"input_args": [{known}{each}}}], "output": []}}'
        for place, each in enumerate([*["2.5"] * 20, number, "2.5", number, number])
    ]
    (path := tmp_path / "dump.json").write_text('{"task": "statistics", "data": {' + ",\n".join(calls) + "}}")
    assert is_read_alike(path, monkeypatch)
