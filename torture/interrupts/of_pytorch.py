"""What is recorded in PyTorch: alone, and inside a dispatch mode of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from msprobe_ms.pytorch import PrecisionDebugger


class Mode(TorchDispatchMode):
    """Does as without it."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)) + 1)


class Training:
    debugger = PrecisionDebugger

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.net, self._x = Net(), torch.randn(3, 4)
        self.ways = ("plain", "mode")
        self.way = "plain"
        self._functions = torch._C._get_torch_function_state()

    def _around(self) -> AbstractContextManager[Any]:
        return Mode() if self.way == "mode" else nullcontext()

    def forward(self) -> Any:
        with self._around():
            return self.net(self._x).sum()

    def backward(self, loss: Any) -> None:
        loss.backward()

    def holders(self) -> Sequence[Any]:
        functional, module = torch.nn.functional, torch.nn.Module
        spaces = (
            torch,
            functional,
            torch.functional,
            torch._tensor,
            torch._VF,
            torch.autograd,
            torch.jit,
            torch.linalg,
        )
        return [*spaces, torch.Tensor, module, torch.fx.Tracer, torch.distributed]

    def state(self) -> dict[str, Any]:
        return {
            "hooks": sum(len(table) for each in self.net.modules() for table in _tables(each)),
            "hooks on parameters": sum(len(each._backward_hooks or ()) for each in self.net.parameters()),
            "grad mode": torch.is_grad_enabled(),
            "random state": torch.get_rng_state().tolist()[:64], "modes": len(_get_current_dispatch_mode_stack()),
            "functions": torch._C._is_torch_function_enabled(),
            "function modes": torch._C._len_torch_function_stack(), "profiler": torch.autograd._profiler_enabled(),
        }  # fmt: skip

    def restore(self) -> None:
        torch.set_grad_enabled(True)
        torch._C._set_torch_function_state(self._functions)
        for table in [table for each in self.net.modules() for table in _tables(each)]:
            table.clear()
        for parameter in self.net.parameters():
            parameter._backward_hooks = None


def _tables(module: nn.Module) -> list[Any]:
    """Those in which a module keeps hooks, and what is to be known of them."""
    return [table for name, table in vars(module).items() if "_hooks" in name and isinstance(table, dict)]


def make() -> Training:
    """A net to train."""
    return Training()
