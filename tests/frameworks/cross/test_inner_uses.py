"""A call that returns a tensor and uses it as well: its backward input is what comes from outside, as PyTorch's own
backward hooks have it; in MindSpore the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from recording import read_step, recording

from msprobe_ms.pytorch import record

X = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
W = np.random.default_rng(4).standard_normal((4, 4)).astype(np.float32)

#: What the loss takes of ``(y, w)``, and the gradients that this alone sends to y and to w.
LOSSES = {
    "unused": (lambda y, w: y.sum(), lambda w: None),
    "used": (lambda y, w: y.sum() + (w * w * 3).sum(), lambda w: 6 * w),
    "alone": (lambda y, w: (w * w).sum(), lambda w: 2 * w),
}


class TorchAttention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = torch.nn.Linear(4, 4, bias=False)
        with torch.no_grad():
            self.q.weight.copy_(torch.tensor(W))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.softmax(self.q(x) @ x.transpose(-1, -2), -1)
        return weights @ x, weights


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = TorchAttention()


class Attention(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Dense(4, 4, weight_init=Tensor(W), has_bias=False)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights = ops.softmax(ops.matmul(self.q(x), x.transpose(0, 2, 1)), -1)
        return ops.matmul(weights, x), weights


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_pytorch(dump_path: Path, loss: str, level: str) -> None:
    of, expected = LOSSES[loss]
    net, x = TorchNet(), torch.tensor(X, requires_grad=True)
    theirs: list[Any] = []
    bare = TorchNet()
    bare.attention.register_full_backward_hook(lambda module, inputs, outputs: theirs.append(outputs))
    of(*bare.attention(x)).backward()
    wanted = x.grad.clone()
    x.grad = None
    with record(net, level=level, task="tensor", dump_path=dump_path) as dump:
        y, w = net.attention(x)
        of(y, w).backward(retain_graph=True)
        of(y, w).backward()
    assert torch.equal(x.grad, 2 * wanted)
    entry = dump["Module.attention.TorchAttention.backward.0"]
    assert (
        repr(entry["input.1"]) == "nothing"
        if theirs[0][1] is None
        else np.allclose(entry["input.1"].numpy(), theirs[0][1].numpy(), rtol=1e-5, atol=1e-6)
    )
    assert theirs[0][1] is None or np.allclose(theirs[0][1].numpy(), expected(w.detach().numpy()))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_mindspore(ms: Any, dump_path: Path, loss: str, level: str) -> None:
    of, expected = LOSSES[loss]

    def gradient(net: nn.Cell) -> np.ndarray:
        return mindspore.grad(lambda x: of(*net.attention(x)))(Tensor(X)).asnumpy()

    wanted = gradient(Net())
    net = Net()
    with recording(net, dump_path, level=level, task="tensor"):
        assert gradient(net).tobytes() == wanted.tobytes()
    step = read_step(dump_path)
    _, of_weights = step.backward("Cell.attention.Attention")["input"]
    values = expected(net.attention(Tensor(X))[1].asnumpy())
    if values is None:
        assert of_weights is None
    else:
        np.testing.assert_allclose(step.array(of_weights), values, rtol=1e-5, atol=1e-6)


class Chain(nn.Cell):
    """Every state is made of the one before, and all are returned; the argument too."""

    def construct(self, x: Tensor) -> list[Tensor]:
        states = [x]
        for _ in range(3):
            states.append(ops.tanh(states[-1]))
        return states


class Chains(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.chain = Chain()


def test_every_state_of_a_chain(ms: Any, dump_path: Path) -> None:
    net = Chains()

    def loss(x: Tensor) -> Tensor:
        states = net.chain(x * 1)
        return sum((state * scale).sum() for scale, state in enumerate(states, 1))

    with recording(net, dump_path, level="L0", task="tensor"):
        mindspore.grad(loss)(Tensor(X))
    step = read_step(dump_path)
    gradients = step.backward("Cell.chain.Chain")["input"]
    for scale, gradient in enumerate(gradients, 1):
        np.testing.assert_allclose(step.array(gradient), np.full_like(X, scale), rtol=1e-5, atol=1e-6)


def test_multihead_attention_is_one_function(dump_path: Path) -> None:
    """As in dumps of msprobe; what it calls inside would shift the numbers of the same functions elsewhere."""
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    net = torch.nn.Sequential()
    net.add_module("attention", attention)
    x = torch.tensor(X, requires_grad=True)
    with record(net, level="mix", dump_path=dump_path) as dump:
        attention(x, x, x)[0].sum().backward()
    calls = [name for name in dump if ".forward" in name and not name.startswith("Tensor.transpose.")]
    assert calls == [
        "Functional.multi_head_attention_forward.0.forward",
        "Module.attention.MultiheadAttention.forward.0",
        "Tensor.sum.0.forward",
    ]
    assert repr(dump["Module.attention.MultiheadAttention.backward.0"]["input.1"]) == "nothing"


def test_what_the_tool_computes_is_not_recorded(dump_path: Path) -> None:
    net, x = TorchNet(), torch.tensor(X, requires_grad=True)
    with record(net, level="mix", dump_path=dump_path) as dump:
        LOSSES["used"][0](*net.attention(x)).backward()
    assert not [name for name in dump if "sub" in name or "abs" in name or ("max." in name and "softmax" not in name)]


class Branching(nn.Cell):
    """What comes of one of its branches nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.aside = nn.Dense(4, 2)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x + self.fc(x), self.aside(x)


class Branches(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([Branching() for _ in range(3)])

    def construct(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x, _ = layer(x)
        return x.sum()


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_branch_without_gradient_does_not_hold_its_layer_up(ms: Any, dump_path: Path, level: str) -> None:
    net = Branches()
    with recording(net, dump_path, level=level, task="tensor"):
        mindspore.value_and_grad(net, 0, net.trainable_params())(Tensor(X))
    step = read_step(dump_path)
    modules = [name for name in step.data if name.startswith("Cell.layers") and ".backward." in name]
    assert modules == [
        name for layer in "210" for name in (f"Cell.layers.{layer}.fc.Dense.backward.0",
                                             f"Cell.layers.{layer}.Branching.backward.0")
    ]  # fmt: skip
    whole = step.array(step.backward("Cell.layers.0.Branching")["output"][0])
    np.testing.assert_array_equal(whole, mindspore.grad(net)(Tensor(X)).asnumpy())


def test_the_same_in_pytorch(dump_path: Path) -> None:
    class Branching(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.aside = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + self.fc(x), self.aside(x)

    net = torch.nn.ModuleList([Branching() for _ in range(3)])
    x = torch.tensor(X, requires_grad=True)
    with record(net, level="L0", dump_path=dump_path) as dump:
        y = x
        for layer in net:
            y, _ = layer(y)
        y.sum().backward()
    modules = [name.split(".")[1:-2] for name in dump if ".backward." in name]
    assert modules == [part for layer in "210" for part in ([layer, "fc", "Linear"], [layer, "Branching"])]


class Layer(nn.Cell):
    """Hands its second argument on, as layers do with a bias that all of them add."""

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale

    def construct(self, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        return x + bias * self.scale, bias


class TorchLayer(torch.nn.Module):
    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + bias * self.scale, bias


@pytest.mark.parametrize("layer", [Layer, TorchLayer])
def test_what_is_handed_on_lacks_the_calls_own_use_alone(ms: Any, dump_path: Path, layer: Any) -> None:
    """To take off the uses in all layers before would take as many sums as there are pairs of layers."""
    layers = [layer(scale) for scale in (1, 2, 4)]

    def loss(x: Any) -> Any:
        bias = x * 1
        for each in layers:
            x, bias = each(x, bias)
        return x.sum()

    if layer is Layer:
        net = nn.CellList(layers)
        with recording(net, dump_path, level="L0", task="tensor"):
            mindspore.grad(loss)(Tensor(X))
    else:
        with record(torch.nn.ModuleList(layers), level="L0", task="tensor", dump_path=dump_path):
            loss(torch.tensor(X, requires_grad=True)).backward()
    step = read_step(dump_path)
    entries = [name for name in step.data if ".backward." in name]
    assert {name.split(".")[1]: step.data[name]["input"][1]["Max"] for name in entries} == {"0": 6, "1": 5, "2": 3}


class Overflows(nn.Cell):
    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * Tensor(np.array([1, 1000], np.float32))
        return ops.exp(y).sum(), y


class TorchOverflows(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * torch.tensor([1.0, 1000.0])
        return torch.exp(y).sum(), y


@pytest.mark.parametrize("kind", [Overflows, TorchOverflows])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_what_overflows_inside_makes_no_nan_outside(ms: Any, dump_path: Path, kind: Any) -> None:
    part, values = kind(), np.ones(2, np.float32)

    def loss(x: Any) -> Any:
        value, y = part(x * 1)
        return value + (y * 3).sum()

    if kind is Overflows:
        with recording(nn.CellList([part]), dump_path, level="L0"):
            mindspore.grad(loss)(Tensor(values))
    else:
        with record(torch.nn.ModuleList([part]), level="L0", dump_path=dump_path):
            loss(torch.tensor(values, requires_grad=True)).backward()
    step = read_step(dump_path)
    (entry,) = (name for name in step.data if ".backward." in name)
    figures = step.data[entry]["input"][1]
    assert (figures["Max"], figures["Min"]) == (pytest.approx(3), 0)
