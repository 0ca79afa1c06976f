"""What flows between calls, found by equal figures."""

from __future__ import annotations

from time import thread_time

import numpy as np
from built_dumps import dump, entry
from compare_parts import tensor, value
from export_dumps import dump_of, net, recorded

from msprobe_ms.comparison.export.edges import UNKNOWN, Edge, edges_of
from msprobe_ms.comparison.export.tree import tree_of
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import parse_entry

X = np.arange(6, dtype=np.float32)


def edges(of: Dump) -> list[Edge]:
    return edges_of(tree_of(of))


def test_an_input_comes_from_the_call_that_gave_it_out() -> None:
    assert edges(net()) == [
        Edge(0, 1, 0, 0),  # norm → fc
        Edge(1, 2, UNKNOWN, UNKNOWN),  # the addition was not recorded: the block follows what is left in it
        Edge(2, 3, 0, 0),  # the norm of the second block takes in what the first block gave out, and not the block
        Edge(3, 4, 0, 0),
        Edge(4, 5, UNKNOWN, UNKNOWN),
        Edge(5, 6, 0, UNKNOWN),  # what the net gives out is what its last block gave out
    ]


def test_the_last_that_gave_it_out_is_meant() -> None:
    calls = [
        recorded("Functional.a.0.forward", None, [X], [X + 1, X + 2]),
        recorded("Functional.same.0.forward", None, [X + 2], [X + 2]),
        recorded("Functional.b.0.forward", None, [X + 1, X + 2], [X + 3]),
    ]
    assert edges(dump_of(*calls)) == [Edge(0, 1, 1, 0), Edge(0, 2, 0, 0), Edge(1, 2, 0, 1)]


def test_backward_flows_too_and_gradients_come_from_their_call() -> None:
    calls = [
        recorded("Cell.b.Dense.backward.0", None, [X], [X + 1]),
        entry("Cell.a.Dense.parameters_grad.0", {"weight": (3,)}),
        recorded("Cell.a.Dense.backward.0", None, [X + 1], [X + 2]),
    ]
    assert edges(dump_of(*calls)) == [Edge(2, 1, UNKNOWN, UNKNOWN), Edge(0, 2, 0, 0)]


def test_a_container_takes_in_what_nothing_inside_of_it_does() -> None:
    around = "Cell.a.Block.forward.0"
    calls = [
        recorded("Functional.f.0.forward", None, [X], [X + 1]),
        recorded("Functional.g.0.forward", around, [X + 9], [X + 2]),
        recorded(around, None, [X + 1], [X + 2]),
    ]
    assert set(edges(dump_of(*calls))) >= {Edge(0, 2, 0, 0), Edge(1, 2, 0, UNKNOWN)}


def test_calls_follow_those_whose_results_are_lost_in_code_that_was_not_recorded() -> None:
    around = "Cell.attention.Attention.forward.0"
    calls = [
        *(recorded(f"Cell.attention.{name}.Dense.forward.0", around, [X], [X * n]) for n, name in enumerate("qkv", 2)),
        recorded("Cell.attention.out.Dense.forward.0", around, [X + 7], [X + 8]),
        recorded(around, None, [X], [X + 8]),
    ]
    assert edges(dump_of(*calls)) == [
        *(Edge(n, 3, UNKNOWN, UNKNOWN) for n in range(3)),
        Edge(3, 4, 0, UNKNOWN),
    ]


def test_what_makes_tensors_of_plain_values_follows_nothing_and_shapes_lead_nowhere() -> None:
    made = "Functional.arange.0.forward"
    shape = "Functional.shape.0.forward"
    calls = [
        recorded("Functional.a.0.forward", None, [X], [X + 1]),
        Entry(shape, parse_entry(shape), [tensor("input.0", X + 1, shape), value("output.0", 6, shape)]),
        Entry(made, parse_entry(made), [value("input.0", 6, made), tensor("output.0", X + 2, made)]),
        recorded("Functional.b.0.forward", None, [X + 4], [X + 3]),
    ]
    assert edges(dump_of(*calls)) == [Edge(0, 1, 0, 0), Edge(2, 3, UNKNOWN, UNKNOWN)]


def test_constant_tensors_tell_nothing() -> None:
    ones = np.ones(6, np.float32)
    calls = [recorded(f"Functional.f.{n}.forward", None, [ones], [ones]) for n in range(2)]
    assert edges(dump_of(*calls)) == [Edge(0, 1, UNKNOWN, UNKNOWN)]


def test_what_the_script_saved_follows_the_last_call() -> None:
    saved = "loss.0.debug"
    loss = Entry(saved, parse_entry(saved), [tensor("debug", X, saved)])
    assert edges(dump("mindspore", "Functional.a.0.forward", loss)) == [Edge(0, 1, UNKNOWN, UNKNOWN)]


def test_dumps_of_structure_alone_are_chains() -> None:
    calls = [Entry(name := f"Functional.f.{n}.forward", parse_entry(name), []) for n in range(3)]
    assert edges(dump_of(*calls)) == [Edge(0, 1, UNKNOWN, UNKNOWN), Edge(1, 2, UNKNOWN, UNKNOWN)]


def test_many_calls_that_pass_on_one_tensor_take_linear_time() -> None:
    def taken(count: int) -> float:
        around = "Cell.Net.forward.0"
        calls = [recorded(f"Functional.f.{n}.forward", around, [X], [X]) for n in range(count)]
        of = dump_of(*calls, recorded(around, None, [X], [X]))
        begin = thread_time()  # what others do on the machine takes none of it
        assert len(edges(of)) == count
        return thread_time() - begin

    taken(100)
    assert taken(8000) < 40 * max(taken(1000), 0.002)


def test_many_calls_with_one_input_from_nowhere_have_few_edges_each() -> None:
    lost = [recorded(f"Functional.f.{n}.forward", None, [X], [X * (n + 2)]) for n in range(500)]
    late = [recorded(f"Functional.g.{n}.forward", None, [X + 0.5], [X * (n + 1000)]) for n in range(500)]
    assert len(edges(dump_of(*lost, *late))) < 10_000
