"""Where error begins: small histories of a step, written down node by node."""

from __future__ import annotations

import math

import pytest
from compare_nodes import BLOCK, CARRIED, FAULT, NEXT, REST, node, only, origins

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.connected_nodes import nodes_of
from msprobe_ms.comparison.origin.nodes import error_ratio


def test_the_first_node_whose_inputs_agree_and_whose_output_does_not() -> None:
    found = only(
        node("Cell.layers.0.norm.LayerNorm.forward.0", BLOCK, input_0=REST, output_0=FAULT),
        node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=FAULT, output_0=CARRIED),
        node(BLOCK, None, input_0=REST, output_0=CARRIED),
        node(NEXT, None, input_0=CARRIED, output_0=FAULT * 10),
    )
    assert found.target == "Cell.layers.0.norm.LayerNorm.forward.0.output.0"
    assert found.state == "output"
    assert found.metrics["deviation"] == pytest.approx(400e-5)
    assert found.reason.startswith("output.0 deviates by 0.004 of its size (tolerance 1e-05), though its inputs ")


def test_other_data_is_the_origin_where_the_inputs_of_what_encloses_it_were_not_compared() -> None:
    """One side's network takes token ids in, the other's the words embedded: these two stand beside nothing."""
    words = node("Cell.net.words.Embedding.forward.0", "Cell.net.Net.forward.0", input_0=FAULT, output_0=FAULT)
    whole = node("Cell.net.Net.forward.0", None, output_0=FAULT)
    assert origins(words, whole) == ["Cell.net.words.Embedding.forward.0.input.0"]
    known = node("Cell.net.Net.forward.0", None, input_0=REST, output_0=FAULT)
    assert origins(words, known) == ["Cell.net.Net.forward.0.output.0"]


def test_an_input_of_a_call_comes_before_what_is_wrong_inside() -> None:
    net = "Cell.net.Net.forward.0"
    first = node("Cell.net.a.Dense.forward.0", net, (4.0, 2.0), input_0=FAULT, output_0=FAULT)
    second = node("Cell.net.b.Dense.forward.0", net, (5.0, 2.0), input_0=REST, output_0=FAULT)
    assert origins(first, second, node(net, None, (4.0, 2.0), input_0=FAULT, output_0=FAULT))[0] == f"{net}.input.0"


def test_agreeing_dumps_have_no_origin() -> None:
    assert origins(node(BLOCK, None, input_0=REST, output_0=0.4), node(NEXT, None, input_0=0.4, output_0=0.9)) == []


def test_a_fault_in_a_modules_own_code_is_its_own_when_its_children_agree() -> None:
    found = only(
        node("Cell.layers.0.conv.Conv2d.forward.0", BLOCK, input_0=REST, output_0=REST),
        node("Cell.layers.0.bn.BatchNorm2d.forward.0", BLOCK, input_0=REST, output_0=REST),
        node(BLOCK, None, input_0=REST, output_0=FAULT),
        node(NEXT, None, input_0=FAULT, output_0=FAULT),
    )
    assert found.target == f"{BLOCK}.output.0"
    assert "the 2 calls recorded inside it agree" in found.details
    assert found.reason.endswith(": look at its code between and after the calls inside it")


def test_a_fault_between_two_children_is_the_parents_and_says_where_it_shows_first() -> None:
    found = only(
        node("Cell.a.q.Dense.forward.0", "Cell.a.Attention.forward.0", input_0=REST, output_0=REST),
        node("Cell.a.out.Dense.forward.0", "Cell.a.Attention.forward.0", input_0=FAULT, output_0=FAULT),
        node("Cell.a.Attention.forward.0", None, input_0=REST, output_0=FAULT),
    )
    assert found.target == "Cell.a.Attention.forward.0.output.0"
    assert found.reason.endswith(": look at its code before a.out")
    assert found.details[0].startswith("inside it the difference shows first at Cell.a.out.Dense.forward.0.input.0: ")


def test_two_independent_faults_are_two_origins_in_execution_order() -> None:
    assert origins(
        node("Cell.a.Dense.forward.0", input_0=REST, output_0=FAULT),
        node("Cell.b.Dense.forward.0", input_0=FAULT, output_0=FAULT),
        node("Cell.side.Dense.forward.0", input_0=REST, output_0=FAULT),
    ) == ["Cell.a.Dense.forward.0.output.0", "Cell.side.Dense.forward.0.output.0"]


def test_calls_of_one_module_are_told_apart() -> None:
    assert origins(
        node("Cell.relu.ReLU.forward.0", input_0=REST, output_0=REST),
        node("Cell.relu.ReLU.forward.1", input_0=REST, output_0=FAULT),
    ) == ["Cell.relu.ReLU.forward.1.output.0"]


class TestBackward:
    def test_a_wrong_gradient_is_found_when_forward_agrees(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=REST, output_0=REST),
            node("Cell.a.L.backward.0", input_0=REST, output_0=FAULT),
        )
        assert found.target == "Cell.a.L.backward.0.output.0"

    def test_gradients_of_a_forward_fault_are_not_blamed(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", input_0=REST, output_0=FAULT),
            node("Cell.b.L.forward.0", input_0=FAULT, output_0=FAULT),
            node("Cell.b.L.parameters_grad.0", parameters_grad_weight=FAULT),
            node("Cell.b.L.backward.0", input_0=REST, output_0=FAULT),
            node("Cell.a.L.backward.0", input_0=FAULT, output_0=FAULT),
        ) == ["Cell.a.L.forward.0.output.0"]

    def test_a_parameter_gradient_alone_is_an_origin(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=REST, output_0=REST),
            node("Cell.a.L.parameters_grad.0", parameters_grad_weight=FAULT),
            node("Cell.a.L.backward.0", input_0=REST, output_0=REST),
        )
        assert (found.target, found.state) == ("Cell.a.L.parameters_grad.0.weight", "parameters_grad")

    def test_a_gradient_that_differs_on_arrival_points_at_the_loss(self) -> None:
        found = only(
            node("Cell.head.Dense.forward.0", input_0=REST, output_0=REST),
            node("Cell.head.Dense.backward.0", input_0=FAULT, output_0=FAULT),
        )
        assert (found.target, found.state) == ("Cell.head.Dense.backward.0.input.0", "input")
        assert "look at the loss" in found.reason

    def test_the_layers_parameter_gradient_recorded_first_does_not_hide_it(self) -> None:
        found = only(
            node("Cell.head.Dense.forward.0", input_0=REST, output_0=REST),
            node("Cell.head.Dense.parameters_grad.0", parameters_grad_weight=FAULT),
            node("Cell.head.Dense.backward.0", input_0=FAULT, output_0=FAULT),
        )
        assert found.target == "Cell.head.Dense.backward.0.input.0"


def test_checksums_are_exact() -> None:
    pairs = [node("Cell.a.L.forward.0", input_0=0, output_0=1), node("Cell.b.L.forward.0", input_0=1, output_0=1)]
    for pair in pairs:
        for row in pair.rows:
            row.deviation, row.tolerance = (math.inf if row.deviation else 0.0), 0.0
    assert error_ratio(pairs[0].rows[1]) == math.inf
    assert origins(*pairs) == ["Cell.a.L.forward.0.output.0"]


def test_unmatched_entries_take_no_part() -> None:
    alone = node("Cell.x.L.forward.0", input_0=0, output_0=FAULT)
    alone.golden = None
    alone.rows = [Row(row.target, None) for row in alone.rows]
    assert origins(alone, node("Cell.a.L.forward.0", input_0=REST, output_0=REST)) == []


def test_the_required_tolerance_is_what_would_have_passed() -> None:
    pairs = [node(BLOCK, None, input_0=REST, output_0=FAULT), node(NEXT, None, input_0=FAULT, output_0=FAULT)]
    found = only(*pairs)
    assert found.required_tolerance == pytest.approx(400e-5)
    for pair in pairs:
        for row in pair.rows:
            row.tolerance = found.required_tolerance
    assert origins(*pairs) == []


class TestUpdatedParameters:
    """From the second step on parameters carry what gradients were; zero gradients are noise that Adam magnifies."""

    ATTENTION = "Cell.a.Attention.forward.0"

    def step(self, key: float, whole: float, gradient: float = 1.0) -> list[Pair]:
        others = [node(f"Cell.{i}.Dense.forward.0", input_0=0, parameters_weight=0.1, output_0=REST) for i in range(9)]
        noise = node("Cell.a.k.Dense.parameters_grad.0", parameters_grad_bias=REST)
        row = noise.rows[0]
        assert row.golden is not None
        noise.rows[0] = Row(row.target, row.golden._replace(norm=gradient), None, 1e-7, 1e-5)
        return [
            *others,
            node("Cell.a.k.Dense.forward.0", self.ATTENTION, (4.0, 4.0), parameters_bias=key, output_0=CARRIED),
            node("Cell.a.o.Dense.forward.0", self.ATTENTION, input_0=whole, parameters_bias=0.1, output_0=whole),
            node(self.ATTENTION, None, input_0=REST, output_0=whole),
            noise,
        ]

    def test_one_whose_effect_cancels_in_what_encloses_it_is_let_go(self) -> None:
        assert origins(*self.step(key=FAULT, whole=REST)) == []

    def test_one_whose_gradient_is_noise_is_let_go(self) -> None:
        assert origins(*self.step(key=FAULT, whole=2.0, gradient=1.3)) == []

    def test_one_that_shows_is_named(self) -> None:
        assert origins(*self.step(key=FAULT, whole=CARRIED)) == ["Cell.a.k.Dense.forward.0.parameters.bias"]

    def test_a_fault_behind_one_that_was_let_go_is_found(self) -> None:
        later = node("Cell.b.Norm.forward.0", None, (7.0, 2.0), input_0=REST, output_0=FAULT)
        assert origins(*self.step(key=FAULT, whole=REST)[:-1], later) == ["Cell.b.Norm.forward.0.output.0"]

    def test_an_input_that_jumps_is_found_though_others_drifted(self) -> None:
        drifted = node("Cell.up.Conv2dTranspose.forward.0", None, (5.0, 2.0), input_0=1.2, output_0=1.5)
        jumped = node("Cell.dec.Conv2d.forward.0", None, (7.0, 2.0), input_0=1.4e4, output_0=1.4e4)
        assert origins(*self.step(key=REST, whole=REST)[:9], drifted, jumped) == ["Cell.dec.Conv2d.forward.0.input.0"]

    def test_error_that_grows_by_degrees_is_none(self) -> None:
        deep = [
            node(f"Cell.l.{i}.L.forward.0", None, (i, 7.0), input_0=2.0**i / 10, output_0=2.0 ** (i + 1) / 10)
            for i in range(9)
        ]
        assert origins(*self.step(key=REST, whole=REST)[:9], *deep) == []

    def test_a_little_drift_of_one_is_none(self) -> None:
        assert origins(*self.step(key=2.5, whole=CARRIED)) == []


def test_what_a_net_is_called_does_not_make_it_random() -> None:
    net = "Cell.RandLANet.forward.0"
    inside = node("Cell.a.Dense.forward.0", net, input_0=0.0, output_0=REST)
    assert only(inside, node(net, None, input_0=0.0, output_0=FAULT)).kind == "computation"


def test_a_module_called_after_a_function_is_judged_by_the_layers_in_it() -> None:
    for name, kind in (("GELU", Kind.OTHER), ("LoraLinear", Kind.LINEAR)):
        outer = f"Cell.net.a.{name}.forward.0"
        inner = node("Cell.net.a.proj.Dense.forward.0", outer, input_0=0.0, parameters_weight=CARRIED, output_0=REST)
        nodes = nodes_of([inner, node(outer, None, input_0=0.0, output_0=REST)])
        assert [each.kind for each in nodes if each.name == outer] == [kind]
