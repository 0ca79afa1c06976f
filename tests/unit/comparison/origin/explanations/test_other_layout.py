"""A square weight that one side holds transposed: what the layer gives out is the same."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(3)
WEIGHT, GRADIENT = (_RANDOM.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
X, Y, ARRIVED, HANDED_ON = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(4))


def item(place: str, values: np.ndarray, entry: str) -> Item:
    return tensor(place, values, entry, sketch=encode(sketch(values), values.dtype))


def side(framework: str, weight: np.ndarray | None, gradient: np.ndarray, given: np.ndarray = Y) -> Dump:
    layer = "Cell.proj.Dense" if framework == "mindspore" else "Module.proj.Linear"
    items = [item("input.0", X, f"{layer}.forward.0")]
    if weight is not None:
        items.append(item("parameters.weight", weight, f"{layer}.forward.0"))
    items += [
        item("output.0", given, f"{layer}.forward.0"),
        item("input.0", ARRIVED, f"{layer}.backward.0"),
        item("output.0", HANDED_ON, f"{layer}.backward.0"),
        item("weight", gradient, f"{layer}.parameters_grad.0")._replace(state="parameters_grad", path=("weight",)),
    ]
    return dump(items, framework)


def compared(target: Dump, golden: Dump) -> Comparison:
    return compare_dumps(target, golden, Options())


GOLDEN = side("pytorch", WEIGHT, GRADIENT)


def test_a_weight_the_other_way_round_is_no_error_nor_is_its_gradient() -> None:
    comparison = compared(side("mindspore", WEIGHT.T.copy(), GRADIENT.T.copy()), GOLDEN)
    assert comparison.origins == []
    explained = [(row.state, row.explained_by) for row in comparison.rows if row.explained_by]
    assert explained == [("parameters", "other layout"), ("parameters_grad", "other layout")]


def test_where_the_weight_was_not_compared_its_gradient_may_be_the_other_way_round() -> None:
    golden = side("pytorch", None, GRADIENT)
    assert compared(side("mindspore", WEIGHT.T.copy(), GRADIENT.T.copy()), golden).origins == []
    (origin,) = compared(side("mindspore", WEIGHT.T.copy(), 1.01 * GRADIENT.T), golden).origins
    assert origin.state == "parameters_grad"


@pytest.mark.parametrize(("drift", "passes"), [(3e-4, True), (3e-5, False)])
def test_a_gradient_the_other_way_round_has_drifted_as_far_as_what_it_is_made_of(drift: float, *, passes: bool) -> None:
    target = side("mindspore", WEIGHT.T.copy(), np.float32(1 + 4e-4) * GRADIENT.T, given=np.float32(1 + drift) * Y)
    comparison = compared(target, side("pytorch", None, GRADIENT))
    (row,) = (each for each in comparison.rows if each.state == "parameters_grad")
    assert (row.explained_by == "other layout") == passes


@pytest.mark.parametrize(
    ("wrong", "state"),
    [
        (side("mindspore", WEIGHT.T.copy(), GRADIENT.T.copy(), given=2 * Y), "parameters"),
        (side("mindspore", 1.01 * WEIGHT.T, GRADIENT.T.copy()), "parameters"),
        (side("mindspore", WEIGHT, GRADIENT.T.copy()), "parameters_grad"),
    ],
    ids=["gives out something else", "other values", "a gradient in an order of its own"],
)
def test_what_does_not_come_out_right_or_holds_other_values_is_told(wrong: Dump, state: str) -> None:
    assert [origin.state for origin in compared(wrong, GOLDEN).origins][:1] == [state]


def trained(neck: np.ndarray, update: np.ndarray, gradient: np.ndarray) -> tuple[Dump, Dump]:
    """Two steps of a layer whose weight was next to nothing, beside one whose updates agree."""

    def step(*weights: np.ndarray) -> Dump:
        layers = zip(("Cell.fc.Dense", "Cell.neck.Dense"), weights, (GRADIENT, gradient), strict=True)
        return dump([
            each
            for layer, weight, slope in layers
            for each in (
                item("input.0", X, f"{layer}.forward.0"),
                item("parameters.weight", weight, f"{layer}.forward.0"),
                item("output.0", Y, f"{layer}.forward.0"),
                item("weight", slope, f"{layer}.parameters_grad.0")._replace(state="parameters_grad", path=("weight",)),
            )
        ])  # fmt: skip

    return step(WEIGHT, neck), step(WEIGHT + np.float32(1e-3) * GRADIENT, neck + update)


def test_a_weight_that_noise_of_updates_made_is_in_no_other_layout() -> None:
    noise = np.sign(_RANDOM.standard_normal((16, 16))).astype(np.float32) * np.float32(1e-3)
    first, now = trained(np.float32(1e-9) * WEIGHT, noise, GRADIENT)
    other_first, other_now = trained(np.float32(1e-9) * WEIGHT, noise.T.copy(), WEIGHT)
    pairs = pair(now, other_now, Mappings())
    measure(pairs, now, other_now, "statistics")
    find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (first, other_first)})))
    weights = [row for each in pairs for row in each.rows if row.state == "parameters" and row.differs]
    assert [row.explained_by for row in weights] == ["optimizer updates"]
