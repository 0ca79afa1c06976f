"""Nets of the shapes that compiled graphs make hard; each is called with a (2, 4) batch and gives a loss."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class TakesParameter(nn.Cell):
    def construct(self, x: Tensor, weight: Tensor) -> Tensor:
        return ops.matmul(x, weight)


class ParameterGiven(nn.Cell):
    """A parameter handed to a cell that does not own it, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.zeros((4, 4), np.float32)), name="weight")
        self.product = TakesParameter()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        return (self.product(self.fc(x), self.weight) + self.product(x, self.weight)).sum()


class OfContainers(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, named: dict[str, Any], listed: list[Tensor], pair: Any = None) -> Any:
        y = self.fc(named["x"])
        return {"y": y, "z": listed[0] + y}, [y * 2, (listed[1],)], None


class Containers(nn.Cell):
    """Lists, dictionaries and tuples in and out, with constants among them."""

    def __init__(self) -> None:
        super().__init__()
        self.nested = OfContainers()
        self.fc = nn.Dense(4, 4)
        self.other = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        a = self.fc(x)
        named, listed, _ = self.nested({"x": a, "k": 3}, [x, self.other(x)], pair=(x, 2.5))
        return named["y"].sum() + named["z"].sum() + listed[0].sum() + listed[1][0].sum()


class AnyArguments(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, *many: Tensor, scale: float = 1.0, **more: Tensor) -> Tensor:
        y = self.fc(many[0])
        for each in many[1:]:
            y = y + each
        return y * scale + more["extra"]


class Arguments(nn.Cell):
    """Any number of arguments, keywords, texts, dtypes; 0-d and integer tensors; an empty one."""

    def __init__(self) -> None:
        super().__init__()
        self.any = AnyArguments()
        self.fc = nn.Dense(4, 4)
        self.odd = OddArguments()

    def construct(self, x: Tensor) -> Tensor:
        y = self.any(self.fc(x), x, scale=2.0, extra=self.fc(x))
        total, largest, _ = self.odd(y, "sum", ops.zeros((0, 3), ms.float32), x.shape[0], dtype=ms.float16)
        return total * largest


class OddArguments(nn.Cell):
    def construct(self, x: Tensor, how: str, empty: Tensor, count: int, dtype: Any = ms.float32) -> Any:
        total = x.sum() if how == "sum" else x.mean()
        return ops.cast(total, dtype).astype(ms.float32) * count, x.max(), empty


class Loop(nn.Cell):
    """Layers called again and again, the same ones, unrolled."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Dense(4, 4)
        self.layers = nn.CellList([nn.Dense(4, 4) for _ in range(2)])

    def construct(self, x: Tensor) -> Tensor:
        for _ in range(2):
            for layer in self.layers:
                x = layer(self.shared(x))
        return x.sum()


class Branch(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.positive = nn.Dense(4, 4)
        self.negative = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = self.positive(x)
        else:
            y = self.negative(x)
        return y


class Branches(nn.Cell):
    """A branch that only the running graph decides."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.branch = Branch()

    def construct(self, x: Tensor) -> Tensor:
        return self.branch(self.fc(x)).sum()


class While(nn.Cell):
    """A loop that only the running graph ends."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        count = Tensor(0, ms.int32)
        while count < 3:
            x = self.fc(x)
            count = count + 1
        return x.sum()


class Normed(nn.Cell):
    """A residual around a normalisation that writes its statistics, and a cell that returns what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.same = nn.Identity() if hasattr(nn, "Identity") else nn.SequentialCell()
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        return (x + self.out(self.norm(self.same(x)))).sum()


class Choice(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor, mask: Any = None, need_weights: bool = True) -> Any:
        y = self.fc(x)
        weights = ops.softmax(y, -1)
        if mask is not None:
            weights = weights * mask
        return (weights * y, weights) if need_weights else (weights * y,)


class Choosing(nn.Cell):
    """Keywords, None, and results that depend on an argument, as MindSpore's own attention has them."""

    def __init__(self) -> None:
        super().__init__()
        self.choice = Choice()

    def construct(self, x: Tensor) -> Tensor:
        y = self.choice(x, mask=None, need_weights=False)[0]
        z, weights = self.choice(y, mask=x)
        return z.sum() + weights.sum()


class Attention(nn.Cell):
    """MindSpore's own layer, whose source is long, and takes seconds to compile."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def construct(self, x: Tensor) -> Tensor:
        x = x.reshape(1, 2, 4)
        return self.attention(x, x, x, attn_mask=None, need_weights=False)[0].sum()


class Tied(nn.Cell):
    """Tied weights, and an embedding, whose input has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.first = nn.Dense(4, 4)
        self.second = nn.Dense(4, 4)
        self.second.weight = self.first.weight

    def construct(self, x: Tensor) -> Tensor:
        return (self.second(self.first(x)) + self.embedding(ops.ones((2,), ms.int32))).sum()


class OwnBackward(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(x) * 2

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> Any:
        return (dout * 3,)


class WithOwnBackward(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Dense(4, 4)
        self.own = OwnBackward()

    def construct(self, x: Tensor) -> Tensor:
        return self.own(self.before(x)).sum()


class Writes(nn.Cell):
    def construct(self, total: Tensor, x: Tensor) -> Tensor:
        total.add_(x)
        return total * 2


class InPlace(nn.Cell):
    """A cell that writes into a tensor which its caller goes on with."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.writes = Writes()

    def construct(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        total = y * 3
        return (self.writes(total, y) + total).sum()


class Drops(nn.Cell):
    """Random numbers in the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.drop = nn.Dropout(p=0.5)

    def construct(self, x: Tensor) -> Tensor:
        return self.drop(self.fc(x)).sum()


class Recomputed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Dense(4, 4)
        self.block = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())
        self.block.recompute()

    def construct(self, x: Tensor) -> Tensor:
        return self.block(self.before(x)).sum()


class Two(nn.Cell):
    """Two layers and an activation: the smallest net with a first, a middle and a last cell.

    Its backward needs its result, as that of a loss does, and so runs after its forward.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(4, 4)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        y = self.fc2(self.relu(self.fc1(x)))
        return (y * y).sum()


class One(nn.Cell):
    """A single layer, for tests to which the net is nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(x).sum()


class Jitted(nn.Cell):
    """A net compiled inside a dynamic one; its gradient is taken outside of the graph."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    @ms.jit
    def construct(self, x: Tensor) -> Tensor:
        return self.net(x)


NETS = (
    ParameterGiven, Containers, Arguments, Loop, Branches, While, Normed, Choosing, Tied, WithOwnBackward,
    Recomputed,
)  # fmt: skip

#: Nets whose branches or loops only the running graph decides.
BRANCHING = (Branches, While)


def make(net_class: type[nn.Cell]) -> tuple[nn.Cell, Tensor]:
    """A net in training mode with the same weights on every call, and a batch."""
    generator = np.random.default_rng(1)
    net = net_class()
    net.set_train()
    for parameter in net.get_parameters():
        if "moving" not in parameter.name:
            value = generator.standard_normal(parameter.shape).astype(np.float32)
            parameter.set_data(Tensor(value, parameter.dtype))
    return net, Tensor(generator.standard_normal((2, 4)).astype(np.float32))
