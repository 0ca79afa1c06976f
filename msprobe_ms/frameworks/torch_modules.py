"""What is the same wherever PyTorch code runs, on PyTorch or on MindSpore through MSAdapter: modules and API names."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.clean_copies import CleanCopies
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.frameworks.interface.gradients import OnRoots
from msprobe_ms.frameworks.interface.modules import After, Before, Failed
from msprobe_ms.frameworks.optimizers import AfterUpdates, BeforeUpdates, ParameterUpdate, plain, settings
from msprobe_ms.frameworks.own_hooks import ModuleHook, OwnHook, Registered
from msprobe_ms.support.patching import Hooks

#: Sizes of a tensor; what has more is a tuple of numbers.
_MOST_SIZES = 64

#: Buffers of normalisations that each training step updates.
_RUNNING = ("running_mean", "running_var")


class _Nested(threading.local):
    value = False


class TorchModules(Framework):
    """The half of a framework that reads a ``torch`` package; tensors and gradients are the other half."""

    module_type = "torch.nn.Module"
    api_lists: tuple[Path, ...] = (Path(__file__).parent / "pytorch" / "apis.yaml",)
    #: Folders and files of the ``torch`` package that are plumbing; layers' own sources are not among them.
    torch_plumbing: tuple[str, ...] = (
        "_",
        "autograd/",
        "cuda/",
        "distributed/",
        "fx/",
        "jit/",
        "nn/functional.py",
        "nn/parallel/",
        "utils/",
    )

    def __init__(self, torch: Any) -> None:
        super().__init__()
        self._torch = torch
        module = torch.nn.Module
        source = os.path.abspath(inspect.getfile(module))  # <folder>/nn/modules/module.py
        folder = os.path.dirname(os.path.dirname(os.path.dirname(source)))
        self.machinery = (source, *self.machinery)
        self.plumbing = (*self.plumbing, *(f"{folder}/{part}" for part in self.torch_plumbing))
        self._copies = CleanCopies(module)
        # Hooks are told of calls that raise, too; not in the oldest releases.
        options = inspect.signature(module.register_forward_hook).parameters
        self._hook_options = {"with_kwargs": True} | ({"always_call": True} if "always_call" in options else {})

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        kind, torch = type(value), self._torch
        if issubclass(kind, torch.Size) and len(value) <= _MOST_SIZES:
            return {"type": "torch.Size", "value": [int(size) for size in value]}
        if issubclass(kind, torch.dtype):
            return {"type": "torch.dtype", "value": str(value)}
        if issubclass(kind, torch.device):
            return {"type": "torch.device", "value": str(value)}
        return None

    def is_module(self, value: Any) -> bool:
        return isinstance(value, self._torch.nn.Module)

    def layer_call(self) -> tuple[Any, str]:
        return self._torch.nn.Module, "__call__"

    def is_layer(self, module: Any) -> bool:
        return type(module).__module__.startswith(f"{self._torch.nn.__name__}.") and not module._modules

    def named_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        return iter(model.named_modules())

    def parameters(self, module: Any) -> Iterable[tuple[str, Any]]:
        """Return the module's own parameters and, as MindSpore has them among its parameters, running statistics."""
        found = [(name, parameter) for name, parameter in module._parameters.items() if parameter is not None]
        buffers = module._buffers
        found += [(name, buffers[name]) for name in _RUNNING if buffers.get(name) is not None]
        return found

    def hook_module(self, module: Any, before: Before, after: After, failed: Failed) -> Sequence[Hooks]:
        put_before = functools.partial(module.register_forward_pre_hook, with_kwargs=True)
        put_after = functools.partial(module.register_forward_hook, **self._hook_options)
        return (
            self._copies.hold(),
            ModuleHook(OwnHook(module, before, failed), put_before),
            ModuleHook(OwnHook(module, after, failed), put_after),
        )

    def clean_copies(self) -> Hooks:
        return self._copies.hold()

    #: Attributes of ``torch`` that compute gradients of their first argument; not all are there everywhere.
    torch_gradients: tuple[tuple[str, str], ...] = (("autograd", "backward"), ("autograd", "grad"))

    def gradient_calls(self, on_roots: OnRoots) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        places = [(getattr(self._torch, holder, None), name) for holder, name in self.torch_gradients]
        nested = _Nested()

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def told(*args: Any, **kwargs: Any) -> Any:
                if nested.value:  # one of them calls another, or backward runs one again
                    return original(*args, **kwargs)
                try:
                    roots = args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))
                    on_roots(roots if isinstance(roots, (list, tuple)) else [roots])
                except Exception as error:
                    on_roots(error)
                nested.value = True
                try:
                    return original(*args, **kwargs)
                finally:
                    nested.value = False

            return told

        return [(holder, name, wrap) for holder, name in places if callable(getattr(holder, name, None))]

    def watch_optimizers(self, before: BeforeUpdates, after: AfterUpdates) -> Hooks | None:
        hooks = sys.modules.get(self._torch.optim.Optimizer.__module__)  # torch.optim hides it
        if hooks is None or not hasattr(hooks, "register_optimizer_step_pre_hook"):
            return None

        def begins(optimizer: Any, *_: Any) -> None:
            try:  # noqa: SIM105 (to make a context may fail as well)
                before(optimizer, functools.partial(self._updates_of, optimizer))
            except (MemoryError, RecursionError):  # of ours: the rest is guarded itself
                pass

        def ends(optimizer: Any, *_: Any) -> None:
            try:  # noqa: SIM105 (to make a context may fail as well)
                after(optimizer)
            except (MemoryError, RecursionError):
                pass

        return Registered(
            (hooks.register_optimizer_step_pre_hook, begins), (hooks.register_optimizer_step_post_hook, ends)
        )

    def optimizer_parameters(self, value: Any) -> Mapping[str, Any] | None:
        if not isinstance(value, self._torch.optim.Optimizer):
            return None
        named = (zip(group.get("param_names", ()), group["params"], strict=False) for group in value.param_groups)
        return {name: parameter for group in named for name, parameter in group}

    def main_gradient(self, parameter: Any) -> Any:
        # Megatron accumulates there, in float32.
        found = getattr(parameter, "main_grad", None)
        return found if self.is_tensor(found) else None

    def _updates_of(self, optimizer: Any) -> Iterator[ParameterUpdate]:
        """Yield the updates that an optimizer is about to make; a parameter without a gradient has none."""
        for group in optimizer.param_groups:
            chosen = settings(group)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = dict(optimizer.state.get(parameter, {}))
                    done = int(plain(state.pop("step", 0)) or 0)
                    kept = {name: value for name, value in state.items() if self.is_tensor(value)}
                    given = {"parameter": parameter, "gradient": parameter.grad, **kept, **chosen, "step": done}
                    yield ParameterUpdate(parameter, given)

    def group_ranks(self, group: Any) -> Sequence[int] | None:
        """Return the ranks of a process group's members in the whole job, of all where it is None.

        None where there are no groups yet.
        """
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return None
        if group is None:
            return range(distributed.get_world_size())
        return list(distributed.get_process_group_ranks(group))

    def namespaces(self) -> Sequence[Namespace]:
        torch = self._torch
        return [
            Namespace("torch", "Torch", torch),
            Namespace("torch.nn.functional", "Functional", torch.nn.functional),
            Namespace("torch.Tensor", "Tensor", torch.Tensor),
        ]
