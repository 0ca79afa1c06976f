"""Call sites as text: whatever the file is that a function says it comes from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import pytest

from msprobe_ms.recording.calls import CallSites


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
