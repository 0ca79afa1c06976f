"""mindstudio-probe as ``step_time.py --adapter`` takes it. Runs in an environment of its own."""

from __future__ import annotations

from typing import Any

from mindspore import mint
from mindspore.common import api


def make(config_path: str) -> Any:
    """Its debugger. 26.2.0 fails on a CPU with its first statistic as long as there is a ``mint.norm``; 1.1.0 imports a
    class that MindSpore has no more, and needs none of it in dynamic graphs."""
    if hasattr(mint, "norm"):
        del mint.norm
    if not hasattr(api, "_MindsporeFunctionExecutor"):
        api._MindsporeFunctionExecutor = type("_MindsporeFunctionExecutor", (), {"__call__": None})
    from msprobe.mindspore import PrecisionDebugger  # type: ignore[import-not-found]

    return PrecisionDebugger(config_path=config_path)
