"""Hooks that read the gradients of single calls, with numbers for gradients."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from msprobe_ms.frameworks.gradients.hooks import Gathering, HandedThrough, OneUse, Places, Result, Results, SoleUse


class Numbers:
    """What the hooks ask of a graph whose gradients are numbers."""

    def __init__(self) -> None:
        self.ends: list[Callable[[], None]] = []

    def add(self, total: int, gradient: int) -> int:
        return total + gradient

    def when_backward_ends(self, report: Callable[[], None]) -> None:
        self.ends.append(report)


@pytest.fixture
def graph() -> Any:
    return Numbers()


def test_the_only_use_reports_at_once(graph: Any) -> None:
    """Two of its inputs are the same argument, the last takes a part of the gradient, the second has none."""
    came: list[Any] = []
    hook = SoleUse(graph, 3, came.append, [(0, (0, None)), (1, (1, None)), (2, (0, None)), (3, (2, lambda g: g // 10))])
    hook((1, None, 2, 50), ())
    hook((3, 4, None, None), ())
    assert came == [[3, None, 5], [3, 4, None]]


def test_several_uses_report_when_the_last_has_come(graph: Any) -> None:
    came: list[Any] = []
    gathering = Gathering(graph, 2, came.append, 3)
    hooks = OneUse(gathering, [(0, (0, None))]), OneUse(gathering, [(1, (0, None))])
    hooks[0]((1, 7), ())
    hooks[1]((7, 2), ())
    assert came == [None, None]
    HandedThrough(gathering, [1])(5)
    assert came[-1] == [3, 5]
    assert len(graph.ends) == 1
    graph.ends[0]()
    assert len(came) == 4  # all had come


def test_what_did_not_come_is_not_waited_for(graph: Any) -> None:
    came: list[Any] = []
    OneUse(Gathering(graph, 1, came.append, 2), [(0, (0, None))])((4,), ())
    graph.ends[0]()
    assert came == [None, [4]]


def test_results_report_as_they_come() -> None:
    came: list[Any] = []
    Result(3, None, came.append, 1)(8)
    Results(3, None, came.append, [(1, 0), (0, 2)])((5, 6))
    assert came == [[None, 8, None], [6, None, 5]]


def test_errors_are_told(graph: Any) -> None:
    came: list[Any] = []
    gathering, error = Gathering(graph, 1, came.append, 1), ValueError("no gradient")
    SoleUse(graph, 1, came.append, [(3, (0, None))])((), ())
    OneUse(gathering, [(3, (0, None))])((), ())
    HandedThrough(gathering, [0])(error)
    Result(1, None, came.append, 0)(error)
    Results(1, None, came.append, [(3, 0)])(())
    assert [type(each) for each in came] == [IndexError, IndexError, ValueError, ValueError, IndexError]


def test_each_is_one_object(graph: Any) -> None:
    places: Places = [(0, (0, None))]
    gathering = Gathering(graph, 1, print, 2)
    makers: list[Callable[[], Any]] = [
        lambda: SoleUse(graph, 1, print, places),
        lambda: OneUse(gathering, places),
        lambda: HandedThrough(gathering, [0]),
        lambda: Result(1, None, print, 0),
        lambda: Results(1, None, print, []),
    ]
    for make in makers:
        gc.collect()
        before = len(gc.get_objects())
        made = [make() for _ in range(100)]
        assert len(gc.get_objects()) - before <= 2 * len(made) + 10, type(made[0])  # itself, and what it is given
