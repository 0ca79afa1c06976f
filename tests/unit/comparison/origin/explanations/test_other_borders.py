"""Containers of which one holds a call more give out tensors of other sizes, and neither is wrong."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(4)
X, Y, Z = (_RANDOM.standard_normal((2, 3, 4)).astype(np.float32) for _ in range(3))
LARGE = _RANDOM.standard_normal((2, 3, 9)).astype(np.float32)


def call(name: str, taken: np.ndarray, given: np.ndarray) -> list[Item]:
    return [tensor("input.0", taken, name), tensor("output.0", given, name)]


def side(prefix: str, *, holds: bool, given: np.ndarray, after: np.ndarray | None = None) -> Dump:
    """Two layers in a container, which upsamples (``holds``) or leaves that to the code behind it.

    ``after``: what the next layer takes in; None where there is none.
    """
    inner = f"{prefix}.fuse.0.Sequential.forward.0"
    items = [*call(f"{prefix}.fuse.0.0.Conv.forward.0", X, Y), *call(f"{prefix}.fuse.0.1.Norm.forward.0", Y, Z)]
    if holds:
        items += call("Functional.interpolate.0.forward", Z, LARGE)
    items += call(inner, X, given)
    if after is not None:
        items += call(f"{prefix}.act.ReLU.forward.0", after, after)
    made = dump(items)
    made.framework = "mindspore" if prefix == "Cell" else "pytorch"
    for name, entry in made.entries.items():
        if (".fuse.0." in name and name != inner) or name.startswith("Functional."):
            entry.parent = inner
    return made


def compared(target: Dump, golden: Dump) -> Comparison:
    return compare_dumps(target, golden, Options())


def test_the_smaller_containers_tensor_is_compared_inside() -> None:
    comparison = compared(side("Cell", holds=False, given=Z), side("Module", holds=True, given=LARGE))
    assert (comparison.verdict, comparison.origins) == ("consistent", [])
    assert "other borders" in {row.explained_by for row in comparison.rows}
    exchanged = compared(side("Cell", holds=True, given=LARGE), side("Module", holds=False, given=Z))
    assert exchanged.verdict == "consistent"


def test_another_tensor_of_that_size_is_wrong() -> None:
    (origin,) = compared(side("Cell", holds=False, given=2 * Z), side("Module", holds=True, given=LARGE)).origins
    assert origin.target == "Cell.fuse.0.Sequential.forward.0.output.0"


def test_without_a_call_more_on_the_other_side_another_size_is_wrong() -> None:
    (origin,) = compared(side("Cell", holds=False, given=Z), side("Module", holds=False, given=LARGE)).origins
    assert origin.target == "Cell.fuse.0.Sequential.forward.0.output.0"


def test_what_is_made_wrong_behind_it_is_seen_where_it_is_taken() -> None:
    target = side("Cell", holds=False, given=Z, after=2 * LARGE)
    (origin,) = compared(target, side("Module", holds=True, given=LARGE, after=LARGE)).origins
    assert origin.target == "Cell.act.ReLU.forward.0.input.0"


def test_what_is_cut_to_size_before_the_next_call_is_right() -> None:
    target = side("Cell", holds=False, given=2 * Z, after=LARGE)
    comparison = compared(target, side("Module", holds=False, given=LARGE, after=LARGE))
    assert (comparison.verdict, comparison.origins) == ("consistent", [])
