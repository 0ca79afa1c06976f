"""``msprobe convert``: what is written is what the file held, whoever wrote it."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msprobe_ms.cli.main import main
from msprobe_ms.convert import write_csv, write_text

VALUES = np.float32([[1.1, -2.5e-30, 3e30], [0.1, np.nan, -np.inf]])


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: object) -> tuple[int, str, str]:
        status = main(["convert", *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def saved(path: Path, values: np.ndarray = VALUES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".pt":
        torch.save(torch.from_numpy(values), path)
    else:
        values.tofile(path)
    return path


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(2, 150_000), (150_000, 2), (1 << 16,), (3, 1 << 16)])
def test_rows_of_any_length_are_written_in_parts(dtype: str, shape: tuple[int, ...]) -> None:
    """Neither a long row nor many make a long text at once."""

    class Parts(io.BytesIO):
        longest = 0

        def write(self, data: Any) -> int:
            self.longest = max(self.longest, len(data))
            return super().write(data)

    array = np.arange(math.prod(shape), dtype=dtype).reshape(shape)
    file = Parts()
    write_csv(file, array, dtype)
    lines = file.getvalue().decode().splitlines()
    assert len(lines) == shape[0] and {line.count(",") for line in lines} == {math.prod(shape[1:]) - 1}
    read = np.array(file.getvalue().decode().replace("\n", ",").rstrip(",").split(","), dtype)
    np.testing.assert_array_equal(read.reshape(shape), array)
    assert file.longest < 2 << 20


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int64, np.uint64, np.bool_, np.complex64]),
        arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    )
)
def test_text_reads_back_to_the_bit(array: np.ndarray) -> None:
    text, table = io.BytesIO(), io.BytesIO()
    write_text(text, array, array.dtype.name)
    write_csv(table, array, array.dtype.name)
    assert text.getvalue().splitlines()[0].decode() == f"# shape {array.shape} dtype {array.dtype.name}"
    if not array.size:
        assert table.getvalue() == b""
        return
    kind = complex if array.dtype.kind == "c" else bool if array.dtype == bool else array.dtype
    read = np.loadtxt(io.BytesIO(text.getvalue()), dtype=int if kind is bool else kind).astype(array.dtype)
    np.testing.assert_array_equal(read.reshape(array.shape), array)
    rows = np.loadtxt(io.BytesIO(table.getvalue()), dtype=int if kind is bool else kind, delimiter=",", ndmin=2)
    assert rows.shape[1] == (array.shape[-1] if array.ndim > 1 else 1)
    np.testing.assert_array_equal(rows.astype(array.dtype).reshape(array.shape), array)


@pytest.mark.parametrize("name", ["a.npy", "a.pt"])
def test_one_file_to_every_format(name: str, tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    path = saved(tmp_path / name)
    status, out, err = convert(path, "--to", "txt")
    assert (status, err) == (0, "") and out == f"{tmp_path}/a.txt: float32 (2, 3)\n"
    assert (tmp_path / "a.txt").read_text() == ("# shape (2, 3) dtype float32\n1.1 -2.5e-30 3e+30\n0.1 nan -inf\n")
    assert convert(path, "--to", "csv", "-o", tmp_path / "csv")[0] == 0
    assert (tmp_path / "csv" / "a.csv").read_text() == "1.1,-2.5e-30,3e+30\n0.1,nan,-inf\n"
    assert convert(path, "--to", "npy", "-o", tmp_path / "npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "npy" / "a.npy"), VALUES)


def test_narrow_floats_become_float32_and_it_is_said(
    tmp_path: Path, convert: Callable[..., tuple[int, str, str]]
) -> None:
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        torch.save(torch.linspace(-2, 2, 6).reshape(2, 3).to(dtype), tmp_path / "a.pt")
        status, out, _ = convert(tmp_path / "a.pt", "--to", "npy", "--overwrite")
        assert status == 0 and out.endswith(f"{str(dtype).partition('.')[2]} (2, 3), as float32\n")
        expected = torch.linspace(-2, 2, 6).reshape(2, 3).to(dtype).float().numpy()
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)
    # As numpy saves MindSpore's bfloat16: two bytes without a type.
    np.save(tmp_path / "b.npy", mindspore.Tensor([1.5, -2.0], mindspore.bfloat16).asnumpy())
    status, _, err = convert(tmp_path / "b.npy", "--to", "txt")
    assert status == 2 and "say what it is with --dtype" in err
    assert convert(tmp_path / "b.npy", "--to", "txt", "--dtype", "bfloat16")[0] == 0
    assert (tmp_path / "b.txt").read_text() == "# shape (2,) dtype bfloat16\n1.5\n-2.0\n"


def test_more_axes_as_text_and_as_rows(tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    saved(tmp_path / "a.npy", np.arange(8).reshape(2, 2, 2))
    assert convert(tmp_path / "a.npy", "--to", "txt")[0] == 0
    assert (tmp_path / "a.txt").read_text() == "# shape (2, 2, 2) dtype int64\n# [0]\n0 1\n2 3\n# [1]\n4 5\n6 7\n"
    assert convert(tmp_path / "a.npy", "--to", "csv")[1].endswith("int64 (2, 2, 2), as 4 rows of 2\n")
    assert (tmp_path / "a.csv").read_text() == "0,1\n2,3\n4,5\n6,7\n"


def test_bytes_are_what_the_user_says(tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    path = saved(tmp_path / "a.bin")
    status, _, err = convert(path, "--to", "npy")
    assert status == 2 and "no dtype is known" in err and "say what it is with --dtype and --shape" in err
    assert convert(path, "--to", "npy", "--dtype", "float32", "--shape", "2,3")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), VALUES)
    status, _, err = convert(path, "--to", "npy", "--dtype", "float32", "--shape", "2,4", "--overwrite")
    assert status == 2 and "24 bytes, which no float32 of shape (2, 4) takes" in err
    assert convert(path, "--to", "npy", "--dtype", "float32", "--overwrite")[1].endswith("--shape says so\n")


def test_bytes_are_what_the_dump_beside_them_says(tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    name = "Functional.relu.0.forward.output.0.bin"
    saved(tmp_path / "dump_tensor_data" / name)
    leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2, 3], "data_name": name}
    data = {"Functional.relu.0.forward": {"input_args": [], "output": [leaf]}}
    (tmp_path / "dump.json").write_text(json.dumps({"task": "tensor", "level": "L1", "data": data}))
    status, out, _ = convert(tmp_path / "dump_tensor_data", "--to", "npy", "-o", tmp_path / "out")
    assert status == 0 and out.endswith("Float32 (2, 3)\n")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / name.replace(".bin", ".npy")), VALUES)


def test_bytes_of_kernels_are_what_their_names_say(
    tmp_path: Path, convert: Callable[..., tuple[int, str, str]]
) -> None:
    name = "MatMul.Default_fc-MatMul-op0.0.0.17.input.1.DefaultFormat.Float32"
    saved(tmp_path / f"{name}.bin")
    assert convert(tmp_path / f"{name}.bin", "--to", "npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), VALUES.reshape(-1))


def test_nothing_is_overwritten_unasked(tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    saved(tmp_path / "a.npy")
    (tmp_path / "a.txt").write_text("mine")
    status, _, err = convert(tmp_path / "a.npy", "--to", "txt")
    assert status == 2 and "a.txt exists; --overwrite replaces it" in err and (tmp_path / "a.txt").read_text() == "mine"
    assert convert(tmp_path / "a.npy", "--to", "txt", "--overwrite")[0] == 0
    assert (tmp_path / "a.txt").read_text().startswith("# shape")
    status, _, err = convert(tmp_path / "a.npy", "--to", "npy", "--overwrite")
    assert status == 2 and "give another folder with -o" in err
    # Two files that would become one: the first is kept.
    saved(tmp_path / "a.pt", VALUES * 2)
    out = tmp_path / "out"
    status, _, err = convert(tmp_path / "a.npy", tmp_path / "a.pt", "--to", "npy", "-o", out, "--overwrite")
    assert status == 2 and "another file of this run became it" in err
    np.testing.assert_array_equal(np.load(out / "a.npy"), VALUES)


def test_a_bad_file_costs_itself_alone(tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    folder = tmp_path / "data"
    saved(folder / "good.npy")
    saved(folder / "below" / "good.pt")
    whole = saved(folder / "cut.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-3])
    (folder / "garbage.pt").write_bytes(b"garbage")
    np.save(folder / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    saved(tmp_path / "outside.npy")
    os.symlink(tmp_path / "outside.npy", folder / "link.npy")
    os.symlink(folder / "good.npy", folder / "inside.npy")
    os.mkfifo(folder / "pipe.npy")
    (folder / "notes.md").write_text("no tensor")
    status, out, err = convert(folder, tmp_path / "nowhere.npy", "--to", "txt", "-o", tmp_path / "out")
    assert status == 2
    assert sorted(str(each.relative_to(tmp_path / "out")) for each in (tmp_path / "out").rglob("*.txt")) == [
        "below/good.txt", "good.txt", "inside.txt",
    ]  # fmt: skip
    assert out.count("\n") == 3 and err.count("\n") == 7 and err.endswith("msprobe: 3 converted, 6 not\n")
    for text in (
        "cut.npy: shape (2, 3) of float32 takes 24 bytes, 21 are there",
        "garbage.pt: not a file of torch.save",
        "pickled.npy: dtype object",
        "link.npy: a link that leaves the folder",
        "pipe.npy: not a regular file",
        "nowhere.npy: no such file",
    ):
        assert text in err


def test_a_folder_without_tensors_is_told(tmp_path: Path, convert: Callable[..., tuple[int, str, str]]) -> None:
    assert convert(tmp_path, "--to", "txt") == (2, "", "msprobe: no .npy, .bin or .pt in it\n")
    with pytest.raises(SystemExit):
        convert(tmp_path, "--to", "txt", "--shape", "2,x")
