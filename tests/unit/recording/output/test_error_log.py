"""The tool's own errors of a step: a line in the log of its folder, a warning a kind, and word of what is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from msprobe_ms.dump.writing.journal import JournalWriter
from msprobe_ms.dump.writing.writer import ERROR_LOG
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.support.folder import Folder


@pytest.fixture
def losses() -> list[str]:
    return []


def lines(folder: Path) -> list[str]:
    return (folder / ERROR_LOG).read_text().splitlines()


def test_what_is_lost_is_said_to_whoever_wants_to_know(tmp_path: Path, losses: list[str], warnings: list[str]) -> None:
    errors = ErrorLog(Folder(tmp_path), set(), losses.append)
    errors.report(ValueError("first\nand a call stack"), "Cell.fc.Dense.forward.0")
    errors.report(ValueError("second"), "Cell.fc.Dense.forward.1")
    errors.report(KeyError("costs nothing"), "stop", lost=False)
    first = f"Cell.fc.Dense.forward.0: ValueError: first; see {ERROR_LOG}"
    assert losses == [first, first.replace(";", " (the first of 2 problems);")]
    assert len(lines(tmp_path)) == 3
    assert "Training goes on; further cases are only in" in warnings[0]
    errors.warn_of_count()
    assert warnings[-1] == f"{tmp_path}: 3 problems, see {ERROR_LOG}"


def test_a_pipe_with_the_name_of_a_source_is_not_waited_for(tmp_path: Path, losses: list[str]) -> None:
    """The error says where it was raised, in a file that need not be one."""
    os.mkfifo(tmp_path / "net.py")
    errors = ErrorLog(Folder(tmp_path), set(), losses.append)
    try:
        exec(compile("1 / 0", str(tmp_path / "net.py"), "exec"), {})
    except ZeroDivisionError as error:
        errors.report(error, "somewhere")
    (line,) = lines(tmp_path)
    assert line.endswith(f"somewhere: ZeroDivisionError: division by zero ({tmp_path / 'net.py'}:1)")


def test_an_error_of_the_system_is_warned_of_once_in_all_steps(tmp_path: Path, warnings: list[str]) -> None:
    before: set[str] = set()
    for step in range(3):
        folder = tmp_path / str(step)
        folder.mkdir()
        errors = ErrorLog(Folder(folder), before, lambda text: None)
        errors.report(OSError(errno.ENOSPC, "No space left on device"), "a.npy")
        assert len(lines(folder)) == 1
    assert len(warnings) == 1
    assert "the disk is full or read-only" in warnings[0]


def test_what_comes_when_all_is_closed_is_no_error(tmp_path: Path, losses: list[str], warnings: list[str]) -> None:
    """A call of another thread that ends after its step."""
    folder = Folder(tmp_path)
    errors, journal = ErrorLog(folder, set(), losses.append), JournalWriter(folder, b"D", b"{}")
    journal.close()
    folder.close()
    for action in (lambda: journal.append(b"E", b"{}"), lambda: folder.make_folder("dump_tensor_data")):
        with pytest.raises(OSError, match="closed") as caught:
            action()
        errors.report(caught.value, "Cell.fc.Dense.forward.0")
    errors.warn_of_count()
    assert (errors.count, losses, warnings) == (0, [], [])


def test_a_log_whose_folder_was_moved_goes_on_there(tmp_path: Path) -> None:
    (tmp_path / "rank0").mkdir()
    errors = ErrorLog(Folder(tmp_path / "rank0"), set(), lambda text: None)
    assert not errors.is_written
    errors.note("one")
    (tmp_path / "rank0").rename(tmp_path / "moved")
    errors.note("two")
    errors.note("two")
    assert [line.rpartition(" ")[2] for line in lines(tmp_path / "moved")] == ["one", "two"]


def test_a_log_takes_over_the_lines_of_another(tmp_path: Path) -> None:
    logs = []
    for name in ("kept", "empty", "discarded"):
        (tmp_path / name).mkdir()
        logs.append(ErrorLog(Folder(tmp_path / name), set(), lambda text: None))
    kept, empty, discarded = logs
    kept.note("one")
    discarded.note("two")
    kept.absorb(empty)
    kept.absorb(discarded)
    assert [line.rpartition(" ")[2] for line in lines(tmp_path / "kept")] == ["one", "two"]


def test_what_must_arrive_at_the_script_is_raised_once_it_is_said(tmp_path: Path, losses: list[str]) -> None:
    errors = ErrorLog(Folder(tmp_path), set(), losses.append)
    with pytest.raises(KeyboardInterrupt):
        errors.report(KeyboardInterrupt(), "Cell.fc.Dense.forward.0")
    assert losses == [f"Cell.fc.Dense.forward.0: KeyboardInterrupt: ; see {ERROR_LOG}"] and len(lines(tmp_path)) == 1


def test_a_loss_that_could_not_be_said_is_said_later(tmp_path: Path) -> None:
    """As where the stack is used up."""
    told: list[str] = []

    def on_loss(text: str) -> None:
        told.append(text)
        if len(told) == 1:
            raise RecursionError

    errors = ErrorLog(Folder(tmp_path), set(), on_loss)
    errors.report(RecursionError("of the call"), "Cell.fc.Dense.forward.0")
    errors.tell_losses()
    errors.tell_losses()
    assert told == [f"Cell.fc.Dense.forward.0: RecursionError: of the call; see {ERROR_LOG}", told[1]]
    assert told[1].startswith("Cell.fc.Dense.forward.0: RecursionError: of the call")
