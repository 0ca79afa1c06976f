"""Scope paths of kernels → Cells."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from msprobe_ms.dump.kernels.scope_path import Scope, cell_entry, cell_of, parse_scope

FC1 = "Default/network-Net/fc1-Dense/MatMul-op0"


@pytest.mark.parametrize(
    ("scope", "cell"),
    [
        (FC1, "Cell.network.fc1.Dense.forward.0"),
        ("Default/fc1-Dense/MatMul-op0", "Cell.fc1.Dense.forward.0"),
        ("Default/MatMul-op0", None),
        ("Expand/_SumExt/ReduceSum-op0", None),
        ("Default/optimizer-SGD/SGD-op5", "Cell.optimizer.SGD.forward.0"),
        ("Default/net-Net/blocks-CellList/0-Block/fc_1-Dense/Add-op1", "Cell.net.blocks.0.fc_1.Dense.forward.0"),
        ("Gradients/" + FC1.replace("MatMul", "Grad_MatMul/MatMul"), "Cell.network.fc1.Dense.backward.0"),
        ("recompute_" + FC1, "Cell.network.fc1.Dense.forward.0"),
    ],
)
def test_the_cell_of_a_kernel(scope: str, cell: str | None) -> None:
    assert cell_entry(parse_scope(scope)) == cell
    assert cell_entry(parse_scope(scope.replace("/", "_"))) == cell
    assert parse_scope(scope).recomputed == parse_scope(scope.replace("/", "_")).recomputed == ("recompute" in scope)


@pytest.mark.parametrize("join", ["/", "_"])
def test_names_are_relative_to_the_model(join: str) -> None:
    cells = {"": "My_Net", "fc1": "Dense", "my_seq": "Sequential_Cell", "my_seq.0": "Dense"}

    def cell(scope: str) -> tuple[str, str] | None:
        return cell_of(parse_scope(scope.replace("/", join), cells), cells)

    assert cell("Default/network-WithLossCell/_backbone-My_Net/fc1-Dense/MatMul-op0") == ("fc1", "Dense")
    assert cell("Default/network-My_Net/my_seq-Sequential_Cell/0-Dense/MatMul-op0") == ("my_seq.0", "Dense")
    assert cell("Default/my_seq-Sequential_Cell/0-Dense/MatMul-op0") == ("my_seq.0", "Dense")
    assert cell("Default/network-WithLossCell/_backbone-My_Net/Add-op0") == ("", "My_Net")
    # Not of the model: the whole path.
    assert cell("Default/network-WithLossCell/_loss_fn-Loss/fc1-Conv/Add-op0") == ("network._loss_fn.fc1", "Conv")


def test_the_model_is_found_below_another_cell_with_a_child_of_the_same_name() -> None:
    cells = {"": "Net", "fc1": "Dense", "net": "Inner", "net.fc1": "Dense"}
    assert cell_of(parse_scope("Default/net-Net/fc1-Dense/MatMul-op0"), cells) == ("fc1", "Dense")
    assert cell_of(parse_scope("Default/a-Net/net-Inner/fc1-Dense/MatMul-op0"), cells) == ("net.fc1", "Dense")


ATTRIBUTES = st.one_of(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), st.integers(0, 20).map(str))
CAMEL = st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}", fullmatch=True)
CLASSES = st.from_regex(r"_?[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
OPERATORS = st.sampled_from(["MatMul-op0", "Grad_MatMul/MatMul-op12", "Add-op3"])
HEADS = st.sampled_from(["Default", "Gradients/Default", "recompute_Default"])


def path(head: str, parts: list[tuple[str, str]], operator: str) -> str:
    return "/".join([head, *(f"{attribute}-{name}" for attribute, name in parts), operator])


@given(HEADS, st.lists(st.tuples(ATTRIBUTES, CLASSES), max_size=6), OPERATORS)
def test_paths_with_slashes_come_apart_exactly(head: str, parts: list[tuple[str, str]], operator: str) -> None:
    scope = parse_scope(path(head, parts, operator))
    assert [tuple(each) for each in scope.components] == parts
    assert scope.backward == head.startswith("Gradients")


@given(HEADS, st.lists(st.tuples(ATTRIBUTES, CAMEL), max_size=6), OPERATORS)
def test_file_names_of_camel_case_classes_come_apart_exactly(
    head: str, parts: list[tuple[str, str]], operator: str
) -> None:
    # The first attribute is read to the word Default: one that begins so is another path.
    assume(not parts or not parts[0][0].lower().startswith(("default", "gradient", "recompute", "expand")))
    whole = path(head, parts, operator)
    assert parse_scope(whole.replace("/", "_")) == parse_scope(whole)


@given(st.data(), HEADS, OPERATORS)
def test_known_cells_decide_among_readings(data: st.DataObject, head: str, operator: str) -> None:
    """Whatever underscores names and classes hold, a Cell of the model is found by its file name."""
    children = data.draw(st.dictionaries(ATTRIBUTES, CLASSES, min_size=1, max_size=4))
    root = data.draw(CLASSES)
    cells = {"": root, **children}
    name = data.draw(st.sampled_from(sorted(children)))
    whole = path(head, [("network", root), (name, children[name])], operator).replace("/", "_")
    found = cell_of(parse_scope(whole, cells), cells)
    # Two readings may both be Cells of the model; what is found is always one.
    assert found is not None and cells.get(found[0]) == found[1]


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(parse_scope(text), Scope)
    cell_entry(parse_scope(text, {"": "Net", "a": "B"}), {"": "Net", "a": "B"})
