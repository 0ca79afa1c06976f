"""Where the modules of this folder put their functions, by the names that dumps have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msprobe_ms.support.translation import tr

Function = TypeVar("Function", bound=Callable[..., Any])

#: ``{Prefix}.{api}`` → the function that computes the same with torch.
TWINS: dict[str, Callable[..., Any]] = {}


def twin(*names: str) -> Callable[[Function], Function]:
    """Make a function the twin of the MindSpore APIs of these names, ``Functional.sum``, whose signatures it has."""

    def register(function: Function) -> Function:
        for name in names:
            if name in TWINS:
                raise ValueError(tr("{name} has two twins", name=name))
            TWINS[name] = function
        return function

    return register
