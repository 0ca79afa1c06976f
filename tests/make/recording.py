"""Record something, and read back what a user finds on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from msprobe_ms.arrays.sketch import decode, distance
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER
from msprobe_ms.mindspore import PrecisionDebugger

SECTION = (
    "list", "scope", "skip", "data_mode", "summary_mode", "sketch", "tensor_list", "overflow_nums",
    "device", "precision", "file_format", "check_mode",
)  # fmt: skip

FIGURES = ("Max", "Min", "Mean", "Norm")
SKETCH = "Sketch"

#: What fp32 accumulation leaves of a sum, relative to the sum of magnitudes.
TOLERANCE = 1e-6


def same_sketch(one: str | None, other: str | None, rounding: float = TOLERANCE) -> bool:
    """Whether two texts are sketches of the same elements but for rounding, or neither is one."""
    if one is None or other is None:
        return one is other
    first, second = decode(one), decode(other)
    assert first is not None and second is not None and len(one) == len(other)
    return distance(first, second) <= rounding * float(np.linalg.norm(first))


def write_config(dump_path: Path, *, task: str = "statistics", level: str = "L0", **keys: Any) -> Path:
    """A config.json beside ``dump_path``; keys of a task's section go there, the others to the top."""
    section = {key: keys.pop(key) for key in SECTION if key in keys}
    path = dump_path.with_name(f"{dump_path.name}.json")
    path.write_text(json.dumps({"task": task, "level": level, "dump_path": str(dump_path), **keys, task: section}))
    return path


@contextmanager
def recording(model: Any, dump_path: Path, **keys: Any) -> Iterator[PrecisionDebugger]:
    """Record what runs inside as one step."""
    debugger = PrecisionDebugger(write_config(dump_path, **keys))
    debugger.start(model)
    try:
        yield debugger
    finally:
        debugger.stop()
        debugger.step()


class Step(NamedTuple):
    """The dump of one step of one process."""

    folder: Path
    data: dict[str, Any]
    stack: dict[str, Any]
    construct: dict[str, Any]

    def array(self, leaf: dict[str, Any]) -> np.ndarray:
        return np.load(self.folder / TENSOR_FOLDER / leaf["data_name"], allow_pickle=False)

    def forward(self, base: str, index: int = 0) -> dict[str, Any]:
        return self.data[f"{base}.forward.{index}" if base.startswith("Cell.") else f"{base}.{index}.forward"]

    def backward(self, base: str, index: int = 0) -> dict[str, Any]:
        return self.data[f"{base}.backward.{index}" if base.startswith("Cell.") else f"{base}.{index}.backward"]

    def calls(self, base: str) -> list[str]:
        """Entries of one module or API, parameter gradients aside."""
        return [name for name in self.data if name.startswith(f"{base}.") and ".parameters_grad." not in name]


def step_folder(dump_path: Path, step: int = 0) -> Path:
    found = dump_path / f"step{step}"
    if not found.exists():  # beside a dump of what ran in graphs
        found = dump_path / "pynative" / f"step{step}"
    (folder,) = found.iterdir()
    return folder


def read_step(dump_path: Path, step: int = 0, *, troubles: bool = False) -> Step:
    """The step's three files; nothing else may lie there, and without ``troubles`` no error log either."""
    folder = step_folder(dump_path, step)
    known = {"dump.json", "stack.json", "construct.json", TENSOR_FOLDER} | ({ERROR_LOG} if troubles else set())
    log = folder / ERROR_LOG
    assert {path.name for path in folder.iterdir()} <= known, (
        log.read_text() if log.exists() else list(folder.iterdir())
    )
    files = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("dump", "stack", "construct")}
    return Step(folder, files["dump"]["data"], files["stack"], files["construct"])


def leaves(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every tensor leaf below ``value`` with its place."""
    if isinstance(value, dict) and "dtype" in value and "shape" in value:
        yield place, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*place, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from leaves(member, (*place, str(index)))


def assert_figures(step: Step) -> int:
    """Every leaf's figures are numpy's on the very tensor in its file; how many leaves there were."""
    count = 0
    for place, leaf in leaves(step.data):
        array = step.array(leaf)
        assert list(array.shape) == leaf["shape"], place
        if array.size == 0 or array.dtype == bool:
            continue
        values = array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.float64)
        assert leaf["Max"] == values.max(), place
        assert leaf["Min"] == values.min(), place
        # Not numpy's own in float32: where terms cancel, its last digits are as much by chance as ours.
        assert leaf["Mean"] == pytest.approx(
            values.mean(dtype=np.float64), abs=TOLERANCE * float(np.abs(values).mean(dtype=np.float64))
        ), place
        norm = float(np.linalg.norm(values.astype(np.float64)))
        assert leaf["Norm"] == pytest.approx(abs(norm) if array.ndim else float(array), rel=TOLERANCE), place
        count += 1
    return count
