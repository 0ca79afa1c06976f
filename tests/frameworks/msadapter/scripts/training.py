"""One net in PyTorch's words, trained a step at a time on whatever ``torch`` is: PyTorch, or MindSpore below it.

``training.py FOLDER WAY LEVEL...`` takes gradients in the WAY ``value_and_grad``, ``grad`` or ``backward`` and dumps a
step at each LEVEL into ``FOLDER/LEVEL``. Loss and gradients of every step, and of one before and one after without a
debugger, go to ``FOLDER/steps.npz``; names of attributes that are not what they were, to ``FOLDER/changed.json``.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER, WAY, LEVELS = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
ON_MINDSPORE = "mindspore" in sys.modules
if ON_MINDSPORE:
    import mindspore

    from msprobe_ms import PrecisionDebugger

    if WAY == "backward":
        import tape  # noqa: F401
else:
    from msprobe_ms.pytorch import PrecisionDebugger


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x, *, scale):
        return torch.sigmoid(self.inner(x)) * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.shared = nn.Linear(6, 6)
        self.gate = Gate()
        self.last = nn.Linear(6, 3, bias=False)

    def forward(self, x):
        y = F.relu(self.first(x))
        y = self.shared(y) + self.shared(y * 0.5)
        y = y + self.gate(y, scale=2.0)  # mindtorch 0.5.1 loses the gradients of a difference
        return self.last(y)


def fill(module, random):
    for child in module.children():
        fill(child, random)
    for name, parameter in list(module._parameters.items()):
        if parameter is not None:
            values = random.standard_normal(tuple(parameter.shape)).astype(np.float32)
            setattr(module, name, nn.Parameter(torch.tensor(values)))


random = np.random.default_rng(7)
net = Net()
fill(net, random)
batch = random.standard_normal((5, 8)).astype(np.float32)


def loss_of(x):
    return (net(x) ** 2).mean()


def step():
    x = torch.tensor(batch)
    weights = tuple(net.parameters())
    if WAY == "value_and_grad":
        loss, (of_x, of_weights) = mindspore.value_and_grad(loss_of, grad_position=0, weights=weights)(x)
        return [value(loss), value(of_x), *map(value, of_weights)]
    if WAY == "grad":
        of_x, of_weights = mindspore.grad(loss_of, grad_position=0, weights=weights)(x)
        return [value(of_x), *map(value, of_weights)]
    x.requires_grad = True
    for weight in weights:
        weight.grad = None
    loss = loss_of(x)
    loss.backward()
    return [value(loss), value(x.grad), *(value(weight.grad) for weight in weights)]


def value(tensor):
    return np.array(tensor.asnumpy() if ON_MINDSPORE else tensor.detach().numpy())


def attributes():
    """Everything that recording could leave something on; parameters stand for themselves, not for their gradients."""
    found = {}
    holders = {"torch": torch, "functional": F, "Tensor": torch.Tensor, "Module": nn.Module}
    for name, module in [*holders.items(), *((f"net.{name}", module) for name, module in net.named_modules())]:
        for key, held in vars(module).items():
            if key != "__slotnames__":  # Python's own note of how to pickle
                found[f"{name}.{key}"] = (id(held), list(held) if isinstance(held, dict) else None)
    return found


steps = {"before": step()}
before = attributes()
for level in LEVELS:
    debugger = PrecisionDebugger(task="tensor", level=level, dump_path=FOLDER / level)
    debugger.start(net)
    steps[level] = step()
    debugger.stop()
    debugger.step()
after = attributes()
steps["after"] = step()
changed = sorted(key for key in before | after if before.get(key) != after.get(key))
(FOLDER / "changed.json").write_text(json.dumps(changed))
named = {f"{name}.{number}": array for name, arrays in steps.items() for number, array in enumerate(arrays)}
np.savez(FOLDER / "steps.npz", **named)
