"""Files that TensorDump wrote become the entries that a dynamic graph has.

TensorDump runs on Ascend only in graphs, and everywhere in dynamic ones. So the source that is compiled in is run as
Python here, with MindSpore's own operators, and compiled with callbacks in their place.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nets_compiled
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import Step, assert_figures, leaves, read_step, recording, write_config
from thorough import sampled, thorough

from msprobe_ms.config import load_config
from msprobe_ms.dump.writing.writer import process_folder
from msprobe_ms.frameworks.mindspore.tensor_dump_files import wait_for_files
from msprobe_ms.frameworks.mindspore.tensor_dump_names import FileName, Kind, read_name
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.recording.graphs.graph_recorder import tapped_by
from msprobe_ms.recording.graphs.graph_step import GraphStep
from msprobe_ms.recording.selection.unused_settings import UnusedSettings

ms = pytest.importorskip("mindspore")
nets = pytest.importorskip("nets_mindspore")

from graph_steps import APART, assert_like, assert_same, gradient_step, loss_of, recorded  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from tensor_dump_operators import Operators  # noqa: E402

from msprobe_ms.frameworks.mindspore.framework import MindSpore  # noqa: E402
from msprobe_ms.frameworks.mindspore.graphs.callbacks import MindSporeTaps  # noqa: E402
from msprobe_ms.frameworks.mindspore.tensor_dump import TensorDumpTaps  # noqa: E402


@pytest.fixture(autouse=True)
def pynative_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # where MindSpore leaves what it could not compile
    ms.set_context(mode=ms.PYNATIVE_MODE)
    monkeypatch.setattr(TensorDumpTaps, "quiet", 0.1)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@contextmanager
def written(net: nn.Cell, dump_path: Path, **keys: Any) -> Iterator[Callable[[], Path]]:
    """Record a step by files that MindSpore's own operators write; gives their folder when they have been written."""
    config = load_config(write_config(dump_path, **keys))
    taps = TensorDumpTaps(tapped_by(config.data_mode, config.task), dump_path)
    session = GraphStep.open(config, MindSpore(), taps, process_folder(dump_path, 0, None), None, set())
    session.start(net)

    def folder() -> Path:
        (scratch,) = dump_path.glob("tensor_dump.*")
        wait_for_files(scratch, quiet=0.1, patience=0.1)
        return scratch

    with taps.tapping(gradient_outside=False):
        yield folder
    taps.wait()
    session.stop()
    session.finish(UnusedSettings())


def file_of(folder: Path, net: nn.Cell, cell: str, kind: Kind, nth: int = 0) -> Path:
    """The ``nth`` file of this kind that a cell's calls wrote."""
    module = [name for name, _ in net.cells_and_names() if name].index(cell)
    files = [each for path in folder.iterdir() if (each := read_name(path)) is not None]
    mine = [each for each in files if (each.name.module, each.name.kind) == (module, kind)]
    return sorted(mine, key=lambda each: each.identity)[nth].path


def error_log(step: Step) -> str:
    return (step.folder / "dump_error_info.log").read_text()


def assert_same_arrays(step: Step, other: Step) -> None:
    for name, entry in step.data.items():
        theirs = dict(leaves(other.data[name]))
        for place, leaf in leaves(entry):
            expected = other.array(theirs[place])
            np.testing.assert_allclose(step.array(leaf), expected, rtol=1e-5, atol=1e-5, err_msg=f"{name} {place}")


# -- the same net, dynamic and by files ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sampled(nets.NETS, {"encoder", "lstm"}.__contains__))
def test_files_give_the_dump_of_the_dynamic_net(name: str, tmp_path: Path) -> None:
    outcomes = []
    for way in (written, recording):
        net, x, labels = nets.make(name)
        with way(net, tmp_path / way.__name__, task="tensor"):
            outcomes.append(gradient_step(net, x, labels, loss=loss_of(net))())
    assert_same(*outcomes)
    step, dynamic = read_step(tmp_path / "written"), read_step(tmp_path / "recording")
    if name == "lstm":  # nobody needs the gradient of the net's input, which DumpGradient does not ask for
        dynamic.data["Cell.lstm.rnn._DynamicLSTMCPUGPU.backward.0"]["output"][0] = None
    assert_like(step, dynamic)
    assert_same_arrays(step, dynamic)
    assert assert_figures(step) > 0
    assert [path.name for path in (tmp_path / "written").iterdir()] == ["step0"]


#: What is not as in a dynamic graph: for the last see below.
_ELSEWHERE = {**APART, nets_compiled.ParameterGiven: ("Cell.product.TakesParameter.backward",)}

#: Python computes such a cell again in ways of its own.
_AS_PYTHON = {**_ELSEWHERE, nets_compiled.Recomputed: ("Cell.block.",)}


@pytest.mark.parametrize("net_class", [*nets_compiled.NETS, nets_compiled.Attention])
def test_calls_of_every_shape(net_class: type[nn.Cell], tmp_path: Path) -> None:
    for way in (written, recording):
        net, x = nets_compiled.make(net_class)
        with way(net, tmp_path / way.__name__):
            gradient_step(net, x)()
    step = read_step(tmp_path / "written", troubles=True)
    assert_like(step, read_step(tmp_path / "recording"), without=_AS_PYTHON.get(net_class, ()))


def test_gradients_of_which_only_some_calls_have_any_are_told(tmp_path: Path) -> None:
    net, x = nets_compiled.make(nets_compiled.ParameterGiven)
    with written(net, tmp_path / "dump"):
        gradient_step(net, x)()
    assert (
        "Cell.product.TakesParameter: not recorded in compiled graphs: which of 2 calls took the 1 gradients of "
        "input.0; they are with the latest"
    ) in error_log(read_step(tmp_path / "dump", troubles=True))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *((dtype, (2, 3)) for dtype in ("float16", "bfloat16", "float64", "int8", "bool_", "complex64")),
        ("float32", ()), ("bfloat16", ()), ("float32", (0, 3)),
    ],
)  # fmt: skip
def test_dtypes_and_shapes(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    class Pass(nn.Cell):
        def construct(self, x: Tensor) -> tuple[Tensor, None]:
            return x, None

    net = nn.SequentialCell(Pass())
    x = Tensor(np.resize([0, 1, 3], shape), getattr(ms, dtype))
    for way in (written, recording):
        with way(net, tmp_path / way.__name__, task="tensor"):
            net(x)
    step, dynamic = read_step(tmp_path / "written"), read_step(tmp_path / "recording")
    assert_like(step, dynamic)
    given_leaf, output = step.forward("Cell.0.Pass")["input_args"][0], step.forward("Cell.0.Pass")["output"]
    assert given_leaf["shape"] == list(shape)
    assert output[1] is None
    if 0 not in shape:
        (expected, _) = dynamic.forward("Cell.0.Pass")["output"]
        np.testing.assert_array_equal(step.array(given_leaf), dynamic.array(expected))


@pytest.mark.parametrize("data_mode", ["forward", "backward", "input", "output"])
def test_only_what_is_asked_for_is_written(data_mode: str, tmp_path: Path) -> None:
    kinds = []
    for way in (written, recording):
        net, x = nets_compiled.make(nets_compiled.Loop)
        with way(net, tmp_path / way.__name__, data_mode=[data_mode]) as folder:
            gradient_step(net, x)()
            if way is written:
                kinds = [each.name.kind for path in folder().iterdir() if (each := read_name(path)) is not None]
    assert (Kind.VALUE in kinds) == (data_mode != "backward")
    assert (Kind.GRADIENT in kinds) == (data_mode != "forward")
    assert_like(read_step(tmp_path / "written", troubles=True), read_step(tmp_path / "recording"))


def test_a_path_with_words_that_tensor_dump_replaces(tmp_path: Path) -> None:
    net, x, labels = nets.make("two_linear")
    with written(net, tmp_path / "{step}"):
        gradient_step(net, x, labels, loss=loss_of(net))
        net(x)
    step = read_step(tmp_path / "{step}")
    assert "Cell.fc1.Dense.forward.0" in step.data
    assert sorted(path.name for path in tmp_path.iterdir()) == ["{step}", "{step}.json"]


# -- the same, compiled, with callbacks for the operators ------------------------------------------------------------


@pytest.fixture
def with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        MindSpore,
        "graph_taps",
        lambda self, tapped, folder, rights: TensorDumpTaps(tapped, folder, Operators().make(), rights),
    )


@pytest.mark.parametrize(
    "net_class",
    [
        nets_compiled.Containers, nets_compiled.While, nets_compiled.Normed,
        thorough(nets_compiled.ParameterGiven), thorough(nets_compiled.Arguments), thorough(nets_compiled.Loop),
        thorough(nets_compiled.Branches), thorough(nets_compiled.Recomputed),
    ],
)  # fmt: skip
def test_compiled_source_writes_what_the_dynamic_net_dumps(
    net_class: type[nn.Cell], tmp_path: Path, with_files: None
) -> None:
    outcomes, steps = [], []
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        net, x = nets_compiled.make(net_class)
        with recording(net, tmp_path / str(mode)):
            outcomes.append(gradient_step(net, x)())
        steps.append(read_step(tmp_path / str(mode), troubles=True))
    for mine, theirs in zip(*outcomes, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    graph, dynamic = steps
    if net_class is nets_compiled.While:  # the graph computes a gradient for the input of its first turn as well
        graph.data["Cell.fc.Dense.backward.0"]["output"] = dynamic.data["Cell.fc.Dense.backward.0"]["output"]
    assert_like(graph, dynamic, without=_ELSEWHERE.get(net_class, ()))
    assert not list(tmp_path.rglob("tensor_dump.*"))


class Row(nn.Cell):
    def construct(self, x: Tensor, row: Tensor) -> Tensor:
        return ops.gather(x, row, 0)


class Rows(nn.Cell):
    """Layers around a choice of rows that may not be there."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.row = Row()
        self.out = nn.Dense(4, 4)

    def construct(self, x: Tensor, row: Tensor) -> Tensor:
        return self.out(self.row(self.fc(x), row))


def test_a_run_that_failed_is_over(tmp_path: Path, with_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorDumpTaps, "patience", 0.3)
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Rows()
    short, long = (Tensor(np.ones((rows, 4), np.float32)) for rows in (2, 3))
    plain = net(long, Tensor([2], ms.int32)).asnumpy().copy()
    with recording(net, tmp_path / "dump", task="tensor"):
        with pytest.raises(RuntimeError, match="should be in the range"):
            net(short, Tensor([5], ms.int32))
        net(long, Tensor([2], ms.int32))  # a graph of its own: MindSpore does not run the other any more
    step = read_step(tmp_path / "dump", troubles=True)
    assert not any(step.construct.values())
    last = max(name for name in step.data if name.startswith("Cell.out.Dense.forward."))
    np.testing.assert_array_equal(step.array(step.data[last]["output"][0]), plain)
    assert [path.name for path in (tmp_path / "dump").iterdir()] == ["step0"]


def test_selected_steps_have_their_own_files(tmp_path: Path, with_files: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Rows(), Tensor(np.arange(8).reshape(2, 4).astype(np.float32))
    debugger = PrecisionDebugger(write_config(tmp_path / "dump", step=[0, 2], task="tensor"))
    for number in range(4):
        debugger.start(net)
        net(x + number, Tensor([0], ms.int32))
        debugger.stop()
        assert bool(list((tmp_path / "dump").glob("tensor_dump.*"))) == 0
        debugger.start(net)
        net(x - number, Tensor([0], ms.int32))
        debugger.stop()
        debugger.step()
    for number in (0, 2):
        step = read_step(tmp_path / "dump", number)
        for call, sign in enumerate((1, -1)):
            (leaf,) = step.forward("Cell.fc.Dense", call)["input_args"]
            np.testing.assert_array_equal(step.array(leaf), x.asnumpy() + sign * number)
    assert sorted(path.name for path in (tmp_path / "dump").iterdir()) == ["step0", "step2"]


def test_a_forked_process_leaves_the_files_alone(tmp_path: Path, with_files: None) -> None:
    taps = TensorDumpTaps(tapped_by(["all"], "tensor"), tmp_path, Operators().make())
    taps._make_scratch()
    (scratch,) = tmp_path.glob("tensor_dump.*")
    (scratch / "0.0.begin.0_int32_0.npy").write_bytes(b"")
    child = os.fork()
    if child == 0:
        taps.remove()
        taps.forget()
        os._exit(0)
    os.waitpid(child, 0)
    assert [path.name for path in scratch.iterdir()] == ["0.0.begin.0_int32_0.npy"]
    taps.forget()
    assert not scratch.exists()


def test_micro_batches_through_a_graph(tmp_path: Path, with_files: None) -> None:
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        net, x = nets_compiled.make(nets_compiled.Loop)
        step: Any = ms.value_and_grad(net, None, net.trainable_params())
        batches = [x, x * 2, x - 1]
        with recording(net, tmp_path / str(mode)):
            for each in batches:
                step(each)
    assert_like(read_step(tmp_path / str(ms.GRAPH_MODE), troubles=True), read_step(tmp_path / str(ms.PYNATIVE_MODE)))


def test_micro_batches_through_a_jitted_cell(tmp_path: Path, with_files: None) -> None:
    """Gradients that are taken outside of the graph go to the run that they are of."""
    inner, x = nets_compiled.make(nets_compiled.Loop)
    net = nn.SequentialCell(nets_compiled.Jitted(inner))
    batches = [x, x * 2, x - 1]

    def run() -> list[np.ndarray]:
        return [value for each in batches for value in gradient_step(net, each)()]

    before = run()
    with recording(net, tmp_path / "dump"):
        assert_same(run(), before)
    step = read_step(tmp_path / "dump" / "graph", troubles=True)
    plain, _ = nets_compiled.make(nets_compiled.Loop)
    with recording(plain, tmp_path / "dynamic"):
        for each in batches:
            gradient_step(plain, each)()
    dynamic = read_step(tmp_path / "dynamic")
    outside = read_step(tmp_path / "dump" / "pynative").data  # gradients are asked for there, of the loss
    assert sum(entry.startswith("loss.") for entry in outside) == len(batches)
    for entry, body in dynamic.data.items():
        if ".parameters_grad." not in entry:
            mine = dict(leaves({**step.data, **outside}[entry.replace("Cell.", "Cell.0.net.", 1)]))
            for place, leaf in leaves(body):
                assert mine[place]["Norm"] == pytest.approx(leaf["Norm"], rel=1e-5), (entry, place)


def test_operators_that_a_device_lacks_leave_the_net_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU the source compiles as far as the choice of kernels."""
    monkeypatch.setattr(MindSpore, "graph_taps", lambda self, tapped, folder, rights: TensorDumpTaps(tapped, folder))
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = nets_compiled.make(nets_compiled.One)
    step = recorded(net, gradient_step(net, x), tmp_path / "dump")
    assert step.data == {}
    assert "Cells in a graph that does not compile with callbacks in it: RuntimeError" in error_log(step)


@pytest.mark.parametrize(("target", "kind"), [("Ascend", TensorDumpTaps), ("CPU", MindSporeTaps), ("GPU", type(None))])
def test_the_device_decides(target: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ms, "get_context", lambda key: target)
    assert type(MindSpore().graph_taps(tapped_by(["all"], "tensor"), tmp_path)) is kind
    assert not list(tmp_path.rglob("tensor_dump.*"))


# -- files that are damaged, lost or late ----------------------------------------------------------------------------


def test_a_damaged_file_costs_its_value(tmp_path: Path) -> None:
    net, x = nets_compiled.make(nets_compiled.Loop)
    with written(net, tmp_path / "dump") as folder:
        gradient_step(net, x)()
        for path in (
            file_of(folder(), net, "layers.0", Kind.VALUE, 2 * 4 - 3),
            file_of(folder(), net, "layers.0", Kind.GRADIENT, 0),
        ):
            content = path.read_bytes()
            path.chmod(0o600)
            path.write_bytes(content[:-4])
    step = read_step(tmp_path / "dump", troubles=True)
    whole = step.forward("Cell.layers.0.Dense", 0)
    assert None not in whole["input_args"] + whole["output"]
    damaged = step.forward("Cell.layers.0.Dense", 1)
    assert damaged["input_args"] + damaged["output"] == [damaged["input_args"][0], None]
    assert step.backward("Cell.layers.0.Dense", 1)["input"] == [None]
    assert step.backward("Cell.layers.0.Dense", 0)["input"] != [None]
    log = error_log(step)
    assert "Cell.layers.0.Dense: output: DumpFormatError: " in log
    assert "Cell.layers.0.Dense: gradient of output: DumpFormatError: " in log
    assert "28 are there" in log


@pytest.mark.parametrize("kind", [Kind.BEGIN, Kind.VALUE, Kind.END])
def test_a_lost_file_is_named_and_costs_no_other(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorDumpTaps, "patience", 0.2)
    net, x = nets_compiled.make(nets_compiled.Loop)
    with recording(net, tmp_path / "dynamic"):
        gradient_step(net, x)()
    with written(net, tmp_path / "dump") as folder:
        gradient_step(net, x)()
        file_of(folder(), net, "layers.1", kind).unlink()
    step, dynamic = read_step(tmp_path / "dump", troubles=True), read_step(tmp_path / "dynamic")
    lost = {Kind.BEGIN: "the beginning of a call", Kind.VALUE: "input.0", Kind.END: "the end of a call"}[kind]
    assert (
        f"Cell.layers.1.Dense: {lost}: FileNotFoundError: the file that the graph should have written did not come"
    ) in error_log(step)
    if kind is Kind.VALUE:
        assert step.forward("Cell.layers.1.Dense", 0)["input_args"] == [None]
        step.forward("Cell.layers.1.Dense", 0)["input_args"] = dynamic.forward("Cell.layers.1.Dense")["input_args"]
    assert_like(step, dynamic)


def test_files_that_are_none_of_ours_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorDumpTaps, "patience", 0.2)
    net, x, _ = nets.make("two_linear")
    with written(net, tmp_path / "dump") as folder:
        net(x)
        for name in ("loss_float32_3.npy", "0.999.value.0_float32_4.npy", "99.0.begin.0_int32_5.npy"):
            (folder() / name).write_bytes(b"")
    step = read_step(tmp_path / "dump", troubles=True)
    assert len(step.data) == 3
    for name in ("loss_float32_3.npy", "0.999.value.0_float32_4.npy", "99.0.begin.0_int32_5.npy"):
        assert f"files of a graph: ValueError: no name that was compiled into a graph: {name}" in error_log(step)


def test_late_files_are_waited_for(tmp_path: Path) -> None:
    def write() -> None:
        for number in range(8):
            time.sleep(0.05)
            (tmp_path / f"0.0.value.{number}_float32_{number}.npy").write_bytes(b"x")

    writer = threading.Thread(target=write)
    writer.start()
    found = wait_for_files(tmp_path, quiet=0.3, patience=2)
    writer.join()
    assert len(found) == 8


def test_waiting_ends(tmp_path: Path) -> None:
    def seconds(**bounds: float) -> float:
        began = time.monotonic()
        wait_for_files(tmp_path, **bounds)
        return time.monotonic() - began

    assert seconds(quiet=0.1, patience=60) < 30
    (tmp_path / "0.0.begin.0_int32_0.npy").write_bytes(b"")
    assert 0.4 < seconds(quiet=60, patience=0.4) < 30
    stop = threading.Event()

    def grow() -> None:
        while not stop.wait(0.01):
            with open(tmp_path / "0.0.end.0_int32_1.npy", "ab") as file:
                file.write(b"x")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        assert 0.4 < seconds(quiet=20, patience=20, latest=0.5) < 20
    finally:
        stop.set()
        writer.join()


# -- names -----------------------------------------------------------------------------------------------------------

_NUMBERS = st.integers(min_value=0, max_value=10**9)
_NAMES = st.builds(FileName, _NUMBERS, _NUMBERS, st.sampled_from(Kind), _NUMBERS)


@given(_NAMES, st.sampled_from(["float32", "bfloat16", "bool", "complex64", "int4"]), _NUMBERS, st.booleans())
def test_names_are_read_as_they_are_written(name: FileName, dtype: str, identity: int, reads_input: bool) -> None:
    path = Path("x") / f"{name.text}{'_in' * reads_input}_{dtype}_{identity}.npy"
    written_file = read_name(path)
    assert written_file is not None
    assert (written_file.name, written_file.identity, written_file.path) == (name, identity, path)
    assert len(path.name.encode()) <= 255


@given(_NAMES, _NAMES)
def test_no_name_is_another(one: FileName, other: FileName) -> None:
    assert (one.text == other.text) == (one == other)


@given(st.text(alphabet=st.characters(exclude_characters="/\0"), min_size=1))
def test_other_names_are_none_of_ours(text: str) -> None:
    assert read_name(Path("x") / f"{text}.npy") is None or text[0].isdigit()


def test_names_that_tensor_dump_itself_completes(tmp_path: Path) -> None:
    name = FileName(3, 12, Kind.PARAMETER_GRADIENT, 7)
    for mode in ("in", "out"):
        ops.TensorDump(mode)(f"{tmp_path}/{name.text}", Tensor([1.5], ms.bfloat16))
    found = [read_name(path) for path in wait_for_files(tmp_path)]
    assert [each.name for each in found if each is not None] == [name, name]
