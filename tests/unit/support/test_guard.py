"""Errors of our own work are told, and reach nobody; those of the user, and interrupts, arrive."""

from __future__ import annotations

import threading
from typing import NoReturn

import pytest

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.guard import guarded
from msprobe_ms.support.translation import tr
from msprobe_ms.support.turns import Turn


class Watched:
    """What is told and done, in order; it is its own ``quiet``."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.turn = Turn(0.1)

    def run(self, error: BaseException | None, *, instead: bool = True) -> list[str]:
        def action() -> None:
            self.done.append("action")
            if error is not None:
                raise error

        def failed(told: Exception) -> None:
            self.done.append(f"failed: {told}")

        put_back = (lambda: self.done.append("instead")) if instead else None
        guarded(action, lambda: self.turn, lambda: self, failed, put_back)
        return self.done

    def restore(self) -> None:
        self.done.append("restored")

    def is_free(self) -> bool:
        """Whether another thread has the turn at once."""
        lock, had = self.turn._lock, []
        other = threading.Thread(target=lambda: had.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
        return had == [True]


def test_what_succeeds_is_done_and_what_an_error_caught_within_it_left_is_put_back() -> None:
    watched = Watched()
    assert watched.run(None) == ["action", "restored"]
    assert watched.is_free()


@pytest.mark.parametrize("instead", [True, False])
def test_an_error_of_ours_is_told_and_goes_no_further(instead: bool) -> None:
    watched = Watched()
    done = watched.run(ValueError("ours"), instead=instead)
    assert done == ["action", "restored", "failed: ours", *(["instead"] if instead else [])]
    assert watched.is_free()


def test_a_mistake_of_the_user_arrives_without_our_frames() -> None:
    watched = Watched()
    with pytest.raises(UsageError, match="give a model") as raised:
        watched.run(UsageError("give a model"))
    assert watched.done == ["action", "restored"]
    assert [entry.name for entry in raised.traceback][-1] == "guarded"
    assert watched.is_free()


def test_an_interrupt_arrives_once_all_is_put_back() -> None:
    watched = Watched()
    with pytest.raises(KeyboardInterrupt):
        watched.run(KeyboardInterrupt())
    assert watched.done == ["action", "restored", "instead"]
    assert watched.is_free()


def test_what_fails_in_telling_or_in_putting_back_hides_no_interrupt() -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError("no room to say it")

    watched = Watched()
    with pytest.raises(KeyboardInterrupt):
        guarded(lambda: watched.run(KeyboardInterrupt()) and None, lambda: watched.turn, lambda: watched, fail, fail)
    assert watched.is_free()


@pytest.mark.parametrize("of_telling", [RecursionError, MemoryError, ValueError])
def test_an_error_of_which_nothing_can_be_told_goes_no_further(of_telling: type[Exception]) -> None:
    def fail(*_: object) -> NoReturn:
        raise of_telling

    watched = Watched()
    guarded(fail, lambda: watched.turn, lambda: watched, fail, lambda: watched.done.append("instead"))
    assert watched.done == ["restored", "instead"] and watched.is_free()


class WithoutText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_without_a_text_is_told_as_what_it_is_and_reaches_nobody() -> None:
    told: list[str] = []

    def action() -> NoReturn:
        raise WithoutText

    turn = Turn(0.1)
    guarded(
        action, lambda: turn, Watched, lambda error: told.append(tr("start: {error}; training goes on", error=error))
    )
    assert told == ["start: <WithoutText>; training goes on"]
