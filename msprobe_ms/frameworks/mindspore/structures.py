"""How values made of lists and dictionaries are described and gone through by source that MindSpore's parser reads.

The inner functions here are never run by Python while a graph is compiled. MindSpore parses them, so they keep to what
it understands: no comprehensions over calls, no keyword-only cleverness, tuples built by addition. Conditions in them
are decided while a graph is compiled.
"""

# ruff: noqa: RUF005, SIM118  # the parser knows neither `(*members, member)` nor `in` a dictionary

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mindspore import Tensor
from mindspore.ops import functional as F

#: Containers nested deeper than this, the arguments of a call being one, are left alone.
DEEPEST = 6


class Structures(NamedTuple):
    """``describe(value)``, what `mindspore_taps.layout_of` reads, and ``watch(value, call, field, path)``."""

    describe: Callable[[Any], Any]
    watch: Callable[[Any, Any, str, Any], Any]


def structures(watch_tensor: Callable[[Any, Any, str, Any], Any]) -> Structures:
    """Both for the parser; ``watch`` gives back the value, each tensor in it as ``watch_tensor`` gives it."""

    def described(value: Any) -> Any:
        if isinstance(value, Tensor):
            if F.isconstant(value.shape):
                return ("tensor", value.dtype, value.shape)
            return ("tensor", value.dtype, None)
        if F.isconstant(value):
            return ("constant", value)
        return ("unknown",)

    def describer(member: Any) -> Any:
        def describe(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                members: Any = ()
                for index in range(len(value)):
                    members = members + (member(value[index]),)
                return ("list", members)
            if isinstance(value, dict):
                members = ()
                for key in value.keys():
                    members = members + ((key, member(value[key])),)
                return ("dict", members)
            return described(value)

        return describe

    def watched(value: Any, call: Any, field: str, path: Any) -> Any:
        return watch_tensor(value, call, field, path) if isinstance(value, Tensor) else value

    def watcher(member: Any) -> Any:
        def watch(value: Any, call: Any, field: str, path: Any) -> Any:
            if isinstance(value, Tensor):
                return watch_tensor(value, call, field, path)
            if isinstance(value, tuple):
                members: Any = ()
                for index in range(len(value)):
                    members = members + (member(value[index], call, field, path + (index,)),)
                return members
            if isinstance(value, list):
                listed: Any = []
                for index in range(len(value)):
                    listed = listed + [member(value[index], call, field, path + (index,))]
                return listed
            if isinstance(value, dict):
                # Filled one by one, a dictionary forgets which of its values are constants.
                return {key: member(value[key], call, field, path + (key,)) for key in value.keys()}
            return value

        return watch

    # Not by recursion: MindSpore forgets what it knows of the arguments of a function that calls itself.
    describe, watch = described, watched
    for _ in range(DEEPEST):
        describe, watch = describer(describe), watcher(watch)
    return Structures(describe, watch)
