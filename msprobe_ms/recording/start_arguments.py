"""What a script gives to ``start``, checked."""

from __future__ import annotations

from collections.abc import Container, Sequence, Set
from typing import Any

from msprobe_ms.config.values import is_range
from msprobe_ms.config.vocabulary import MODULE_LEVELS
from msprobe_ms.frameworks import whose_module
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

#: Calls of a model: the first and the last of them, or each by itself.
TokenRange = Sequence[int] | Set[int]


def tokens_of(token_range: object) -> Container[int] | None:
    """Return the calls that ``[first, last]``, a range or a set of numbers stands for; None for anything else."""
    if isinstance(token_range, (range, Set)):
        numbers = all(type(number) is int and number >= 0 for number in token_range)
        return token_range if numbers and token_range else None
    if isinstance(token_range, (list, tuple)) and is_range(token_range):
        return range(token_range[0], token_range[1] + 1)
    return None


def check_start(
    framework: Framework, level: str, model: Any, token_range: TokenRange | None, rank_id: int | None
) -> None:
    """Raise UsageError for arguments with which ``start`` cannot work at this ``level``."""
    models = check_models(framework, "start", model)
    if not models and level in MODULE_LEVELS:
        raise UsageError(tr("start: level {level} records modules and needs the network: start(model)", level=level))
    if token_range is not None and not (models and tokens_of(token_range) is not None):
        raise UsageError(
            tr(
                "start: token_range {token_range} is not accepted; give [first, last] and a model",
                token_range=repr(token_range),
            )
        )
    if rank_id is not None and (not isinstance(rank_id, int) or rank_id < 0):
        raise UsageError(
            tr("start: rank_id {rank_id} is not accepted; give an integer from 0 up", rank_id=repr(rank_id))
        )


def check_models(framework: Framework, where: str, model: Any) -> Sequence[Any]:
    """Return the modules that ``model`` is: one, several, or none. Raises UsageError for what is no module."""
    several = isinstance(model, (list, tuple))
    models = model if several else [] if model is None else [model]
    for index, each in enumerate(models):
        if not framework.is_module(each):
            raise UsageError(_no_module(framework, where, f"model[{index}]" if several else "model", each))
    return models


def _no_module(framework: Framework, where: str, name: str, value: object) -> str:
    other_name = type(value).__name__
    if other := whose_module(value):
        return tr(
            "{where}: {name} is a {other_name}, a network of {other}: import PrecisionDebugger from {module}",
            where=where, name=name, other_name=other_name, other=other[0], module=other[1],
        )  # fmt: skip
    return tr(
        "{where}: {name} is a {other_name}; give a {module_type} or a list of them",
        where=where, name=name, other_name=other_name, module_type=framework.module_type,
    )  # fmt: skip
