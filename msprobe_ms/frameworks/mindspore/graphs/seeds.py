"""The seeds that MindSpore gives operators which draw random numbers, each as it is made: in compiling, too."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

#: Kernel and seed asked for → the seed that the next one gets. It is not public; `seed` of the package is a function.
_NEXT: dict[Any, int] = getattr(importlib.import_module("mindspore.common.seed"), "_KERNEL_SEED", {})


def next_seeds() -> Mapping[Any, int]:
    """Return the seeds that operators get which are made from here on."""
    return dict(_NEXT)


def put_back(seeds: Mapping[Any, int]) -> None:
    """Have operators made from here on get ``seeds``."""
    _NEXT.update(seeds)
    for key in _NEXT.keys() - seeds.keys():
        _NEXT.pop(key, None)
