"""Figures of arrays that hold less than they show, or lie in files."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msprobe_ms.arrays.statistics import checksum, summary
from msprobe_ms.recording.output.figures import FigureReader, Figures


def read(array: np.ndarray, **keys: Any) -> Figures:
    """Figures of an array, which take no framework."""
    framework: Any = None
    return FigureReader(framework, lambda on_device: on_device, **{"md5": True, "sketch": True, **keys}).of_array(array)


def test_an_array_has_all_its_figures() -> None:
    array = np.arange(100, dtype=np.float32)
    found = read(array)
    assert (found.statistics, found.sketch) == summary(array)
    assert (found.md5, found.size, found.refused) == (checksum(array), 400, False) and found.array is array
    assert read(array, sketch=False, md5=False)[1:3] == (None, None)


def test_an_expanded_array_has_figures_but_no_file() -> None:
    found = read(np.broadcast_to(np.array([[3.0], [-4.0]]), (2, 10**10)))
    assert found.statistics == pytest.approx((3, -4, -0.5, 5e5)) and found.refused
    assert (found.sketch, found.md5) == (None, None)
    assert read(np.broadcast_to(np.ones(1, np.float32), (10**3, 10**3))).statistics == (1, 1, 1, 1000)


def test_an_array_that_overlaps_has_none() -> None:
    found = read(np.lib.stride_tricks.sliding_window_view(np.ones(10**6), 10**5))
    assert found.statistics == (None,) * 4 and found.refused


def test_arrays_in_files(tmp_path: Path) -> None:
    whole, cut, large = (
        np.memmap(tmp_path / name, np.uint8, "w+", shape=(size,))
        for name, size in (("whole", mmap.PAGESIZE), ("cut", mmap.PAGESIZE), ("large", 1 << 40))
    )
    whole[:] = 7
    assert read(whole[3:].view(np.ndarray)).statistics[:2] == (7, 7)
    (tmp_path / "cut").write_bytes(b"")  # reading it ends a process
    for array in (cut, cut.view(np.ndarray)[5:], large, large[1 << 30 :]):
        assert read(array).statistics == (None,) * 4 and read(array).refused
