"""``msprobe parse``: tensor files at a prompt."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from compare_parts import scale_against_good
from large_files import large_npy

from msprobe_ms.cli.main import main


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    golden = np.arange(20, dtype=np.float32).reshape(4, 5)
    target = golden.copy()
    target[2, 3] = np.float32(13.5)
    np.save("golden.npy", golden)
    np.save("target.npy", target)
    np.save("turned.npy", golden.T)
    large_npy(Path("large.npy"))
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *lines: str) -> tuple[int, str, str]:
    """The exit status, and what was said on standard output and error."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    status = main(["parse"])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_tensor_file(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = typed(monkeypatch, capsys, "pt -n golden.npy", "exit", "pt -n never.npy")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "golden.npy: float32 [4, 5]",
        f"max 19.0, min 0.0, mean 9.5, norm {np.linalg.norm(np.arange(20.0))}",
        "NaN 0, infinite 0, zero 1",
        "first elements [0.0, 1.0, 2.0, 3.0, 4.0], last [15.0, 16.0, 17.0, 18.0, 19.0]",
    ]


def test_two_tensor_files(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = typed(monkeypatch, capsys, "cn -m target.npy -g golden.npy", "cn -m turned.npy -g golden.npy")
    lines = out.splitlines()
    assert status == 0 and "MaxAbsErr: 0.5" in lines
    assert "1 of 20 elements differ" in lines and "at [2, 3]: target 13.5, golden 13.0" in lines
    assert lines[-1] == "equal when transposed"


def test_files_and_dumps(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scale_against_good(files / "dumps")
    lines = ("dc -n golden.npy -f txt -out texts", "vc -m dumps/scale -g dumps/good")
    status, out, _ = typed(monkeypatch, capsys, *lines)
    assert status == 0 and "\nDIVERGENT" in out
    assert np.array_equal(np.loadtxt("texts/golden.txt").reshape(4, 5), np.load("golden.npy"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pt", "msprobe: pt: the following arguments are required: -n; pt -h tells its options"),
        ("pt -n nowhere.npy", "msprobe: nowhere.npy: "),
        ('pt -n "golden.npy', "msprobe: No closing quotation"),
        ("cn -m golden.npy -g", "msprobe: cn: argument -g: expected one argument; cn -h tells its options"),
        ("cad", "msprobe: cad: no command; accepted are pt, cn, dc, vc, help, exit"),
        ("dc -n golden.npy -f onnx", "msprobe: dc: argument -f: invalid choice: 'onnx'"),
        ("vc -m nowhere -g nowhere", "msprobe: nowhere"),
        ("pt -n a\0b.npy", "msprobe: "),
        ("pt -n large.npy", "msprobe: not enough memory"),
    ],
)
def test_a_line_that_cannot_be_done_costs_itself(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    status, out, err = typed(monkeypatch, capsys, line, "", "pt -n golden.npy", "pt -h", "help")
    assert status == 2 and err.startswith(said) and "Traceback" not in err
    assert out.startswith("golden.npy: float32 [4, 5]\n") and "usage: pt" in out and "commands at the prompt" in out
