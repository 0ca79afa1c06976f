"""Names, tables and tensors of kernel dumps, the framework's own and those that are odd."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_dumps import compiled_dump, lay_out, raw_files

from msprobe_ms.arrays.statistics import statistics
from msprobe_ms.dump.kernels.kernel_files import KernelFile, parse_file_name, read_kernel_files
from msprobe_ms.dump.kernels.launches import launches
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError, MsprobeError

NAME = "MatMul.Default_fc-Dense_MatMul-op0.3.7.1795272790603149.input.1.ND"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_dump(tmp_path_factory.mktemp("kernels") / "dump", kind="forward")


def test_every_file_of_the_framework_is_read(dump: Path) -> None:
    paths = raw_files(dump)
    files = read_kernel_files(paths)
    assert sorted(file.path for file in files) == paths and len(paths) > 100
    assert {file.task for file in files} == {0} and {file.format for file in files} == {"DefaultFormat"}
    for file in files:
        shape, dtype = file.header()
        array = np.load(file.path)
        assert np.array_equal(file.load(), array) and array.shape == shape
        assert dtype is not None and dtype.lower() == array.dtype.name


def test_launches_are_those_of_the_framework(dump: Path) -> None:
    """Every kernel of the graph once in each iteration, whatever ran between."""
    order = (dump / "rank_0/execution_order/ms_execution_order_graph_0.csv").read_text().split()[1:]
    runs = launches(read_kernel_files(raw_files(dump)))
    ran = [run.op_name for run in runs if not run.is_parameter and run.files[0].path.parent.parent.name == "0"]
    # A pass after the table was written may number them anew.
    named = [re.sub(r"-op\d+$", "", name.replace("/", "_")) for name in order] * 2
    assert sorted(re.sub(r"-op\d+$", "", name) for name in ran) == sorted(named)
    assert sum(len(run.files) for run in runs) == len(raw_files(dump))
    moments = [run.timestamp for run in runs]
    assert moments == sorted(moments)


@pytest.mark.parametrize(
    ("tail", "format_", "dtype"),
    [
        ("input.1.ND.npy", "ND", None),
        ("input.1.ND.float32.npy", "ND", "Float32"),
        ("input.1.npy", "", None),
        ("output.12.FRACTAL_Z.BFloat16.bin", "FRACTAL_Z", "BFloat16"),
    ],
)
def test_names_of_every_layout(tail: str, format_: str, dtype: str | None) -> None:
    path = Path(f"MatMul.Default_a.b-Dense_MatMul-op0.3.7.17.{tail}")
    file = parse_file_name(path)
    assert file is not None
    io, slot = tail.split(".")[:2]
    assert file == KernelFile(path, "MatMul", "Default_a.b-Dense_MatMul-op0", 3, 7, 17, io, int(slot), format_, dtype)


PARTS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,12}", fullmatch=True)


@given(
    PARTS, st.lists(PARTS, min_size=1, max_size=4).map(".".join), *[st.integers(0, 10**15)] * 3,
    st.sampled_from(["input", "output"]), st.integers(0, 999),
)  # fmt: skip
def test_names_come_apart_as_they_were_put_together(
    op_type: str, op_name: str, task: int, stream: int, moment: int, io: str, slot: int
) -> None:
    file = parse_file_name(Path(f"{op_type}.{op_name}.{task}.{stream}.{moment}.{io}.{slot}.ND.Float16.npy"))
    assert file is not None
    assert (file.op_type, file.op_name, file.task, file.stream) == (op_type, op_name, task, stream)
    assert (file.timestamp, file.io, file.slot, file.dtype) == (moment, io, slot, "Float16")


@given(st.text(max_size=200))
def test_any_name_is_read_or_passed_over(name: str) -> None:
    parse_file_name(Path("a"), name)


def test_what_is_no_kernel_file_is_passed_over(tmp_path: Path) -> None:
    for name in ("a.npy", "MatMul.x.0.0.1.middle.0.ND.npy", "MatMul.x.0.0.1795272790603149", "notes.txt"):
        (tmp_path / name).touch()
    assert read_kernel_files(tmp_path.iterdir()) == []


def test_long_names_are_translated(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "1.npy", array)
    np.save(tmp_path / "2.npy", array)
    np.save(tmp_path / "3.npy", array)
    long = "MatMul." + "Default_" * 40 + "MatMul-op0.0.0.17.{}.DefaultFormat.Float32"
    (tmp_path / "mapping.csv").write_text(
        f"1,{long.format('input.0')}.npy\n2.npy,{long.format('output.0')}.npy\n3,no kernel\n7,{long}\nbroken\n"
    )
    files = read_kernel_files(tmp_path.iterdir())
    assert [(file.path.name, file.io) for file in files] == [("1.npy", "input"), ("2.npy", "output")]
    assert files[0].op_name == "Default_" * 40 + "MatMul-op0" and np.array_equal(files[1].load(), array)


def test_raw_bfloat16_has_the_exact_bits(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 1 << 16, (5, 7), dtype=np.uint16)
    np.save(tmp_path / f"{NAME}.npy", codes.view("V2"))
    codes.tofile(tmp_path / f"{NAME.replace('input.1', 'input.2')}.BFloat16.bin")
    for file, shape in zip(read_kernel_files(tmp_path.iterdir()), [(5, 7), (35,)], strict=True):
        array = file.load()
        assert array.dtype == np.float32 and array.shape == shape
        assert np.array_equal(array.view(np.uint32).reshape(-1) >> 16, codes.reshape(-1))
        assert file.header()[1] == "BFloat16"


def test_bfloat16_as_the_framework_writes_it(tmp_path: Path) -> None:
    """Its header names a dtype that numpy does not know."""
    root = compiled_dump(tmp_path / "dump", kind="bfloat16")
    files = [file for file in read_kernel_files(raw_files(root)) if file.op_type == "Add"]
    with pytest.raises(ValueError, match="<E2"):
        np.load(files[0].path)
    one, other, total = (file.load() for file in files)
    assert {file.header() for file in files} == {((3, 4), "BFloat16")} and np.array_equal(one, other)
    assert np.allclose(total, 2 * one, rtol=2**-7) and one.any()
    assert not (one.view(np.uint32) & 0xFFFF).any()


def test_the_table_beside_it_tells_what_bytes_are(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    array.tofile(tmp_path / f"{NAME}.bin")
    with pytest.raises(DumpFormatError, match=r"no dtype is known, and a \.bin file holds bytes alone"):
        read_kernel_files([tmp_path / f"{NAME}.bin"])[0].load()
    (tmp_path / "statistic.csv").write_text(
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n"
        'MatMul,Default_fc-Dense_MatMul-op0,3,7,1795272790603149,input,1,12,float16,"(2,3)",5\n'
    )
    (file,) = read_kernel_files([tmp_path / f"{NAME}.bin"])
    assert np.array_equal(file.load(), array) and file.header() == ((2, 3), "Float16")
    (tmp_path / f"{NAME}.bin").write_bytes(b"123")
    with pytest.raises(DumpFormatError, match="3 bytes, which no Float16 of shape"):
        file.load()


@pytest.mark.parametrize("extra", ["", ",Extra"])
def test_rows_of_the_table_are_tensors_too(tmp_path: Path, extra: str) -> None:
    table = tmp_path / "statistic.csv"
    table.write_text(
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,"
        f"Avg Value,L2Norm Value,NaN Count,Positive Inf Count{extra}\n"
        f'Add,Default/Add-op0,1,2,30,output,0,24,Float32,"(2;3)",3.5,-1,0.5,4,0,0{extra}\n'
        f"Add,Default/Add-op0,1,2,20,input,0,1,bool,(),True,False,,,0,0{extra}\n"
        f'Add,Default/Add-op0,1,2,40,output,0,24,Float32,"(2,3)",3.5,-1,0.5,4,2,0{extra}\n'
        f'Add,Default/Add-op0,1,2,50,output,0,24,Float32,"(2,3)",3.5,-1,0.5,4,0,1{extra}\n'
        "Add,Default/Add-op0,1,2,60,outp"
    )
    flag, plain, nans, infinite = read_kernel_files([table])
    assert (plain.dtype, plain.shape, plain.statistics) == ("Float32", (2, 3), (3.5, -1.0, 0.5, 4.0))
    assert (flag.dtype, flag.shape, flag.statistics) == ("Bool", (), (True, False, None, None))
    # A table of the finite ones' figures still says that there are others.
    assert nans.statistics is not None and np.isnan(nans.statistics.maximum)
    assert infinite.statistics is not None and infinite.statistics[:2] == (np.inf, -1.0)
    with pytest.raises(MissingTensorError, match="holds statistics, no tensors"):
        plain.load()


@pytest.mark.parametrize("content", [b"", b"a,b,c\n", b"\xff\xfe\0\0", b'"' * 200_000, b"Op Type\n1\n"])
def test_tables_that_are_none_are_one_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "statistic.csv").write_bytes(content)
    with pytest.raises(DumpFormatError, match=r"statistic\.csv"):
        read_kernel_files([tmp_path / "statistic.csv"])


@given(st.binary(max_size=400), st.sampled_from(["npy", "Float32.bin", "Int3.bin", "bin"]))
def test_no_content_escapes_the_typed_errors(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, tail: str
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    path = folder / f"{NAME}.{tail}"
    path.write_bytes((b"\x93NUMPY\x01\x00" if tail == "npy" else b"") + content)
    (file,) = read_kernel_files([path])
    for read in (file.load, file.header):
        with suppress(MsprobeError):
            read()


def test_pipes_and_pickles_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{NAME}.npy")
    np.save(tmp_path / f"{NAME.replace('input.1', 'input.2')}.npy", np.array([{}], object), allow_pickle=True)
    pipe, pickle = read_kernel_files(tmp_path.iterdir())
    with pytest.raises(DumpFormatError, match="not a regular file"):
        pipe.load()
    with pytest.raises(DumpFormatError, match="accepted are numbers"):
        pickle.load()


def test_a_kernel_that_runs_again_is_another_launch(tmp_path: Path) -> None:
    one = {
        "Add.Default_Add-op0.input.0": np.ones(2, np.float32),
        "Add.Default_Add-op0.output.0": np.ones(3, np.float32),
    }
    lay_out(tmp_path, one, 1000)
    lay_out(tmp_path, one, 1010)
    lay_out(tmp_path / "other", one, 1005)
    runs = launches(read_kernel_files(path for path in tmp_path.rglob("*") if path.is_file()))
    assert [run.timestamp for run in runs] == [1000, 1005, 1010]
    assert all([file.io for file in run.files] == ["input", "output"] for run in runs)


def test_of_outputs_alone_each_is_a_launch(tmp_path: Path) -> None:
    one = {f"Add.Default_Add-op0.output.{slot}": np.ones(2, np.float32) for slot in (0, 1)}
    lay_out(tmp_path, one, 1000)
    lay_out(tmp_path, one, 1010)
    assert [len(run.files) for run in launches(read_kernel_files(tmp_path.iterdir()))] == [2, 2]


def test_figures_of_a_file_are_numpys(dump: Path) -> None:
    file = next(file for file in read_kernel_files(raw_files(dump)) if file.op_type == "LayerNorm")
    array = np.load(file.path)
    assert statistics(file.load()).maximum == float(array.max())
