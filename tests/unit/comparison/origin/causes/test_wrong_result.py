"""A result that differs though what it is computed from agrees."""

from __future__ import annotations

from compare_nodes import FAULT, REST, found_origins, node, only, origins

from msprobe_ms.comparison.model import Pair, Row
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
