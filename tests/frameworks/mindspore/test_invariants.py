"""What holds whatever happens: the training is never hurt, nothing recorded is lost, nothing of ours stays behind."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import nets_dynamic
import numpy as np
import pytest
from forked import run_forked
from mindspore import Tensor, nn, ops
from recording import leaves, read_step, recording, step_folder, write_config
from small_net import X, gradients, small
from thorough import thorough

import msprobe_ms
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER, DumpStore
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.recording.calls import CallSites
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.recording.gradients import Watch
from msprobe_ms.recording.output.values import ValueSerializer
from msprobe_ms.recording.selection.filters import FieldFilter, NameList, Scope, Skip
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.support.errors import UsageError

ROOT = Path(msprobe_ms.__file__).parent.parent


#: What the net of one step records at L0.
RECORDS = {
    "Cell.fc.Dense.forward.0", "Cell.act.ReLU.forward.0", "loss.0.debug",
    "Cell.act.ReLU.backward.0", "Cell.fc.Dense.backward.0", "Cell.fc.Dense.parameters_grad.0",
}  # fmt: skip


# -- neutral -----------------------------------------------------------------------------------------------------------


def test_random_numbers_are_not_touched(ms: Any, dump_path: Path) -> None:
    """Invariant 1: dropout and every generator go on as without the tool."""

    def act(record: bool) -> list[Any]:
        ms.set_seed(3)
        random.seed(3)
        np.random.seed(3)
        net = nn.SequentialCell(nn.Dense(8, 8, weight_init="ones"), nn.Dropout(p=0.5))
        net.set_train()
        if record:
            with recording(net, dump_path, level="mix", task="tensor"):
                net(Tensor(np.ones((4, 8), np.float32)))
        else:
            net(Tensor(np.ones((4, 8), np.float32)))
        return [ops.rand(3).asnumpy().tolist(), random.random(), np.random.random()]

    assert act(record=True) == act(record=False)


# -- never throws into the host ----------------------------------------------------------------------------------------


class Failing:
    """Makes a function fail from its n-th call on, or only then."""

    def __init__(self, target: Callable[..., Any], error: Callable[[], BaseException], at: int, only: bool) -> None:
        self.target = target
        self.error = error
        self.at = at
        self.only = only
        self.calls = 0

    def wrapper(self) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.at or (self.calls > self.at and not self.only):
                raise self.error()
            return self.target(*args, **kwargs)

        return wrapper


INSIDE = [
    (ValueSerializer, "build"), (ValueSerializer, "tensor"), (MindSpore, "to_numpy"), (MindSpore, "dtype_text"),
    (ValueSerializer, "at_once"), (MindSpore, "places"),
    (MindSpore, "can_watch"), (MindSpore, "watch_inputs"), (MindSpore, "watch_outputs"), (MindSpore, "parameters"),
    (MindSpore, "save_tensor"), (Watch, "plan"), (Watch, "swap"), (Watch, "restore"), (CallSites, "locate"),
    (CallSites, "depth"), (CallSites, "number"), (NameList, "accepts"), (Scope, "begins"), (Scope, "ends"),
    (Scope, "bounds"), (Skip, "enter"), (UnusedSettings, "warn"), (FieldFilter, "keeps"), (DumpStore, "entry"),
    (DumpStore, "tensor"), (DumpStore, "call_site"), (DumpStore, "export"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "at", "only"),
    [
        case if number % 2 == only else thorough(case)
        for number, place in enumerate(INSIDE)
        for only in (False, True)
        for case in [(place, 3 if only else 1, only)]
    ],
)
def test_an_error_inside_the_tool(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str], place: Any, at: int, only: bool
) -> None:
    """Invariant 2: training goes on with the same bits, the error is in the log, the rest is recorded."""
    holder, name = place
    expected = gradients(small())
    failing = Failing(getattr(holder, name), lambda: ZeroDivisionError("planted"), at, only)
    net = small()
    with monkeypatch.context() as planted:
        planted.setattr(holder, name, failing.wrapper())
        with recording(net, dump_path, level="mix", task="tensor"):
            assert gradients(net) == expected
    # Off again, and nothing of the failure is left.
    assert gradients(net) == expected
    if failing.calls >= at:
        log = (step_folder(dump_path) / ERROR_LOG).read_text()
        assert "ZeroDivisionError: planted" in log
        assert "Traceback" not in log
        assert 1 <= len(warnings) <= 5, warnings
    if only and name != "export":
        assert len(read_step(dump_path, troubles=True).data) >= 4


@pytest.mark.parametrize(
    ("holder", "name"), [(ValueSerializer, "at_once"), (CallSites, "locate"), (DumpStore, "entry")]
)
def test_the_users_own_interrupt_is_not_held_back(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch, holder: type, name: str
) -> None:
    """Ctrl-C while the tool is at work stops the script; recording can go on afterwards."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    with monkeypatch.context() as planted:
        planted.setattr(holder, name, Failing(getattr(holder, name), KeyboardInterrupt, 2, True).wrapper())
        with pytest.raises(KeyboardInterrupt):
            net(X)
    gradients(net)
    debugger.stop()
    debugger.step()
    names = set(read_step(dump_path, troubles=True).data)  # which says what the interrupt cost
    assert {"Cell.fc.Dense.forward.1", "Cell.fc.Dense.backward.1"} <= names
    assert [name for name in names if name.startswith("Cell.act.ReLU.backward")]


def test_one_value_that_cannot_be_read_does_not_lose_the_others(ms: Any, dump_path: Path, warnings: list[str]) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.child = nn.Identity()
            self.child.construct = lambda x, broken: x * 2

        def construct(self, x: Tensor) -> Tensor:
            return self.child(x, Tensor.__new__(Tensor))  # of which nothing can be read

    net = Net()
    with recording(net, dump_path, level="L0", data_mode=["forward"]):
        net(X)
    step = read_step(dump_path, troubles=True)
    tensor, broken = step.forward("Cell.child.Identity")["input_args"]
    assert tensor["Max"] == 0.5
    assert broken is None
    (line,) = (step.folder / ERROR_LOG).read_text().splitlines()
    assert "Cell.child.Identity.forward.0.input.1: RuntimeError: The pointer" in line
    assert len(warnings) == 2
    assert "\n" not in warnings[0]


def test_a_folder_that_disappears(ms: Any, dump_path: Path, warnings: list[str]) -> None:
    expected = gradients(small())
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="mix", task="tensor"))
    debugger.start(net)
    gradients(net)
    shutil.rmtree(dump_path)
    assert gradients(net) == expected
    debugger.stop()
    debugger.step()
    assert 1 <= len(warnings) <= 4, warnings
    warnings.clear()
    debugger.start(net)
    assert gradients(net) == expected
    debugger.stop()
    debugger.step()
    assert len(read_step(dump_path, 1).data) > 5
    assert not warnings


def test_a_file_size_limit(tmp_path: Path) -> None:
    """A real limit of the system, in a process of its own: one warning, the same loss, no traceback, exit code 0."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import resource, sys
        import numpy as np, mindspore as ms
        from mindspore import Tensor, nn
        from msprobe_ms.mindspore import PrecisionDebugger
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ms.runtime.launch_blocking()
        net = nn.SequentialCell(nn.Dense(64, 64, weight_init="ones"), nn.ReLU())
        x = Tensor(np.ones((8, 64), np.float32))
        forward = ms.value_and_grad(lambda: net(x).sum(), None, net.trainable_params())
        print(float(forward()[0].asnumpy()))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        for task in ("statistics", "tensor"):
            debugger = PrecisionDebugger(dump_path=f"{sys.argv[1]}/{task}", level="L0", task=task)
            for _ in range(3):
                debugger.start(net)
                print(float(forward()[0].asnumpy()))
                debugger.stop()
                debugger.step()
            print("-- over --", file=sys.stderr, flush=True)
    """)
    )
    command = [sys.executable, str(script), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert len(set(run.stdout.split())) == 1
    assert len(run.stdout.split()) == 1 + 2 * 3
    of_tensors = run.stderr.split("-- over --")[1]
    assert of_tensors.count("could not be recorded") <= 3 * 2
    assert "File too large" in of_tensors


# -- start, stop, step -------------------------------------------------------------------------------------------------


def test_stop_before_backward(ms: Any, dump_path: Path) -> None:
    """Gradients of recorded calls still come in until step."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))

    def forward() -> Tensor:
        debugger.start(net)
        out = net(X).sum()
        debugger.stop()
        net(X)  # not recorded
        return out

    mindspore.value_and_grad(forward, None, net.trainable_params())()
    gradients(net)  # a later iteration of a script that never calls step
    debugger.step()
    assert set(read_step(dump_path).data) == RECORDS - {"loss.0.debug"}


def test_a_backward_that_comes_after_step_belongs_to_nothing(ms: Any, dump_path: Path, warnings: list[str]) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))

    def forward() -> Tensor:
        debugger.start(net)
        out = net(X).sum()
        debugger.stop()
        debugger.step()
        return out

    mindspore.value_and_grad(forward, None, net.trainable_params())()
    assert set(read_step(dump_path).data) == {name for name in RECORDS if "forward" in name}
    assert not warnings


def test_segments_of_one_step(ms: Any, dump_path: Path) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="mix"))
    for _ in range(3):
        debugger.start(net)
        gradients(net)
        debugger.stop()
        gradients(net)  # between the segments
        assert json.loads((step_folder(dump_path) / "dump.json").read_text())["data"]
    debugger.step()
    names = read_step(dump_path).data
    for base in ("Cell.fc.Dense.forward", "Cell.fc.Dense.backward", "Cell.fc.Dense.parameters_grad"):
        assert [name for name in names if name.startswith(base)] == [f"{base}.{index}" for index in range(3)]
    assert [name for name in names if "__mul__" in name and "forward" in name] == [
        f"Tensor.__mul__.{index}.forward" for index in range(3)
    ]


def test_a_segment_whose_backward_comes_after_its_stop(ms: Any, dump_path: Path) -> None:
    """The gradients of parameters too, though an earlier segment's were there already."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    gradients(net)
    debugger.stop()

    def forward() -> Tensor:
        debugger.start(net)
        out = net(X).sum()
        debugger.stop()
        return out

    mindspore.value_and_grad(forward, None, net.trainable_params())()
    debugger.step()
    names = set(read_step(dump_path).data)
    assert {name.replace(".0", ".1") for name in RECORDS - {"loss.0.debug"}} <= names


def test_start_twice_without_stop(ms: Any, dump_path: Path) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="mix"))
    debugger.start(net)
    debugger.start(net)
    gradients(net)
    debugger.stop()
    debugger.stop()
    debugger.step()
    assert len(read_step(dump_path).calls("Cell.fc.Dense")) == 2
    assert len(net.fc._forward_hook) == len(net.fc._forward_pre_hook) == 0


def test_step_without_stop(ms: Any, dump_path: Path) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="mix"))
    for _ in range(2):
        debugger.start(net)
        gradients(net)
        debugger.step()
    gradients(net)
    assert set(read_step(dump_path, 0).data) == set(read_step(dump_path, 1).data) >= RECORDS


def test_step_and_stop_without_start(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.stop()
    debugger.step()
    debugger.step()
    debugger.start(small())
    debugger.stop()
    debugger.step()
    assert [path.name for path in dump_path.iterdir()] == ["step2"]


def test_a_script_that_just_ends(tmp_path: Path) -> None:
    """Neither stop nor step: the files are written on the way out."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        import numpy as np, mindspore as ms
        from mindspore import Tensor, nn
        from msprobe_ms.mindspore import PrecisionDebugger
        net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
        debugger = PrecisionDebugger(dump_path=sys.argv[1], level="mix")
        debugger.start(net)
        net(Tensor(np.ones((1, 2), np.float32)))
        if sys.argv[2] == "raise":
            raise SystemExit(3)
    """)
    )
    for how, code in (("end", 0), ("raise", 3)):
        run = run_forked(script, tmp_path / how, how, framework="mindspore")
        assert run.returncode == code, run.stderr
        recorded = [name for name in read_step(tmp_path / how).data if name.startswith("Cell.")]
        assert recorded == ["Cell.0.Dense.forward.0", "Cell.1.ReLU.forward.0"]


def test_two_debuggers_one_after_the_other(ms: Any, dump_path: Path) -> None:
    """The second's start ends the first's step; both dumps are whole, and calls on the class go to the second."""
    net = small()
    first = PrecisionDebugger(write_config(dump_path.with_name("first"), level="L0"))
    second = PrecisionDebugger(write_config(dump_path.with_name("second"), level="mix"))
    first.start(net)
    gradients(net)
    second.start(net)
    gradients(net)
    PrecisionDebugger.stop()
    first.stop()
    PrecisionDebugger.step()
    first.step()
    assert set(read_step(dump_path.with_name("first")).data) == RECORDS
    assert len(read_step(dump_path.with_name("second")).data) == len(RECORDS) + 10  # APIs and primitives
    assert len(net.fc._forward_hook) == 0


def test_two_debuggers_with_one_folder(ms: Any, dump_path: Path) -> None:
    """As in a notebook whose cell is run again: nothing is lost, nothing is mixed."""
    net = small()
    config = write_config(dump_path, level="L0")
    for _ in range(3):
        debugger = PrecisionDebugger(config)
        debugger.start(net)
        gradients(net)
        debugger.stop()
    debugger.step()
    folders = sorted(path.name for path in (dump_path / "step0").iterdir())
    assert folders == [f"earlier1_proc{os.getpid()}", f"earlier2_proc{os.getpid()}", f"proc{os.getpid()}"]
    for name in folders:
        assert set(json.loads((dump_path / "step0" / name / "dump.json").read_text())["data"]) == RECORDS


def test_a_second_run_into_the_same_folder(ms: Any, dump_path: Path) -> None:
    for count in (1, 2):
        net = small()
        with recording(net, dump_path, level="L0", task="tensor"):
            for _ in range(count):
                net(X)
    old, new = sorted((dump_path / "step0").iterdir())
    assert [len(json.loads((folder / "dump.json").read_text())["data"]) for folder in (old, new)] == [2, 4]
    for folder in (old, new):
        data = json.loads((folder / "dump.json").read_text())["data"]
        files = {leaf["data_name"] for _, leaf in leaves(data)}
        assert {path.name for path in (folder / TENSOR_FOLDER).iterdir()} == files


def test_methods_on_the_class(ms: Any, dump_path: Path) -> None:
    net = small()
    PrecisionDebugger(write_config(dump_path, level="L0"))
    PrecisionDebugger.start(net)
    gradients(net)
    PrecisionDebugger.stop()
    PrecisionDebugger.step()
    assert set(read_step(dump_path).data) == RECORDS


@pytest.mark.parametrize(
    ("level", "arguments", "text"),
    [
        ("L0", {}, "start: level L0 records modules and needs the network: start(model)"),
        ("mix", {"model": []}, "start: level mix records modules and needs the network: start(model)"),
        ("L0", {"model": 3}, "start: model is a int; give a mindspore.nn.Cell or a list of them"),
        ("L1", {"model": [nn.ReLU(), "x"]}, "start: model[1] is a str; give a mindspore.nn.Cell or a list of them"),
        ("L1", {"token_range": [0, 1]}, "start: token_range [0, 1] is not accepted; give [first, last] and a model"),
        *(
            ("L1", {"model": nn.ReLU(), "token_range": value},
             f"start: token_range {value!r} is not accepted; give [first, last] and a model")
            for value in (3, [1], [2, 1], [-1, 2], ["0", "1"], [True, 2], "01", [0, 1, 2], {0: 1})
        ),
        ("L1", {"rank_id": -1}, "start: rank_id -1 is not accepted; give an integer from 0 up"),
        ("L1", {"rank_id": "0"}, "start: rank_id '0' is not accepted; give an integer from 0 up"),
    ],
)  # fmt: skip
def test_start_misuse(ms: Any, dump_path: Path, level: str, arguments: dict[str, Any], text: str) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    with pytest.raises(UsageError) as caught:
        debugger.start(**arguments)
    assert str(caught.value) == text
    assert not dump_path.exists()


def test_set_init_step_misuse(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path))
    for value in (-1, "1", True, 1.5):
        with pytest.raises(UsageError) as caught:
            debugger.set_init_step(value)
        assert str(caught.value) == f"set_init_step: {value!r} is not accepted; give an integer from 0 up"


def test_calls_before_construction() -> None:
    class Untouched(BaseDebugger):
        """No other class's debugger stands in for one of its own."""

    for name in ("start", "stop", "step", "set_init_step"):
        with pytest.raises(UsageError) as caught:
            getattr(Untouched, name)()
        assert str(caught.value) == f"PrecisionDebugger.{name}: construct a PrecisionDebugger before calling {name}"


# -- token_range -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize(
    ("token_range", "expected"), [((0, 0), 1), ((1, 2), 2), ([3, 9], 2), ([5, 6], 0), ({0, 3, 9}, 2)]
)
def test_token_range(ms: Any, dump_path: Path, level: str, token_range: Any, expected: int) -> None:
    """Only those calls of the model, and nothing before or after them."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    debugger.start(net, token_range=token_range)
    ops.exp(X)
    for _ in range(5):
        net(X)
    ops.exp(X)
    debugger.stop()
    net(X)
    debugger.step()
    data = read_step(dump_path).data
    cells = [f"Cell.fc.Dense.forward.{index}" for index in range(expected)] if level != "L1" else []
    apis = [f"Tensor.__mul__.{index}.forward" for index in range(expected)] if level != "L0" else []
    assert [name for name in data if "fc" in name] == cells
    assert [name for name in data if "__mul__" in name] == apis
    assert not [name for name in data if ".exp." in name]


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_window_of_tokens_holds_the_model_itself(ms: Any, dump_path: Path, level: str) -> None:
    """Its hook opens the window and closes it, so none can be put on or taken off meanwhile."""
    net, x, _ = nets_dynamic.CASES["tokens"].make()
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    debugger.start(net, token_range=[1, 2])
    for _ in range(2):
        net(x)
    mindspore.grad(lambda: net(x).sum(), None, net.trainable_params())()
    net(x)
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    assert step.calls("Cell.Tokens") == ["Cell.Tokens.forward.0", "Cell.Tokens.forward.1", "Cell.Tokens.backward.1"]
    assert list(step.data["Cell.Tokens.forward.1"]["parameters"]) == ["token", "position"]
    assert sorted(step.data["Cell.Tokens.parameters_grad.0"]) == ["position", "token"]
    assert step.construct["Cell.head.Dense.forward.1"] == "Cell.Tokens.forward.1" or level == "L0"
    assert len(net._forward_hook) == len(net._forward_pre_hook) == 0


def test_tokens_count_on_through_the_segments_of_a_step(ms: Any, dump_path: Path) -> None:
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    for step in range(2):
        for _ in range(4):
            debugger.start([net], token_range=[1, 2])
            net(X)
            debugger.stop()
        debugger.step()
        assert len(read_step(dump_path, step).calls("Cell.0.fc.Dense")) == 2
    assert len(net._forward_hook) == len(net._forward_pre_hook) == len(net.fc._forward_hook) == 0


def test_a_token_that_fails(ms: Any, dump_path: Path) -> None:
    """The call of the model that raised was one; the next begins the next."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net, token_range=[1, 1])
    with pytest.raises((ValueError, RuntimeError)):
        net(Tensor(np.ones((1, 7), np.float32)))
    for _ in range(3):
        net(X)
    debugger.stop()
    debugger.step()
    assert read_step(dump_path).calls("Cell.act.ReLU") == ["Cell.act.ReLU.forward.0"]


# -- nothing stays behind ----------------------------------------------------------------------------------------------


@pytest.fixture
def few_objects() -> None:
    """Only what the test itself makes is looked through for garbage, not all that frameworks and tests have made."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("backward", [False, True])
def test_a_net_dies_when_its_user_lets_go(
    ms: Any, few_objects: None, dump_path: Path, level: str, backward: bool
) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    net = small()
    debugger.start(net)
    net(X)
    if backward:
        gradients(net)
    debugger.stop()
    debugger.step()
    gone = [weakref.ref(net), weakref.ref(net.fc), weakref.ref(net.fc.weight)]
    del net
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


def test_many_steps_do_not_grow(ms: Any, few_objects: None, dump_path: Path) -> None:
    """Invariant 7: neither objects nor memory pile up from step to step."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="mix"))
    steps = 6

    def train() -> tuple[int, int]:
        for _ in range(steps):
            debugger.start(net)
            gradients(net)
            debugger.stop()
            debugger.step()
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return len(gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE")

    train()
    objects, memory = train()
    growth = []
    for _ in range(3):
        more_objects, more_memory = train()
        assert more_objects - objects < 3 * steps * 10
        growth.append(more_memory - memory)
        memory = more_memory
    assert min(growth) < steps * 200_000, growth


def test_a_forked_child_writes_nothing_and_waits_for_nothing(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data loader's worker: it inherits hooks and journal, must leave the parent's dump alone, and has no threads."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="mix", task="tensor"))
    debugger.start(net)
    net(X)
    folder = step_folder(dump_path)

    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = content()
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(60)  # ends it, should it wait
        waits: list[None] = []
        monkeypatch.setattr(ms._c_expression, "synchronize", lambda: waits.append(None))
        try:
            X.reshape(2, 1)  # nothing that would wait for the parent's kernel threads
            debugger.stop()
            debugger.step()
            code = 2 * len(waits)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert content() == before
    net(X)
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    assert [name for name in step.data if "fc" in name] == ["Cell.fc.Dense.forward.0", "Cell.fc.Dense.forward.1"]
    assert not [name for name in step.data if "reshape" in name]


class Baton:
    """Lets one thread run at a time, each until it hands over: MindSpore crashes when two compute at once."""

    def __init__(self, threads: int) -> None:
        self._turn, self._running = threading.Condition(), list(range(threads))

    def wait(self, thread: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._running[0] == thread)

    def hand_over(self, thread: int) -> None:
        with self._turn:
            self._running.append(self._running.pop(0))
            self._turn.notify_all()
        self.wait(thread)

    def leave(self) -> None:
        with self._turn:
            self._running.pop(0)
            self._turn.notify_all()


def test_calls_of_several_threads_are_kept_apart(ms: Any, dump_path: Path) -> None:
    """Each thread has its own open calls, though calls of others begin and end while they are open."""
    baton = Baton(3)

    class Pausing(nn.Cell):
        def __init__(self, thread: int) -> None:
            super().__init__()
            self.thread = thread
            self.inner = small()

        def construct(self, x: Tensor) -> Tensor:
            y = x * 2
            baton.hand_over(self.thread)
            return self.inner(y)

    class Outer(nn.Cell):
        def __init__(self, thread: int) -> None:
            super().__init__()
            self.pausing = Pausing(thread)

        def construct(self, x: Tensor) -> Tensor:
            return self.pausing(x)

    nets = [Outer(thread) for thread in range(3)]

    def work(thread: int) -> None:
        baton.wait(thread)
        for _ in range(4):
            nets[thread](X)
        baton.leave()

    with recording(nets, dump_path, level="mix"):
        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    step = read_step(dump_path)
    for index in range(3):
        for call in range(4):
            outer = f"Cell.{index}.pausing.Pausing.forward.{call}"
            (inner,) = {name for name in step.construct if step.construct[name] == outer and ".inner." in name}
            assert inner.endswith(f"forward.{call}")
            assert step.construct[outer] is None
    parents = [
        step.construct[name] for name in step.data if "__mul__" in name and ".pausing.P" in str(step.construct[name])
    ]
    assert len(parents) == len(set(parents)) == 12


def test_a_dump_path_that_becomes_a_file(ms: Any, dump_path: Path, warnings: list[str]) -> None:
    """Not usable when the step begins: one warning, the step is not recorded, the next one is."""
    net = small()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    dump_path.write_text("in the way")
    debugger.start(net)
    gradients(net)
    debugger.stop()
    debugger.step()
    (text,) = warnings
    assert text == f"{dump_path}/step0/proc{os.getpid()}: Not a directory; step 0 is not recorded, training goes on"
    dump_path.unlink()
    debugger.start(net)
    gradients(net)
    debugger.stop()
    debugger.step()
    assert set(read_step(dump_path, 1).data) == RECORDS
