"""Write dumps of one small net with one fault each: ``python proof_dumps.py FRAMEWORK FOLDER``.

The net is linear → LayerNorm → GELU → softmax, which is subtracted from what it was made of. Golden dumps are of
PyTorch.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

#: Faults of the MindSpore net, and the levels and tasks that each is recorded at.
FAULTS = {
    "none": ("L0", "mix"),
    "epsilon": ("L0", "mix"),
    "weight": ("L0", "mix"),
    "axis": ("L0", "mix"),
    "gelu": ("L0", "mix"),
    "exchanged": ("mix",),
}
SAMPLES = Path(__file__).parents[2] / "samples"
TASKS = ("tensor", "statistics")
_WIDTH = 8

#: Faults of the backward pass of the PyTorch net: dumps ``pytorch_{fault}_{level}_tensor``.
BACKWARD_FAULTS = {
    "none": ("L0", "mix"),
    "loss": ("L0", "mix"),  # scaled, as where one side scales its loss
    "hook": ("L0",),  # doubles what arrives at the norm
    "operator": ("L0", "mix"),  # GELU hands on twice its gradient
    "weight": ("L0", "mix"),  # the gradient of the linear's weight is twice what it should be
    "saved": ("L0", "mix"),  # what the linear took in is changed before the backward pass
    "tied": ("L0",),  # another module has a share in the gradient of the linear's weight
}


def values() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    arrays = {
        "x": random.normal(size=(4, 6, _WIDTH)),
        "weight": random.normal(size=(_WIDTH, _WIDTH)) * 0.3,
        "gamma": random.normal(size=_WIDTH),
        "bias": random.normal(size=_WIDTH),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def of_mindspore(folder: Path) -> None:
    import mindspore
    from mindspore import Tensor, mint, nn

    from msprobe_ms import PrecisionDebugger

    given = values()

    class Net(nn.Cell):
        def __init__(self, fault: str) -> None:
            super().__init__()
            self.fault = fault
            self.fc = nn.Dense(_WIDTH, _WIDTH)
            self.norm = nn.LayerNorm((_WIDTH,), epsilon=1e-2 if fault == "epsilon" else 1e-5)
            self.act = nn.GELU(approximate=fault == "gelu")
            self.softmax = nn.Softmax(1 if fault == "axis" else -1)
            weight = given["weight"]
            self.fc.weight.set_data(Tensor(np.ascontiguousarray(weight.T) if fault == "weight" else weight))
            self.fc.bias.set_data(Tensor(given["bias"]))
            self.norm.gamma.set_data(Tensor(given["gamma"]))
            self.norm.beta.set_data(Tensor(given["bias"]))

        def construct(self, x: Any) -> Any:
            hidden = self.act(self.norm(self.fc(x)))
            shares = self.softmax(hidden)
            return mint.sub(shares, hidden) if self.fault == "exchanged" else mint.sub(hidden, shares)

    for fault, levels in FAULTS.items():
        for level in levels:
            for task in TASKS:
                net = Net(fault)
                step = mindspore.value_and_grad(lambda x, net=net: (net(x) ** 2).sum(), None, net.trainable_params())
                path = folder / f"{fault}_{level}_{task}"
                debugger = PrecisionDebugger(level=level, task=task, dump_path=path, step=[0])
                debugger.start(net)
                step(Tensor(given["x"]))
                debugger.stop()
                debugger.step()

    _demonstration(folder)


def _demonstration(folder: Path) -> None:
    """The run of ``make demo`` that has a mistake: one LayerNorm's epsilon."""
    import mindspore
    from mindspore import nn

    from msprobe_ms import PrecisionDebugger

    sys.path.insert(0, str(SAMPLES))
    from demo import batches
    from net_mindspore import Reverser, load

    net = load(Reverser(faulty_layer=1), dict(np.load(SAMPLES / "first_weights.npz")))
    loss = nn.CrossEntropyLoss()
    ids, expected = batches(1)[0]
    step = mindspore.value_and_grad(
        lambda ids, expected: loss(net(ids).reshape(-1, 32), expected.reshape(-1)), None, net.trainable_params()
    )
    debugger = PrecisionDebugger(task="statistics", level="L0", dump_path=folder / "demo", step=[0])
    debugger.start(net)
    step(ids, expected)
    debugger.stop()
    debugger.step()


def of_pytorch(folder: Path) -> None:
    import torch
    from torch import nn

    from msprobe_ms.pytorch import PrecisionDebugger

    given = {name: torch.tensor(array) for name, array in values().items()}

    class Twice(torch.autograd.Function):
        """The identity, whose gradient is twice what it should be."""

        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(_: Any, gradient: Any) -> Any:
            return 2 * gradient

    class Linear(nn.Linear):
        def forward(self, x: Any) -> Any:
            return nn.functional.linear(x, Twice.apply(self.weight), self.bias)

    class GELU(nn.GELU):
        def forward(self, x: Any) -> Any:
            return nn.functional.gelu(Twice.apply(x))

    class Net(nn.Module):
        def __init__(self, fault: str = "") -> None:
            super().__init__()
            self.fault = fault
            self.fc = (Linear if fault == "weight" else nn.Linear)(_WIDTH, _WIDTH)
            self.norm = nn.LayerNorm(_WIDTH, eps=1e-5)
            self.act = GELU() if fault == "operator" else nn.GELU()
            self.softmax = nn.Softmax(-1)
            with torch.no_grad():
                self.fc.weight.copy_(given["weight"])
                self.fc.bias.copy_(given["bias"])
                self.norm.weight.copy_(given["gamma"])
                self.norm.bias.copy_(given["bias"])

        def forward(self, x: Any) -> Any:
            inner = self.norm(self.fc(x))
            if self.fault == "saved":
                x.data.mul_(3)
            if self.fault == "hook":
                inner.register_hook(lambda gradient: 2 * gradient)
            hidden = self.act(inner)
            if self.fault == "tied":
                hidden = hidden + 0.1 * self.fc.weight.sum()
            return torch.sub(hidden, self.softmax(hidden))

    def recorded(name: str, level: str, task: str, fault: str = "") -> None:
        net = Net(fault)
        debugger = PrecisionDebugger(level=level, task=task, dump_path=folder / f"{name}_{level}_{task}", step=[0])
        debugger.start(net)
        ((1024 if fault == "loss" else 1) * (net(given["x"].clone()) ** 2).sum()).backward()
        debugger.stop()
        debugger.step()

    for level in ("L0", "mix"):
        for task in TASKS:
            recorded("golden", level, task)
    for fault, levels in BACKWARD_FAULTS.items():
        for level in levels:
            recorded(f"pytorch_{fault}", level, "tensor", fault)


if __name__ == "__main__":
    {"mindspore": of_mindspore, "pytorch": of_pytorch}[sys.argv[1]](Path(sys.argv[2]))
