"""Dumps whose functions' backward is that of their last inner step: other tensors than the gradients of the inputs."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

LINEAR, GELU = "Functional.linear.0", "Functional.gelu.0"


def torch_tensor(place: str, shape: tuple[int, ...], entry: str, seed: int = 0) -> Item:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return tensor(place, values, entry, type="torch.Tensor", dtype="torch.float32")


def recorded(*gradients: tuple[int, ...], of_gelu: int = 7) -> Dump:
    """A linear function whose backward has gradients of these shapes, and a gelu."""
    forward, backward = f"{LINEAR}.forward", f"{LINEAR}.backward"
    return dump(
        [
            *(torch_tensor(f"input.{i}", shape, forward) for i, shape in enumerate([(2, 6), (3, 6), (3,)])),
            torch_tensor("output.0", (2, 3), forward),
            torch_tensor("input.0", (2, 3), f"{GELU}.forward"),
            torch_tensor("output.0", (2, 3), f"{GELU}.forward"),
            torch_tensor("input.0", (2, 3), f"{GELU}.backward"),
            torch_tensor("output.0", (2, 3), f"{GELU}.backward", seed=of_gelu),
            torch_tensor("input.0", (2, 3), backward),
            *(torch_tensor(f"output.{i}", shape, backward) for i, shape in enumerate(gradients)),
        ],
        "pytorch",
    )


RIGHT = recorded((2, 6), (3, 6), (3,))
LAST_NODE = recorded((3,), (2, 6), (6, 3))


def test_such_a_dump_blames_no_function() -> None:
    for target, golden in ((RIGHT, LAST_NODE), (LAST_NODE, RIGHT)):
        assert compare_dumps(target, golden, Options()).origins == []


def test_others_do() -> None:
    (origin,) = compare_dumps(RIGHT, recorded((2, 6), (3, 6), (3,), of_gelu=8), Options()).origins
    assert origin.target == "Functional.gelu.0.backward.output.0"


@pytest.mark.parametrize("shape", [(2, 3), (6,)])
def test_what_the_next_call_takes_in_on_both_sides_was_recorded_rightly(shape: tuple[int, ...]) -> None:
    """Both record the gelu's gradient that reaches the layer before it: it is judged, though a linear's is no such."""
    layer = "Module.fc.Linear.backward.0"

    def taken_by_the_layer(made: Dump, seed: int) -> Dump:
        before = [item for entry in made.entries.values() for item in entry.items]
        gradients = [torch_tensor(f"{state}.0", shape, layer, seed) for state in ("input", "output")]
        return dump([*before, *gradients], "pytorch")

    target = taken_by_the_layer(RIGHT, 7)
    golden = taken_by_the_layer(recorded((3,), (2, 6), (6, 3), of_gelu=8), 8)
    comparison = compare_dumps(target, golden, Options())
    assert [origin.target for origin in comparison.origins] == ["Functional.gelu.0.backward.output.0"]
    results = {row.target.name: row.result for row in comparison.rows if row.target}
    assert results[f"{layer}.input.0"] == "inherited"
