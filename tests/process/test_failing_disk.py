"""A disk that fails costs what it could not hold, and no more: training goes on, and the dump says that it lacks.

A sample of what ``python -m torture.failing_disk`` tries in full, and each defect that it has shown.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from processes import environment
from recording import leaves, write_config
from repository import ROOT
from small_net import X, gradients, small
from thorough import thorough

import msprobe_ms
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER, DumpStore, EntryPart
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.support.errors import DumpFormatError
from torture.failing_disk.disk import FailingDisk, Fault
from torture.failing_disk.judge import Voice
from torture.failing_disk.real import wrapper
from torture.failing_disk.run import run


@pytest.fixture
def voice() -> Iterator[Voice]:
    heard = Voice()
    with heard.listening():
        yield heard


@pytest.mark.parametrize(
    ("scenario", "every"),
    [
        ("mindspore.mixed L0 statistics", 401),
        thorough(("mindspore.dynamic L0 async", 139)),
        thorough(("mindspore.dynamic mix statistics", 151)),
        thorough(("mindspore.compiled L0 statistics", 131)),
        ("pytorch.dynamic L0 tensor", 197),
    ],
)
def test_calls_that_fail(ms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, every: int) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        outcome = run(scenario, tmp_path, every)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert outcome.problems == []
    assert sum(outcome.figures["cases"].values()) >= 6
    assert outcome.figures["lacking"] > outcome.figures["by_warning_alone"]


#: MindSpore reads the configuration of its kernel dump once a process.
KERNELS = """
import sys
from pathlib import Path
from torture.failing_disk.run import run
outcome = run("mindspore.dynamic L2 tensor", Path(sys.argv[1]), 131)
print(*outcome.problems, sum(outcome.figures["cases"].values()), sep="\\n")
"""


def test_calls_that_fail_where_kernels_are_recorded(tmp_path: Path) -> None:
    done = run_forked("-c", KERNELS, tmp_path, framework="mindspore", cwd=tmp_path, env=environment())
    *problems, cases = done.stdout.splitlines()
    assert (problems, done.returncode) == ([], 0), done.stderr
    assert int(cases) >= 6


def test_disks_that_are_full_and_folders_that_are_closed_or_gone() -> None:
    if wrapper() is None:
        pytest.skip("this system lets nobody mount a file system of his own")
    command = [sys.executable, "-m", "torture.failing_disk", "--real", "--every", "9", "pytorch.dynamic L0 tensor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failing_call_is_found(ms: Any, dump_path: Path) -> None:
    """The disk itself: the n-th call fails, alone or with all after it, half of what was written is there."""
    folder = dump_path.resolve()
    folder.mkdir()
    with FailingDisk(folder, Fault(errno.ENOSPC, frozenset({"write"}), stays=False), 2):
        (folder / "first").write_bytes(b"whole")
        with pytest.raises(OSError, match="No space left"):
            (folder / "second").write_bytes(b"halves")
        (folder / "third").write_bytes(b"whole")
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == [b"whole", b"hal", b"whole"]
    with FailingDisk(folder, Fault(errno.EIO, frozenset({"mkdir", "rename"}), stays=True), 1) as disk:
        for action in (folder.joinpath("inner").mkdir, lambda: os.replace(folder / "first", folder / "other")):
            with pytest.raises(OSError, match="Input/output error"):
                action()
    assert disk.failed == 2
    (folder / "inner").mkdir()


# -- what the dump says ------------------------------------------------------------------------------------------------


def recorded(debugger: PrecisionDebugger, net: Any) -> None:
    debugger.start(net)
    gradients(net)
    debugger.stop()
    debugger.step()


def test_a_dump_says_what_it_lacks(ms: Any, dump_path: Path, voice: Voice) -> None:
    """Tensors of the second step cannot be written: its log, its dump.json, compare and one warning say so."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0", task="tensor"))
    for step in range(3):
        debugger.start(net)
        if step:
            shutil.rmtree(debugger.folder / TENSOR_FOLDER)
            (debugger.folder / TENSOR_FOLDER).write_text("in the way")
        gradients(net)
        debugger.stop()
        debugger.step()
    whole, lacking, also = (dump_path / f"step{step}" / f"proc{os.getpid()}" for step in range(3))
    first, *summaries = voice.warnings
    assert "could not be recorded: FileExistsError" in first
    tensors = sum(1 for _ in leaves(json.loads((whole / "dump.json").read_text())["data"]))
    assert summaries == [f"{folder}: {tensors} problems, see {ERROR_LOG}" for folder in (lacking, also)]
    assert len((lacking / ERROR_LOG).read_text().splitlines()) == tensors
    assert read_dump(whole).damage == ""
    told = json.loads((lacking / "dump.json").read_text())["incomplete"]
    assert told.startswith("Cell.fc.Dense.forward.0.input.0.npy: FileExistsError: ")
    assert told.endswith(f" (the first of {tensors} problems); see {ERROR_LOG}")
    assert read_dump(lacking).damage == f"{lacking / 'dump.json'}: not all could be recorded: {told}"
    result = msprobe_ms.compare(lacking, whole)
    assert result.verdict == "incomplete"
    assert "not all could be recorded" in str(result)


def test_a_dump_that_tells_lies_of_itself_forges_no_line(tmp_path: Path) -> None:
    content = {
        "task": "statistics",
        "level": "L0",
        "framework": "mindspore",
        "data": {},
        "incomplete": "a\x1b[2J\nb" * 999,
    }
    (tmp_path / "dump.json").write_text(json.dumps(content))
    damage = read_dump(tmp_path).damage
    assert damage.isprintable()
    assert len(damage) < 1000


def test_a_step_that_was_refused_is_not_begun_in_the_middle(ms: Any, dump_path: Path, voice: Voice) -> None:
    """Its first segment cannot be recorded; what the second would hold is no whole step."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    dump_path.write_text("in the way")
    debugger.start(net)
    gradients(net)
    debugger.stop()
    dump_path.unlink()
    debugger.start(net)
    gradients(net)
    debugger.stop()
    debugger.step()
    assert not dump_path.exists()
    assert len(voice.warnings) == 1
    recorded(debugger, net)
    assert [path.name for path in dump_path.iterdir()] == ["step1"]


def test_steps_that_are_refused_are_told_once_and_counted(ms: Any, dump_path: Path, voice: Voice) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    dump_path.write_text("in the way")
    for _ in range(5):
        recorded(debugger, net)
    assert len(voice.warnings) == 1
    debugger.retire()
    assert voice.warnings[1:] == ["5 steps are not recorded, the first 0, the last 4: the disk did not allow it"]


def test_a_folder_that_cannot_be_listed(ms: Any, dump_path: Path, voice: Voice) -> None:
    """It holds other processes' dumps or not: no reason to stop training."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    with FailingDisk(dump_path.resolve(), Fault(errno.EACCES, frozenset({"list"}), stays=True), 1):
        recorded(debugger, net)
    assert len(read_dump(dump_path / "step0" / f"proc{os.getpid()}").entries) == 6


def test_a_stale_dump_is_no_whole_one(tmp_path: Path) -> None:
    """Exported at a stop, and what was lost after that can no longer be told in it: the journal says so."""
    store = DumpStore(tmp_path / "rank0", task="statistics", level="L0", framework="mindspore", tensors=False)
    store.entry(EntryPart("Cell.fc.Dense.forward.0", []))
    store.export()
    store.incomplete = "something"
    (tmp_path / "rank0/stack.json").unlink()
    (tmp_path / "rank0/stack.json/in the way").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        store.close()
    assert "run msprobe recover" in read_dump(tmp_path / "rank0").damage


def test_a_log_that_cannot_be_written(ms: Any, dump_path: Path, voice: Voice) -> None:
    """The last warning then says what the log would have."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    fault = Fault(errno.ENOSPC, frozenset({"create", "write"}), stays=True)
    debugger.start(net)
    with FailingDisk(dump_path.resolve(), fault, 1):
        gradients(net)
        debugger.stop()
        debugger.step()
    assert len(voice.warnings) == 2
    assert "not all in dump_error_info.log: call site: OSError: " in voice.warnings[1]
    assert voice.warnings[1].endswith("(No space left on device)")
    with pytest.raises(DumpFormatError, match="run msprobe recover"):
        read_dump(dump_path / "step0" / f"proc{os.getpid()}")


def test_a_call_whose_site_was_lost_is_still_a_call(ms: Any, dump_path: Path, voice: Voice) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    with FailingDisk(dump_path.resolve(), Fault(errno.EIO, frozenset({"write"}), stays=False), 1):
        net(X)
    gradients(net)
    debugger.stop()
    debugger.step()
    dump = read_dump(dump_path / "step0" / f"proc{os.getpid()}")
    assert {"Cell.fc.Dense.forward.0", "Cell.fc.Dense.forward.1"} <= dump.entries.keys()
    assert "call site: OSError" in dump.damage


def test_compare_says_what_only_one_side_has(ms: Any, dump_path: Path, voice: Voice) -> None:
    """A step that was refused, where the other one is compared."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    for _ in range(2):
        recorded(debugger, net)
    golden = shutil.copytree(dump_path, dump_path.with_name("golden"))
    shutil.rmtree(dump_path / "step0")
    assert msprobe_ms.compare(dump_path, golden).verdict == "consistent"
    assert voice.warnings == [f"only in the golden, not compared: step0 proc{os.getpid()}"]
