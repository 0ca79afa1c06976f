"""Containers of which one encloses a layer that the other side calls outside give out other tensors."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(4)
X, MIXED, WEIGHT, GIVEN, LATER = (_RANDOM.standard_normal((4, 6)).astype(np.float32) for _ in range(5))
FACTOR = np.float32(1.5)

#: The golden's attention encloses the projection behind it.
OPTIONS = Options(mappings=Mappings(layer={"Block": {"inner": "attention", "projection": "attention.projection"}}))


def side(prefix: str, blocks: int = 2, wrong: str = "", weight: np.ndarray = WEIGHT, scale: float = 1.0) -> Dump:
    """Blocks of an attention and a projection.

    ``wrong``: where the first block goes wrong; ``scale``: of what the projection takes in.
    """
    target, parents, items = prefix == "Cell", {}, []
    places = ("attention", "projection", "later")
    for number in range(blocks):
        # What is behind the fault is off as well.
        behind = wrong and number
        first = places.index(wrong) if wrong else len(places)
        mixed, given, later_given = (
            value * (FACTOR if behind or place >= first else np.float32(1))
            for place, value in enumerate((MIXED, GIVEN, LATER))
        )
        taken = X * (FACTOR if behind else np.float32(1))
        block = f"{prefix}.blocks.{number}.Block.forward.0"
        attention = f"{prefix}.blocks.{number}.{'inner.Inner' if target else 'attention.Attention'}.forward.0"
        path = "projection" if target else "attention.projection"
        layer = f"{prefix}.blocks.{number}.{path}.Dense.forward.0"
        later = f"{prefix}.blocks.{number}.later.Dense.forward.0"
        parents |= {attention: block, layer: block if target else attention, later: block}
        calls = {
            layer: [("input.0", np.float32(scale) * mixed), ("output.0", given), ("parameters.weight", weight)],
            attention: [("input.0", taken), ("output.0", mixed if target else given)],
            later: [("input.0", given), ("output.0", later_given), ("parameters.weight", WEIGHT)],
            block: [("input.0", taken), ("output.0", later_given)],
        }
        order = (attention, layer, later, block) if target else (layer, attention, later, block)
        items += [tensor(place, value, name) for name in order for place, value in calls[name]]
    made = dump(items)
    made.framework = "mindspore" if target else "pytorch"
    for name, parent in parents.items():
        made.entries[name].parent = parent
    return made


def compared(target: Dump, golden: Dump) -> Comparison:
    return compare_dumps(target, golden, OPTIONS)


def test_healthy_containers_are_let_pass() -> None:
    comparison = compared(side("Cell"), side("Module"))
    assert (comparison.verdict, comparison.origins) == ("consistent", [])


def test_a_fault_behind_the_border_is_the_layers() -> None:
    comparison = compared(side("Cell", wrong="projection", scale=0.5), side("Module", scale=0.5))
    assert comparison.origins[0].target == "Cell.blocks.0.projection.Dense.forward.0.output.0"
    assert "calls across borders" in {row.explained_by for row in comparison.rows}


def test_a_fault_within_is_the_containers() -> None:
    """The layer outside takes in what it gives out, and that is compared."""
    origin = compared(side("Cell", wrong="attention"), side("Module")).origins[0]
    assert origin.target == "Cell.blocks.0.inner.Inner.forward.0.output.0"


def test_weights_that_differ_prove_nothing() -> None:
    target = side("Cell", wrong="projection", weight=2 * WEIGHT, scale=0.5)
    comparison = compared(target, side("Module", scale=0.5))
    assert "calls across borders" not in {row.explained_by for row in comparison.rows}
