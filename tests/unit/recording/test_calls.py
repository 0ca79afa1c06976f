"""Call sites as text: whatever the file is that a function says it comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from msprobe_ms.recording.calls import CallSites, Stack


def located(source: str, name: str) -> str:
    """The innermost frame of a call made by ``source``, which says that it comes from the file ``name``."""
    caught: list[FrameType] = []
    exec(compile(source, "", "exec").replace(co_filename=name), {"call": lambda: caught.append(sys._getframe(1))})
    sites = CallSites((), (), keep_frames=True)
    _, texts = sites.number(sites.locate(caught[0], is_module=False).frames)
    assert texts is not None
    return texts[0]


def test_a_line_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("call()  # here\n")
    name = str(tmp_path / "net.py")
    assert located("call()", name) == f"File {name}, line 1, in <module>, \n call()  # here"


@pytest.mark.parametrize("place", ["absolute", "relative", "on the path"])
def test_a_pipe_with_the_name_of_a_source_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    os.mkfifo(tmp_path / "net.py")
    if place == "relative":
        monkeypatch.chdir(tmp_path)
    elif place == "on the path":
        monkeypatch.syspath_prepend(str(tmp_path))
    name = str(tmp_path / "net.py") if place == "absolute" else "net.py"
    assert located("call()", name) == f"File {name}, line 1, in <module>, \n "


@pytest.mark.parametrize("name", ["<string>", "no such file.py", "/dev/zero", "a\0b", ""])
def test_names_that_are_no_file(name: str) -> None:
    assert located("call()", name) == f"File {name}, line 1, in <module>, \n "


def test_what_lies_outside_of_a_call_is_looked_at_once() -> None:
    sites = CallSites((), (), keep_frames=True)

    def inner() -> tuple[Stack, Stack]:
        frame = sys._getframe()
        return sites.locate(frame, is_module=False, around=around), sites.locate(frame, is_module=False)

    def outer() -> tuple[Stack, Stack]:
        return inner()

    around = sites.locate(sys._getframe(), is_module=False)
    around.frames[1:] = [(sys._getframe().f_code, 0)]  # tells what is taken over
    shared, whole = outer()
    assert shared.depth == whole.depth == around.depth + 2
    assert shared.frames[:3] == whole.frames[:3]  # the line of the caller is the present one
    assert shared.frames[3:] == around.frames[1:]
    assert sites.depth(sys._getframe(), around) == sites.depth(sys._getframe()) == around.depth


def test_a_call_from_the_same_caller_is_looked_at_anew() -> None:
    sites = CallSites((), (), keep_frames=True)
    around = sites.locate(sys._getframe(), is_module=False)
    beside = sites.locate(sys._getframe(), is_module=False, around=around)
    assert (beside.depth, beside.frames[1:]) == (around.depth, around.frames[1:])
    assert beside.frames[0][1] == around.frames[0][1] + 1


def test_a_caller_that_was_resumed_from_elsewhere_is_looked_at_anew() -> None:
    sites = CallSites((), (), keep_frames=True)

    def generator() -> Iterator[Stack]:
        around = sites.locate(sys._getframe(), is_module=False)
        yield around

        def inner() -> Stack:
            return sites.locate(sys._getframe(), is_module=False, around=around)

        yield inner()

    def resumed(made: Iterator[Stack]) -> Stack:
        return next(made)

    made = generator()
    first, second = next(made), resumed(made)
    assert second.depth == first.depth + 2  # `inner`, and `resumed`
