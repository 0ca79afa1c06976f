"""Call sites: the user's own lines, none of ours, none of the framework's machinery."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from recording import read_step, recording

import msprobe_ms
from msprobe_ms.recording.calls import CallSites

X = Tensor(np.array([[0.5, -1]], np.float32))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 2)

    def construct(self, x: Tensor) -> Tensor:
        x = self.fc(x)  # the line of the Cell
        return helper(x)


def helper(x: Tensor) -> Tensor:
    return ops.exp(x + 1)  # the line of the APIs


def line_of(text: str) -> int:
    (number,) = [n for n, line in enumerate(Path(__file__).read_text().split("\n"), 1) if line.rstrip().endswith(text)]
    return number


def frames_of(stack: dict[str, Any]) -> dict[str, list[str]]:
    return {name: frames for names, frames in stack.values() for name in names}


def test_frames_a_user_recognises(ms: Any, dump_path: Path) -> None:
    net = Net()
    with recording(net, dump_path, level="mix"):
        mindspore.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(X)
    step = read_step(dump_path)
    frames = frames_of(step.stack)
    assert {name for name in step.data if "forward" in name} == set(frames)
    line = line_of("# the line of the APIs")
    first = f"File {__file__}, line {line}, in helper, \n return ops.exp(x + 1)  # the line of the APIs"
    assert frames["Functional.exp.0.forward"][0] == frames["Tensor.__add__.0.forward"][0] == first
    line = line_of("# the line of the Cell")
    assert frames["Cell.fc.Dense.forward.0"][0] == (
        f"File {__file__}, line {line}, in construct, \n x = self.fc(x)  # the line of the Cell"
    )
    for name, found in frames.items():
        assert not [frame for frame in found if str(Path(msprobe_ms.__file__).parent) in frame], name
        assert not [frame for frame in found if "mindspore/nn/cell.py" in frame or "mindspore/common/" in frame], name
        assert [frame for frame in found if "in test_frames_a_user_recognises" in frame], name


def test_calls_of_one_line_share_a_site_and_others_do_not(ms: Any, dump_path: Path) -> None:
    with recording(None, dump_path, level="L1"):
        for _ in range(3):
            helper(X)
        helper(X)
    step = read_step(dump_path)
    groups = [names for names, _ in step.stack.values()]
    assert sorted(len(names) for names in groups) == [2, 6]


def test_the_source_of_a_layer_is_kept(ms: Any, dump_path: Path) -> None:
    """Where inside a layer of MindSpore's own a function was called is worth knowing."""
    net = nn.SequentialCell(nn.LogSoftmax(), nn.MultiheadAttention(2, 1, batch_first=True))
    x = Tensor(np.ones((1, 3, 2), np.float32))
    with recording(net, dump_path, level="mix"):
        net[1](x, x, x)
    frames = frames_of(read_step(dump_path).stack)
    inner = [name for name, found in frames.items() if not name.startswith("Cell.") and "nn/layer/" in found[0]]
    assert inner


def test_code_without_a_file(ms: Any, dump_path: Path) -> None:
    """Typed into a prompt or made by exec: the frame has no source line, and nothing fails."""
    scope: dict[str, Any] = {"ops": ops, "X": X}
    exec(compile("def typed():\n    return ops.exp(X)\n", "<stdin>", "exec"), scope)
    with recording(None, dump_path, level="L1"):
        scope["typed"]()
    frames = frames_of(read_step(dump_path).stack)["Functional.exp.0.forward"]
    assert frames[0] == "File <stdin>, line 2, in typed, \n "


def test_a_deep_stack_is_cut(ms: Any, dump_path: Path) -> None:
    def deep(levels: int) -> Tensor:
        return deep(levels - 1) if levels else ops.exp(X)

    with recording(None, dump_path, level="L1"):
        deep(200)
    assert 10 < len(frames_of(read_step(dump_path).stack)["Functional.exp.0.forward"]) <= 64


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user's module whose path contains the name of a framework's folder."""
    folder = tmp_path / "mindspore" / "nn"
    folder.mkdir(parents=True)
    (folder / "cell.py").write_text(
        textwrap.dedent("""
        from mindspore import ops
        def mine(x):
            return ops.exp(x)
    """)
    )
    monkeypatch.syspath_prepend(str(folder))
    yield __import__("cell")
    del sys.modules["cell"]


def test_a_users_file_that_is_named_like_the_frameworks(ms: Any, dump_path: Path, module: Any) -> None:
    with recording(None, dump_path, level="L1"):
        module.mine(X)
    frames = frames_of(read_step(dump_path).stack)["Functional.exp.0.forward"]
    assert frames[0] == f"File {module.__file__}, line 4, in mine, \n return ops.exp(x)"


# -- numbering and depth -----------------------------------------------------------------------------------------------


def test_numbers_are_given_once() -> None:
    sites = CallSites((), (), keep_frames=True)
    here = sys._getframe()
    found = [sites.locate(here, is_module=False) for _ in range(2)]
    numbers = [sites.number(stack.frames) for stack in found]
    # Two lines of one function would be two sites; the same line is one.
    assert found[0].depth == found[1].depth
    assert numbers[0][0] == numbers[1][0] == 0
    assert numbers[0][1] is not None
    assert numbers[1][1] is None


def test_depth_grows_with_the_stack() -> None:
    sites = CallSites((), (), keep_frames=False)

    def depth(levels: int) -> int:
        return depth(levels - 1) if levels else sites.locate(sys._getframe(), is_module=False).depth

    assert [depth(levels) - depth(0) for levels in range(4)] == [0, 1, 2, 3]
    assert sites.locate(sys._getframe(), is_module=False).frames == []
