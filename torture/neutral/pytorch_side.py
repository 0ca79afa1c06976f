"""Trainings in PyTorch: the nets of the fault suite, and three of writes in place, views and hooks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from msprobe_ms.pytorch import PrecisionDebugger
from torture.faults.catalogue import NETS
from torture.faults.record_pytorch import make as fault_net
from torture.faults.record_pytorch import tensors
from torture.nets.pytorch.probed import OWN, Hooked, Probed, traits

__all__ = ["OWN", "PrecisionDebugger", "Training", "prepare"]


def prepare(launch: str) -> None:
    """Have PyTorch compute on one thread; it launches its kernels in one way only."""
    torch.set_num_threads(1)


class Training:
    """A net, its batch and two optimizers, each of one half of the parameters: momentum and Adam."""

    def __init__(self, name: str) -> None:
        known = NETS.get(name, NETS["mlp"])
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)
        self.net = OWN[name]().train() if name in OWN else fault_net(name, 5)
        self._inputs, self._labels = tensors(known, 5)
        self._named = dict(self.net.named_parameters())
        parameters = list(self._named.values())
        half = len(parameters) // 2
        self._optimizers = [
            torch.optim.SGD(parameters[:half], 1e-2, momentum=0.9), torch.optim.Adam(parameters[half:], 1e-3)
        ]  # fmt: skip

    def step(self) -> Iterator[tuple[str, Any]]:
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        losses = []
        for _ in range(2):  # gradients of two passes are gathered
            loss = functional.cross_entropy(self.net(*self._inputs), self._labels)
            loss.backward()
            losses.append(loss.detach())
        for optimizer in self._optimizers:
            optimizer.step()
        drawn = f"{random.random()} {np.random.random()} {torch.rand(2)}"
        yield from ((f"loss {number}", each) for number, each in enumerate(losses))
        gradients = {name: each.grad for name, each in self._named.items() if each.grad is not None}
        yield from ((f"gradient of {name}", each.clone()) for name, each in gradients.items())
        yield "random numbers", drawn
        if isinstance(self.net, Probed):
            notes, self.net.notes = self.net.notes, []
            if isinstance(self.net, Hooked):
                yield "gradient kept", self.net.kept.grad
            yield "what tensors are", repr([*notes, *map(traits, gradients.values())])

    def state(self) -> Iterator[tuple[str, Any]]:
        yield from self.net.state_dict().items()
        for optimizer in self._optimizers:
            kind = type(optimizer).__name__
            for number, kept in optimizer.state_dict()["state"].items():
                yield from ((f"{kind}: {key} {number}", each) for key, each in kept.items() if each is not None)
        yield "what parameters are", repr([traits(each) for each in self._named.values()])
        yield "state of torch's generator", torch.get_rng_state()

    def read(self, value: torch.Tensor) -> bytes:
        return value.detach().contiguous().numpy().tobytes()
