"""What encloses what in a dump, also where not all of it was recorded."""

from __future__ import annotations

import numpy as np
from built_dumps import dump, entry, module_calls
from export_dumps import ROOT, dump_of, hostile, net, recorded

from msprobe_ms.comparison.export.tree import DEEPEST, Node, as_utf8, children_of, enclosing, free_name, tree_of
from msprobe_ms.dump.model import Entry


def parents(nodes: list[Node]) -> dict[str, str | None]:
    return {node.name: None if node.parent is None else nodes[node.parent].name for node in nodes}


def test_calls_lie_in_those_that_enclosed_them() -> None:
    nodes = tree_of(net())
    found = parents(nodes)
    assert found["Cell.blocks.1.fc.Dense.forward.0"] == "Cell.blocks.1.Block.forward.0"
    assert found["Cell.blocks.1.Block.forward.0"] == ROOT
    assert found[ROOT] is None
    assert [(node.label, node.kind) for node in nodes] == [
        ("norm", "LayerNorm"), ("fc", "Dense"), ("blocks.0", "Block"),
        ("norm", "LayerNorm"), ("fc", "Dense"), ("blocks.1", "Block"),
        ("Net", "Net"),
    ]  # fmt: skip
    assert children_of(nodes) == [[], [], [0, 1], [], [], [3, 4], [2, 5], [6]]
    assert enclosing(nodes, 3) == [6, 5]


def test_modules_that_were_not_recorded_are_groups() -> None:
    nodes = tree_of(
        dump(
            "mindspore",
            entry("Cell.a.Block.forward.0", parent="Cell.Net.forward.0"),
            entry("Kernel.MatMul.0.forward", parent="Cell.a.b.c.Dense.forward.0"),
            entry("Kernel.MatMul.0.backward", parent="Cell.a.b.c.Dense.backward.0"),
        )
    )
    found = parents(nodes)
    assert found["Kernel.MatMul.0.forward"] == "forward a.b.c"
    assert found["forward a.b.c"] == "forward a.b"
    assert found["forward a.b"] == "Cell.a.Block.forward.0"
    assert found["Cell.a.Block.forward.0"] == "forward Net"
    assert found["Kernel.MatMul.0.backward"] == "backward a.b.c"
    assert {node.name: (node.label, node.kind) for node in nodes}["backward a.b.c"] == ("c", "Dense")


def test_kernels_lie_in_groups_by_their_scopes() -> None:
    scope = "Default/network-Net/fc1-Dense/MatMul-op0"
    nodes = tree_of(dump_of(Entry("Kernel.MatMul.0.forward", None, [], scope=scope)))
    assert [node.label for node in nodes[1:]] == ["network", "fc1"]
    assert enclosing(nodes, 0) == [1, 2]


def test_modules_lie_in_each_other_by_their_paths_where_nothing_else_is_known() -> None:
    calls = [
        entry(name)
        for name in ("Cell.a.b.Dense.forward.0", "Functional.relu.0.forward", "Cell.a.Block.forward.0",
                     "Cell.a.b.Dense.forward.1", "Cell.a.Block.forward.1", "Cell.Net.forward.0")
    ]  # fmt: skip
    found = parents(tree_of(dump("mindspore", *calls)))
    assert found["Cell.a.b.Dense.forward.0"] == "Cell.a.Block.forward.0"
    assert found["Cell.a.b.Dense.forward.1"] == "Cell.a.Block.forward.1"
    assert found["Cell.a.Block.forward.0"] == "Cell.Net.forward.0"
    assert found["Functional.relu.0.forward"] is None


def test_gradients_of_parameters_lie_beside_the_backward_call() -> None:
    calls = module_calls("Cell", "a.fc", "Dense")
    calls[1].parent = "Cell.a.Block.backward.0"
    nodes = tree_of(dump("mindspore", *calls, entry("Cell.a.Block.backward.0")))
    assert parents(nodes)["Cell.a.fc.Dense.parameters_grad.0"] == "Cell.a.Block.backward.0"
    assert nodes[2].label == "fc parameters_grad"


def test_rings_and_depths_of_damaged_files_end() -> None:
    x = np.arange(3.0)
    ring = [recorded(f"Functional.f.{n}.forward", f"Functional.f.{(n + 1) % 3}.forward", [x], [x]) for n in range(3)]
    chain = [recorded(f"Functional.g.{n}.forward", f"Functional.g.{n + 1}.forward", [x], [x]) for n in range(500)]
    itself = recorded("Functional.h.0.forward", "Functional.h.0.forward", [x], [x])
    nodes = tree_of(dump_of(*ring, *chain, itself))
    depths = [len(enclosing(nodes, number)) for number in range(len(nodes))]
    assert max(depths) == DEEPEST and depths[-1] in (0, 1)
    assert sorted(number for inside in children_of(nodes) for number in inside) == list(range(len(nodes)))


def test_every_name_is_its_own_and_can_be_written() -> None:
    names = [node.name for node in tree_of(hostile())]
    assert len(set(names)) == len(names)
    for name in names:
        name.encode("utf-8")


def test_names_that_are_taken_get_a_number() -> None:
    taken: dict[str, int] = {}
    assert [free_name("a", taken) for _ in range(3)] == ["a", "a (2)", "a (3)"]
    assert as_utf8("é\ud800") == "é\\ud800"


def test_modules_below_the_top_have_titles_of_both() -> None:
    assert Node("x", "norm1", "LayerNorm").title == "norm1: LayerNorm"
    assert Node("x", "relu.2", "relu").title == "relu.2"
