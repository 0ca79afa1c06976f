"""What a debugger is given: how it is checked and kept."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from msprobe_ms.config.values import suggestion

#: Arguments of other debuggers of the family, and where their matter goes here.
_ELSEWHERE = {
    "model": "the network goes to start(model)",
    "token_range": "it goes to start(model, token_range)",
    "rank_id": "it goes to start(model, rank_id=…)",
    "config": "the file is config_path",
}


def unknown_arguments(unknown: Iterable[str]) -> str:
    """What to say of arguments that ``PrecisionDebugger`` does not know."""
    accepted = ("config_path", "task", "dump_path", "level", "step")
    lines = []
    for name in unknown:
        hint = _ELSEWHERE.get(name, "every other key goes into the file that config_path names")
        lines.append(f"PrecisionDebugger: {name}: unknown argument{suggestion(name, accepted)}; {hint}")
    return "\n".join([*lines, f"accepted are {', '.join(accepted)}"])


def no_model() -> None:
    """What stands for a network where none was given."""
    return None


def weakly(model: Any) -> Callable[[], Any]:
    """Gives ``model`` (or the list of models) back without keeping it alive; None once it is gone."""
    if model is None:
        return no_model
    if not isinstance(model, (list, tuple)):
        return weakref.ref(model)
    references = [weakref.ref(each) for each in model]

    def give() -> Any:
        models = [reference() for reference in references]
        return None if any(each is None for each in models) else models

    return give


def is_range(value: Any) -> bool:
    """Whether ``value`` is ``[first, last]``, two integers from 0 up in this order."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return all(isinstance(end, int) and not isinstance(end, bool) for end in value) and 0 <= value[0] <= value[1]
