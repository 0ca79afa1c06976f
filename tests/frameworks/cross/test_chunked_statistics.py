"""Tensors too large to copy: figures, checksums and files from parts, in little memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from mindspore import Tensor
from recording import read_step, recording, write_config

from msprobe_ms.arrays import statistics as array_statistics
from msprobe_ms.arrays.npy import write_npy, write_npy_in_parts
from msprobe_ms.arrays.statistics import ChunkedStatistics, checksum, parts, statistics
from msprobe_ms.pytorch import PrecisionDebugger
from torture.bounded import MIB, peak_of


@example(np.array([1.797693134862315e308, 0.0, 0.0]), 3, False)
@given(
    arrays.arrays(
        st.sampled_from([np.bool_, np.int8, np.float16, np.float32, np.float64, np.complex64]),
        arrays.array_shapes(min_dims=1, max_dims=4, max_side=7),
    ),
    st.integers(1, 40),
    st.booleans(),
)
def test_parts_are_the_whole(array: np.ndarray, most: int, turned: bool) -> None:
    array = array.T if turned else array
    cut = [array[index] for index in parts(array.shape, most)]
    assert all(part.size <= most for part in cut)
    assert np.array_equal(np.concatenate([part.reshape(-1) for part in cut]), array.reshape(-1), equal_nan=True) or (
        array.dtype.kind == "c"
    )
    whole = ChunkedStatistics(cut, md5=True)
    assert whole.nbytes == array.nbytes
    assert whole.md5 == checksum(array)
    for ours, theirs in zip(whole.statistics, statistics(array), strict=True):
        assert type(ours) is type(theirs)
        assert ours == theirs or ours == pytest.approx(theirs, rel=1e-5, abs=1e-5 * _size(array), nan_ok=True)
    one, other = io.BytesIO(), io.BytesIO()
    write_npy(one, np.ascontiguousarray(array))
    write_npy_in_parts(other, array.shape, cut)
    assert one.getvalue() == other.getvalue()


def _size(array: np.ndarray) -> float:
    """What rounding of sums is measured against."""
    with np.errstate(all="ignore"):
        size = float(np.abs(array).astype(np.float64).sum()) if array.dtype != bool else 0.0
    return size if np.isfinite(size) else 0.0


_TORCH: dict[str, Callable[[], torch.Tensor]] = {
    "bfloat16": lambda: torch.ones(20 * MIB, dtype=torch.bfloat16),
    "complex": lambda: torch.ones(20 * MIB, dtype=torch.complex64),
    "sliced": lambda: torch.ones(20 * MIB, 2)[:, 1],
}

_MINDSPORE: dict[str, Callable[[], Tensor]] = {
    "bfloat16": lambda: Tensor(np.ones(20 * MIB, np.float16)).astype(mindspore.bfloat16),
    "sliced": lambda: Tensor(np.ones((20 * MIB, 2), np.float32))[:, 1],
}


@pytest.mark.parametrize("kind", _TORCH)
def test_a_large_tensor_of_pytorch_is_not_copied(dump_path: Path, kind: str) -> None:
    x = _TORCH[kind]()
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", summary_mode="md5"))
    debugger.start()
    x.view_as(x)  # what torch loads the first time is its own
    peak = peak_of(lambda: x.view_as(x))
    debugger.stop()
    debugger.step()
    assert_is_of_ones(read_step(dump_path).forward("Tensor.view_as")["input_args"][0], x.numel(), peak)


@pytest.mark.parametrize("kind", _MINDSPORE)
def test_a_large_tensor_of_mindspore_is_not_copied(ms: Any, dump_path: Path, kind: str) -> None:
    x = _MINDSPORE[kind]()
    with recording(None, dump_path, level="L1", summary_mode="md5"):
        x.swapaxes(0, -1)
        peak = peak_of(lambda: x.swapaxes(0, -1))
    assert_is_of_ones(read_step(dump_path).forward("Tensor.swapaxes")["input_args"][0], x.size, peak)


def assert_is_of_ones(leaf: dict[str, Any], size: int, peak: int) -> None:
    assert peak < 48 * MIB, f"{peak / MIB:.0f} MiB"
    assert (leaf["Max"], leaf["Min"], leaf["Mean"]) == (1, 1, 1)
    assert leaf["Norm"] == pytest.approx(np.sqrt(size), rel=1e-6)


@pytest.mark.parametrize("later", [False, True])
def test_files_of_large_tensors(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, later: bool) -> None:
    """The same as those of small ones, in both frameworks, written now or later."""
    monkeypatch.setattr(array_statistics, "LARGE", 100)
    values = np.random.standard_normal((13, 17)).astype(np.float32)
    x = Tensor(values).astype(mindspore.bfloat16)
    with recording(None, dump_path, level="L1", task="tensor", async_dump=later):
        x.reshape(-1)
        Tensor(values).T.reshape(-1)
    step = read_step(dump_path)
    stored = step.array(step.forward("Tensor.reshape")["input_args"][0])
    assert np.array_equal(stored, x.float().asnumpy())
    assert np.array_equal(step.array(step.forward("Tensor.reshape", 1)["input_args"][0]), values.T)
