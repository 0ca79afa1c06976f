"""Nets that write in place, view and hook, and note what the tensors are that they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops


def traits(tensor: Tensor) -> tuple[Any, ...]:
    """What a tensor is beside its values."""
    return (
        type(tensor).__name__, str(tensor.dtype), tensor.shape, tensor.stride(), tensor.storage_offset(),
        tensor.is_contiguous(), tensor._requires_grad,
    )  # fmt: skip


class Probed(nn.Cell):
    """A net that notes what tensors and containers it meets."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Any] = []

    def note(self, *values: Any) -> None:
        self.notes += [traits(value) if isinstance(value, Tensor) else value for value in values]


class Handing(nn.Cell):
    """Gives back the very objects that it is given, and changes the list among them."""

    def construct(self, x: Tensor, others: list[Tensor], named: dict[str, Tensor]) -> Any:
        self.given = x, others, named
        others.append(named["x"])
        return x, others, named


class Viewing(nn.Cell):
    """Gives out a view of its input."""

    def construct(self, x: Tensor) -> Tensor:
        return x.swapaxes(-1, -2)


class Dropout(nn.Cell):
    """For MindSpore's Cell, whose masks on CPU are others in every run from about its fifth call on, seeds or not."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def construct(self, x: Tensor) -> Tensor:
        return ops.dropout(x, self.p, self.training)


def repeatable(net: nn.Cell) -> nn.Cell:
    """The net with another Dropout."""
    for _, parent in list(net.cells_and_names()):
        for name, cell in list(parent.name_cells().items()):
            if isinstance(cell, nn.Dropout):
                setattr(parent, name, Dropout(cell.p))
    return net.set_train()


class InPlace(Probed):
    """Tensors written in place, parameters beside training, running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Dense(16, 16)
        self.norm = nn.BatchNorm1d(16)
        self.act = nn.ReLU()
        self.head = nn.Dense(16, 10)
        self.count = Parameter(Tensor(np.zeros(16, np.float32)), name="count", requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        row, turned = x[1], x.T
        x[:, :4] = x[:, 4:8] * 2
        x[0] = 0.5
        copied = ops.zeros_like(x)
        column = copied[:, 1]
        copied.copy_(x.T.T)
        column[2:] = 3.0
        # Whether a view sees what is written to its tensor is the framework's business, and stays as it is.
        self.note(*(part.asnumpy().tobytes() for part in (row, turned, column)))
        self.note(x, copied, row, turned, column)
        x = self.norm(copied + x)
        part = x[:, 8:]
        part += 1
        part *= 0.5
        x = self.act(mint.cat((x[:, :8], part), 1))
        ops.assign_add(self.count, ops.stop_gradient(x).sum(0))
        self.count[:3] = 1.0
        self.note(x, part, self.count)
        return self.head(x)


class Views(Probed):
    """Tensors that are not contiguous, into and out of Cells, and objects that have to stay the same ones."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Dense(16, 16)
        self.viewing = Viewing()
        self.handing = Handing()
        self.block = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU())
        self.block.recompute()
        self.norm = nn.LayerNorm((8,), epsilon=1e-5)
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        turned = self.viewing(x)
        others, named = [turned], {"x": x}
        y, list_back, dict_back = self.handing(x, others, named)
        self.note(y is x, list_back is others, dict_back is named, len(others), others[-1] is x, others[0] is turned)
        self.note(self.handing.given[0] is x, turned.data_ptr() == x.data_ptr(), turned)
        halves = mint.split(turned.T, 8, 1)
        columns = x[:, ::2]
        spread = mint.unsqueeze(columns[:, 0], 1).expand((-1, 8))
        chunk = mint.chunk(turned, 2, 0)[1].T
        self.note(*halves, columns, spread, chunk)
        z = self.block(columns) + self.norm(halves[1]) + self.block(chunk) * spread
        diagonal = mint.transpose(mint.transpose(z, 0, 1), 0, 1).reshape(-1, 8)
        self.note(z, diagonal)
        return self.head(diagonal.narrow(1, 0, 8))


class Hooked(Probed):
    """Hooks of the user's own, a compiled function, parts without gradients, half precision."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Dense(16, 16)
        self.half = nn.Dense(16, 16).to_float(ms.float16)
        self.drop = Dropout(0.3)
        self.head = nn.Dense(16, 10)
        self.squash = ms.jit(_squash)
        self.entry.register_forward_hook(_larger)
        self.half.register_forward_pre_hook(_shifted)
        self.head.register_backward_hook(self._seen)

    def _seen(self, cell: nn.Cell, grad_inputs: Any, grad_outputs: Any) -> None:
        self.note("backward", *(each for each in grad_outputs if each is not None))

    def construct(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        x.register_hook(_halved)
        y = ops.cast(self.half(x), ms.float32)
        fixed = ops.stop_gradient(y)
        self.note(x, y, fixed)
        return self.head(self.drop(self.squash(x) + y * fixed.mean()))


def _squash(x: Tensor) -> Tensor:
    return ops.tanh(x) * 2


# MindSpore's parser reads these, and no lambdas inside larger expressions.
def _larger(cell: nn.Cell, inputs: Any, output: Tensor) -> Tensor:
    return output * 1.5


def _shifted(cell: nn.Cell, inputs: Any) -> Any:
    return (inputs[0] + 0.25,)


def _halved(gradient: Tensor) -> Tensor:
    return gradient * 0.5


OWN: dict[str, Callable[[], Probed]] = {"in_place": InPlace, "views": Views, "hooked": Hooked}
