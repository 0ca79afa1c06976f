"""The net in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from msprobe_ms.pytorch import PrecisionDebugger
from torture.kills.telling import Telling

__all__ = ["PrecisionDebugger", "Training"]


class ToldLayer(nn.Module):
    """A layer that tells which calls in it are over."""

    def __init__(self, base: str, telling: Telling) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16)
        self.act = nn.ReLU()
        self._base, self._telling = base, telling

    def forward(self, x: Tensor) -> Tensor:
        call = self._telling.call
        x = self.fc(x)
        call(f"{self._base}.fc.Linear.forward.{{}}", _array(x))
        x = self.act(x)
        call(f"{self._base}.act.ReLU.forward.{{}}", _array(x))
        x = x * 0.01
        call("Tensor.__mul__.{}.forward", _array(x))
        x = torch.exp(x)
        call("Torch.exp.{}.forward", _array(x))
        return x


class ToldNet(nn.Module):
    """Two layers, the first of them once more, and a head."""

    def __init__(self, telling: Telling) -> None:
        super().__init__()
        self.layers = nn.ModuleList([ToldLayer(f"Module.layers.{number}", telling) for number in range(2)])
        self.head = nn.Linear(16, 4)
        self._telling = telling
        self.save: Callable[[Any, str], None] = lambda value, name: None

    def forward(self, x: Tensor) -> Tensor:
        for place, number in enumerate((0, 1, 0)):
            base = f"Module.layers.{number}"
            call = self._telling.calls(f"{base}.ToldLayer.forward.{{}}")
            if place:
                entries = [f"{base}.fc.Linear.backward.{call}", f"{base}.ToldLayer.backward.{call}"]
                x.register_hook(self._gradient_of([f"{base}.act.ReLU.backward.{call}"], entries))
            x = self.layers[number](x)
            self._telling.call(f"{base}.ToldLayer.forward.{{}}", _array(x))
            self.save(x, "hidden")
            self._telling.call("hidden.{}.debug", _array(x))
        x.register_hook(self._gradient_of([], ["Module.head.Linear.backward.0"]))
        x = self.head(x)
        self._telling.call("Module.head.Linear.forward.{}", _array(x))
        return x.sum()

    def _gradient_of(self, inside: list[str], entries: list[str]) -> Callable[[Tensor], None]:
        def tell(gradient: Tensor) -> None:
            self._telling.gradient(inside, entries, _array(gradient))

        return tell


def _array(x: Tensor) -> np.ndarray:
    return x.detach().contiguous().numpy()


class Training:
    """Steps of the net."""

    def __init__(self, mode: str, telling: Telling) -> None:
        torch.set_num_threads(1)
        self._telling = telling
        self.net = ToldNet(telling)
        generator = np.random.default_rng(5)
        for parameter in self.net.parameters():
            parameter.data = torch.from_numpy(generator.standard_normal(parameter.shape).astype(np.float32) / 4)
        self._x = generator.standard_normal((4, 16)).astype(np.float32)

    def save_by(self, save: Callable[[Any, str], None]) -> None:
        self.net.save = save

    def step(self, factor: float) -> None:
        """Forward and backward with a batch of its own."""
        for parameter in self.net.parameters():
            parameter.grad = None
        self.net(torch.from_numpy(self._x * np.float32(factor))).backward()
        self._telling.tell("backward")
