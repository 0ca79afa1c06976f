"""The names that scripts import; none may go or change its meaning."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

EXPORTED = {
    "msprobe_ms": [
        "MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "__version__", "assert_consistent", "compare", "load",
        "record", "seed_all",
    ],
    "msprobe_ms.mindspore": ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "record", "seed_all"],
    "msprobe_ms.pytorch": ["PrecisionDebugger", "record", "seed_all"],
    "msprobe_ms.maca": ["gen_report", "record", "record_switch", "start_record"],
    "msprobe_ms.msit": ["DumpConfig", "register_hook", "seed_all", "set_dump_path"],
    "msit_llm": ["DumpConfig", "register_hook", "seed_all", "set_dump_path"],
    "msprobe.mindspore": ["MsprobeStep", "PrecisionDebugger", "seed_all"],
    "msprobe.mindspore.common.utils": ["MsprobeInitStep", "MsprobeStep"],
    "msprobe.pytorch": [
        "PrecisionDebugger", "compare", "compare_distributed", "module_dump", "module_dump_end", "seed_all",
    ],
}  # fmt: skip


@pytest.mark.parametrize("module", EXPORTED)
def test_exported_names(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == EXPORTED[module]
    assert all(callable(getattr(found, name)) for name in found.__all__ if name != "__version__")
    # A submodule of the same name would take its place once it is imported.
    folder = Path(str(found.__file__)).parent if found.__file__.endswith("__init__.py") else None
    if folder is not None:
        assert not [name for name in found.__all__ if (folder / name).exists() or (folder / f"{name}.py").exists()]
