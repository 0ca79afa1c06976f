"""A result that differs though what it is computed from agrees."""

from __future__ import annotations

import numpy as np
import pytest
from compare_nodes import FAULT, REST, found_origins, node, only, origins
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry


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
            "the saved value differs: it deviates by 2e-05 of its size (tolerance 1e-05); look at the code after "
            "hidden.0.debug was saved"
        )
        assert found.details == ("what was saved before it agrees",)

    def test_its_part_that_differs_is_named(self) -> None:
        found = only(self.save("hidden.0.debug", FAULT, "left", "0"))
        assert found.target == "hidden.0.debug.left.0"
        assert found.reason == "the saved value differs: left.0 deviates by 0.004 of its size (tolerance 1e-05)"
        assert found.details == ("nothing was saved before it",)

    def test_a_gradient_is_an_origin_where_the_values_agree(self) -> None:
        found = only(self.save("layer.0.debug", REST), self.save("layer_grad.0.debug", FAULT))
        assert found.target == "layer_grad.0.debug"
        assert found.reason.endswith("look at the code after layer.0.debug was saved")
        assert "what was saved before it agrees" in found.details


def test_a_collective_whose_own_share_agrees_points_at_the_other_ranks() -> None:
    found = only(node("Distributed.all_reduce.0.forward", input_0=REST, output_0=FAULT))
    assert found.kind == "collective"
    assert "the input of another rank differs" in found.reason


def test_a_frameworks_part_of_a_layer_is_told_as_the_layer() -> None:
    layer = "Cell.lstm.LSTM.forward.0"
    assert origins(
        node("Cell.lstm.rnn._DynamicLSTMCPUGPU.forward.0", layer, input_0=0, output_0=FAULT),
        node(layer, None, input_0=0, output_0=FAULT),
    ) == [f"{layer}.output.0"]


def test_inputs_that_drifted_are_not_said_to_agree() -> None:
    first = node("Cell.a.Dense.forward.0", None, (4.0, 2.0), input_0=0.9, output_0=5.0)
    second = node("Cell.b.Dense.forward.0", None, (5.0, 2.0), input_0=5.0, output_0=float("inf"))
    (found,) = [each for each in found_origins(first, second) if "Cell.b" in each.target]
    assert ", though its inputs deviate by only 5e-05 times their size: look at " in found.reason


@pytest.mark.parametrize(("dtype", "side"), [("float16", "target"), ("float16", "golden"), ("float32", "")])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_result_that_one_side_rounded_to_a_narrower_float_is_said_to_be_cast(
    dtype: str, side: str, factor: float
) -> None:
    """A layer of mixed precision takes in and gives out float32, beside one of full precision; no cast doubles."""
    draw, name = np.random.default_rng(6), "Cell.fc.Dense.forward.0"
    taken, given = draw.standard_normal((2, 4, 64)).astype(np.float32)
    rounded = given.astype(dtype).astype(np.float32) * np.float32(factor if dtype == "float16" else 1.001)
    results = {"target": (rounded, given), "golden": (given, rounded), "": (rounded, given)}[side]
    both = [dump([tensor("input.0", taken, name), tensor("output.0", each, name)]) for each in results]
    (found,) = compare_dumps(*both, Options()).origins
    is_told = bool(side) and factor == 1
    assert found.reason.endswith(
        f"the {side} rounded it to a narrower float, look for a cast"
        if is_told
        else "look at its settings and its code"
    )
    assert found.kind == ("precision" if is_told else "computation")
