"""What is recorded in MindSpore: dynamic graphs, kernels launched one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, mint, nn, ops
from mindspore.common.api import _pynative_executor
from mindspore.ops import Primitive
from mindspore.ops.composite import base

from msprobe_ms.mindspore import PrecisionDebugger


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(4, 4), nn.Dense(4, 2)

    def construct(self, x: Tensor) -> Tensor:
        return (self.second(ops.relu(self.first(x)) + 1)).sum()


class Training:
    debugger = PrecisionDebugger

    def __init__(self) -> None:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        mindspore.runtime.launch_blocking()
        mindspore.set_seed(1)
        self.ways = ("plain",)
        self.way = "plain"
        self._x = Tensor(np.ones((3, 4), np.float32))
        self._renew()

    def _renew(self) -> None:
        self.net = Net()
        self._step = mindspore.value_and_grad(self.net, None, self.net.trainable_params())

    def forward(self) -> Any:
        """Forward alone, whose gradients nobody asks for."""
        return self.net(self._x)

    def backward(self, loss: Any) -> None:
        """Forward and backward, as one call has it."""
        try:
            self._step(self._x)
        except BaseException:
            # Once anything has raised in its backward, be it a user's hook, MindSpore 2.10 computes no gradients unless
            # this is called, and takes no hook off these parameters any more.
            _pynative_executor.clear_res()
            self._renew()
            raise

    def holders(self) -> Sequence[Any]:
        spaces = (ops, ops.functional, ops.auto_generate, mint, mint.nn.functional, mindspore.communication.comm_func)
        return [*spaces, Tensor, nn.Cell, Primitive, base, base._Grad]

    def state(self) -> dict[str, Any]:
        return {
            "hooks": sum(len(table) for each in self._cells() for table in _tables(each)),
            "hooks on parameters": sum(len(each.hooks()) for each in self.net.trainable_params()),
            "seed": mindspore.get_seed(),
            "random state": str(mindspore.get_rng_state()), "lockstep": _in_lockstep(),
        }  # fmt: skip

    def _cells(self) -> list[Any]:
        return [cell for _, cell in self.net.cells_and_names()]

    def restore(self) -> None:
        for table in [table for each in self._cells() for table in _tables(each)]:
            table.clear()


def _in_lockstep() -> bool:
    """Whether MindSpore may not run ahead of Python."""
    was = bool(_pynative_executor._executor.disable_frontend_and_bprop_pipeline())
    if not was:
        _pynative_executor._executor.enable_frontend_and_bprop_pipeline()
    return was


def _tables(cell: nn.Cell) -> list[Any]:
    """Those in which a Cell keeps hooks, and what is to be known of them."""
    return [table for name, table in vars(cell).items() if "_hook" in name and isinstance(table, dict)]


def make() -> Training:
    """A net to train."""
    return Training()
