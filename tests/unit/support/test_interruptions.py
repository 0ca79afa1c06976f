"""What a signal handler of the script's raises is the script's, whatever it is and whatever it has run into."""

from __future__ import annotations

import bdb
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msprobe_ms.frameworks  # noqa: F401 - names what is called
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.files import DEFAULT
from msprobe_ms.support.interruptions import interrupts, suppress_own
from msprobe_ms.support.process import Descriptor


class TooLong(Exception):
    """As scripts call a time limit."""


def plain(number: int, frame: Any) -> None:
    raise TooLong


def of_any_arguments(*arguments: Any) -> None:
    raise TimeoutError


def deeper(number: int, frame: Any) -> None:
    plain(0, None)


class Handler:
    def __call__(self, number: int, frame: Any) -> None:
        raise TooLong

    def method(self, number: int, frame: Any) -> None:
        raise TooLong


@pytest.fixture(autouse=True)
def handlers_as_they_were() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("handler", [plain, of_any_arguments, deeper, Handler(), Handler().method, partial(plain)])
def test_what_a_handler_raises_must_arrive(handler: Callable[..., None]) -> None:
    signal.signal(signal.SIGALRM, handler)
    with pytest.raises((TooLong, TimeoutError)) as raised:
        signal.raise_signal(signal.SIGALRM)
    assert interrupts(raised.value)


def test_a_time_limit_is_not_taken_for_an_error_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def over(*arguments: Any, **keywords: Any) -> None:
        signal.raise_signal(signal.SIGALRM)

    def exists(*arguments: Any, **keywords: Any) -> None:
        raise FileExistsError

    signal.signal(signal.SIGALRM, of_any_arguments)
    with pytest.raises(TimeoutError), suppress_own(OSError):
        over()
    with suppress_own(OSError):
        exists()
    monkeypatch.setattr(os, "mkdir", over)
    with pytest.raises(TimeoutError):
        DEFAULT.make_one_folder(tmp_path)
    with Descriptor(partial(os.open, tmp_path, os.O_RDONLY)) as folder:
        monkeypatch.setattr(os, "fstat", over)
        with pytest.raises(TimeoutError):
            folder.number  # noqa: B018
        monkeypatch.undo()


def test_an_error_stays_here_though_a_handler_is_set() -> None:
    signal.signal(signal.SIGALRM, plain)
    with pytest.raises(ValueError, match="0") as raised:
        raise ValueError("0")
    assert not interrupts(raised.value)


def raised_beneath(error: type[Exception], name: str) -> Exception:
    """An error that comes as code of a module of this name runs."""
    space: dict[str, Any] = {"__name__": name}
    exec("def run(raise_in, *arguments):\n    raise_in(*arguments)\n    while True:\n        pass", space)
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    with pytest.raises(error) as raised:
        space["run"](raise_in, ctypes.c_ulong(threading.get_ident()), ctypes.py_object(error))
    return raised.value


@pytest.mark.parametrize("beneath", ["msprobe_ms.recording.recorder", "contextlib", "torch.utils.hooks", "mindspore"])
def test_what_another_thread_has_raised_here_must_arrive(beneath: str) -> None:
    """Time limits in threads do that, where signals cannot be used."""
    assert interrupts(raised_beneath(TooLong, beneath))


@pytest.mark.parametrize("error", [ValueError, np.linalg.LinAlgError, MsprobeError])
def test_errors_of_what_is_called_stay_here(error: type[Exception]) -> None:
    assert not interrupts(raised_beneath(error, "msprobe_ms.recording.recorder"))


def test_what_code_of_the_script_raises_within_ours_stays_here() -> None:
    """It would not have run without us."""
    assert not interrupts(raised_beneath(TooLong, "users.tensors"))


def test_what_ends_a_debugger_must_arrive() -> None:
    assert interrupts(bdb.BdbQuit())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_what_is_no_error_must_arrive(error: BaseException) -> None:
    assert interrupts(error)
    assert not interrupts(MemoryError())
