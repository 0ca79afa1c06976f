"""The net in MindSpore: dynamic, with one module compiled, or compiled as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msprobe_ms.mindspore import PrecisionDebugger
from torture.kills.telling import Telling

__all__ = ["PrecisionDebugger", "Training"]


class Layer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(16, 16)
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return ops.exp(self.act(self.fc(x)) * 0.01)


class Net(nn.Cell):
    """Two layers, the first of them once more, and a head; compiled as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([Layer(), Layer()])
        self.head = nn.Dense(16, 4)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.layers[0](self.layers[1](self.layers[0](x)))).sum()


class ToldLayer(Layer):
    """A layer that tells which calls in it are over."""

    def __init__(self, base: str, telling: Telling) -> None:
        super().__init__()
        self._base, self._telling = base, telling

    def construct(self, x: Tensor) -> Tensor:
        call = self._telling.call
        x = self.fc(x)
        call(f"{self._base}.fc.Dense.forward.{{}}", x.asnumpy())
        x = self.act(x)
        call(f"{self._base}.act.ReLU.forward.{{}}", x.asnumpy())
        x = x * 0.01
        call("Tensor.__mul__.{}.forward", x.asnumpy())
        x = ops.exp(x)
        call("Functional.exp.{}.forward", x.asnumpy())
        return x


class Jitted(nn.Cell):
    """A module that is compiled; its gradient is taken outside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Layer()

    @ms.jit
    def construct(self, x: Tensor) -> Tensor:
        return self.net(x)


class ToldNet(nn.Cell):
    """The same net, told; between its first layers, where asked for, stands a compiled one."""

    def __init__(self, telling: Telling, jitted: bool) -> None:
        super().__init__()
        self.layers = nn.CellList([ToldLayer(f"Cell.layers.{number}", telling) for number in range(2)])
        self.jitted = Jitted() if jitted else None
        self.head = nn.Dense(16, 4)
        self._telling = telling
        self._save: Callable[[Any, str], None] = lambda value, name: None

    def construct(self, x: Tensor) -> Tensor:
        for place, number in enumerate((0, 1, 0)):
            if place == 1 and self.jitted is not None:
                x = self._call_jitted(x)
            base = f"Cell.layers.{number}"
            call = self._telling.calls(f"{base}.ToldLayer.forward.{{}}")
            if place:
                entries = [f"{base}.fc.Dense.backward.{call}", f"{base}.ToldLayer.backward.{call}"]
                x.register_hook(self._gradient_of([f"{base}.act.ReLU.backward.{call}"], entries))
            x = self.layers[number](x)
            self._telling.call(f"{base}.ToldLayer.forward.{{}}", x.asnumpy())
            self._save(x, "hidden")
            self._telling.call("hidden.{}.debug", x.asnumpy())
        x.register_hook(self._gradient_of([], ["Cell.head.Dense.backward.0"]))
        x = self.head(x)
        self._telling.call("Cell.head.Dense.forward.{}", x.asnumpy())
        return x.sum()

    def _call_jitted(self, x: Tensor) -> Tensor:
        assert self.jitted is not None
        x = self.jitted(x)
        value = x.asnumpy()
        for module in ("fc.Dense", "act.ReLU"):
            self._telling.call(f"Cell.jitted.net.{module}.forward.{{}}")
        self._telling.call("Cell.jitted.net.Layer.forward.{}", value)
        return x

    def _gradient_of(self, inside: list[str], entries: list[str]) -> Callable[[Tensor], None]:
        def tell(gradient: Tensor) -> None:
            self._telling.gradient(inside, entries, gradient.asnumpy())

        return tell


class Training:
    """Steps of the net; nothing of it is compiled or slow any more once it is made."""

    def __init__(self, mode: str, telling: Telling) -> None:
        self._telling = telling
        self._compiled = mode == "graph"
        if self._compiled:
            ms.set_context(mode=ms.GRAPH_MODE)
        else:
            ms.runtime.launch_blocking()
        self._save: Callable[[Any, str], None] = lambda value, name: None
        self.net: Any = Net() if self._compiled else ToldNet(telling, jitted=mode == "jit")
        generator = np.random.default_rng(5)
        for parameter in self.net.get_parameters():
            parameter.set_data(Tensor(generator.standard_normal(parameter.shape).astype(np.float32) / 4))
        self._x = generator.standard_normal((4, 16)).astype(np.float32)
        self._gradients = ms.value_and_grad(self.net, None, self.net.trainable_params())

    def save_by(self, save: Callable[[Any, str], None]) -> None:
        self._save = save
        if not self._compiled:
            self.net._save = save

    def step(self, factor: float) -> None:
        """Forward and backward with a batch of its own."""
        x = Tensor(self._x * np.float32(factor))
        if not self._compiled:
            self._gradients(x)
            return self._telling.tell("backward")
        for begun in (self.net, self._gradients):
            result = begun(x)
            tensors = (result,) if begun is self.net else (result[0], *result[1])
            values = [tensor.asnumpy() for tensor in tensors]
            for entry in ("0.fc.Dense", "0.act.ReLU", "0.Layer", "1.fc.Dense", "1.act.ReLU", "1.Layer"):
                self._telling.call(f"Cell.layers.{entry}.forward.{{}}")
            for entry in ("0.fc.Dense", "0.act.ReLU", "0.Layer"):
                self._telling.call(f"Cell.layers.{entry}.forward.{{}}")
            self._telling.call("Cell.head.Dense.forward.{}")
            self._save(tensors[0], "loss")
            self._telling.call("loss.{}.debug", values[0])
        self._telling.tell("backward")
