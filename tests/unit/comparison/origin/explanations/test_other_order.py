"""Channels that are shuffled where a block ends on one side, where the next begins on the other; and by mistake."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(11)
X, ONE, TWO, LAST, ARRIVED = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(5))
OTHER = _RANDOM.standard_normal((4, 16)).astype(np.float32)


def shuffled(values: np.ndarray) -> np.ndarray:
    return values.reshape(4, 2, 8).transpose(0, 2, 1).reshape(4, 16)


def half(values: np.ndarray) -> np.ndarray:
    """What the head takes of what the last block gives out."""
    return shuffled(values)[:, :8].copy()


@dataclass(eq=False)
class Net:
    """Two blocks of a layer each and a head: what each layer takes in and gives out, and what the blocks do."""

    first: np.ndarray
    between: np.ndarray
    taken: np.ndarray
    second: np.ndarray
    given: np.ndarray
    head: np.ndarray
    last: np.ndarray
    arrived: np.ndarray

    def dump(self, *, whole: bool = False) -> Dump:
        """``whole``: the head is the network's own, whose last result its second block gives out."""
        calls = [
            ("blocks.0.fc.Dense", "blocks.0.Block", X, self.first),
            ("blocks.0.Block", None, X, self.between),
            ("blocks.1.fc.Dense", "blocks.1.Block", self.taken, self.second),
            ("blocks.1.Block", None, self.between, self.given),
        ] + ([] if whole else [("head.Dense", None, self.head, self.last)])  # fmt: skip
        items = [
            item(place, values, f"Cell.{name}.forward.0")
            for name, _, before, after in calls
            for place, values in (("input.0", before), ("output.0", after))
        ]
        items += [item("input.0", self.arrived, "Cell.blocks.0.Block.backward.0")]
        made = dump(items)
        for name, parent, _, _ in calls:
            made.entries[f"Cell.{name}.forward.0"].parent = f"Cell.{parent}.forward.0" if parent else None
        return made


def item(place: str, values: np.ndarray, entry: str) -> Item:
    return tensor(place, values, entry, sketch=encode(sketch(values), values.dtype))


#: Shuffles where a block begins; and where it ends.
BEGINS = Net(ONE, ONE, shuffled(ONE), TWO, TWO, half(TWO), LAST, ARRIVED)
ENDS = replace(BEGINS, between=shuffled(ONE), given=shuffled(TWO), arrived=shuffled(ARRIVED))


#: What the second block gives out, and what becomes of it, where something before went wrong.
WRONG = {"given": OTHER, "head": half(OTHER), "last": X}


def compared(target: Net, golden: Net) -> Comparison:
    return compare_dumps(target.dump(), golden.dump(), Options())


def origins(target: Net, golden: Net) -> list[str]:
    return [origin.target for origin in compared(target, golden).origins]


def test_where_a_block_ends_is_no_error_if_layers_take_in_what_they_should() -> None:
    comparison = compared(BEGINS, ENDS)
    assert comparison.origins == []
    explained = [row.target.name for row in comparison.rows if row.explained_by == "other order" and row.target]
    assert explained == [
        "Cell.blocks.0.Block.forward.0.output.0",
        "Cell.blocks.1.Block.forward.0.input.0",
        "Cell.blocks.1.Block.forward.0.output.0",
        "Cell.blocks.0.Block.backward.0.input.0",
    ]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (replace(BEGINS, taken=ONE, second=OTHER, **WRONG), "blocks.1.Block.forward.0.output.0"),
        (replace(BEGINS, between=shuffled(ONE), taken=X, second=OTHER, **WRONG), "blocks.0.Block.forward.0.output.0"),
        (replace(BEGINS, **{**WRONG, "given": shuffled(TWO)}), "blocks.1.Block.forward.0.output.0"),
    ],
    ids=["within a block", "and the next layer takes it in", "and the head takes it in"],
)
def test_a_shuffle_by_mistake_is_the_origin(target: Net, found: str) -> None:
    """A later layer takes in what nothing before it explains."""
    assert origins(target, BEGINS)[0] == f"Cell.{found}"


def test_one_that_the_network_gives_out_is_an_origin() -> None:
    (origin,) = compare_dumps(
        replace(BEGINS, given=shuffled(TWO)).dump(whole=True), BEGINS.dump(whole=True), Options()
    ).origins
    assert origin.target == "Cell.blocks.1.Block.forward.0.output.0"


def test_an_error_of_a_layer_further_on_is_told_itself() -> None:
    second = replace(BEGINS, second=OTHER, given=OTHER, head=half(OTHER), last=X)
    assert origins(second, ENDS) == ["Cell.blocks.1.fc.Dense.forward.0.output.0"]
    scaled = replace(BEGINS, given=(1.05 * TWO).astype(np.float32), head=half((1.05 * TWO).astype(np.float32)))
    assert origins(scaled, ENDS) == ["Cell.blocks.1.Block.forward.0.output.0"]
    assert origins(replace(BEGINS, last=OTHER), ENDS) == ["Cell.head.Dense.forward.0.output.0"]


def test_behind_a_layer_that_errs_equal_statistics_tell_nothing() -> None:
    """What blocks give out is normalised: its statistics agree whatever came of the wrong layer."""
    wrong = replace(
        BEGINS, first=OTHER, between=shuffled(ONE), taken=X, second=OTHER, given=shuffled(TWO), head=half(X)
    )
    comparison = compared(wrong, BEGINS)
    assert [origin.target for origin in comparison.origins] == ["Cell.blocks.0.fc.Dense.forward.0.output.0"]
    assert "other order" not in {row.explained_by for row in comparison.rows}


def test_other_values_are_no_other_order() -> None:
    """A block that scales what it gives out, though its next layer does not take it in."""
    target = replace(BEGINS, between=(1.1 * ONE).astype(np.float32))
    assert origins(target, ENDS)[0] == "Cell.blocks.0.Block.forward.0.output.0"


@pytest.mark.parametrize(
    "ends", [True, False], ids=["blocks shuffle where they end", "where they begin, as the golden"]
)
def test_one_of_many_that_shuffles_once_more_is_the_origin(*, ends: bool) -> None:
    """The borders of those before it lie elsewhere by right: the layers behind them took in what they should."""

    def side(*, ends: bool, wrong: int) -> Dump:
        items, parents, generator, before = list[Item](), {}, np.random.default_rng(5), X
        for number in range(6):
            made, else_ = (generator.standard_normal((4, 16)).astype(np.float32) for _ in range(2))
            block, layer = f"Cell.blocks.{number}.Block.forward.0", f"Cell.blocks.{number}.fc.Dense.forward.0"
            taken = before if ends else shuffled(before)
            given = else_ if number > wrong else made
            before_next = shuffled(given) if ends else given
            if number == wrong:
                before_next = before_next[:, ::-1].copy()
            items += [item("input.0", taken[:, :8].copy(), layer), item("output.0", given, layer)]
            items += [item("input.0", before, block), item("output.0", before_next, block)]
            parents[layer], before = block, before_next
        made_dump = dump(items)
        for name, parent in parents.items():
            made_dump.entries[name].parent = parent
        return made_dump

    golden = side(ends=False, wrong=9)
    # The first block takes in what nobody shuffled, on one side.
    for each in (target := side(ends=ends, wrong=4), golden):
        for name in list(each.entries)[:2]:
            del each.entries[name]
    found = compare_dumps(target, golden, Options()).origins
    assert found[0].target == "Cell.blocks.4.Block.forward.0.output.0"
