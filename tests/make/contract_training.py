"""One net, trained a step at a time with each framework: ``contract_training.py FRAMEWORK WAY FOLDER``.

FRAMEWORK is mindspore, pytorch or msadapter; for the last ``torch`` is PyTorch's interface on MindSpore. WAY is how
gradients are taken: ``value_and_grad``, ``grad`` or ``backward``. A step is dumped at each level into ``FOLDER/LEVEL``,
a write in place into ``FOLDER/in_place``. The batch, and loss and gradients of every step, of one before and of one
after without a debugger, go to ``FOLDER/steps.npz``, everything else to ``FOLDER/said.json``.
"""

import importlib
import json
import random
import sys
from pathlib import Path

import numpy as np

FRAMEWORK, WAY, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
ON_MINDSPORE = FRAMEWORK != "pytorch"
if ON_MINDSPORE:
    import mindspore

    mindspore.runtime.launch_blocking()
    if FRAMEWORK == "msadapter" and WAY == "backward":
        import tape  # noqa: F401
if FRAMEWORK == "mindspore":
    from mindspore import Parameter, Tensor, nn, ops
    from mindspore.nn import Cell as Module

    Linear, tensor, calls, functions, without_bias = nn.Dense, Tensor, ops, ops, {"has_bias": False}
    named_scale = {"name": "scale"}
else:
    import torch
    from torch.nn import Linear, Module, Parameter, functional

    tensor, calls, functions, without_bias, named_scale = torch.tensor, torch, functional, {"bias": False}, {}

msprobe = importlib.import_module("msprobe_ms" if ON_MINDSPORE else "msprobe_ms.pytorch")


class Gate(Module):
    def __init__(self):
        super().__init__()
        self.inner = Linear(6, 6)

    def forward(self, x, *, scale):
        return calls.sigmoid(self.inner(x)) * scale

    construct = forward


class Net(Module):
    def __init__(self):
        super().__init__()
        self.first = Linear(8, 6)
        self.shared = Linear(6, 6)
        self.gate = Gate()
        self.last = Linear(6, 3, **without_bias)
        self.scale = Parameter(tensor(np.ones(3, np.float32)), **named_scale)

    def forward(self, x):
        y = functions.relu(self.first(x))
        y = self.shared(y) + self.shared(y * 0.5)
        y = y + self.gate(y, scale=2.0)  # mindtorch 0.5.1 loses the gradients of a difference
        return self.last(y) * self.scale

    construct = forward


def fill(module):
    for child in module.cells() if FRAMEWORK == "mindspore" else module.children():
        fill(child)
    for name, parameter in list((module._params if FRAMEWORK == "mindspore" else module._parameters).items()):
        if parameter is not None:
            values = generator.standard_normal(tuple(parameter.shape)).astype(np.float32)
            if FRAMEWORK == "mindspore":
                parameter.set_data(tensor(values))
            else:
                setattr(module, name, Parameter(tensor(values)))


generator = np.random.default_rng(7)
net = Net()
fill(net)
batch = generator.standard_normal((5, 8)).astype(np.float32)


def loss_of(x):
    return (net(x) ** 2).mean()


def step():
    x, weights = tensor(batch), tuple(net.trainable_params() if FRAMEWORK == "mindspore" else net.parameters())
    if WAY == "value_and_grad":
        loss, (of_x, of_weights) = mindspore.value_and_grad(loss_of, 0, weights)(x)
        return [value(loss), value(of_x), *map(value, of_weights)]
    if WAY == "grad":
        of_x, of_weights = mindspore.grad(loss_of, 0, weights)(x)
        return [value(of_x), *map(value, of_weights)]
    x.requires_grad = True
    for weight in weights:
        weight.grad = None
    loss = loss_of(x)
    loss.backward()
    return [value(loss), value(x.grad), *(value(weight.grad) for weight in weights)]


def value(one):
    return np.array(one.asnumpy() if ON_MINDSPORE else one.detach().numpy())


def attributes():
    """Everything that recording could leave something on; parameters stand for themselves, not for their gradients."""
    named = net.cells_and_names() if FRAMEWORK == "mindspore" else net.named_modules()
    tensors = mindspore.Tensor if ON_MINDSPORE else torch.Tensor
    holders = {"calls": calls, "functions": functions, "Tensor": tensors, "Module": Module}
    found = {}
    for name, holder in [*holders.items(), *((f"net.{name}", module) for name, module in named)]:
        for key, held in vars(holder).items():
            if key != "__slotnames__":  # Python's own note of how to pickle
                # MindSpore makes some of its tables when they are first looked into.
                empty = held is None or held == {}
                found[f"{name}.{key}"] = None if empty else (id(held), list(held) if isinstance(held, dict) else None)
    return found


def drawn():
    """What comes of every generator after ``seed_all``."""
    msprobe.seed_all(7)
    return {"framework": value(calls.rand(3)).tolist(), "numpy": np.random.random(), "python": random.random()}


said = {}
steps = {"before": step()}
before = attributes()
for level in ("L0", "L1", "mix"):
    debugger = msprobe.PrecisionDebugger(task="tensor", level=level, dump_path=FOLDER / level)
    debugger.start(net)
    said[level] = sum(before.get(key) != held for key, held in attributes().items())
    steps[level] = step()
    debugger.stop()
    debugger.step()
after = attributes()
steps["after"] = step()
said["changed"] = sorted(key for key in before | after if before.get(key) != after.get(key))

written = tensor(batch) * 2
debugger = msprobe.PrecisionDebugger(task="tensor", level="L1", dump_path=FOLDER / "in_place")
debugger.start()
written[0] = 3.0
debugger.stop()
debugger.step()

said["drawn"] = [drawn(), drawn()]
msprobe.seed_all(7, rm_dropout=True)
said["dropout"] = value(functions.dropout(tensor(batch), 0.5, training=True)).tolist()
(FOLDER / "said.json").write_text(json.dumps(said))
named = {f"{name}.{number}": array for name, arrays in steps.items() for number, array in enumerate(arrays)}
np.savez(FOLDER / "steps.npz", batch=batch, **named)
