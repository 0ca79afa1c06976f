"""Files of tensors written without torch: archives that any reader of zip takes, and `torch_file` reads as they were.

Whether ``torch.load`` does is asked in tests/frameworks/pytorch/test_torch_file.py.
"""

from __future__ import annotations

import io
import mmap
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from msprobe_ms.arrays.torch_file import load_tensor, read_stored
from msprobe_ms.arrays.torch_writing import STORAGES, torch_writer

SHAPES = [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 4), (1, 7, 1), (300, 70), (2, 1, 3, 1, 2)]


def write_torch(file: BinaryIO, data: memoryview | bytes, dtype: str, shape: tuple[int, ...]) -> None:
    writer = torch_writer(dtype, shape)
    assert writer is not None
    writer(file, data)


def written(array: np.ndarray, dtype: str, folder: Path) -> Path:
    path = folder / "a.pt"
    with path.open("wb") as file:
        write_torch(file, array.tobytes(), dtype, array.shape)
    return path


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", sorted(set(STORAGES) - {"bfloat16"}))
def test_tensors_are_read_as_they_were(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = (np.random.default_rng(0).normal(size=shape) * 50).astype(np.float32).astype(dtype)
    found = load_tensor(written(array, dtype, tmp_path))
    assert found.dtype == array.dtype and found.shape == array.shape
    assert found.tobytes() == array.tobytes()


def test_bfloat16_is_stored_as_it_is(tmp_path: Path) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    found, dtype = read_stored(written(codes, "bfloat16", tmp_path))
    assert dtype == "bfloat16" and np.array_equal(found, codes)


def test_the_archive_is_whole_and_its_elements_can_be_mapped(tmp_path: Path) -> None:
    array = np.arange(1000.0)
    path = written(array, "float64", tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"archive/{name}" for name in ("data.pkl", "byteorder", "version", "data/0")]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped.find(array.tobytes()) % 64 == 0


def test_views_and_bytes_give_the_same_file() -> None:
    array, files = np.arange(10, dtype=np.int32), [io.BytesIO(), io.BytesIO()]
    write_torch(files[0], array.tobytes(), "int32", (2, 5))
    write_torch(files[1], memoryview(array).cast("B"), "int32", (2, 5))
    assert files[0].getvalue() == files[1].getvalue()


def test_tensors_that_an_archive_has_no_room_for_are_not_written() -> None:
    assert torch_writer("float32", ((1 << 30) - (1 << 18),)) is not None
    assert torch_writer("float32", (1 << 30,)) is None and torch_writer("float8_e5m2", (1,)) is None


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        write_torch(file, bytes(400), "float32", (100,))
