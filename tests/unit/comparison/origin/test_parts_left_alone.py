"""A projection that one side leaves alone while the other trains it as a part of a joined one."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(4)
X = _RANDOM.standard_normal((4, 16)).astype(np.float32)
WEIGHTS, GRADIENTS = (
    {name: _RANDOM.standard_normal((16, 16)).astype(np.float32) for name in ("q", "k", "v")} for _ in range(2)
)
MAPPINGS = Mappings(layer={"Attention": {"q + k + v": "qkv"}})


def item(place: str, values: np.ndarray, entry: str) -> Item:
    return tensor(place, values, entry, sketch=encode(sketch(values), values.dtype))


def side(weights: dict[str, np.ndarray], *, joined: bool) -> Dump:
    """An attention whose projections are layers of their own, or one."""
    around, items = "Cell.attn.Attention.forward.0", []
    each = {"qkv": np.concatenate(list(weights.values()))} if joined else weights
    slopes = {"qkv": np.concatenate(list(GRADIENTS.values()))} if joined else GRADIENTS
    for name, weight in each.items():
        call = f"Cell.attn.{name}.Dense.forward.0"
        items += [item("input.0", X, call), item("parameters.weight", weight, call)]
        items.append(item("output.0", X @ weight.T, call))
    items += [item("input.0", X, around), item("output.0", X @ sum(weights.values()).T, around)]
    for name, slope in slopes.items():
        items.append(item("parameters_grad.weight", slope, f"Cell.attn.{name}.Dense.parameters_grad.0"))
    made = dump(items)
    for name in each:
        made.entries[f"Cell.attn.{name}.Dense.forward.0"].parent = around
    return made


def trained(*names: str) -> dict[str, np.ndarray]:
    """The weights after a step that leaves those of other names alone."""
    moved = {name: WEIGHTS[name] - np.float32(1e-2) * GRADIENTS[name] for name in names}
    return {**WEIGHTS, **moved}


def origins(moved: dict[str, np.ndarray], *, joined_is_target: bool) -> list[Origin]:
    """Those of a second step in which one side has the weights ``moved`` and the other trained both in one layer."""
    now = [side(moved, joined=False), side(trained(*WEIGHTS), joined=True)]
    before = [side(WEIGHTS, joined=False), side(WEIGHTS, joined=True)]
    if joined_is_target:
        now, before = now[::-1], before[::-1]
    mappings = Mappings(layer={"Attention": {"qkv": "q + k + v"}}) if joined_is_target else MAPPINGS
    dumps, earlier = join_fused(now[0], now[1], mappings), join_fused(before[0], before[1], mappings)
    pairs = pair(*dumps, mappings)
    measure(pairs, *dumps, "statistics")
    return find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: earlier}), dumps=dumps))


@pytest.mark.parametrize("joined_is_target", [False, True])
def test_a_part_that_one_side_leaves_alone_is_told(joined_is_target: bool) -> None:
    (origin,) = origins(trained("k", "v"), joined_is_target=joined_is_target)
    frozen, other = ("golden", "target") if joined_is_target else ("target", "golden")
    assert origin.kind == "update"
    assert origin.reason == (
        f"the {frozen} did not update Cell.attn.q.Dense.forward.0.parameters.weight in the step before, "
        f"the {other} did: is it frozen?"
    )


def test_of_several_parts_the_first_says_how_many() -> None:
    first, second = (each.reason for each in origins(trained("v"), joined_is_target=False))
    assert "did not update Cell.attn.q." in first and "did not update Cell.attn.k." in second
    assert "the golden did (the same for 1 other): is it frozen?" in first


def test_parts_that_are_trained_are_not() -> None:
    moved = {name: weight - np.float32(1.01e-2) * GRADIENTS[name] for name, weight in WEIGHTS.items()}
    assert not any("frozen" in each.reason for each in origins(moved, joined_is_target=False))
