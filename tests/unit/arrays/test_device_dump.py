"""Dump files of Ascend's devices: what is in them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.arrays.device_dump import DTYPES, read_array, read_bytes, read_tensors
from msprobe_ms.support.errors import DumpFormatError
from tests.device_files import Tensor, device_file, field, header, of, shape


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "Add.add.1.2.1700000000000000"


def test_bytes_follow_as_inputs_outputs_buffers_and_workspaces(file: Path) -> None:
    given, out, more = np.arange(4, dtype=np.int32), np.ones((2, 3), np.float32), np.full((2,), 7, np.float16)
    file.write_bytes(
        device_file(
            of("output", out, 1, 2, (2, 3)),
            Tensor("space", b"s" * 5),
            of("input", given, 7),
            of("output", more, 2, 0),
            Tensor("l1buffer", b"b" * 3),
        )
    )
    tensors = read_tensors(file)
    assert [tensor.name for tensor in tensors] == ["input.0", "output.0", "output.1", "l1buffer.0", "space.0"]
    for tensor, array in zip(tensors, (given, out, more), strict=False):
        found, dtype = read_array(file, tensor)
        np.testing.assert_array_equal(found, array)
        assert (dtype, found.dtype) == (array.dtype.name, array.dtype)
    assert [tensor.layout for tensor in tensors[:3]] == ["ND", "ND", "NCHW"]
    assert [tensor.original for tensor in tensors[:3]] == [None, (2, 3), None]
    assert [read_bytes(file, tensor) for tensor in tensors[3:]] == [b"bbb", b"sssss"]


@pytest.mark.parametrize("number", DTYPES)
def test_every_dtype_is_read(file: Path, number: int) -> None:
    width = {"bfloat16": 2, "float8_e5m2": 1, "float8_e4m3fn": 1}.get(DTYPES[number])
    size = width or np.dtype(DTYPES[number]).itemsize
    content = bytes(range(4 * size))
    file.write_bytes(device_file(Tensor("output", content, number, 2, (2, 2))))
    (tensor,) = read_tensors(file)
    array, dtype = read_array(file, tensor)
    assert (array.shape, dtype) == ((2, 2), DTYPES[number])
    if dtype == "bool":
        assert array.tolist() == [[False, True], [True, True]]
    elif width is None:
        assert array.tobytes() == content
    else:
        assert array.dtype == np.float32


def test_bfloat16_is_the_upper_half_of_a_float32(file: Path) -> None:
    values = np.array([1.5, -2.0, np.inf], np.float32)
    file.write_bytes(device_file(Tensor("output", (values.view(np.uint32) >> 16).astype("<u2").tobytes(), 27, 2, (3,))))
    (tensor,) = read_tensors(file)
    np.testing.assert_array_equal(read_array(file, tensor)[0], values)


def test_an_implementation_of_protobuf_writes_what_is_read(file: Path) -> None:
    pool = pytest.importorskip("google.protobuf.descriptor_pool").DescriptorPool()
    from google.protobuf import descriptor_pb2, message_factory

    schema = descriptor_pb2.FileDescriptorProto(name="dump_data.proto", syntax="proto3")
    for name, fields in {
        "Shape": [("dim", 1, 4, 3, "")],
        "OpOutput": [
            ("data_type", 1, 5, 1, ""), ("format", 2, 5, 1, ""), ("shape", 3, 11, 1, "Shape"), ("data", 5, 12, 1, ""),
            ("size", 6, 4, 1, ""), ("original_shape", 7, 11, 1, "Shape"), ("sub_format", 8, 5, 1, ""),
        ],
        "DumpData": [
            ("version", 1, 9, 1, ""), ("dump_time", 2, 4, 1, ""), ("output", 3, 11, 3, "OpOutput"),
            ("op_name", 6, 9, 1, ""),
        ],
    }.items():  # fmt: skip
        message = schema.message_type.add(name=name)
        for label, number, kind, repeated, of_type in fields:
            message.field.add(
                name=label, number=number, type=kind, label=repeated, type_name=f".{of_type}" if of_type else None
            )
    pool.Add(schema)
    output = {"data_type": 1, "format": 3, "shape": {"dim": [1, 1, 1, 300, 16]}, "size": 19200, "sub_format": -1}
    dump = message_factory.GetMessageClass(pool.FindMessageTypeByName("DumpData"))(
        version="2.0", op_name="x" * 200, output=[{**output, "original_shape": {"dim": [1, 3, 1, 300]}}]
    )
    told = dump.SerializeToString()
    file.write_bytes(len(told).to_bytes(8, "little") + told + bytes(19200))
    (tensor,) = read_tensors(file)
    assert (tensor.shape, tensor.original) == ((1, 1, 1, 300, 16), (1, 3, 1, 300))
    assert (tensor.size, tensor.layout, tensor.offset) == (19200, "NC1HWC0", 8 + len(told))


SOUND = header([of("output", np.ones(4, np.float32), 1)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "its header has 0 bytes"),
        ((1 << 60).to_bytes(8, "little") + b"x", "its first 8 bytes say that its header has"),
        (len(SOUND).to_bytes(8, "little") + SOUND + bytes(15), "output.0 ends at byte"),
        ((2).to_bytes(8, "little") + b"\x0b\x00", "wire type 3"),
        ((3).to_bytes(8, "little") + b"\x1a\x7f\x00", "a field of its header ends behind it"),
        ((12).to_bytes(8, "little") + b"\x18" + b"\xff" * 11, "does not end"),
        ((2).to_bytes(8, "little") + field(3, 5), "is no message"),
        (b"\x05" + bytes(7) + field(3, field(6, b"x")), "is no number"),
        (b"\x09" + bytes(7) + field(3, field(5, b"12345")), "output.0 lies inside the header, which is not read"),
        (b"\x06\x40" + bytes(6) + b"\x22\x00" * 8195, "more than 4096 tensors"),
        (b"\x17" + bytes(7) + field(3, field(3, shape([1] * 17))), "a shape of more than 16 axes"),
    ],
)
def test_a_header_that_is_none_is_refused(file: Path, content: bytes, told: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DumpFormatError, match=told):
        read_tensors(file)


def test_a_tensor_that_contradicts_its_header_is_refused(file: Path) -> None:
    for tensor, told in (
        (Tensor("output", bytes(8), 13, 2, (2,)), "output.0 has data type 13; read are 1 float32, 2 float16"),
        (Tensor("output", bytes(8), 1, 2, (3,)), r"is float32 \(3,\) in its header, but has 8 bytes"),
        (Tensor("output", b"", 1, 2, (0, 1 << 40, 1 << 40)), "output.0"),
    ):
        file.write_bytes(device_file(tensor))
        with pytest.raises(DumpFormatError, match=told):
            read_array(file, read_tensors(file)[0])
    with pytest.raises(DumpFormatError, match="no such file"):
        read_tensors(file.with_name("gone"))
