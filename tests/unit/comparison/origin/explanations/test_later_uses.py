"""Records that every later use contradicts."""

from __future__ import annotations

import numpy as np
from compare_nodes import FAULT, REST, node, origins
from compare_parts import dump, tensor

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(6)
X, Y, NORMAL = (_RANDOM.standard_normal((4, 8)).astype(np.float32) for _ in range(3))
BLOCK, LAYER, NORM = "Cell.block.Block.forward.0", "Cell.block.fc.Dense.forward.0", "Cell.norm.Norm.forward.0"


def net(*, given: np.ndarray, taken: np.ndarray) -> Dump:
    """A block of one layer, and a norm that takes in what the block gives out, or what code makes of it."""
    values = {LAYER: (X, Y), BLOCK: (X, given), NORM: (taken, NORMAL if taken is not Y else -NORMAL)}
    made = dump(
        [tensor(f"{state}.0", value, name) for name, both in values.items()
         for state, value in zip(("input", "output"), both, strict=True)]
    )  # fmt: skip
    made.entries[LAYER].parent = BLOCK
    return made


def test_a_block_whose_counterpart_adds_the_residual_inside_is_judged_by_what_is_made_of_it() -> None:
    golden = net(given=X + Y, taken=X + Y)
    comparison = compare_dumps(net(given=Y, taken=X + Y), golden, Options())
    assert (comparison.verdict, comparison.origins) == ("consistent", [])
    assert {row.explained_by for row in comparison.rows} == {"", "later uses agree"}
    (first, *_) = compare_dumps(net(given=Y, taken=Y), golden, Options()).origins
    assert first.target == f"{BLOCK}.output.0"


class TestLaterUses:
    def test_a_record_every_later_use_refutes_is_no_origin(self) -> None:
        recorded = (0.5, 0.25)
        pairs = [
            node(
                "Functional.cross_entropy.0.backward", None, (0.75, 0.5), given=recorded, input_0=REST, output_0=FAULT
            ),
            node("Tensor.reshape.0.backward", None, recorded, input_0=REST, output_0=REST),
        ]
        assert origins(*pairs) == []
        assert pairs[0].rows[1].misrecorded and not pairs[0].rows[1].differs

    def test_a_fault_that_was_taken_in_stays_one(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", None, (0.5, 0.25), input_0=REST, output_0=FAULT),
            node("Cell.b.L.forward.0", None, (0.5, 0.25), input_0=FAULT, output_0=FAULT),
        ) == ["Cell.a.L.forward.0.output.0"]

    def test_later_uses_of_what_a_call_took_in_say_nothing_of_its_result_in_another_order(self) -> None:
        """A layer that begins as the identity, whose result is rolled: the four statistics are those of its input."""
        attention, layer = "Cell.attn.Attention.forward.0", "Cell.attn.v.Dense.forward.0"
        assert origins(
            node(layer, attention, (0.5, 0.25), input_0=REST, output_0=FAULT),
            node(attention, None, (0.5, 0.25), given=(0.75, 0.5), input_0=REST, output_0=FAULT),
        ) == [f"{layer}.output.0"]
