"""``msprobe doctor``: what works here, found in real frameworks, and what to do about what does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from msprobe_ms.cli.main import main
from msprobe_ms.doctor import examine


@pytest.mark.processes
def test_levels_are_told_by_framework_and_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--dump_path", str(tmp_path / "dumps")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "ok  MindSpore, dynamic graphs: level L0, L1, mix, L2, debug" in told
    assert "ok  MindSpore, compiled graphs: level L0, L2, debug; not L1, mix" in told
    assert "ok  PyTorch, eager mode: level L0, L1, mix, debug; not L2" in told
    assert f"ok  {tmp_path / 'dumps'} can be written" in told
    assert told[-1] == "nothing has to be put right"
    assert not (tmp_path / "dumps").exists()


def test_what_is_wrong_has_its_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(examine, "FRAMEWORKS", {"no_such_framework": ("MindSpore", "mindspore")})
    (tmp_path / "file").write_text("")
    assert main(["doctor", "--dump_path", str(tmp_path / "file")]) == 2
    told = capsys.readouterr().out
    assert '--  MindSpore is not installed\n      to record it: pip install "msprobe-ms[mindspore]"\n' in told
    assert f'!!  dump_path "{tmp_path / "file"}" is' in told or f"!!  dump_path {tmp_path}" in told
    assert told.endswith("1 thing has to be put right, see !! above\n")


@pytest.mark.processes
def test_a_framework_that_cannot_be_imported_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so: cannot open shared object file')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(examine, "FRAMEWORKS", {"torch": ("PyTorch", "pytorch")})
    assert main(["doctor", "--dump_path", str(tmp_path)]) == 2
    told = capsys.readouterr().out
    assert "!!  PyTorch cannot be used: ImportError: libtorch.so: cannot open shared object file" in told


@pytest.mark.parametrize(
    ("free", "told"),
    [
        (20e9, "ok  20.0 GB free where "),
        (6e8, "enough for task statistics (about 2 kB for each call)"),
        (5e7, "this may be too little for any dump"),
    ],
)
def test_little_free_disk_is_a_warning_and_no_fault(
    free: float, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(examine, "FRAMEWORKS", {})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=int(free)))
    assert main(["doctor", "--dump_path", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert told in printed and "!!" not in printed
