"""Nets that write in place, view and hook, and note what the tensors are that they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional


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
