"""Steps of MindSpore nets, dynamic or compiled: run, record, and lay one beside the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import nets_compiled
import nets_mindspore as nets
import numpy as np
import pytest
from mindspore import Tensor, nn
from recording import Step, leaves, read_step, recording

#: Entries that only one side has, by net: see docs/coverage.md.
APART = {
    nets_compiled.WithOwnBackward: ("Cell.own.OwnBackward.backward",),
    nets_compiled.Normed: ("Cell.same.Identity.backward",),
    nets_compiled.Recomputed: ("Cell.block.0.Dense.", "Cell.block.1.ReLU."),
}

Outcome = list[np.ndarray]


def loss_of(net: nn.Cell) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(x: Tensor, labels: Tensor) -> Tensor:
        return nets.loss(net, x, labels)

    return loss


def gradient_step(net: nn.Cell, *inputs: Tensor, loss: Any = None, jit: bool = False) -> Callable[[], Outcome]:
    """A function that runs forward and backward and gives the loss and every gradient."""
    function = net if loss is None else loss
    step: Any = ms.value_and_grad(function, None, net.trainable_params())
    if jit:
        step = ms.jit(step)

    def run() -> Outcome:
        value, gradients = step(*inputs)
        return [value.asnumpy().copy(), *(each.asnumpy().copy() for each in gradients)]

    return run


def assert_same(one: Outcome, other: Outcome) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def recorded(model: Any, run: Callable[[], Outcome], dump_path: Path, **keys: Any) -> Step:
    """Record one step; the same bits come out of it as before and after."""
    before = run()
    with recording(model, dump_path, **keys):
        assert_same(run(), before)
    assert_same(run(), before)
    return read_step(dump_path, troubles=True)


def assert_like(step: Step, other: Step, *, without: tuple[str, ...] = ()) -> None:
    """The same entries with the same structure, parents and, but for rounding, figures; in a graph there is no loss."""
    without = (*without, "loss.")
    names = {name for name in other.data if not name.startswith(without)}
    assert {name for name in step.data if not name.startswith(without)} == names
    for name in names:
        mine, theirs = dict(leaves(step.data[name])), dict(leaves(other.data[name]))
        assert step.construct.get(name) == other.construct.get(name), name
        assert set(mine) == set(theirs), name
        for place, leaf in mine.items():
            assert (leaf["dtype"], leaf["shape"]) == (theirs[place]["dtype"], theirs[place]["shape"]), (name, place)
            for key in ("Max", "Min", "Mean", "Norm"):
                expected = theirs[place][key]
                assert leaf[key] == (expected if expected is None else pytest.approx(expected, rel=1e-5, abs=1e-5)), (
                    name,
                    place,
                    key,
                )
    order = [name for name in step.data if ".forward." in name]
    assert [name for name in order if name in names] == [
        name for name in other.data if ".forward." in name and name in names
    ]
