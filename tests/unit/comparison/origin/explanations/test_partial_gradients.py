"""One tensor given to a call in several places: its gradient in parts on one side, whole on the other."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

FORWARD = "Module.decoder.attention.MultiheadAttention.forward.0"
BACKWARD = FORWARD.replace("forward", "backward")


def drawn(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, 16)).astype(np.float32)


QUERY, MEMORY, OUTPUT, ARRIVED, OF_QUERY, OF_KEY, OF_VALUE = map(drawn, range(7))


def recorded(of_query: np.ndarray, of_key: np.ndarray, of_value: np.ndarray, value: np.ndarray = MEMORY) -> Dump:
    given = [tensor(f"input.{i}", each, FORWARD) for i, each in enumerate((QUERY, MEMORY, value))]
    gradients = [tensor(f"output.{i}", each, BACKWARD) for i, each in enumerate((of_query, of_key, of_value))]
    return dump([*given, tensor("output.0", OUTPUT, FORWARD), tensor("input.0", ARRIVED, BACKWARD), *gradients])


PARTS = recorded(OF_QUERY, OF_KEY, OF_VALUE)
WHOLE = recorded(OF_QUERY, OF_KEY + OF_VALUE, OF_KEY + OF_VALUE)


def origins(target: Dump, golden: Dump) -> list[str]:
    compared: Comparison = compare_dumps(target, golden, Options())
    return [origin.target.removeprefix(f"{BACKWARD}.") for origin in compared.origins]


@pytest.mark.parametrize(("target", "golden"), [(WHOLE, PARTS), (PARTS, WHOLE), (WHOLE, WHOLE), (PARTS, PARTS)])
def test_parts_and_their_whole_agree(target: Dump, golden: Dump) -> None:
    assert origins(target, golden) == []


@pytest.mark.parametrize(
    "wrong",
    [
        recorded(OF_QUERY, OF_KEY, 1.001 * OF_VALUE),
        recorded(OF_QUERY, OF_KEY, OF_VALUE + 1),
        recorded(OF_QUERY, 0.1 * OF_KEY, 0.1 * OF_VALUE),
    ],
)
def test_what_does_not_add_up_is_an_origin(wrong: Dump) -> None:
    assert len(origins(WHOLE, wrong)) == len(origins(wrong, WHOLE)) == 1


def test_two_tensors_are_not_one() -> None:
    apart = recorded(OF_QUERY, OF_KEY, OF_VALUE, value=drawn(9))
    whole = recorded(OF_QUERY, OF_KEY + OF_VALUE, OF_KEY + OF_VALUE, value=drawn(9))
    assert len(origins(whole, apart)) == 1


def cast(name: str, gradient: np.ndarray, *, given: np.ndarray = QUERY) -> Dump:
    """A function of a tensor that other calls use as well, and the gradient that is recorded by it."""
    forward, backward = f"Tensor.{name}.0.forward", f"Tensor.{name}.0.backward"
    return dump([
        tensor("input.0", QUERY, forward), tensor("output.0", given, forward),
        tensor("input.0", gradient, backward), tensor("output.0", gradient, backward),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        ("to", QUERY, []),
        ("to", OUTPUT, ["Tensor.to.0.backward.input.0"]),
        ("relu", QUERY, ["Tensor.relu.0.backward.input.0"]),
    ],
)
def test_gradients_by_a_cast_that_casts_nothing_say_nothing(name: str, given: np.ndarray, found: list[str]) -> None:
    assert origins(cast(name, OF_KEY, given=given), cast(name, OF_VALUE, given=given)) == found


@pytest.mark.parametrize("of_query", [OF_KEY, 1.001 * OF_KEY])
def test_a_mask_beside_them_has_no_gradient(of_query: np.ndarray) -> None:
    """``attention(x, x, mask)``, where one side slices the whole of ``x`` for its queries."""
    sides = []
    for first, second in ((of_query + OF_VALUE, of_query + OF_VALUE), (OF_KEY, OF_VALUE)):
        given = [tensor(f"input.{i}", each, FORWARD) for i, each in enumerate((MEMORY, MEMORY, np.ones_like(QUERY)))]
        gradients = [tensor(f"output.{i}", each, BACKWARD) for i, each in enumerate((first, second))]
        mask = Item(BACKWARD, "output", ("2",))
        arrived = tensor("input.0", ARRIVED, BACKWARD)
        sides.append(dump([*given, tensor("output.0", OUTPUT, FORWARD), arrived, *gradients, mask]))
    assert len(origins(*sides)) == (of_query is not OF_KEY)
