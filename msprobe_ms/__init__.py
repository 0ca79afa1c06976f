"""Dump and compare for MindSpore, MSAdapter and PyTorch training.

``PrecisionDebugger`` and ``record`` record a training, ``load`` opens a dump, ``compare`` finds where two of them part.
Those for PyTorch are in ``msprobe_ms.pytorch``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msprobe_ms.comparison.api.compare import assert_consistent, compare
    from msprobe_ms.dump.opened.step import load
    from msprobe_ms.mindspore import MsprobeInitStep, MsprobeStep, PrecisionDebugger, record, seed_all

__all__ = [
    "MsprobeInitStep",
    "MsprobeStep",
    "PrecisionDebugger",
    "__version__",
    "assert_consistent",
    "compare",
    "load",
    "record",
    "seed_all",
]

__version__ = "0.1.0"

#: Where each public name comes from. The training side needs MindSpore, comparing and reading must not, and a training
#: script needs neither of these: each is imported when it is first asked for.
_HOMES = {
    "MsprobeInitStep": "mindspore",
    "MsprobeStep": "mindspore",
    "PrecisionDebugger": "mindspore",
    "assert_consistent": "comparison.api.compare",
    "compare": "comparison.api.compare",
    "load": "dump.opened.step",
    "record": "mindspore",
    "seed_all": "mindspore",
}
#: Modules for scripts → the framework each needs.
_MODULES = {"mindspore": "mindspore", "pytorch": "torch"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from msprobe_ms.support.process import no_garbage_collection

    with no_garbage_collection():  # among all that a framework made it takes as long as the import
        module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    return getattr(module, name) if name in _HOMES else module


def __dir__() -> list[str]:
    """The public names that can be given here: those that need a framework where it is installed."""
    there = {module for module, framework in _MODULES.items() if _is_installed(framework)}
    return sorted([name for name in __all__ if _HOMES.get(name) in {None, *there} or "." in _HOMES[name]] + [*there])


def _is_installed(framework: str) -> bool:
    from importlib.util import find_spec

    try:
        return sys.modules[framework] is not None if framework in sys.modules else find_spec(framework) is not None
    except (ImportError, ValueError):
        return False
