"""Tensors that one side alone gives out beside its results, as attention gives its weights."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, null, tensor

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

NET, LAYER, NEXT = "Module.net.Net.forward.0", "Module.net.attn.Attention.forward.0", "Module.net.fc.Linear.forward.0"
X, Y, Z, WEIGHTS = (np.random.default_rng(seed).standard_normal((4, 6)).astype(np.float32) for seed in range(4))


def side(*given: Item, taken: np.ndarray = Y, given_by_net: np.ndarray = Z) -> Dump:
    """A layer that gives out Y and ``given``, and a layer behind it, in a network."""
    made = dump(
        [
            tensor("input.0", X, LAYER),
            tensor("output.0", Y, LAYER),
            *given,
            tensor("input.0", taken, NEXT),
            tensor("output.0", Z, NEXT),
            tensor("input.0", X, NET),
            tensor("output.0", given_by_net, NET),
        ],
        framework="pytorch",
    )
    made.entries[LAYER].parent = made.entries[NEXT].parent = NET
    return made


def origins(target: Dump, golden: Dump) -> list[str]:
    return [origin.target for origin in compare_dumps(target, golden, Options()).origins]


@pytest.mark.parametrize("swapped", [False, True])
def test_weights_that_nothing_takes_in_are_no_origin(swapped: bool) -> None:
    sides = side(null("output.1", LAYER)), side(tensor("output.1", WEIGHTS, LAYER))
    # The results are off by a little, so that the step as a whole proves nothing.
    sides[1].entries[NET].items[-1] = tensor("output.0", Z * np.float32(1 + 2e-5), NET)
    comparison = compare_dumps(*(reversed(sides) if swapped else sides), Options())
    (row,) = [row for row in comparison.rows if row.deviation == np.inf]
    assert row.explained_by == "result without use" and not row.differs
    assert all(origin.target != f"{LAYER}.output.1" for origin in comparison.origins)


def test_what_a_later_layer_takes_in_is_told() -> None:
    target = side(null("output.1", LAYER), taken=Y)
    golden = side(tensor("output.1", WEIGHTS, LAYER), taken=WEIGHTS)
    assert origins(target, golden)[0] == f"{LAYER}.output.1"


def test_what_the_network_gives_out_may_be_used_by_the_script() -> None:
    target, golden = side(), side()
    target.entries[NET].items.append(null("output.1", NET))
    golden.entries[NET].items.append(tensor("output.1", WEIGHTS, NET))
    rows = [row for row in compare_dumps(target, golden, Options()).rows if row.deviation == np.inf]
    assert [row.explained_by for row in rows] != ["result without use"]
