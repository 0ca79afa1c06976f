"""When MindSpore's gradient graph can be read."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Parameter, Tensor, _c_expression, nn, ops
from recording import read_step, write_config

from msprobe_ms.frameworks.mindspore.autograd import MindSporeGraph, has_graph
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.mindspore import PrecisionDebugger


def test_the_graph_is_read_only_where_its_nodes_can_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """MindSpore 2.7.1 shows nodes of this form: without a number that tells which of them are the same."""
    assert has_graph() and MindSpore().watches_in_place
    monkeypatch.setattr(_c_expression, "BackwardNodePy", type("BackwardNode", (), {"_sequence_nr": None}))
    assert not has_graph() and not MindSpore().watches_in_place


class Scaled(nn.Cell):
    """No gradient is asked for its argument: its backward is over before all that use its inputs have sent theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(np.ones((3, 5, 7, 11), np.float32))
        self.product = Product()

    def construct(self, x: Tensor) -> Tensor:
        return self.product(x, self.w).sum()


class Product(nn.Cell):
    def construct(self, x: Tensor, w: Tensor) -> Tensor:
        return ops.tanh(x) * w


def test_what_stays_incomplete_is_recorded_with_the_next_call(ms: Any, dump_path: Path) -> None:
    """Gradients accumulated over many calls in one step do not pile up in memory."""
    net, x = Scaled(), Tensor(np.ones((3, 5, 7, 11), np.float32))
    gradient = mindspore.value_and_grad(net, None, net.trainable_params())
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    # Tensors of other tests are not asked for their shape: one that never came to be would wait for ever.
    others = {id(each) for each in gc.get_objects() if type(each) is Tensor}

    def alive() -> int:
        tensors = [each for each in gc.get_objects() if type(each) is Tensor and id(each) not in others]
        return sum(each.shape == x.shape for each in tensors)

    debugger.start(net)
    gradient(x)
    before = alive()
    for _ in range(5):
        gradient(x)
    assert alive() == before
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    for index in range(6):
        first, second = step.backward("Cell.product.Product", index)["output"]
        assert first is None and (second["shape"], second["Max"]) == ([3, 5, 7, 11], pytest.approx(np.tanh(1)))


def test_a_hook_for_which_there_is_no_stack_ends_no_backward(ms: Any) -> None:
    told: list[Any] = []

    def hook(gradient: Any) -> None:
        told.append(gradient)
        if len(told) == 1:
            raise RecursionError

    def forward(x: Tensor) -> Tensor:
        y = ops.tanh(x)
        MindSporeGraph().hook_tensor(y, hook)
        return y.sum()

    gradient = mindspore.grad(forward)(Tensor(np.zeros(3, np.float32)))
    assert gradient.asnumpy().tolist() == [1, 1, 1]
    assert len(told) == 2 and isinstance(told[1], RecursionError)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (3, 5), (0, 2)])
def test_gradients_are_added_as_the_framework_adds(ms: Any, shape: tuple[int, ...], dtype: type) -> None:
    generator = np.random.default_rng(3)
    first, second = (Tensor(np.asarray(generator.standard_normal(shape), dtype)) for _ in range(2))
    for pair in ((first, second), (first.T, second.T)):
        added, expected = MindSporeGraph().add(*pair), pair[0] + pair[1]
        assert (added.dtype, added.shape) == (expected.dtype, expected.shape)
        assert added.asnumpy().tobytes() == expected.asnumpy().tobytes()


def test_gradients_on_the_host_are_added_without_a_kernel(ms: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel takes many times as long."""
    monkeypatch.setattr("msprobe_ms.frameworks.mindspore.autograd._add", None)
    ones = Tensor(np.ones((2, 3), np.float32))
    assert MindSporeGraph().add(ones, ones).asnumpy().tolist() == [[2, 2, 2], [2, 2, 2]]
