"""Calls of MindSpore's optimizers, those of ``nn``, ``experimental.optim`` and ``mint.optim``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mindspore import ParameterTuple, Tensor, nn
from mindspore.experimental.optim import Optimizer

from msprobe_ms.frameworks.optimizers import STATE_NAMES, AfterUpdates, BeforeUpdates, ParameterUpdate, settings
from msprobe_ms.support.patching import Patch, PatchHooks

#: What a class calls ``accum``: a momentum; else it is a sum of squares.
_WITH_MOMENTUM = ("SGD",)


class OptimizerWatch(PatchHooks):
    """Tells of optimizers' calls."""

    def __init__(self, before: BeforeUpdates, after: AfterUpdates) -> None:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def told(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
                try:
                    gradients = args[0] if args else kwargs.get("gradients", kwargs.get("grads"))
                    before(optimizer, functools.partial(updates_of, optimizer, gradients))
                except (MemoryError, RecursionError):  # of ours: the rest is guarded itself
                    pass
                try:
                    result = original(optimizer, *args, **kwargs)
                except BaseException:
                    before(optimizer, None)
                    raise
                try:  # noqa: SIM105 (to make a context may fail as well)
                    after(optimizer)
                except (MemoryError, RecursionError):
                    pass
                return result

            return told

        super().__init__(Patch(holder, "__call__", wrap) for holder in (nn.Optimizer, Optimizer))


def parameters_of(value: Any) -> dict[str, Any] | None:
    """Return an optimizer's parameters by name; None of what is no optimizer."""
    if not isinstance(value, (nn.Optimizer, Optimizer)):
        return None
    return {parameter.name: parameter for parameter in value.parameters}


def updates_of(optimizer: Any, gradients: Any) -> Iterator[ParameterUpdate]:
    """Yield the updates that an optimizer is about to make of these gradients."""
    if not isinstance(gradients, (list, tuple)) or len(gradients) != len(optimizer.parameters):
        return
    state = dict(_state(optimizer))
    grouped = _group_settings(optimizer) if isinstance(optimizer, Optimizer) else None
    for place, (parameter, gradient) in enumerate(zip(optimizer.parameters, gradients, strict=True)):
        if isinstance(gradient, Tensor):
            given = {name: tensors[place] for name, tensors in state.items()}
            chosen = _settings(optimizer, place) if grouped is None else grouped[place]
            yield ParameterUpdate(parameter, {"parameter": parameter, "gradient": gradient, **given, **chosen})


def _state(optimizer: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Tensors that the optimizer keeps for each parameter, by their common names."""
    for name, kept in vars(optimizer).items():
        if not isinstance(kept, ParameterTuple) or kept is optimizer.parameters or name in ("params", "_parameters"):
            continue
        if len(kept) != len(optimizer.parameters) or name in ("parameters", "learning_rate", "stat"):
            continue
        if name == "accum":
            yield ("momentum_buffer" if type(optimizer).__name__ in _WITH_MOMENTUM else "sum"), kept
        else:
            yield STATE_NAMES.get(name, name), kept


def _group_settings(optimizer: Any) -> list[dict[str, Any]]:
    return [settings(group) for group in optimizer.param_groups for _ in group["params"]]


def _settings(optimizer: Any, place: int) -> dict[str, Any]:
    """Settings of an optimizer of ``nn`` for the parameter at ``place``; schedules are none that can be had."""
    values = {name: getattr(optimizer, name, None) for name in ("momentum", "dampening", "nesterov", "rho")}
    values["eps"] = getattr(optimizer, "eps", getattr(optimizer, "epsilon", None))
    values["alpha"] = getattr(optimizer, "decay", None)
    if hasattr(optimizer, "beta1") and hasattr(optimizer, "beta2"):
        values["betas"] = [optimizer.beta1, optimizer.beta2]
    for name, key in (("learning_rate", "lr"), ("weight_decay", "weight_decay")):
        value = getattr(optimizer, name, None)
        value = value[place] if isinstance(value, (tuple, list)) else value
        values[key] = value if isinstance(value, (int, float, Tensor)) else None
    flags = getattr(optimizer, "decay_flags", None)
    if isinstance(flags, tuple) and not flags[place]:
        values["weight_decay"] = 0.0
    plain = (int, float, Tensor, list)
    return settings({name: value for name, value in values.items() if isinstance(value, plain)})
