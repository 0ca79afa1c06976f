"""Trainings in PyTorch: the nets of the fault suite, and three of writes in place, views and hooks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional

from benchmarks.faults.catalogue import NETS
from benchmarks.faults.record_pytorch import make as fault_net
from benchmarks.faults.record_pytorch import tensors
from benchmarks.neutral.ways import main
from msprobe_ms.pytorch import PrecisionDebugger


def traits(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What a tensor is beside its values."""
    return (
        type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.storage_offset(),
        tensor.requires_grad, tensor.is_leaf, tensor._is_view(), type(tensor.grad_fn).__name__,
    )  # fmt: skip


class Probed(nn.Module):
    """A net that notes what tensors and containers it meets."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Any] = []

    def note(self, *values: Any) -> None:
        # How often a gradient was written is autograd's business: it copies where somebody else still holds one.
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        self.notes += [traits(value) if isinstance(value, torch.Tensor) else value for value in values]
        self.notes += [value._version for value in tensors]


class Handing(nn.Module):
    """Gives back the very objects that it is given, and changes the list among them."""

    def forward(self, x: torch.Tensor, others: list[torch.Tensor], named: dict[str, torch.Tensor]) -> Any:
        self.given = x, others, named
        others.append(named["x"])
        return x, others, named


class Viewing(nn.Module):
    """Gives out a view of its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(-1, -2)


class Writing(nn.Module):
    """Changes its input, and gives back nothing of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(0.5).add_(1)


class InPlace(Probed):
    """Activations, views and buffers written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Linear(16, 16)
        self.norm = nn.BatchNorm1d(16)
        self.act = nn.ReLU(inplace=True)
        self.writing = Writing()
        self.head = nn.Linear(16, 10)
        self.register_buffer("average", torch.zeros(16))
        self.register_buffer("scratch", torch.zeros(8, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        written = self.writing(x)
        self.note(written is x, written)
        y = self.norm(x).clone()
        y[:, :4] = y[:, 4:8] * 2
        y[0] = 0.5
        y.view(-1)[::3].mul_(1.25)
        y.t()[2:5].add_(0.1)
        left, right = y.chunk(2, 1)
        self.note(left, right, y)
        y = torch.cat((left, right + 1), 1)
        y.masked_fill_(y > 3, 3.0).clamp_(-3, 3)
        y.index_add_(1, torch.tensor([1, 3]), y[:, :2] * 0.5)
        acted = self.act(y)
        self.note(acted is y, acted)
        with torch.no_grad():
            torch.mul(acted, 2, out=self.scratch)
            self.average.mul_(0.9).add_(acted.mean(0), alpha=0.1)
            self.average[:3].copy_(self.scratch[0, :3])
        self.note(self.average, self.scratch)
        return self.head(acted)


class Views(Probed):
    """Tensors that are not contiguous, into and out of modules, and objects that have to stay the same ones."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Linear(16, 16)
        self.viewing = Viewing()
        self.handing = Handing()
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.norm = nn.LayerNorm(8)
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        turned = self.viewing(x)
        others, named = [turned], {"x": x}
        y, list_back, dict_back = self.handing(x, others, named)
        self.note(y is x, list_back is others, dict_back is named, len(others), others[-1] is x, others[0] is turned)
        self.note(self.handing.given[0] is x, turned.data_ptr() == x.data_ptr(), turned)
        halves = turned.T.split(8, 1)
        columns, spread = x[:, ::2], x[:, :1].expand(-1, 8)
        strided = torch.as_strided(x, (8, 8), (1, 16), 3)
        self.note(*halves, columns, spread, strided)
        again = torch.utils.checkpoint.checkpoint(self.block, columns, use_reentrant=False)
        z = again + self.norm(halves[1]) + self.block(strided.T) * spread + halves[0].flip(1)
        picture = x.view(8, 2, 2, 4).contiguous(memory_format=torch.channels_last)
        seen = self.conv(picture)
        self.note(picture, seen, z)
        z = z + seen.permute(0, 2, 3, 1).flatten(1).unfold(1, 8, 8).diagonal(dim1=1, dim2=2).mean(1, keepdim=True)
        return self.head(z.narrow(1, 0, 8).view_as(z))


class Half(torch.autograd.Function):
    """The user's own derivative."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x.to(torch.bfloat16).to(torch.float32)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * context.saved_tensors[0].sign().abs()


class Hooked(Probed):
    """Hooks of the user's own, a derivative of a gradient, parts without gradients, a gradient kept."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Linear(16, 16)
        self.middle = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(16, 10)
        self.entry.register_forward_hook(lambda module, inputs, output: output * 1.5)
        self.middle.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 0.25,))
        self.head.register_full_backward_hook(lambda module, inputs, outputs: self.note("backward", *outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        x.register_hook(lambda gradient: gradient * 0.5)
        x.retain_grad()
        self.kept = x
        y = Half.apply(self.middle(x))
        (slope,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        with torch.no_grad():
            fixed = self.middle(x).mean()
        leaf = y.detach().requires_grad_()
        (own,) = torch.autograd.grad(functional.gelu(leaf).sum(), leaf)
        self.note(x, y, slope, fixed, leaf, own)
        return self.head(self.drop(x + y * fixed + slope * 0.1 + own))


OWN: dict[str, Callable[[], Probed]] = {"in_place": InPlace, "views": Views, "hooked": Hooked}


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


if __name__ == "__main__":
    torch.set_num_threads(1)
    main("pytorch", Training, PrecisionDebugger)
