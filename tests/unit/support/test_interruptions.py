"""What a signal handler of the script's raises is the script's, whatever it is and whatever it has run into."""

from __future__ import annotations

import bdb
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from msprobe_ms.support.interruptions import interrupts


class TooLong(Exception):
    """As scripts call a time limit."""


def plain(number: int, frame: Any) -> None:
    raise TooLong


def of_any_arguments(*arguments: Any) -> None:
    raise TimeoutError


def deeper(number: int, frame: Any) -> None:
    plain(0, None)


def set_back(number: int, frame: Any) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    raise TooLong


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


@pytest.mark.parametrize(
    "handler", [plain, of_any_arguments, deeper, set_back, Handler(), Handler().method, partial(plain)]
)
def test_what_a_handler_raises_must_arrive(handler: Callable[..., None]) -> None:
    signal.signal(signal.SIGALRM, handler)
    with pytest.raises((TooLong, TimeoutError)) as raised:
        signal.raise_signal(signal.SIGALRM)
    assert interrupts(raised.value)


def test_an_error_stays_here_though_a_handler_is_set() -> None:
    signal.signal(signal.SIGALRM, plain)
    with pytest.raises(ValueError, match="0") as raised:
        raise ValueError("0")
    assert not interrupts(raised.value)


def test_what_ends_a_debugger_must_arrive() -> None:
    assert interrupts(bdb.BdbQuit())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_what_is_no_error_must_arrive(error: BaseException) -> None:
    assert interrupts(error)
    assert not interrupts(MemoryError())
