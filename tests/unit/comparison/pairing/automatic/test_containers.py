"""Containers are each other's counterparts where they give out the same, not by their layers alone."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(9)


def values(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


WEIGHTS = [values(8, 8) for _ in range(3)]
STREAM = [values(5, 8) for _ in range(4)]


def call(name: str, *both: np.ndarray) -> list[Item]:
    return [tensor(f"{state}.0", value, name) for state, value in zip(("input", "output"), both, strict=True)]


def side(prefix: str, layers: str, *around: tuple[str, bool]) -> Dump:
    """Three layers, and modules around them from the inside out, some of which give out what came in as well."""
    items, parents = [], {}
    path = f"{prefix}.{layers}"
    for number, weight in enumerate(WEIGHTS):
        name = f"{path}.{number}.Dense.forward.0"
        items += [*call(name, STREAM[number], STREAM[number + 1]), tensor("parameters.weight", weight, name)]
        parents[name] = f"{path}.{around[0][0]}.forward.0"
    for place, (kind, adds) in enumerate(around):
        name = f"{path}.{kind}.forward.0"
        items += call(name, STREAM[0], STREAM[-1] + STREAM[0] if adds else STREAM[-1])
        path = path.rpartition(".")[0]
        if place + 1 < len(around):
            parents[name] = f"{path}.{around[place + 1][0]}.forward.0"
    made = dump(items, "mindspore" if prefix == "Cell" else "pytorch")
    for name, parent in parents.items():
        made.entries[name].parent = parent
    return made


def test_the_layers_of_a_block_are_no_counterpart_of_the_block_that_adds_what_came_in() -> None:
    """A stage of one block has the layers of the block; so have the layers by themselves on the other side."""
    ours = side("Cell", "stages.0.convs", ("SequentialCell", False), ("MixBlock", True))
    theirs = side("Module", "stages.0.0", ("Separable", True), ("Sequential", True))
    pairs = align_modules(ours, theirs).pairs
    assert ("stages.0.convs", "SequentialCell") not in pairs
    assert pairs["stages.0", "MixBlock"][0] in (("stages.0.0", "Separable"), ("stages.0", "Sequential"))


def test_a_block_that_alone_gives_out_something_else_is_paired_all_the_same() -> None:
    """That it does is what has to be told of it."""
    ours = side("Cell", "stages.block", ("Block", False))
    theirs = side("Module", "stages.block", ("Block", True))
    assert align_modules(ours, theirs).pairs["stages.block", "Block"][0] == ("stages.block", "Block")


def test_a_block_that_forgets_to_add_what_came_in_is_paired_all_the_same() -> None:
    """It gives out what the layers inside the other block do."""
    ours = side("Cell", "stages.block.convs", ("Layers", False), ("Block", False))
    theirs = side("Module", "stages.block.convs", ("Layers", False), ("Block", True))
    pairs = align_modules(ours, theirs).pairs
    assert pairs["stages.block", "Block"][0] == ("stages.block", "Block")
    assert pairs["stages.block.convs", "Layers"][0] == ("stages.block.convs", "Layers")
