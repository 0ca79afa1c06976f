"""Nets that only dynamic graphs have, and what each of them calls: written down by hand from the nets' source.

A call is named without its number; the k-th of a name is its k-th call. ``cells`` are those of the net's Cells,
``apis`` those of functions, methods and primitives, both in the order in which they end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mindspore as ms
import nets_mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

#: A net, a batch and its labels.
Made = tuple[nn.Cell, Tensor, Tensor]

DENSE = ("Primitive.matmul.MatMul", "Primitive.bias_add.BiasAdd")

#: Of nets_mindspore.cross_entropy.
LOSS = ("Functional.log_softmax", "Functional.one_hot", "Tensor.__mul__", "Tensor.sum", "Tensor.__neg__",
        "Tensor.__truediv__")  # fmt: skip


# -- parts under jit ---------------------------------------------------------------------------------------------------


def squash(x: Tensor) -> Tensor:
    return ops.tanh(x) * 2


def lift(x: Tensor) -> Tensor:
    return ops.exp(x) + 1


def refold(x: Tensor) -> Tensor:
    return ops.sigmoid(x) - x


class Gate(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 8)

    def construct(self, x: Tensor) -> Tensor:
        return ops.sigmoid(self.fc(x)) * x


class CompiledGate(Gate):
    @ms.jit
    def construct(self, x: Tensor) -> Tensor:
        return ops.sigmoid(self.fc(x)) * x


def _plain_gate() -> nn.Cell:
    return type("CompiledGate", (Gate,), {})()


class Jitted(nn.Cell):
    """A function and a Cell under ast, one function under bytecode, one under trace; or the same as plain Python."""

    def __init__(self, ast: bool, captured: bool) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 8)
        self.gate = CompiledGate() if ast else _plain_gate()
        self.head = nn.Dense(8, 10)
        self.squash = ms.jit(squash) if ast else squash
        self.lift = ms.jit(lift, capture_mode="bytecode") if captured else lift
        self.refold = ms.jit(refold, capture_mode="trace") if captured else refold

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.refold(self.lift(self.gate(self.squash(self.fc(x))))))


# -- calls that repeat -------------------------------------------------------------------------------------------------


class Step(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Dense(4, 8)
        self.state = nn.Dense(8, 8)

    def construct(self, x: Tensor, state: Tensor) -> Tensor:
        return ops.tanh(self.input(x) + self.state(state))


class Nest(nn.Cell):
    """Calls itself ``depth`` times."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 8)

    def construct(self, x: Tensor, depth: int) -> Tensor:
        x = ops.tanh(self.fc(x))
        return x if depth == 0 else self(x, depth - 1) * x


class Looped(nn.Cell):
    """A Python loop over time, then recursion."""

    def __init__(self) -> None:
        super().__init__()
        self.step = Step()
        self.nest = Nest()
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        state = ops.ones((x.shape[0], 8), ms.float32)
        for time in range(x.shape[1]):
            state = self.step(x[:, time], state)
        return self.head(self.nest(state, 2))


class Shared(nn.Cell):
    """One Cell under two names and inside a container."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Dense(8, 8)
        self.decode = self.encode
        self.tail = nn.SequentialCell(nn.ReLU(), self.encode)
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.tail(ops.relu(self.decode(ops.exp(self.encode(x) * 0.1)))))


class Recomputed(nn.Cell):
    """Two Cells that run again in backward."""

    def __init__(self, again: bool, **keys: bool) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 8)
        self.block = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU())
        self.gate = Gate()
        self.head = nn.Dense(8, 10)
        if again:
            self.block.recompute(**keys)
            self.gate.recompute(**keys)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.gate(self.block(self.fc(x))))


# -- calls of unusual shape --------------------------------------------------------------------------------------------


class Dropped(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 8)
        self.dropout = nn.Dropout(p=0.5)
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.fc(x)))


class Affine(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 8)

    def construct(self, value: Tensor, *, factor: Tensor, power: int = 2) -> Tensor:
        return ops.pow(input=self.fc(value), exponent=power) * factor


class Keywords(nn.Cell):
    """Everything is given by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.affine = Affine()
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.affine(value=x, factor=ops.softmax(input=x, axis=-1))
        return self.head(ops.concat(tensors=ops.split(tensor=x, split_size_or_sections=4, axis=1), axis=1))


class Fork(nn.Cell):
    """Nested results."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Dense(8, 8)
        self.right = nn.Dense(8, 8)

    def construct(self, x: Tensor) -> dict[str, Any]:
        return {"left": (self.left(x), [ops.tanh(x)]), "right": self.right(x), "scale": 2}


class Join(nn.Cell):
    """Nested arguments."""

    def construct(self, parts: dict[str, Any]) -> Tensor:
        first, (second,) = parts["left"]
        return first * parts["scale"] + second * parts["right"]


class Containers(nn.Cell):
    """Cells in lists in sequences in dictionaries; tensors in tuples in lists in dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.CellDict({"fork": Fork(), "join": Join()})
        self.rows = nn.CellList([nn.SequentialCell(nn.Dense(8, 8), nn.CellList([nn.ReLU()])[0]), nn.Tanh()])
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.parts["join"](self.parts["fork"](x))
        for row in self.rows:
            x = row(x)
        return self.head(x)


class Tokens(nn.Cell):
    """Has parameters of its own, beside the Cells below it."""

    def __init__(self) -> None:
        super().__init__()
        self.token = Parameter(Tensor(np.zeros((1, 8), np.float32)), name="token")
        self.position = Parameter(Tensor(np.zeros((3, 8), np.float32)), name="position")
        self.fc = nn.Dense(8, 8)
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.concat((self.token, self.fc(x))) + self.position
        return self.head(ops.tanh(x))[1:]


# -- what they call ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A net, and what it calls before the loss. A call is named without its number."""

    make: Callable[[], Made]
    cells: tuple[str, ...]
    apis: tuple[str, ...]
    #: Calls that are made a second time in backward, with the number of the first.
    again: tuple[str, ...] = ()
    #: Whether gradients flow through the second calls.
    gradients_again: bool = True
    #: The same net without graphs and without recomputing: its figures are the same to rounding.
    plain: Callable[[], Made] | None = None
    #: The same net without captures: bytecode and trace are run as Python while recording.
    uncaptured: Callable[[], Made] | None = None
    #: Calls that hand a Parameter on as it is: there is no result of their own for a gradient to come back to.
    hand_on: tuple[str, ...] = ()
    #: Cells inside graphs.
    hidden: tuple[str, ...] = ()

    def count(self, base: str) -> int:
        """How often it is called in forward."""
        return [*self.cells, *self.apis, *LOSS].count(base)


def make(kind: Callable[[], nn.Cell], shape: tuple[int, ...] = (2, 8)) -> Made:
    """A net with the same weights on every call, a batch and its labels."""
    ms.set_seed(3)  # layers of dropout take it when they are made
    generator = np.random.default_rng(7)
    net = kind()
    nets_mindspore.set_weights(net, generator)
    net.set_train()
    return net, Tensor(generator.standard_normal(shape).astype(np.float32)), Tensor(np.array([1, 2], np.int32))


def _case(kind: Callable[[], nn.Cell], shape: tuple[int, ...] = (2, 8)) -> Callable[[], Made]:
    return lambda: make(kind, shape)


def _five(name: str) -> Callable[[], Made]:
    return lambda: nets_mindspore.make(name)


_RELU = ("Primitive.relu.ReLU",)
_CONV = ("Primitive.conv2d.Conv2D",)
_NORM = ("Primitive.bn_train.BatchNorm",)
_CONV_RELU_POOL = (*_CONV, "Primitive.bias_add.BiasAdd", *_RELU, "Primitive.max_pool.MaxPool")
_BLOCK = (*_CONV, *_NORM, *_RELU, *_CONV, *_NORM, "Tensor.__add__", *_RELU)
#: nn.Dense flattens what has more than two axes.
_DENSE_3D = ("Primitive.reshape.Reshape", *DENSE, "Primitive.reshape.Reshape")
#: nn.LayerNorm casts its weights to the dtype that they have.
_LAYER_NORM = ("Tensor.astype", "Tensor.astype", "Primitive.layer_norm.LayerNorm")
_HEAD = (*_DENSE_3D, "Tensor.reshape", "Tensor.transpose")
_ATTENTION = (*_HEAD * 3, "Tensor.transpose", "Functional.matmul", "Tensor.__mul__", "Functional.softmax",
              "Functional.matmul", "Tensor.transpose", "Tensor.reshape", *_DENSE_3D)  # fmt: skip
_ENCODER_LAYER = (*_LAYER_NORM, *_ATTENTION, "Tensor.__add__", *_LAYER_NORM, *_DENSE_3D, "Functional.gelu",
                  *_DENSE_3D, "Tensor.__add__")  # fmt: skip
_STEP = ("Tensor.__getitem__", *DENSE, *DENSE, "Tensor.__add__", "Functional.tanh")

CASES = {
    "two_linear": Case(
        _five("two_linear"), ("Cell.fc1.Dense", "Cell.relu.ReLU", "Cell.fc2.Dense"), (*DENSE, *_RELU, *DENSE)
    ),
    "lenet": Case(
        _five("lenet"),
        (
            "Cell.conv1.Conv2d", "Cell.relu.ReLU", "Cell.pool.MaxPool2d",
            "Cell.conv2.Conv2d", "Cell.relu.ReLU", "Cell.pool.MaxPool2d", "Cell.flatten.Flatten",
            "Cell.fc1.Dense", "Cell.relu.ReLU", "Cell.fc2.Dense", "Cell.relu.ReLU", "Cell.fc3.Dense",
        ),
        (*_CONV_RELU_POOL, *_CONV_RELU_POOL, "Functional.flatten", *DENSE, *_RELU, *DENSE, *_RELU, *DENSE),
    ),
    "residual": Case(
        _five("residual"),
        (
            "Cell.stem.Conv2d",
            *(
                f"Cell.blocks.{block}.{name}"
                for block in range(2)
                for name in (
                    "conv1.Conv2d", "bn1.BatchNorm2d", "relu.ReLU",
                    "conv2.Conv2d", "bn2.BatchNorm2d", "relu.ReLU", "ResidualBlock",
                )
            ),
            "Cell.blocks.SequentialCell", "Cell.head.Dense",
        ),
        (*_CONV, *_BLOCK, *_BLOCK, "Tensor.mean", *DENSE),
    ),
    "lstm": Case(
        _five("lstm"),
        ("Cell.lstm.rnn._DynamicLSTMCPUGPU", "Cell.lstm.LSTM", "Cell.head.Dense"),
        (
            "Functional.zeros", "Functional.zeros",
            # batch first; the state of the one layer; both biases, and the weights in one row
            "Primitive.Transpose.Transpose", "Tensor.__getitem__", "Tensor.__getitem__", "Tensor.__add__",
            "Tensor.view", "Tensor.view", "Tensor.view", "Primitive.concat.Concat",
            "Primitive.ExpandDims.ExpandDims", "Primitive.ExpandDims.ExpandDims", "Tensor.astype",
            "Primitive.LSTM.LSTM",
            # the states of all layers; batch first again; the dtype of the input
            "Primitive.Concat.Concat", "Primitive.Concat.Concat",
            "Tensor.view", "Tensor.view", "Tensor.view", "Tensor.view", "Primitive.Transpose.Transpose",
            "Tensor.astype", "Tensor.astype", "Tensor.astype",
            "Tensor.__getitem__", "Tensor.__getitem__", "Tensor.__add__", *DENSE,
        ),
    ),
    "encoder": Case(
        _five("encoder"),
        (
            "Cell.embedding.Embedding",
            *(
                f"Cell.layers.{layer}.{name}"
                for layer in range(1)
                for name in (
                    "norm1.LayerNorm", "attention.q.Dense", "attention.k.Dense", "attention.v.Dense",
                    "attention.out.Dense", "attention.Attention", "norm2.LayerNorm", "up.Dense", "act.GELU",
                    "down.Dense", "EncoderLayer",
                )
            ),
            "Cell.norm.LayerNorm", "Cell.head.Dense", "Cell.Encoder",
        ),
        (
            "Primitive.reshape_flat.Reshape", "Primitive.gather.Gather", "Primitive.reshape.Reshape", "Tensor.__add__",
            *_ENCODER_LAYER, *_LAYER_NORM, "Tensor.mean", *DENSE,
        ),
        hand_on=("Tensor.astype",),
    ),
    "jitted": Case(
        _case(lambda: Jitted(ast=True, captured=True)),
        ("Cell.fc.Dense", "Cell.gate.CompiledGate", "Cell.head.Dense"),
        (
            *DENSE, "Jit.squash", "Jit.CompiledGate",
            "Functional.exp", "Tensor.__add__", "Functional.sigmoid", "Tensor.__sub__", *DENSE,
        ),
        plain=_case(lambda: Jitted(ast=False, captured=False)),
        uncaptured=_case(lambda: Jitted(ast=True, captured=False)),
        hidden=("gate.fc",),
    ),
    "looped": Case(
        _case(Looped, (2, 3, 4)),
        (
            *("Cell.step.input.Dense", "Cell.step.state.Dense", "Cell.step.Step") * 3,
            *("Cell.nest.fc.Dense",) * 3, *("Cell.nest.Nest",) * 3, "Cell.head.Dense",
        ),
        (
            "Functional.ones", *_STEP * 3, *(*DENSE, "Functional.tanh") * 3, "Tensor.__mul__", "Tensor.__mul__",
            *DENSE,
        ),
    ),
    "shared": Case(
        _case(Shared),
        (
            "Cell.encode.Dense", "Cell.encode.Dense", "Cell.tail.0.ReLU", "Cell.encode.Dense",
            "Cell.tail.SequentialCell", "Cell.head.Dense",
        ),
        (*DENSE, "Tensor.__mul__", "Functional.exp", *DENSE, "Functional.relu", *_RELU, *DENSE, *DENSE),
    ),
    "recomputed": Case(
        _case(lambda: Recomputed(again=True)),
        (
            "Cell.fc.Dense", "Cell.block.0.Dense", "Cell.block.1.ReLU", "Cell.block.SequentialCell",
            "Cell.gate.fc.Dense", "Cell.gate.Gate", "Cell.head.Dense",
        ),
        (*DENSE, *DENSE, *_RELU, *DENSE, "Functional.sigmoid", "Tensor.__mul__", *DENSE),
        # Backward comes to the later first. A Cell that is recomputed is not called again itself: its construct is.
        again=(
            "Primitive.matmul.MatMul.2", "Primitive.bias_add.BiasAdd.2", "Cell.gate.fc.Dense.0",
            "Functional.sigmoid.0", "Tensor.__mul__.0",
            "Primitive.matmul.MatMul.1", "Primitive.bias_add.BiasAdd.1", "Cell.block.0.Dense.0",
            "Primitive.relu.ReLU.0", "Cell.block.1.ReLU.0",
        ),
        plain=_case(lambda: Recomputed(again=False)),
    ),
    "dropped": Case(
        _case(Dropped),
        ("Cell.fc.Dense", "Cell.dropout.Dropout", "Cell.head.Dense"),
        (*DENSE, "Primitive.dropout.Dropout", *DENSE),
    ),
    "keywords": Case(
        _case(Keywords),
        ("Cell.affine.fc.Dense", "Cell.affine.Affine", "Cell.head.Dense"),
        (
            "Functional.softmax", *DENSE, "Functional.pow", "Tensor.__mul__", "Functional.split", "Functional.concat",
            *DENSE,
        ),
    ),
    "tokens": Case(
        _case(Tokens),
        ("Cell.fc.Dense", "Cell.head.Dense", "Cell.Tokens"),
        (*DENSE, "Functional.concat", "Tensor.__add__", "Functional.tanh", *DENSE, "Tensor.__getitem__"),
    ),
    "containers": Case(
        _case(Containers),
        (
            "Cell.parts.fork.left.Dense", "Cell.parts.fork.right.Dense", "Cell.parts.fork.Fork", "Cell.parts.join.Join",
            "Cell.rows.0.0.Dense", "Cell.rows.0.1.ReLU", "Cell.rows.0.SequentialCell", "Cell.rows.1.Tanh",
            "Cell.head.Dense",
        ),
        (
            *DENSE, "Functional.tanh", *DENSE, "Tensor.__mul__", "Tensor.__mul__", "Tensor.__add__",
            *DENSE, *_RELU, "Primitive.tanh.Tanh", *DENSE,
        ),
    ),
}  # fmt: skip

CASES["recomputed_unentered"] = replace(
    CASES["recomputed"],
    make=_case(lambda: Recomputed(again=True, use_reentrant=False, early_stop=False)),
    gradients_again=False,
)
