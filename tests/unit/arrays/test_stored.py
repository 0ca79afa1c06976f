"""Tensor files as they are stored, in both formats, and written again."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.arrays.npy import load_array
from msprobe_ms.arrays.stored import load_stored, write_npy_header
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "complex64", "uint8"])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 5)])
def test_an_array_comes_as_it_was_saved(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    found = load_stored(tmp_path / "a.npy", f"torch.{dtype}")
    assert found.dtype == dtype and bytes(found.content) == array.tobytes()
    with open(tmp_path / "b.npy", "wb") as file:
        write_npy_header(file, dtype, shape)
        file.write(found.content)
    np.testing.assert_array_equal(load_array(tmp_path / "b.npy", dtype), array)


def test_bfloat16_keeps_its_codes(tmp_path: Path) -> None:
    codes = np.array([0x3F80, 0xFF80, 0x7FC1, 0x0001], "<u2")
    np.save(tmp_path / "a.npy", codes.view("V2"))
    found = load_stored(tmp_path / "a.npy", "torch.bfloat16")
    assert found.dtype == "bfloat16" and bytes(found.content) == codes.tobytes()
    file = io.BytesIO()
    write_npy_header(file, "bfloat16", (4,))
    (tmp_path / "b.npy").write_bytes(file.getvalue() + found.content)
    np.testing.assert_array_equal(
        load_array(tmp_path / "b.npy", "bfloat16"), load_array(tmp_path / "a.npy", "bfloat16")
    )


def test_what_is_cut_or_holds_no_numbers_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(100))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-1])
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    for name in ("cut.npy", "objects.npy"):
        with pytest.raises(DumpFormatError, match=name):
            load_stored(tmp_path / name, "float64")
    with pytest.raises(MissingTensorError):
        load_stored(tmp_path / "none.npy", "float64")
