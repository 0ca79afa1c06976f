"""What a script gives to ``start``, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msprobe_ms.config.values import is_range
from msprobe_ms.config.vocabulary import MODULE_LEVELS
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.support.errors import UsageError


def check_start(
    framework: Framework, level: str, model: Any, token_range: Sequence[int] | None, rank_id: int | None
) -> None:
    """Raise UsageError for arguments with which ``start`` cannot work at this ``level``."""
    models = check_models(framework, "start", model)
    if not models and level in MODULE_LEVELS:
        raise UsageError(f"start: level {level} records modules and needs the network: start(model)")
    if token_range is not None and not (models and is_range(token_range)):
        raise UsageError(f"start: token_range {token_range!r} is not accepted; give [first, last] and a model")
    if rank_id is not None and (not isinstance(rank_id, int) or rank_id < 0):
        raise UsageError(f"start: rank_id {rank_id!r} is not accepted; give an integer from 0 up")


def check_models(framework: Framework, where: str, model: Any) -> Sequence[Any]:
    """Return the modules that ``model`` is: one, several, or none. Raises UsageError for what is no module."""
    several = isinstance(model, (list, tuple))
    models = model if several else [] if model is None else [model]
    for index, each in enumerate(models):
        if not framework.is_module(each):
            name = f"model[{index}]" if several else "model"
            raise UsageError(
                f"{where}: {name} is a {type(each).__name__}; give a {framework.module_type} or a list of them"
            )
    return models
