"""What optimizers update parameters from, under names that are the same in all frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

#: Names of an optimizer's state → the common ones, which are PyTorch's.
STATE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "moment1": "exp_avg",
        "moments1": "exp_avg",
        "moment2": "exp_avg_sq",
        "moments2": "exp_avg_sq",
        "vhat": "max_exp_avg_sq",
        "moments": "momentum_buffer",
        "momentum_buf": "momentum_buffer",
        "moment": "momentum_buffer",
        "ms": "square_avg",
        "mean_square": "square_avg",
        "mg": "grad_avg",
    }
)
#: Settings of an optimizer that are recorded.
SETTINGS = ("lr", "weight_decay", "betas", "momentum", "dampening", "nesterov", "alpha", "rho", "eps", "amsgrad")


@dataclass(frozen=True, slots=True)
class ParameterUpdate:
    """The update of one parameter that is about to be made.

    ``given``  what it is computed from: ``parameter``, ``gradient``, tensors of the state, plain values of settings
    """

    parameter: Any
    given: Mapping[str, Any]


#: ``before(optimizer, updates)``: the updates are gathered when ``updates()`` is called, which it need not be; None
#: where a call that began has raised.
BeforeUpdates = Callable[[Any, Callable[[], Iterable[ParameterUpdate]] | None], None]
#: ``after(optimizer)``: they are made.
AfterUpdates = Callable[[Any], None]


def plain(value: Any) -> Any:
    """Return a setting as a plain value; None where it is none.

    A float that its tensor holds in float32 is the number that was meant, 0.1 and not 0.10000000149011612.
    """
    if isinstance(value, (list, tuple)):
        members = [plain(member) for member in value]
        return None if None in members else members
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    read = getattr(value, "item", None)
    if read is None or any(size != 1 for size in value.shape):
        return None
    number = read()
    return float(f"{number:.7g}") if isinstance(number, float) else number


def settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings among ``values`` that can be had as plain values."""
    found = {name: plain(values[name]) for name in SETTINGS if name in values}
    return {name: value for name, value in found.items() if value is not None}
