"""How the calls of two dumps stand beside each other."""

from __future__ import annotations

import numpy as np
from export_dumps import (
    FUSED,
    ROOT,
    WRONG,
    alone,
    attention,
    compared,
    dump_of,
    faulty,
    fused,
    net,
    number_of,
    recorded,
)

from msprobe_ms.comparison.export.topology import Topology
from msprobe_ms.comparison.run import Options
from msprobe_ms.comparison.terms import Standing


def standings(topology: Topology, side: int = 0) -> dict[str, Standing]:
    graph = topology.graphs[side]
    return {graph.nodes[number].name: judged.standing for number, judged in graph.judged.items()}


def test_origins_and_what_inherits_them_are_told_apart() -> None:
    topology = faulty()
    for side in (0, 1):
        found = standings(topology, side)
        assert found[WRONG] == Standing.ORIGIN
        assert found["Cell.blocks.0.norm.LayerNorm.forward.0"] == Standing.AGREES
        assert found["Cell.blocks.1.fc.Dense.forward.0"] == found[ROOT] == Standing.INHERITED
    judged = topology.graphs[0].judged[number_of(topology, WRONG)]
    assert judged.ratio > 100 and judged.reason.startswith("The error begins here: output.0 deviates by")
    assert judged.rows_by_name()[f"{WRONG}.output.0"].result == "origin"
    assert topology.couples == [([number], [number]) for number in range(7)]


def test_modules_that_were_fused_are_several_nodes_beside_one() -> None:
    topology = fused()
    target, golden = topology.graphs
    assert [node.label for node in target.nodes] == ["q", "k", "v", "layer"]
    assert ([0, 1, 2], [0]) in topology.couples
    assert golden.judged[0].counterparts == [0, 1, 2]
    assert [target.judged[number].counterparts for number in range(3)] == [[0]] * 3
    assert set(standings(topology).values()) == {Standing.AGREES}


def test_a_fault_in_one_of_fused_modules_is_one_of_all() -> None:
    wrong = attention("q", "k", "v")
    name = "Cell.layer.k.Dense.forward.0"
    entry = wrong.entries[name]
    wrong.entries[name] = recorded(name, entry.parent, [], [np.full((2, 4), 9.0, np.float32)])
    wrong.entries[name].items[:0] = entry.in_state("input")
    topology = compared(wrong, attention("qkv"), options_for_fused())
    assert standings(topology, 1)["Cell.layer.qkv.Dense.forward.0"] == Standing.ORIGIN
    assert standings(topology)[name] == Standing.ORIGIN


def options_for_fused() -> Options:

    return Options(mappings=FUSED)


def test_calls_without_a_counterpart_and_without_values_are_told() -> None:
    x = np.arange(3, dtype=np.float32)
    empty = recorded("Cell.b.Dense.forward.0", None, [], [])
    first = recorded("Cell.a.Dense.forward.0", None, [x], [x + 1])
    extra = recorded("Cell.c.Other.forward.0", None, [x + 1], [x + 2])
    topology = compared(dump_of(first, empty, extra), dump_of(first, empty))
    assert standings(topology) == {
        first.name: Standing.AGREES, empty.name: Standing.NOT_COMPARED, extra.name: Standing.UNMATCHED,
    }  # fmt: skip
    assert topology.graphs[0].judged[2].counterparts == []


def test_one_dump_alone_is_not_judged() -> None:
    (graph,) = alone(net()).graphs
    assert (graph.title, graph.judged, len(graph.nodes), len(graph.edges)) == ("dump", {}, 7, 6)
