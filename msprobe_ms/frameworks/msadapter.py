"""MSAdapter and its kin mindtorch: PyTorch code that runs on MindSpore. Modules are torch's, tensors MindSpore's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mindspore import Tensor

from msprobe_ms.arrays.one_pass import Places
from msprobe_ms.dump.dialects import MINDTORCH
from msprobe_ms.frameworks.graph_observer import GraphTaps, Tapped
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.frameworks.interface.gradients import OnRoots
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.frameworks.mindspore.repeating import MSAdapterRepeater
from msprobe_ms.frameworks.own_hooks import Registered, telling
from msprobe_ms.frameworks.repeating import Repeater
from msprobe_ms.frameworks.torch_modules import TorchModules
from msprobe_ms.support.files import DEFAULT, Permissions
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr

#: MindSpore's own tensor class, below the Python one whose attributes the provider replaces.
_NATIVE = next(kind for kind in reversed(Tensor.__mro__) if "register_hook" in vars(kind))

#: How MindSpore begins the names of dtypes: ``Float32`` for ``mindspore.float32``, which some providers print.
_DTYPE_HEADS = {"bf": "BF", "bo": "Bo", "co": "Co", "fl": "Fl", "in": "In", "ui": "UI"}


def is_in_use() -> bool:
    """Whether ``torch`` of this process is MSAdapter's: its tensors are MindSpore's. Imports nothing."""
    make = getattr(sys.modules.get("torch"), "tensor", None)
    return make is not None and isinstance(make(0.0), Tensor)


class MSAdapter(TorchModules, MindSpore):
    """What the package needs to know of PyTorch code on MindSpore. To be made only where `is_in_use`."""

    dialect = MINDTORCH
    api_lists = (*TorchModules.api_lists, Path(__file__).with_name("msadapter_apis.yaml"))
    torch_plumbing = (*TorchModules.torch_plumbing, "ops/", "executor.py")
    #: Modules hold no operators here, and what the provider's own functions call is its inside.
    operators_left_out = None
    finds_early_imports = False

    no_graph_taps = tr("MSAdapter's modules run in dynamic graphs")

    def graph_taps(self, tapped: Tapped, folder: Path, permissions: Permissions = DEFAULT) -> GraphTaps | None:
        return None

    def __init__(self) -> None:
        super().__init__(sys.modules["torch"])
        # The provider may hide MindSpore's attribute behind one of its own, which says nothing of computed tensors.
        self._in_graph = vars(_NATIVE)["_requires_grad"].__get__ if "_requires_grad" in vars(_NATIVE) else None

    # -- tensors ---------------------------------------------------------------------------------------------------

    def plain(self, tensor: Any) -> Any:
        return tensor  # the provider's own classes, and all that they tell, are made in this way

    def dtype_text(self, tensor: Any) -> str:
        return _dtype_text(tensor.dtype)

    def places(self) -> Places | None:
        places = super().places()
        return places and places._replace(requires_grad=self.requires_grad)

    def requires_grad(self, tensor: Any) -> bool:
        if self._in_graph is None or isinstance(tensor, self._torch.nn.Parameter):
            return bool(tensor.requires_grad)
        return bool(self._in_graph(tensor))

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        if issubclass(type(value), self._torch.dtype):
            return {"type": "torch.dtype", "value": _dtype_text(value)}
        return super().special_leaf(value)

    # -- gradients -------------------------------------------------------------------------------------------------

    def _takes_gradient(self, tensor: Any) -> bool:
        return self.requires_grad(tensor)

    def hook_parameter(self, parameter: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        return _native_hook(parameter, on_gradient) if parameter.requires_grad else None

    def watch_gradient(self, tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks | None:
        return _native_hook(tensor, on_gradient)

    torch_gradients = (*TorchModules.torch_gradients, ("Tensor", "backward"))

    def gradient_calls(self, on_roots: OnRoots) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        return [*super().gradient_calls(on_roots), *MindSpore.gradient_calls(self, on_roots)]

    def repeater(self) -> Repeater:
        return MSAdapterRepeater()

    # -- APIs ------------------------------------------------------------------------------------------------------

    def operator_classes(self) -> Iterable[type]:
        return ()

    def operators(self, module: Any) -> Iterable[tuple[str, Any]]:
        return ()

    def namespaces(self) -> Sequence[Namespace]:
        npu = sys.modules.get("torch_npu")
        return [*super().namespaces(), *([] if npu is None else [Namespace("torch_npu", "NPU", npu)])]


def _native_hook(tensor: Any, on_gradient: Callable[[Any], None]) -> Hooks:
    """Return what hooks a tensor; providers replace ``Tensor.register_hook``, one of them by what cannot work."""
    return Registered((partial(_NATIVE.register_hook, tensor), telling(on_gradient)), take_off=_NATIVE.remove_hook)


def _dtype_text(dtype: Any) -> str:
    text = str(dtype).removeprefix("mindspore.").rstrip("_")
    return _DTYPE_HEADS.get(text[:2], text[:2]) + text[2:]
