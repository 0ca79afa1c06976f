"""``from msprobe.pytorch import PrecisionDebugger, compare, compare_distributed, module_dump, seed_all``."""

from typing import Any

from msprobe_ms.compat.compare import compare, compare_distributed
from msprobe_ms.pytorch import PrecisionDebugger, seed_all

__all__ = ["PrecisionDebugger", "compare", "compare_distributed", "module_dump", "module_dump_end", "seed_all"]


def module_dump(module: Any, module_name: str) -> None:
    """Record the calls of ``module`` under that name, and no APIs; as the method of the debugger."""
    PrecisionDebugger.module_dump(module, module_name)


def module_dump_end() -> None:
    """Record APIs again."""
    PrecisionDebugger.module_dump_end()
