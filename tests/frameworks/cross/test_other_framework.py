"""A debugger of one framework that is given a network of the other names the one to import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import pytest
import torch
from recording import write_config

from msprobe_ms.mindspore import PrecisionDebugger as MindSporeDebugger
from msprobe_ms.pytorch import PrecisionDebugger as PyTorchDebugger
from msprobe_ms.support.errors import UsageError


class Own(torch.nn.Linear):
    """Of a user."""


@pytest.mark.parametrize(
    ("debugger", "model", "what"),
    [
        (MindSporeDebugger, Own(1, 1), "a Own, a network of PyTorch: import PrecisionDebugger from msprobe_ms.pytorch"),
        (PyTorchDebugger, mindspore.nn.ReLU(),
         "a ReLU, a network of MindSpore: import PrecisionDebugger from msprobe_ms.mindspore"),
    ],
)  # fmt: skip
def test_a_network_of_the_other_framework(dump_path: Path, debugger: Any, model: Any, what: str) -> None:
    with pytest.raises(UsageError) as error:
        debugger(write_config(dump_path)).start(model)
    assert str(error.value) == f"start: model is {what}"
