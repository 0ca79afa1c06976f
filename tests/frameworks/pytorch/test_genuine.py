"""What users' tensor classes, and methods set on a tensor, have in the place of PyTorch's own: none of it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import write_config
from repository import PACKAGE
from torch import nn

from msprobe_ms.pytorch import PrecisionDebugger

#: Attributes and methods that recording asks a tensor of PyTorch's own class for.
ATTRIBUTES = (
    "shape",
    "dtype",
    "device",
    "_base",
    "layout",
    "is_nested",
    "is_cpu",
    "is_quantized",
    "output_nr",
    "nbytes",
)
METHODS = (
    "untyped_storage",
    "detach",
    "stride",
    "numel",
    "size",
    "is_contiguous",
    "data_ptr",
    "cpu",
    "is_neg",
    "clone",
)
#: What a hook on a tensor needs.
OF_GRADIENTS = ("requires_grad", "grad_fn")


def _for_us(method: Any) -> Any:
    """``method``, which ends the process when this package calls it."""

    def of_the_user(self: Any, *args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
            raise SystemExit("code of the user ran")
        return method(self, *args, **kwargs)

    return of_the_user


def _hostile(attributes: tuple[str, ...]) -> type:
    own = {name: property(_for_us(getattr(torch.Tensor, name).__get__)) for name in attributes}
    return type("Hostile", (torch.Tensor,), own | {name: _for_us(getattr(torch.Tensor, name)) for name in METHODS})


def _recorded(dump_path: Path, make: Any, task: str) -> tuple[dict[str, Any], torch.Tensor]:
    """The entries of a step whose module takes what ``make`` makes of a tensor, and the gradient behind it."""
    net, source = nn.Sequential(nn.Linear(4, 4)), torch.arange(8.0).reshape(2, 4).requires_grad_()
    debugger = PrecisionDebugger(write_config(dump_path, task=task, level="mix"))
    debugger.start(net)
    net(make(source * 2)).sum().backward()
    debugger.stop()
    debugger.step()
    (folder,) = (dump_path / "step0").iterdir()
    assert source.grad is not None
    return json.loads((folder / "dump.json").read_text())["data"], source.grad


def _with_methods(tensor: torch.Tensor) -> torch.Tensor:
    for name in METHODS:
        setattr(tensor, name, _for_us(getattr(torch.Tensor, name)).__get__(tensor))
    return tensor


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize(
    ("make", "watched"),
    [
        (lambda tensor: tensor.as_subclass(_hostile(ATTRIBUTES)), True),
        (lambda tensor: tensor.as_subclass(_hostile((*ATTRIBUTES, *OF_GRADIENTS))), False),
        (_with_methods, True),
    ],
    ids=["class", "class that has hooks wrong", "methods of one tensor"],
)
def test_no_code_of_the_user_runs(make: Any, watched: bool, task: str, dump_path: Path) -> None:
    entries, gradient = _recorded(dump_path, make, task)
    leaf = entries["Module.0.Linear.forward.0"]["input_args"][0]
    assert (leaf["type"], leaf["shape"], leaf["Max"], leaf["requires_grad"]) == ("torch.Tensor", [2, 4], 14.0, True)
    assert ("data_name" in leaf) == (task == "tensor")
    assert gradient.shape == (2, 4) and bool(gradient.any())
    assert ("Module.0.Linear.backward.0" in entries) >= watched
