"""Inside a module, inputs carry a parameter's difference until it cancels; outside of it they do not."""

from __future__ import annotations

from compare_nodes import CARRIED, FAULT, REST, node, origins

from msprobe_ms.comparison.model import Pair

BLOCK = "Cell.a.Attention.forward.0"


def step(*later: Pair) -> list[Pair]:
    others = [node(f"Cell.{i}.Dense.forward.0", input_0=0, parameters_weight=0.1, output_0=REST) for i in range(9)]
    noisy = node("Cell.a.k.Dense.forward.0", BLOCK, (4.0, 4.0), parameters_bias=FAULT, output_0=CARRIED)
    return [*others, noisy, *later, node(BLOCK, None, input_0=REST, output_0=REST)]


def test_inputs_beside_optimizer_noise_are_explained() -> None:
    beside = node("Functional.softmax.0.forward", BLOCK, (5.0, 4.0), input_0=20, output_0=REST)
    assert origins(*step(beside)) == []
    assert beside.rows[0].explained_by == "nearby noise"


def test_inputs_elsewhere_are_not() -> None:
    elsewhere = node("Cell.b.Norm.forward.0", None, (7.0, 2.0), given=(8.0, 2.0), input_0=CARRIED, output_0=CARRIED)
    assert origins(*step(elsewhere)) == ["Cell.b.Norm.forward.0.input.0"]
