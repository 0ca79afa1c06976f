"""Single APIs of MSAdapter and its kin mindtorch, run alone: PyTorch's names over MindSpore's tensors and gradients."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import mindspore

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.frameworks.mindspore.api_runner import MindSporeRunner
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.frameworks.msadapter import MSAdapter, is_in_use
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr


class MSAdapterRunner(MindSporeRunner):
    """Calls single APIs of the ``torch`` that MSAdapter provides."""

    def _make_framework(self) -> MindSpore:
        """Import torch, and demand that it is MSAdapter's. Raises UsageError."""
        importlib.import_module("torch")
        if not is_in_use():
            raise UsageError(
                tr("torch is PyTorch's own here: a dump of MSAdapter is checked where `import torch` gives MSAdapter's")
            )
        return MSAdapter()

    def __init__(self) -> None:
        super().__init__()
        self._torch = sys.modules["torch"]
        self.version = f"mindtorch {self._torch.__version__} on mindspore {mindspore.__version__}"

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self._torch.manual_seed(seed)

    def _dtype(self, name: str) -> Any:
        return getattr(self._torch, parse_dtype(name).name)
