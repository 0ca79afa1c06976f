"""Tensor files of a dump: found where they lie, read as they were saved, never outside their folder."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msprobe_ms.dump.model import Item
from msprobe_ms.dump.reading.items import TensorSource
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError

ENTRY = "Cell.fc.Dense.forward.0"


def item(data_name: str | None, dtype: str = "Float32") -> Item:
    return Item(ENTRY, "output", ("0",), kind="tensor", type="mindspore.Tensor", dtype=dtype, data_name=data_name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dump folder with its tensor folder."""
    (tmp_path / "rank0" / "dump_tensor_data").mkdir(parents=True)
    return tmp_path / "rank0"


@pytest.fixture
def data(folder: Path) -> Path:
    return folder / "dump_tensor_data"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    array=arrays.arrays(
        st.one_of(
            *(arrays.floating_dtypes(), arrays.integer_dtypes(), arrays.unsigned_integer_dtypes()),
            *(arrays.complex_number_dtypes(), arrays.boolean_dtypes()),
        ),
        arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    column_major=st.booleans(),
)
def test_npy_as_saved(folder: Path, data: Path, array: np.ndarray, column_major: bool) -> None:
    np.save(data / "a.npy", np.array(array, order="F" if column_major else "C"))
    loaded = TensorSource(folder).load(item("a.npy"))
    assert loaded.dtype == array.dtype
    assert loaded.shape == array.shape
    np.testing.assert_array_equal(loaded, array)


def test_pt_as_saved(folder: Path, data: Path) -> None:
    tensor = torch.randn(3, 4)
    torch.save(tensor.t(), data / "a.pt")
    np.testing.assert_array_equal(TensorSource(folder).load(item("a.pt")), tensor.t().numpy())


def test_bfloat16_of_mindspore(folder: Path, data: Path, ms: Any) -> None:
    """np.save keeps two untyped bytes of MindSpore's own bfloat16; the dump's dtype tells what they are."""
    tensor = ms.Tensor(np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)).astype(ms.bfloat16)
    np.save(data / "a.npy", tensor.asnumpy())
    assert np.load(data / "a.npy").dtype == np.dtype("V2")
    loaded = TensorSource(folder).load(item("a.npy", "BFloat16"))
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, tensor.astype(ms.float32).asnumpy())
    with pytest.raises(DumpFormatError, match=r"a\.npy: dtype \|V2, and Float32 in the dump; accepted are numbers"):
        TensorSource(folder).load(item("a.npy", "Float32"))


def test_bfloat16_saved_as_float32_stays(folder: Path, data: Path) -> None:
    np.save(data / "a.npy", np.float32([1.5, 2.5]))
    np.testing.assert_array_equal(TensorSource(folder).load(item("a.npy", "BFloat16")), np.float32([1.5, 2.5]))


def test_the_folder_beside_the_dump_comes_first(folder: Path, data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    np.save(elsewhere / "a.npy", np.zeros(2))
    np.save(data / "a.npy", np.ones(2))
    assert TensorSource(folder, str(elsewhere)).load(item("a.npy")).tolist() == [1, 1]
    (data / "a.npy").unlink()
    data.rmdir()
    assert TensorSource(folder, str(elsewhere)).load(item("a.npy")).tolist() == [0, 0]


def test_what_is_not_there_has_its_own_error(folder: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingTensorError, match=r"Cell\.fc\.Dense\.forward\.0\.output\.0: no data_name is recorded"):
        TensorSource(folder).load(item(None))
    with pytest.raises(MissingTensorError, match=r"dump_tensor_data/gone\.npy: no such file"):
        TensorSource(folder).load(item("gone.npy"))
    data.rmdir()
    source = TensorSource(folder, "/nowhere/dump_tensor_data")
    assert source.folder is None
    with pytest.raises(MissingTensorError, match=r"there is no folder .*/rank0/dump_tensor_data or /nowhere/"):
        source.load(item("gone.npy"))


@pytest.mark.parametrize("recorded", ["", "\0", "a" * 5000, "/etc/hostname"])
def test_a_recorded_folder_that_is_none(recorded: str, tmp_path: Path) -> None:
    assert TensorSource(tmp_path, recorded).folder is None


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.npy", "/etc/secret.npy", "..\\secret.npy", "C:\\a.npy", "a\0.npy", "./a.npy"),
        *("..", ".", "", "a.npz", "a.pkl", "/", "a.npy/"),
    ],
)
def test_names_that_are_no_plain_file_names_are_refused(name: str, folder: Path) -> None:
    np.save(folder / "secret.npy", np.ones(1))
    with pytest.raises(DumpFormatError, match=r"Cell\.fc\.Dense\.forward\.0\.output\.0: data_name .*accepted"):
        TensorSource(folder).load(item(name))


def test_links_may_not_leave_the_folder(folder: Path, data: Path) -> None:
    np.save(folder / "secret.npy", np.ones(1))
    np.save(data / "a.npy", np.zeros(1))
    (data / "inner.npy").symlink_to("a.npy")
    (data / "outer.npy").symlink_to("../secret.npy")
    (data / "loop.npy").symlink_to("loop.npy")
    source = TensorSource(folder)
    assert source.load(item("inner.npy")).tolist() == [0]
    with pytest.raises(DumpFormatError, match="a link that leaves"):
        source.load(item("outer.npy"))
    with pytest.raises(DumpFormatError, match=r"loop\.npy: cannot be read"):
        source.load(item("loop.npy"))


def test_pipes_and_folders_are_no_tensors(folder: Path, data: Path) -> None:
    os.mkfifo(data / "pipe.npy")
    (data / "folder.npy").mkdir()
    for name in ("pipe.npy", "folder.npy"):
        with pytest.raises(DumpFormatError, match="not a regular file"):
            TensorSource(folder).load(item(name))


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the .npy header is damaged"),
        (b"\x93NUMPY\x09\x00", "the .npy header is damaged"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", bytes(7)), "takes 8 bytes, 7 are there"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1 << 60,), }"), "the .npy header is damaged"),
        (
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
            "takes 4000000000000 bytes, 0 are",
        ),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", bytes(8)), "the .npy header is damaged"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 60 + ", }"), "the .npy header is damaged"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1 << 62), }"), "the .npy header is damaged"),
        (npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {1 << 62}, 8), }}"), "is impossible"),
        (npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {1 << 70}), }}"), "is impossible"),
        (npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(1,) * 33}, }}", bytes(4)), "is impossible"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", pickle.dumps([1])), "accepted are numbers"),
        (npy("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", bytes(16)), "accepted are numbers"),
        (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", bytes(4)), "accepted are numbers"),
        (npy("__import__('os').system('touch executed')"), "the .npy header is damaged"),
        (b"PK\x03\x04" + bytes(60), "the .npy header is damaged"),
    ],
)
def test_hostile_npy(content: bytes, complaint: str, folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (data / "a.npy").write_bytes(content)
    with pytest.raises(DumpFormatError) as caught:
        TensorSource(folder).load(item("a.npy"))
    assert str(data / "a.npy") in str(caught.value)
    assert complaint in str(caught.value)
    assert not (folder / "executed").exists()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_damage_to_npy_is_one_typed_error_or_an_array(folder: Path, data: Path, draw: st.DataObject) -> None:
    np.save(data / "whole.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    raw = bytearray((data / "whole.npy").read_bytes())
    for _ in range(draw.draw(st.integers(0, 4))):
        raw[draw.draw(st.integers(0, 70) | st.integers(0, len(raw) - 1))] = draw.draw(st.integers(0, 255))
    (data / "a.npy").write_bytes(raw[: draw.draw(st.integers(0, len(raw)))])
    try:
        size = TensorSource(folder).load(item("a.npy")).nbytes
    except DumpFormatError:
        return
    assert size <= len(raw)
