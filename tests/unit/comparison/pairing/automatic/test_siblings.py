"""Layers that a fault hides are paired as in the other blocks of their class."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(6)


def values(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


BLOCKS = 3
X = [values(5, 8) for _ in range(BLOCKS + 1)]
WEIGHTS = [[values(8, 8) for _ in range(2)] for _ in range(BLOCKS)]
MIXED = [values(5, 8) for _ in range(BLOCKS)]


def side(prefix: str, names: tuple[str, str], order: tuple[int, int], unloaded: int | None = None) -> Dump:
    """Blocks of two layers that take in one tensor, called in this order; one block may have other weights."""
    items, parents = [], {}
    for number in range(BLOCKS):
        block = f"{prefix}.blocks.{number}.Block.forward.0"
        for layer in order:
            name = f"{prefix}.blocks.{number}.{names[layer]}.Dense.forward.0"
            weight = WEIGHTS[number][layer] + (values(8, 8) if number == unloaded else 0)
            given = MIXED[number] * np.float32(1 + layer)
            off = values(5, 8) if unloaded is not None and number >= unloaded else 0
            items += [
                tensor("input.0", X[number], name), tensor("output.0", given + off, name),
                tensor("parameters.weight", weight.astype(np.float32), name),
            ]  # fmt: skip
            parents[name] = block
        items += [tensor("input.0", X[number], block), tensor("output.0", X[number + 1], block)]
    made = dump(items)
    made.framework = "mindspore" if prefix == "Cell" else "pytorch"
    for name, parent in parents.items():
        made.entries[name].parent = parent
    return made


def test_a_block_without_its_weights_is_paired_as_the_others_are() -> None:
    """By the order of execution alone the two layers would be each other's."""
    golden = side("Module", ("left", "right"), (0, 1))
    found = align_modules(side("Cell", ("first", "second"), (1, 0), unloaded=0), golden)
    assert {ours: theirs for (ours, _), ((theirs, _), _) in found.pairs.items() if "." in ours[7:]} == {
        f"blocks.{number}.{ours}": f"blocks.{number}.{theirs}"
        for number in range(BLOCKS)
        for ours, theirs in (("first", "left"), ("second", "right"))
    }


def test_what_is_proven_stays() -> None:
    """Weights that stand in the wrong place are told by those of the others, not put right in silence."""
    golden = side("Module", ("left", "right"), (0, 1))
    found = align_modules(side("Cell", ("first", "second"), (0, 1)), golden)
    assert found.pairs["blocks.1.first", "Dense"][0] == ("blocks.1.left", "Dense")
