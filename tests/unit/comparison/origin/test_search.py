"""Where error begins: small histories of a step, written down node by node."""

from __future__ import annotations

import math
from typing import Any

import pytest

from msprobe_ms.comparison.model import Comparison, Origin, Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.nodes import error_ratio, nodes_of
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.verdict import verdict_of
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry

#: Deviations in tolerances: rounding, a fault, and what a fault becomes further on.
REST, FAULT, CARRIED = 0.02, 400.0, 60.0


def node(
    name: str, parent: str | None = None, figures: tuple[float, float] = (3.0, 1.0), size: int = 6, **strains: float
) -> Pair:
    """A matched pair of entries; ``input_0=400`` is a row whose deviation is 400 tolerances.

    ``figures`` are the target's recorded Max and Norm, by which a tensor is known again. ``size``: elements a row.
    """
    rows = []
    for place, amount in strains.items():
        state, _, path = place.rpartition("_")
        item = Item(name, state, (path,), kind="tensor", type="mindspore.Tensor", dtype="Float32", shape=(size,),
                    maximum=figures[0], minimum=-1.0, mean=0.1, norm=figures[1])  # fmt: skip
        rows.append(Row(item, item, deviation=amount * 1e-5, tolerance=1e-5))
    entry = Entry(name, parse_entry(name), [row.target for row in rows if row.target], parent)
    return Pair(entry, entry, rows, "name")


def origins(*pairs: Pair) -> list[str]:
    return [origin.target for origin in find_origins(Evidence(pairs))]


def only(*pairs: Pair) -> Origin:
    found = find_origins(Evidence(pairs))
    assert len(found) == 1
    return found[0]


BLOCK = "Cell.layers.0.Block.forward.0"
NEXT = "Cell.layers.1.Block.forward.0"


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
    assert found.reason.startswith(
        "its inputs agree to 0.02 of the tolerance, its output does not, output.0 deviates by"
    )


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
    assert "the 2 calls recorded inside it agree" in found.reason


def test_a_fault_between_two_children_is_the_parents_and_says_where_it_shows_first() -> None:
    found = only(
        node("Cell.a.q.Dense.forward.0", "Cell.a.Attention.forward.0", input_0=REST, output_0=REST),
        node("Cell.a.out.Dense.forward.0", "Cell.a.Attention.forward.0", input_0=FAULT, output_0=FAULT),
        node("Cell.a.Attention.forward.0", None, input_0=REST, output_0=FAULT),
    )
    assert found.target == "Cell.a.Attention.forward.0.output.0"
    assert "inside it the difference shows first at Cell.a.out.Dense.forward.0.input.0" in found.reason


def test_an_input_that_differs_before_anything_computed_does_is_an_origin() -> None:
    found = only(
        node("Functional.layer_norm.1.forward", input_0=REST, output_0=REST),
        node("Functional.layer_norm.2.forward", input_0=REST, input_2=FAULT, output_0=FAULT),
        node("Functional.linear.6.forward", input_0=FAULT, output_0=FAULT),
    )
    assert (found.target, found.state) == ("Functional.layer_norm.2.forward.input.2", "input")
    assert "it comes from outside" in found.reason


def test_the_input_of_what_encloses_a_module_differed_before_the_modules_own() -> None:
    found = only(
        node("Cell.a.attention.drop.Dropout.forward.0", "Cell.a.Attention.forward.0", input_0=FAULT, output_0=FAULT),
        node("Cell.a.Attention.forward.0", "Cell.a.Layer.forward.0", input_0=REST, input_1=FAULT, output_0=FAULT),
        node("Cell.a.Layer.forward.0", None, input_0=REST, input_1=FAULT, output_0=FAULT),
    )
    assert found.target == "Cell.a.Layer.forward.0.input.1"


def test_what_differs_inside_a_call_does_not_hide_that_the_call_differs() -> None:
    """In dumps equal to the bit so far, both within the tolerance of a net: the call inside takes in what was cast."""
    equal = [node(f"Cell.{i}.Dense.forward.0", None, (i, 2.0), input_0=0, output_0=0) for i in range(4)]
    found = only(
        *equal,
        node("Primitive.conv2d.Conv2D.0.forward", "Cell.out.Conv2d.forward.0", (7.0, 2.0), input_0=0.18, output_0=0.1),
        node("Cell.out.Conv2d.forward.0", None, (8.0, 2.0), input_0=0, output_0=0.13),
    )
    assert found.target == "Cell.out.Conv2d.forward.0.output.0"


def test_an_input_a_little_beyond_its_bound_after_noise_of_that_size_is_no_origin() -> None:
    noisy = node("Cell.a.Dense.backward.0", input_0=REST, output_0=0.6)
    assert origins(noisy, node("Cell.b.Dense.backward.0", input_0=1.1, output_0=1.1)) == []
    assert origins(noisy, node("Cell.b.Dense.backward.0", input_0=FAULT, output_0=FAULT)) != []


def test_an_input_that_jumps_after_drift_just_beyond_the_bound_is_an_origin() -> None:
    """A recurrent layer gives out 1.08 tolerances; the code after it drops a residual."""
    drifted = node("Cell.gru.GRU.forward.0", input_0=0, output_0=1.08)
    assert origins(drifted, node("Cell.norm.LayerNorm.forward.0", None, (7.0, 2.0), input_0=8e4, output_0=9e4)) == [
        "Cell.norm.LayerNorm.forward.0.input.0"
    ]


def test_after_an_origin_inputs_that_seem_to_agree_prove_less() -> None:
    later = node("Cell.b.Dense.forward.0", None, (7.0, 2.0), input_0=0.7, output_0=6)
    assert origins(node("Cell.a.Norm.forward.0", input_0=REST, output_0=FAULT), later) == [
        "Cell.a.Norm.forward.0.output.0"
    ]
    assert origins(node("Cell.a.Norm.forward.0", input_0=FAULT, output_0=0.7), later) == [
        "Cell.a.Norm.forward.0.input.0"
    ]


def test_after_an_origin_what_differs_a_little_has_inherited_and_not_drifted() -> None:
    assert origins(
        node("Cell.a.Norm.forward.0", input_0=REST, output_0=FAULT),
        node("Cell.b.Dense.forward.0", None, (7.0, 2.0), input_0=2.3, output_0=FAULT),
    ) == ["Cell.a.Norm.forward.0.output.0"]


def test_a_parameter_that_differs_is_named_once_however_often_its_module_is_called() -> None:
    cell = "Cell.gru.GRUCell.forward."
    assert origins(
        node("Cell.gru.x.Dense.forward.0", f"{cell}0", input_0=0.0, parameters_weight=FAULT, output_0=0.0),
        node(f"{cell}0", None, input_0=0.0, output_0=0.0),
        node("Cell.gru.x.Dense.forward.1", f"{cell}1", input_0=0.0, parameters_weight=FAULT, output_0=FAULT),
        node(f"{cell}1", None, input_0=0.0, output_0=FAULT),
    ) == ["Cell.gru.x.Dense.forward.0.parameters.weight"]


def test_a_parameter_that_differs_is_named_itself() -> None:
    found = only(
        node("Cell.a.Dense.forward.0", input_0=REST, parameters_weight=FAULT, output_0=FAULT),
        node("Cell.b.Dense.forward.0", input_0=FAULT, parameters_weight=REST, output_0=FAULT),
    )
    assert (found.target, found.state) == ("Cell.a.Dense.forward.0.parameters.weight", "parameters")
    assert "other modules" not in found.reason
    found = only(
        node("Cell.a.Dense.forward.0", input_0=REST, parameters_weight=FAULT, output_0=FAULT),
        node("Cell.b.Dense.forward.0", input_0=FAULT, parameters_weight=FAULT, output_0=FAULT),
        node("Cell.c.Dense.forward.0", input_0=FAULT, parameters_weight=REST, output_0=FAULT),
    )
    assert "(so do parameters of 1 of the 2 other modules with parameters)" in found.reason


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


class TestDrift:
    def test_error_that_crosses_the_bound_by_degrees_is_no_origin(self) -> None:
        deep = [
            node(f"Cell.layers.{i}.L.forward.0", input_0=1.2**i / 10, output_0=1.2 ** (i + 1) / 10) for i in range(20)
        ]
        assert origins(*deep) == []

    def test_drift_far_beyond_the_bound_is_told_at_its_crossing(self) -> None:
        deep = [
            node(f"Cell.layers.{i}.L.forward.0", input_0=2.0**i / 10, output_0=2.0 ** (i + 1) / 10) for i in range(9)
        ]
        found = only(*deep)
        assert found.target == "Cell.layers.3.L.forward.0.output.0"
        assert found.reason.startswith("error grows by degrees")

    def test_the_place_where_it_grows_most_is_told_with_it(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=0.5, output_0=1.5),
            node("Cell.b.L.forward.0", None, (7.0, 2.0), input_0=1.5, output_0=3.0),
            node("Cell.c.L.forward.0", None, (8.0, 2.0), input_0=3.0, output_0=24.0),
        )
        assert (found.kind, found.target) == ("drift", "Cell.a.L.forward.0.output.0")
        assert found.reason.endswith("it grows most at Cell.c.L.forward.0.output.0, from 3 to 24 times its tolerance")

    def test_a_jump_after_drift_too_far_to_be_judged_is_where_the_error_begins(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=0.5, output_0=4.0),
            node("Cell.b.L.forward.0", None, (7.0, 2.0), input_0=4.0, output_0=12.0),
            node("Cell.c.L.forward.0", None, (8.0, 2.0), input_0=12.0, output_0=FAULT),
        )
        assert (found.kind, found.target) == ("drift", "Cell.c.L.forward.0.output.0")
        assert "most comes in here: Cell.c.L.forward.0.output.0, from 12 to 400 times its tolerance" in found.reason

    def test_gradients_that_switches_explain_do_not_hide_what_forward_drifts_by(self) -> None:
        forward = [
            node(f"Cell.{i}.relu.ReLU.forward.0", None, (i, 2.0), size=20_000, input_0=2.0**i, output_0=2.0 ** (i + 1))
            for i in range(5)
        ]
        gradient = node("Cell.1.relu.ReLU.backward.0", size=20_000, input_0=REST, output_0=500)
        assert origins(*forward, gradient) == ["Cell.0.relu.ReLU.forward.0.output.0"]
        assert origins(*forward[:2], gradient) == []

    def test_a_fault_beyond_drift_is_found_at_the_fault(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", input_0=0.8, output_0=1.3),
            node("Cell.b.L.forward.0", input_0=1.3, output_0=FAULT),
        ) == ["Cell.b.L.forward.0.output.0"]


class TestSaves:
    """Debug dumps hold values a script saved: no calls, so no inputs."""

    @staticmethod
    def save(name: str, amount: float, *path: str) -> Pair:
        item = Item(name, "debug", path, kind="tensor", type="mindspore.Tensor", dtype="Float32", shape=(6,))
        entry = Entry(name, parse_entry(name), [item])
        return Pair(entry, entry, [Row(item, item, deviation=amount * 1e-5, tolerance=1e-5)], "name")

    def test_only_the_first_that_differs_is_an_origin(self) -> None:
        found = only(
            self.save("hidden.0.debug", 0.0),
            self.save("layer.0.debug", 2.0),
            self.save("layer.1.debug", FAULT),
            self.save("layer_grad.1.debug", FAULT * 100),
        )
        assert (found.target, found.state) == ("layer.0.debug", "debug")
        assert found.reason == (
            "the saved value differs: it deviates by 2e-05 (tolerance 1e-05); what was saved before it agrees exactly: "
            "look at the code after hidden.0.debug was saved"
        )

    def test_its_part_that_differs_is_named(self) -> None:
        found = only(self.save("hidden.0.debug", FAULT, "left", "0"))
        assert found.target == "hidden.0.debug.left.0"
        assert found.reason == (
            "the saved value differs: left.0 deviates by 0.004 (tolerance 1e-05); nothing was saved before it"
        )

    def test_a_gradient_is_an_origin_where_the_values_agree(self) -> None:
        found = only(self.save("layer.0.debug", REST), self.save("layer_grad.0.debug", FAULT))
        assert found.target == "layer_grad.0.debug"
        assert (
            "what was saved before it agrees to 0.02 of the tolerance: look at the code after layer.0" in found.reason
        )


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


class TestReluSwitching:
    """A ReLU whose 20,000 inputs differ by 1e-6: an element or so is on the other side, and its gradient wholly off."""

    def relu(self, gradient: float, size: int = 20_000) -> list[Pair]:
        return [
            node("Cell.a.relu.ReLU.forward.0", size=size, input_0=0.1, output_0=0.1),
            node("Cell.b.fc.Dense.parameters_grad.0", parameters_grad_weight=REST),
            node("Cell.a.relu.ReLU.backward.0", size=size, input_0=REST, output_0=gradient),
            node("Cell.a.fc.Dense.parameters_grad.0", parameters_grad_weight=gradient),
            node("Cell.a.fc.Dense.backward.0", size=size, input_0=gradient, output_0=gradient),
        ]

    def test_one_switched_element_is_no_origin_and_what_follows_from_it_neither(self) -> None:
        assert origins(*self.relu(gradient=500)) == []

    def test_a_wrong_gradient_is_more_than_that(self) -> None:
        assert origins(*self.relu(gradient=10_000)) == ["Cell.a.relu.ReLU.backward.0.output.0"]

    def test_few_elements_do_not_switch(self) -> None:
        assert origins(*self.relu(gradient=500, size=100)) == ["Cell.a.relu.ReLU.backward.0.output.0"]

    def test_a_smooth_module_has_no_kinks(self) -> None:
        assert origins(
            node("Cell.a.fc.Dense.forward.0", size=20_000, input_0=0.1, output_0=0.1),
            node("Cell.a.fc.Dense.backward.0", size=20_000, input_0=REST, output_0=500),
        ) == ["Cell.a.fc.Dense.backward.0.output.0"]

    def test_small_differences_inside_a_module_do_not_hide_the_modules_own_fault(self) -> None:
        whole = "Cell.a.Attention.backward.0"
        assert origins(
            node("Cell.a.drop.Dropout.forward.0", "Cell.a.Attention.forward.0", size=20_000, input_0=0.1, output_0=0.1),
            node("Cell.a.Attention.forward.0", None, size=20_000, input_0=0.1, output_0=0.1),
            node("Cell.a.drop.Dropout.backward.0", whole, size=20_000, input_0=100, output_0=100),
            node(whole, None, size=20_000, input_0=REST, output_0=50_000),
        ) == [f"{whole}.output.0"]


class TestLaterUses:
    def test_a_record_every_later_use_refutes_is_no_origin(self) -> None:
        recorded = (0.5, 0.25)
        pairs = [
            node("Functional.cross_entropy.0.backward", None, recorded, input_0=REST, output_0=FAULT),
            node("Tensor.reshape.0.backward", None, recorded, input_0=REST, output_0=REST),
        ]
        assert origins(*pairs) == []
        assert pairs[0].rows[1].misrecorded and not pairs[0].rows[1].differs

    def test_a_fault_that_was_taken_in_stays_one(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", None, (0.5, 0.25), input_0=REST, output_0=FAULT),
            node("Cell.b.L.forward.0", None, (0.5, 0.25), input_0=FAULT, output_0=FAULT),
        ) == ["Cell.a.L.forward.0.output.0"]


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


class TestInheritance:
    """Whatever differs and is no origin says from whom it has its difference."""

    @staticmethod
    def sources(*pairs: Pair) -> dict[str, str]:
        find_origins(Evidence(pairs))
        rows = [row for pair in pairs for row in pair.rows if row.differs]
        return {row.target.name: row.inherited_from for row in rows if row.target is not None}

    def test_what_is_computed_from_an_origin_and_what_encloses_it_inherit(self) -> None:
        norm, dense = "Cell.layers.0.norm.LayerNorm.forward.0", "Cell.layers.0.fc.Dense.forward.0"
        assert self.sources(
            node(norm, BLOCK, input_0=REST, output_0=FAULT),
            node(dense, BLOCK, input_0=FAULT, output_0=CARRIED),
            node(BLOCK, None, input_0=REST, output_0=CARRIED),
            node("Cell.layers.0.fc.Dense.backward.0", None, input_0=FAULT, output_0=REST),
        ) == {
            f"{norm}.output.0": "",
            f"{dense}.input.0": norm,
            f"{dense}.output.0": norm,
            f"{BLOCK}.output.0": norm,
            "Cell.layers.0.fc.Dense.backward.0.input.0": norm,
        }

    def test_of_two_origins_each_hands_on_its_own(self) -> None:
        left, right = "Cell.left.Dense.forward.0", "Cell.right.Dense.forward.0"
        found = self.sources(
            node(left, None, (3.0, 1.0), input_0=0, output_0=FAULT),
            node(right, None, (5.0, 2.0), input_0=0, output_0=FAULT),
            node("Cell.after_left.Dense.forward.0", None, (3.0, 1.0), input_0=FAULT, output_0=CARRIED),
            node("Cell.after_right.Dense.forward.0", None, (5.0, 2.0), input_0=FAULT, output_0=CARRIED),
        )
        assert found["Cell.after_left.Dense.forward.0.output.0"] == left
        assert found["Cell.after_right.Dense.forward.0.output.0"] == right

    def test_calls_around_which_the_fault_lies_inherit_from_what_encloses_them(self) -> None:
        inside = "Cell.a.out.Dense.forward.0"
        found = self.sources(
            node(inside, "Cell.a.Attention.forward.0", (5.0, 2.0), input_0=FAULT, output_0=FAULT),
            node("Cell.a.Attention.forward.0", None, input_0=REST, output_0=FAULT),
        )
        assert found[f"{inside}.input.0"] == found[f"{inside}.output.0"] == "Cell.a.Attention.forward.0"

    def test_where_nothing_begins_nothing_is_inherited(self) -> None:
        assert set(self.sources(node(BLOCK, None, input_0=0.9, output_0=1.2)).values()) == {""}


def test_the_required_tolerance_is_what_would_have_passed() -> None:
    pairs = [node(BLOCK, None, input_0=REST, output_0=FAULT), node(NEXT, None, input_0=FAULT, output_0=FAULT)]
    found = only(*pairs)
    assert found.required_tolerance == pytest.approx(400e-5)
    for pair in pairs:
        for row in pair.rows:
            row.tolerance = found.required_tolerance
    assert origins(*pairs) == []


class TestRandomOperations:
    DROPOUT = "Cell.layers.0.drop.Dropout.forward.0"

    def dropout(self, parent: str | None = BLOCK, **strains: float) -> Pair:
        """One that gives out other figures than it takes in."""
        pair = node(self.DROPOUT, parent, **strains)
        taken, given = pair.rows
        assert given.target is not None
        drawn = given.target._replace(mean=0.2)
        pair.rows = [taken, Row(drawn, drawn, deviation=given.deviation, tolerance=given.tolerance)]
        return pair

    def test_one_is_told_as_random_and_what_follows_it_is_nobodys_fault(self) -> None:
        found = only(
            self.dropout(input_0=REST, output_0=FAULT),
            node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=FAULT, output_0=CARRIED),
            node(BLOCK, None, input_0=REST, output_0=CARRIED),
        )
        assert (found.kind, found.target) == ("random", f"{self.DROPOUT}.output.0")
        assert "draws random numbers" in found.reason and "rm_dropout" in found.reason

    def test_one_of_probability_0_draws_nothing(self) -> None:
        """It gives out what it takes in, on both sides: a learning rate of the step before is not its fault."""
        weights = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=REST, parameters_weight=FAULT, output_0=FAULT)
        found = only(weights, node(self.DROPOUT, BLOCK, input_0=FAULT, output_0=FAULT))
        assert (found.kind, found.target) == ("parameter", "Cell.layers.0.fc.Dense.forward.0.parameters.weight")

    def test_a_fault_before_it_is_found(self) -> None:
        fault = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=REST, output_0=FAULT)
        found = find_origins(Evidence([fault, self.dropout(input_0=FAULT, output_0=FAULT)]))
        assert [origin.kind for origin in found] == ["computation"]

    def test_dropout_that_agrees_is_no_matter(self) -> None:
        assert origins(self.dropout(None, input_0=REST, output_0=REST)) == []

    def test_the_verdict_is_about_what_can_be_told_before_it(self) -> None:
        pair = self.dropout(None, input_0=REST, output_0=FAULT)
        assert verdict_of(Comparison("statistics", [pair], [], find_origins(Evidence([pair])))) == "incomplete"
        assert verdict_of(Comparison("statistics", [pair], [], [])) == "consistent"


def test_a_collective_whose_own_share_agrees_points_at_the_other_ranks() -> None:
    found = only(node("Distributed.all_reduce.0.forward", input_0=REST, output_0=FAULT))
    assert found.kind == "collective"
    assert "another rank's share differs" in found.reason


def test_a_frameworks_part_of_a_layer_is_told_as_the_layer() -> None:
    layer = "Cell.lstm.LSTM.forward.0"
    assert origins(
        node("Cell.lstm.rnn._DynamicLSTMCPUGPU.forward.0", layer, input_0=0, output_0=FAULT),
        node(layer, None, input_0=0, output_0=FAULT),
    ) == [f"{layer}.output.0"]


def test_a_fault_far_beyond_what_a_parameter_explains_is_told_with_it() -> None:
    others = [node(f"Cell.{i}.Dense.forward.0", input_0=0, parameters_weight=0, output_0=REST) for i in range(2)]
    found = only(*others, node("Cell.a.LayerNorm.forward.0", input_0=REST, parameters_weight=1.5, output_0=FAULT))
    assert (found.kind, found.target) == ("parameter", "Cell.a.LayerNorm.forward.0.parameters.weight")
    assert "more than the parameter explains: look at the layer's settings, too" in found.reason


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


class TestWidths:
    """A single call in another precision is told, though its rounding explains the difference."""

    @staticmethod
    def calls(narrow: int, count: int = 20) -> list[Pair]:
        pairs = [node(f"Cell.{i}.Dense.forward.0", input_0=REST, output_0=REST) for i in range(count)]
        for pair in pairs[:narrow]:
            given = pair.rows[1]
            assert given.target is not None
            pair.rows[1] = Row(given.target._replace(dtype="Float16"), given.golden, None, 3e-4, 4e-3)
        return pairs

    def test_one_call_in_half_precision_is_named(self) -> None:
        found = only(*self.calls(1))
        assert (found.kind, found.target) == ("precision", "Cell.0.Dense.forward.0.output.0")
        assert "its output.0 is Float16 against Float32, which hardly any other call's is" in found.reason
        assert found.required_tolerance == 3e-4

    @staticmethod
    def narrowed_inside(narrow: int, count: int = 3) -> list[Pair]:
        """Layers whose only recorded call takes in and gives out float16 in the first ``narrow`` of them."""
        pairs = []
        for number in range(count):
            layer, product = f"Cell.{number}.Dense.forward.0", f"Primitive.matmul.MatMul.{number}.forward"
            inside = node(product, layer, input_0=0, output_0=0.1)
            for place, row in enumerate(inside.rows if number < narrow else ()):
                assert row.target is not None
                inside.rows[place] = Row(row.target._replace(dtype="Float16"), row.golden, None, 3e-4, 4e-3)
            pairs += [inside, node(layer, None, input_0=0, output_0=0.1)]
            pairs += [node(f"Cell.{number}.{i}.ReLU.forward.0", input_0=0.1, output_0=0.1) for i in range(12)]
        return pairs

    def test_a_call_is_named_though_its_input_was_cast_inside_the_layer_around_it(self) -> None:
        found = only(*self.narrowed_inside(1))
        assert (found.kind, found.target) == ("precision", "Primitive.matmul.MatMul.0.forward.output.0")
        assert found.reason.startswith(
            "the call around it takes in one dtype on both sides, but its output.0 is Float16"
        )
        assert found.reason.endswith("called in Cell.0.Dense.forward.0")

    def test_where_all_calls_of_a_kind_are_narrowed_it_is_meant(self) -> None:
        """Three of 42 calls, but all the matrix products there are."""
        assert origins(*self.narrowed_inside(3)) == []

    def test_mixed_precision_is_nobodys_fault(self) -> None:
        assert origins(*self.calls(8)) == []


@pytest.mark.parametrize("ring", [(BLOCK,), (BLOCK, NEXT), (BLOCK, NEXT, "Cell.layers.2.Block.forward.0")])
def test_calls_that_enclose_each_other_are_judged_all_the_same(ring: tuple[str, ...]) -> None:
    """What a damaged construct.json says: {"A": "A"}, {"A": "B", "B": "A"}."""
    pairs = [
        node(name, ring[(place + 1) % len(ring)], (3.0 + place, 1.0), input_0=REST, output_0=REST)
        for place, name in enumerate(ring)
    ]
    inside = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, (9.0, 9.0), input_0=FAULT, output_0=FAULT)
    assert origins(*pairs, inside) == [f"{inside.target.name}.input.0" if inside.target else ""]
    found = nodes_of(pairs)
    assert all(len(list(each.ancestors())) < len(ring) for each in found)
    assert sum(each.parent is None for each in found) == 1


@pytest.mark.parametrize(
    ("target", "golden", "told"),
    [
        ({"maximum": math.nan}, {}, "output.0 holds NaN, the golden's is finite"),
        ({}, {"minimum": -math.inf}, "output.0 is finite, the golden's holds -infinity"),
        ({"md5": "1"}, {"md5": "2"}, "the checksums of output.0 differ"),
        ({}, {}, "output.0 differs beyond measure"),
    ],
)
def test_what_has_no_measure_is_told_in_words(target: dict[str, Any], golden: dict[str, Any], told: str) -> None:
    pair = node(BLOCK, None, input_0=0, output_0=FAULT)
    row = pair.rows[1]
    assert row.target is not None and row.golden is not None
    pair.rows[1] = Row(row.target._replace(**target), row.golden._replace(**golden), deviation=math.inf, tolerance=1e-5)
    assert told in only(pair).reason
