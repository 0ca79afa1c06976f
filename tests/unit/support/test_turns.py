"""A lock that an interrupt cannot lose."""

from __future__ import annotations

import threading
from collections.abc import Callable

from msprobe_ms.support.turns import Turn


def elsewhere(action: Callable[[], object]) -> bool:
    """Run ``action`` in another thread; whether it ended within a second."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(1)
    return not thread.is_alive()


def enter_and_leave(turn: Turn) -> Callable[[], None]:
    def run() -> None:
        with turn:
            pass

    return run


def test_one_thread_at_a_time_as_often_as_it_likes() -> None:
    turn = Turn()
    with turn:
        with turn:
            assert not elsewhere(enter_and_leave(turn))
        assert not elsewhere(enter_and_leave(turn))
    assert elsewhere(enter_and_leave(turn))


def test_what_a_thread_kept_is_given_back() -> None:
    turn = Turn()
    turn.__enter__()
    with turn:
        turn.give_back()
    assert elsewhere(enter_and_leave(turn))
    turn.give_back()  # nothing is left


def test_nobody_waits_for_ever() -> None:
    turn = Turn(longest=0.1)
    assert elsewhere(turn.__enter__), "a thread that ended with the turn"
    assert elsewhere(enter_and_leave(turn))
    assert elsewhere(enter_and_leave(turn))
