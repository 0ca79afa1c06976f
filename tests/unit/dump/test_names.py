"""The grammar of names: what is formatted is parsed back, and no two tensors share a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, api_entry, data_name, module_entry, parse_entry

#: A part of a dotted name as attributes and list positions give it.
part = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}|[0-9]{1,3}", fullmatch=True)
dotted = st.lists(part, min_size=1, max_size=5).map(".".join)
class_name = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
index = st.integers(0, 10**6)


@given(
    st.sampled_from(["Cell", "Module"]),
    st.one_of(dotted, st.just("")),
    class_name,
    st.sampled_from([FORWARD, BACKWARD]),
    index,
)
def test_module_entries(prefix: str, name: str, kind: str, direction: str, number: int) -> None:
    text = module_entry(prefix, name, kind, direction, number)
    parsed = parse_entry(text)
    assert parsed is not None
    assert (parsed.prefix, parsed.name, parsed.class_name, parsed.direction, parsed.index) == (
        prefix, name, kind, direction, number,
    )  # fmt: skip
    assert str(parsed) == text
    assert parsed.is_module
    twin = parsed.in_direction(BACKWARD if direction == FORWARD else FORWARD)
    assert (twin.name, twin.class_name, twin.index) == (name, kind, number)


@given(
    st.sampled_from(["Functional", "Tensor", "Mint", "MintFunctional", "Torch"]),
    dotted,
    index,
    st.sampled_from([FORWARD, BACKWARD]),
)
def test_api_entries(prefix: str, name: str, number: int, direction: str) -> None:
    text = api_entry(prefix, name, number, direction)
    parsed = parse_entry(text)
    assert parsed is not None
    assert (parsed.prefix, parsed.name, parsed.index, parsed.direction) == (prefix, name, number, direction)
    assert str(parsed) == text
    assert not parsed.is_module


@pytest.mark.parametrize(
    ("text", "name", "class_name", "index"),
    [
        ("Cell.net.fc1.Dense.parameters_grad.0", "net.fc1", "Dense", 0),
        ("Cell.net.fc1.Dense.parameters_grad", "net.fc1", "Dense", None),
        ("Cell.0.net.fc1.Dense.parameters_grad.12", "0.net.fc1", "Dense", 12),
    ],
)
def test_parameter_gradients(text: str, name: str, class_name: str, index: int | None) -> None:
    parsed = parse_entry(text)
    assert parsed is not None
    assert (parsed.name, parsed.class_name, parsed.direction, parsed.index) == (
        name,
        class_name,
        PARAMETERS_GRAD,
        index,
    )
    assert str(parsed) == text


@pytest.mark.parametrize(
    "text", ["", ".", "Cell", "Cell.a.Dense.forward", "Functional.relu.forward", "Functional.relu.x.forward"]
)
def test_what_follows_no_grammar(text: str) -> None:
    assert parse_entry(text) is None


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    parsed = parse_entry(text)
    assert parsed is None or str(parsed) == text


def test_the_names_of_the_format() -> None:
    entry = "Cell.net.fc1.Dense.forward.0"
    assert (
        data_name("Functional.concat.3.forward", "input", ("0", "1"), ".npy")
        == "Functional.concat.3.forward.input.0.1.npy"
    )
    assert data_name("Mint.add.0.forward", "kwargs", ("alpha",), ".npy") == "Mint.add.0.forward.kwargs.alpha.npy"
    assert data_name(entry, "parameters", ("weight",), ".npy") == f"{entry}.parameters.weight.npy"
    assert (
        data_name("Cell.fc1.Dense.parameters_grad.0", "", ("weight",), ".npy")
        == "Cell.fc1.Dense.parameters_grad.0.weight.npy"
    )


@given(st.lists(st.tuples(st.text(), st.text(), st.lists(st.text(), max_size=3)), min_size=1, max_size=8))
def test_file_names_are_safe_and_distinct(places: list[tuple[str, str, list[str]]]) -> None:
    """Whatever a dictionary key holds: one file in the folder, within the file system's limit, none for two tensors."""
    names = {}
    for entry, category, path in places:
        whole = ".".join(text for text in (entry, category, *path) if text)
        name = data_name(entry, category, tuple(path), ".npy")
        assert "/" not in name
        assert "\0" not in name
        assert name.endswith(".npy")
        assert len(name.encode()) <= 255
        assert names.setdefault(name, whole) == whole


@given(st.lists(st.lists(st.text(alphabet=".ab", max_size=3), max_size=3).map(tuple), unique=True))
def test_no_two_places_of_one_call_share_a_file(places: list[tuple[str, ...]]) -> None:
    """A key may hold dots, as those of a state dictionary do, or nothing."""
    assert len({data_name("Cell.a.A.forward.0", "input", place, ".npy") for place in places}) == len(places)
