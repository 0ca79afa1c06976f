"""Trainings in MindSpore: the nets of the fault suite, and three of writes in place, views and hooks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from msprobe_ms.mindspore import PrecisionDebugger
from torture.faults.catalogue import NETS
from torture.faults.record_mindspore import make as fault_net
from torture.faults.record_mindspore import tensors, training_step
from torture.nets.mindspore.probed import OWN, Probed, repeatable, traits

__all__ = ["OWN", "PrecisionDebugger", "Training", "prepare"]


def prepare(launch: str) -> None:
    """Have MindSpore compute on one thread; ``launch`` its kernels ``blocking`` or ``asynchronous``."""
    # On several threads sums are added in another order each time, and hardly a net repeats itself without the tool.
    ms.device_context.cpu.op_tuning.threads_num(1)
    if launch == "blocking":
        ms.runtime.launch_blocking()


class Training:
    """A net, its batch and two optimizers, each of one half of the parameters: momentum and Adam."""

    def __init__(self, name: str) -> None:
        known = NETS.get(name, NETS["mlp"])
        ms.set_context(mode=ms.GRAPH_MODE if known.compiled else ms.PYNATIVE_MODE)
        random.seed(5)
        np.random.seed(5)
        ms.set_seed(5)
        ms.manual_seed(5)
        self.net = repeatable(OWN[name]() if name in OWN else fault_net(name, None, 5))
        self._inputs, self._labels = tensors(known, 5)
        self._loss_and_gradients = training_step(self.net, None)
        self._parameters = self.net.trainable_params()
        half = len(self._parameters) // 2
        self._optimizers = [
            (nn.Momentum(self._parameters[:half], 1e-2, 0.9), slice(half)),
            (nn.Adam(self._parameters[half:], 1e-3), slice(half, None)),
        ]

    def step(self) -> Iterator[tuple[str, Any]]:
        loss, gradients = self._loss_and_gradients(*self._inputs, self._labels)
        for optimizer, part in self._optimizers:
            optimizer(gradients[part])
        drawn = f"{random.random()} {np.random.random()} {ops.rand(2).asnumpy()}"
        yield "loss", loss
        yield from ((f"gradient of {each.name}", g) for each, g in zip(self._parameters, gradients, strict=True))
        yield "random numbers", drawn
        if isinstance(self.net, Probed):
            notes, self.net.notes = self.net.notes, []
            yield "what tensors are", repr([*notes, *map(traits, gradients)])

    def state(self) -> Iterator[tuple[str, Any]]:
        yield from self.net.parameters_and_names()
        for optimizer, _ in self._optimizers:
            yield from (
                (f"{type(optimizer).__name__}: {name}", each) for name, each in optimizer.parameters_and_names()
            )
        yield "what parameters are", repr([traits(each) for each in self._parameters])
        yield "state of mindspore's generator", ms.get_rng_state()
        yield "seed of mindspore", repr((ms.get_seed(), ms.initial_seed()))

    def read(self, value: Any) -> bytes:
        return value.asnumpy().tobytes()
