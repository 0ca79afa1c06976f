"""``convert -d``: the tensors of dump files of Ascend's devices as files of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.arrays.layouts import pack
from msprobe_ms.cli.main import main
from tests.device_files import Tensor, device_file, field, of

NAME = "Conv2D.conv.3.2.1700000000000000"
IMAGE = np.arange(1, 1 + 2 * 17 * 3 * 2, dtype=np.float16).reshape(2, 17, 3, 2)
MATRIX = np.arange(1, 1 + 3 * 20 * 35, dtype=np.float32).reshape(3, 20, 35)
CODES = np.arange(6, dtype=np.uint8)


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of two inputs, one output, a buffer and a workspace; the working folder is an empty one."""
    (tmp_path / "dump").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    file = tmp_path / "dump" / NAME
    file.write_bytes(
        device_file(
            of("input", pack(IMAGE, "NCHW", "NC1HWC0", 16), 2, 3, IMAGE.shape),
            of("input", CODES, 4),
            of("output", pack(MATRIX, "ND", "FRACTAL_NZ", 16), 1, 29, MATRIX.shape),
            Tensor("l1buffer", b"buffer"),
            Tensor("space", b"space"),
        )
    )
    return file


def written(folder: str | Path = ".") -> list[str]:
    return sorted(file.name.removeprefix(NAME + ".") for file in Path(folder).iterdir())


def read(name: str) -> np.ndarray:
    array: np.ndarray = np.load(f"{NAME}.{name}")
    return array


def test_a_file_is_written_as_it_is_stored(dump: Path) -> None:
    assert main(["convert", "-d", str(dump)]) == 0
    assert written() == ["input.0.npy", "input.1.npy", "l1buffer.0.bin", "output.0.npy", "space.0.bin"]
    np.testing.assert_array_equal(read("input.0.npy"), pack(IMAGE, "NCHW", "NC1HWC0", 16))
    assert Path(f"{NAME}.space.0.bin").read_bytes() == b"space"


def test_a_layout_is_asked_for_and_its_original_shape_cuts_the_padding(dump: Path) -> None:
    assert main(["convert", "-d", str(dump), "-f", "nchw", "-i", "0"]) == 0
    assert main(["convert", "-d", str(dump), "-f", "ND", "-o", "0"]) == 0
    assert written() == ["input.0.2x17x3x2.npy", "output.0.3x20x35.npy"]
    np.testing.assert_array_equal(read("input.0.2x17x3x2.npy"), IMAGE)
    np.testing.assert_array_equal(read("output.0.3x20x35.npy"), MATRIX)


def test_a_shape_in_the_order_of_the_layout_asked_for_comes_first(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["convert", "-d", str(dump), "-f", "NHWC", "-i", "0"]
    assert main(command) != 0
    assert "NHWC of 2x17x3x2 is 2x1x17x3x16 in NC1HWC0, stored is 2x2x3x2x16" in capsys.readouterr().err
    assert main([*command, "-s", "2,3,2,17"]) == 0
    np.testing.assert_array_equal(read("input.0.2x3x2x17.npy"), IMAGE.transpose(0, 2, 3, 1))
    assert "padding" not in capsys.readouterr().out
    assert main([*command, "-s", "2,3,2,18"]) == 0 and main([*command, "-s", "2,3,2,16"]) != 0
    assert "padding" not in capsys.readouterr().out
    assert main(["convert", "-d", str(dump), "-f", "ND", "-o", "0", "-s", "3,20,34"]) == 0
    assert "; its padding is not zero, so the shape may be another" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "name"), [("bin", "input.1.6.uint8.ND.bin"), ("msnpy", "input.1.ND.npy"), ("txt", "input.1.txt")]
)
def test_every_kind_of_file_holds_the_same_numbers(dump: Path, kind: str, name: str) -> None:
    assert main(["convert", "-d", str(dump), "-out", "out", "-i", "1", "-t", kind]) == 0
    assert written("out") == [name]
    path = Path("out", f"{NAME}.{name}")
    found = {
        "bin": lambda: np.frombuffer(path.read_bytes(), np.uint8), "msnpy": lambda: np.load(path),
        "txt": lambda: np.loadtxt(path),
    }[kind]()  # fmt: skip
    np.testing.assert_array_equal(found, CODES)


def test_a_folder_or_several_files_cost_only_what_is_bad(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (dump.parent / "bad").write_bytes(b"nothing of this kind")
    (dump.parent / "below").mkdir()
    (dump.parent / "link").symlink_to("/etc/hostname")
    assert main(["convert", "-d", str(dump.parent), "--output", "out", "-v", "1"]) != 0
    told = capsys.readouterr()
    assert "bad: no dump file of an Ascend device" in told.err
    assert "link: a link that leaves the folder" in told.err and "5 converted, 2 not" in told.err
    assert len(written("out")) == 5
    assert main(["convert", "-d", f"{dump},{dump}", "-out", "out", "--overwrite"]) != 0
    assert "another tensor of this run became it" in capsys.readouterr().err


def test_what_is_larger_than_the_memory_costs_only_itself(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = 1 << 40
    message = field(8, field(3, size))  # a workspace
    with (dump.parent / "large").open("wb") as file:
        file.write(len(message).to_bytes(8, "little") + message)
        file.truncate(file.tell() + size)
    assert main(["convert", "-d", str(dump.parent), "-out", "out"]) == 2
    told = capsys.readouterr().err
    assert "large: not enough memory for it" in told and "5 converted, 1 not" in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["-o", "0", "-i", "0"], "-o and -i exclude each other"),
        (["-o", "out"], "-o out is no index; with -d, -out is the folder and -o a number from 0"),
        (["-o", "7"], "no such tensor in it"),
        (["-t", "pt"], "torch.from_numpy(numpy.load(file)) reads what -t npy writes"),
        (["-c", "scripts"], "-c runs code from a folder, which is refused"),
        (["--to", "csv"], "-d stands alone"),
        (["-f", "NCWH"], "NCWH is no layout that is read; accepted are NCHW, NHWC, "),
    ],
)
def test_what_is_refused_says_why(dump: Path, more: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-d", str(dump), *more]) != 0
    assert told in capsys.readouterr().err
    assert not written()


def test_a_file_that_exists_stays(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"{NAME}.input.1.npy").write_bytes(b"mine")
    assert main(["convert", "-d", str(dump), "-i", "1"]) != 0
    assert "exists; --overwrite replaces it" in capsys.readouterr().err
    assert main(["convert", "-d", str(dump), "-i", "1", "--overwrite"]) == 0
    np.testing.assert_array_equal(read("input.1.npy"), CODES)
