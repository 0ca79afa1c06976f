"""What ``torch.save`` writes is read without torch: every figure against torch's own."""

from __future__ import annotations

import io
import math
import pickle
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msprobe_ms.arrays.stored import load_stored
from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.support.errors import DumpFormatError

PLAIN = [
    *(torch.float64, torch.float32, torch.float16, torch.complex128, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
]
FLOAT8 = [
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu),
]


def saved(tensor: object, folder: Path, **options: object) -> Path:
    path = folder / "tensor.pt"
    torch.save(tensor, path, **options)
    return path


def assert_same(array: np.ndarray, tensor: torch.Tensor) -> None:
    expected = tensor.detach().resolve_conj().resolve_neg().numpy()
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_plain_dtypes(dtype: torch.dtype, tmp_path: Path) -> None:
    tensor = (torch.arange(24).reshape(2, 3, 4) * 5 - 20 * dtype.is_signed).to(dtype)
    for view in (tensor, tensor.transpose(0, 2), tensor[:, 1:, ::2], tensor[1, 2, 3], tensor[:0]):
        assert_same(load_tensor(saved(view, tmp_path)), view)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_becomes_float32(dtype: torch.dtype, tmp_path: Path) -> None:
    every_code = torch.arange(256, dtype=torch.uint8).view(dtype)
    assert_same(load_tensor(saved(every_code, tmp_path)), every_code.float())


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    every_code = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    assert_same(load_tensor(saved(every_code, tmp_path)), every_code.float())
    grid = every_code.reshape(256, 256).t()[3:7]
    assert_same(load_tensor(saved(grid, tmp_path)), grid.float())


def test_narrow_floats_keep_their_codes_where_they_are_sent_on(tmp_path: Path) -> None:
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        codes = torch.arange(256, dtype=torch.uint8)
        tensor = codes.view(dtype).reshape(2, -1).t()
        found = load_stored(saved(tensor, tmp_path), str(dtype))
        assert found.dtype == str(dtype).removeprefix("torch.")
        assert bytes(found.content) == bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())


def test_complex32_becomes_complex64(tmp_path: Path) -> None:
    tensor = torch.view_as_complex(torch.randn(4, 3, 2).half()).t()[1:]
    expected = torch.view_as_complex(torch.view_as_real(tensor).float())
    assert_same(load_tensor(saved(tensor, tmp_path)), expected)


def test_conjugate_and_negative_views(tmp_path: Path) -> None:
    tensor = torch.randn(5, 2, dtype=torch.complex64).conj()
    for view in (tensor, tensor.imag, tensor.imag[1::2]):
        assert view.is_conj() or view.is_neg()
        assert_same(load_tensor(saved(view, tmp_path)), view)


def test_non_finite_numbers_survive(tmp_path: Path) -> None:
    tensor = torch.tensor([math.nan, math.inf, -math.inf, -0.0])
    assert_same(load_tensor(saved(tensor, tmp_path)), tensor)


def test_parameters_buffers_and_attributes(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.randn(3, 2))
    tagged = torch.nn.Parameter(torch.randn(3))
    tagged.tag = {"stage": 1}  # as Megatron does
    attributed = torch.randn(2, 2, requires_grad=True)
    attributed.note = ["kept", 3, 2.5, None]
    for tensor in (parameter, tagged, attributed, torch.nn.Buffer(torch.randn(4))):
        assert_same(load_tensor(saved(tensor, tmp_path)), tensor)


def test_expanded_gradient_takes_no_more_than_its_file(tmp_path: Path) -> None:
    tensor = torch.ones(1).expand(4000, 500_000)  # the gradient of a sum; 8 GB spread out
    array = load_tensor(saved(tensor, tmp_path))
    assert array.shape == (4000, 500_000)
    assert array.strides == (0, 0)
    assert array[3999, 499_999] == 1


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (3_000_000_000, 0)])
def test_empty_tensors(shape: tuple[int, ...], tmp_path: Path) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.complex32):
        assert load_tensor(saved(torch.empty(shape, dtype=dtype), tmp_path)).shape == shape


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(protocol: int, tmp_path: Path) -> None:
    tensor = torch.randn(300, 400)[10:250, ::3]
    assert_same(load_tensor(saved(tensor, tmp_path, pickle_protocol=protocol)), tensor)


def test_without_checksums(tmp_path: Path) -> None:
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        assert_same(load_tensor(saved(torch.arange(9), tmp_path)), torch.arange(9))
    finally:
        torch.serialization.set_crc32_options(before)


def test_device_does_not_matter(tmp_path: Path) -> None:
    path = Archive(tmp_path, np.arange(4, dtype="<f4").tobytes()).write(location="npu:7")
    np.testing.assert_array_equal(load_tensor(path), np.arange(4, dtype=np.float32))


def test_strides_that_are_never_taken_do_not_matter(tmp_path: Path) -> None:
    path = Archive(tmp_path, np.arange(4, dtype="<f4").tobytes()).write(shape=(4, 1), strides=(1, 1 << 900))
    assert load_tensor(path).tolist() == [[0], [1], [2], [3]]


def test_big_endian(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=">f4")
    path = Archive(tmp_path, numbers.tobytes(), byteorder=b"big").write(shape=(2, 3), strides=(3, 1))
    array = load_tensor(path)
    assert array.dtype == np.dtype("=f4")
    np.testing.assert_array_equal(array, numbers.reshape(2, 3))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.int16, torch.complex64]),
    data=st.data(),
)
def test_any_view(tmp_path: Path, shape: list[int], dtype: torch.dtype, data: st.DataObject) -> None:
    view = torch.arange(math.prod(shape)).reshape(shape).to(dtype)
    for dimension, size in enumerate(shape):
        start = data.draw(st.integers(0, size))
        view = view.narrow(dimension, start, data.draw(st.integers(0, size - start)))
    view = view.permute(data.draw(st.permutations(range(len(shape)))))
    if data.draw(st.booleans()):
        view = view.unsqueeze(0).expand(3, *view.shape)
    assert_same(load_tensor(saved(view, tmp_path)), view.float() if dtype is torch.bfloat16 else view)


class Archive:
    """A torch archive made by hand, so that each part of it can be wrong."""

    def __init__(self, folder: Path, numbers: bytes, byteorder: bytes = b"little") -> None:
        self.path = folder / "made.pt"
        self.records = {"data.pkl": b"", "byteorder": byteorder, "data/0": numbers}

    def write(self, compression: int = zipfile.ZIP_STORED, **description: object) -> Path:
        self.records["data.pkl"] = self.records["data.pkl"] or described(**description)
        with zipfile.ZipFile(self.path, "w", compression) as archive:
            for name, content in self.records.items():
                archive.writestr(f"made/{name}", content)
        return self.path


class _Storage:
    """Stands for a storage in a hand-made pickle."""


class _Tensor:
    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __reduce__(self) -> tuple[object, ...]:
        return torch._utils._rebuild_tensor_v2, self.arguments


def described(
    *,
    shape: object = (4,),
    strides: object = (1,),
    offset: object = 0,
    key: str = "0",
    location: str = "cpu",
    **_: object,
) -> bytes:
    """The pickle torch would write for a float32 tensor with these figures."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            return ("storage", torch.FloatStorage, key, location, 4) if isinstance(value, _Storage) else None

    stream = io.BytesIO()
    Pickler(stream, 2).dump(_Tensor(_Storage(), offset, shape, strides, False, OrderedDict()))
    return stream.getvalue()


NUMBERS = np.arange(4, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("description", "complaint"),
    [
        ({"shape": (5,)}, "its elements reach to 5, the storage holds 4"),
        ({"shape": (2, 2), "strides": (1 << 40, 1)}, "its elements reach to 1099511627778, the storage holds 4"),
        ({"offset": 1}, "its elements reach to 5, the storage holds 4"),
        ({"offset": -1}, "cannot be a tensor's"),
        ({"strides": (-1,)}, "cannot be a tensor's"),
        ({"shape": (2, 2)}, "cannot be a tensor's"),
        ({"shape": (1,) * 40, "strides": (1,) * 40}, "cannot be a tensor's"),
        ({"shape": (1 << 40, 1 << 40), "strides": (0, 0)}, "asks for more than 10 GiB"),
        ({"shape": (1 << 62, 0, 1 << 62), "strides": (0, 0, 0)}, "its shape is impossible"),
        ({"shape": (1 << 70, 0), "strides": (0, 0)}, "its shape is impossible"),
        ({"shape": (4.0,)}, "the pickle is damaged (TypeError)"),
        ({"shape": (True,)}, "the pickle is damaged (TypeError)"),
        ({"shape": [4]}, "the pickle is damaged (TypeError)"),
        ({"key": "1"}, "record 'data/1': missing"),
        ({"key": "../../etc/passwd"}, "record 'data/../../etc/passwd': missing"),
    ],
)
def test_figures_that_cannot_be_are_refused(description: dict, complaint: str, tmp_path: Path) -> None:
    path = Archive(tmp_path, NUMBERS).write(**description)
    with pytest.raises(DumpFormatError) as caught:
        load_tensor(path)
    assert str(caught.value).startswith(f"{path}: record ")
    assert complaint in str(caught.value)


def test_a_record_that_is_missing_compressed_or_damaged_is_refused(tmp_path: Path) -> None:
    compressed = Archive(tmp_path, bytes(1 << 24)).write(zipfile.ZIP_DEFLATED)
    with pytest.raises(
        DumpFormatError, match=r"record '[a-z./0]+': compressed or encrypted, which torch.save never does"
    ):
        load_tensor(compressed)
    path = tmp_path / "without.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("made/data/0", NUMBERS)
    with pytest.raises(DumpFormatError, match=r"record 'data.pkl': missing"):
        load_tensor(path)
    path = saved(torch.arange(64, dtype=torch.float32), tmp_path)
    raw = bytearray(path.read_bytes())
    place = raw.index(np.float32(17).tobytes())
    raw[place] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DumpFormatError, match=r"record 'data/0': damaged: its checksum does not fit"):
        load_tensor(path)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"weight": 1}, "it holds a dict, not one tensor"),
        ([torch.ones(2)], "it holds a list, not one tensor"),
        (torch.nn.Linear(2, 2), "it names 'torch.nn.modules.linear.Linear', which is no part of a tensor"),
        (torch.ones(3).to_sparse(), "it names 'torch._utils._rebuild_sparse_tensor', which is no part of a tensor"),
    ],
    ids=["dict", "list", "module", "sparse"],
)
def test_other_things_than_a_tensor_are_refused(value: object, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DumpFormatError) as caught:
        load_tensor(saved(value, tmp_path))
    assert complaint in str(caught.value)


def test_the_old_format_is_refused_by_name(tmp_path: Path) -> None:
    path = saved(torch.ones(2), tmp_path, _use_new_zipfile_serialization=False)
    with pytest.raises(
        DumpFormatError, match=r"the format of torch before 1\.6, which is not read; load it with torch"
    ):
        load_tensor(path)


def test_files_that_are_none_of_torch_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with pytest.raises(DumpFormatError, match="cannot be read: No such file"):
        load_tensor(path)
    for content in (b"", b"PK", b"hello" * 10, b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(DumpFormatError, match=r"x\.pt: "):
            load_tensor(path)


#: Python's own pickletools on a text with a stray backslash.
STRAY_BACKSLASH = pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")


def outcome(path: Path) -> str:
    """The one error a file may cause, or the file's name when a tensor could be read after all."""
    try:
        array = load_tensor(path)
    except DumpFormatError as error:
        return str(error)
    return str(path) if array.nbytes <= 10 << 30 else "too large"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_one_typed_error_or_a_tensor(tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / "whole.pt"
    if not source.exists():
        torch.save(torch.nn.Parameter(torch.arange(12.0).reshape(3, 4).t()), source)
    raw = bytearray(source.read_bytes())
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw)))]
    # Records lie within the first few hundred bytes and the directory at the end: aim there.
    for _ in range(data.draw(st.integers(0, 6))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.pt"
    path.write_bytes(raw)
    assert outcome(path).startswith(str(path))


@STRAY_BACKSLASH
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_pickle_is_one_typed_error_or_a_tensor(tmp_path: Path, data: st.DataObject) -> None:
    """Checksums that fit, so that the damage reaches the instructions themselves."""
    raw = bytearray(described(shape=(2, 2), strides=(2, 1)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        if data.draw(st.booleans()):
            raw[place] = data.draw(st.integers(0, 255))
        else:
            raw[place:place] = data.draw(st.binary(max_size=4))
    archive = Archive(tmp_path, NUMBERS)
    archive.records["data.pkl"] = bytes(raw)
    assert outcome(archive.write()).startswith(str(archive.path))


def test_reads_without_torch(tmp_path: Path) -> None:
    path = saved(torch.arange(3.0), tmp_path)
    code = (
        "import sys, pathlib; sys.modules['torch'] = None; sys.modules['mindspore'] = None\n"
        "from msprobe_ms.arrays.torch_file import load_tensor\n"
        f"print(load_tensor(pathlib.Path({str(path)!r})).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[0.0, 1.0, 2.0]", done.stderr


def test_an_interrupted_writer_ends_its_file_while_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(opener: object, writer: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.serialization._opener, "__init__", interrupted)
    file = io.BytesIO()
    with pytest.raises(KeyboardInterrupt) as raised:
        PyTorch().save_tensor(torch.ones(3).to(torch.float8_e5m2), None, file)  # for which torch's own writer is asked
    # Freed later, the writer would write into a closed file, and PyTorch end the process.
    assert raised.tb is not None
    assert file.getvalue()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4), (1, 7, 1)], ids=str)
@pytest.mark.parametrize("dtype", [*PLAIN, torch.bfloat16, FLOAT8[0]], ids=str)
def test_torch_loads_what_is_recorded(dtype: torch.dtype, shape: tuple[int, ...], tmp_path: Path) -> None:
    tensor = (torch.rand(shape) * 100).to(dtype)
    narrow = FLOAT8[0] in (dtype, tensor.dtype)
    for number, view in enumerate(
        (tensor, tensor.mT if len(shape) > 1 else tensor[..., None], tensor.expand(2, *shape))
    ):
        path = tmp_path / f"{number}.pt"
        with path.open("wb") as file:
            PyTorch().save_tensor(view, None, file)
        for options in ({"weights_only": True}, {"weights_only": False}, {"mmap": True}):
            found = torch.load(path, **options)
            assert (type(found), found.dtype, found.shape) == (torch.Tensor, dtype, view.shape)
            assert torch.equal(*(each.float() for each in (found, view)) if narrow else (found, view))
            assert found.device.type == "cpu" and not found.requires_grad
