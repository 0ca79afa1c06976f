"""Dump and compare for MindSpore, MSAdapter and PyTorch training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msprobe_ms.comparison.api.compare import assert_consistent, compare
    from msprobe_ms.mindspore import MsprobeInitStep, MsprobeStep, PrecisionDebugger, record, seed_all

__all__ = [
    "MsprobeInitStep",
    "MsprobeStep",
    "PrecisionDebugger",
    "__version__",
    "assert_consistent",
    "compare",
    "record",
    "seed_all",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The training side needs MindSpore, the command line must not: it is imported when first asked for.
    if name in ("MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "record", "seed_all"):
        from msprobe_ms.support.process import no_garbage_collection

        with no_garbage_collection():  # among all that MindSpore made it takes as long as the import
            from msprobe_ms import mindspore
        return getattr(mindspore, name)
    # Comparing needs no framework, and a training script none of it.
    if name == "compare":
        from msprobe_ms.comparison.api.compare import compare

        return compare
    if name == "assert_consistent":
        from msprobe_ms.comparison.api.compare import assert_consistent

        return assert_consistent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
