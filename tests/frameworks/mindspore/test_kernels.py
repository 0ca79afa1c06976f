"""Level L2 in dynamic graphs: every kernel of a step, forward and backward."""

from __future__ import annotations

import gc
import json
import threading
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import mindspore
import nets_mindspore as nets
import numpy as np
import pytest
from forked import run_forked
from mindspore import Parameter, Tensor, nn, ops
from recording import Step, leaves, read_step, recording, step_folder, write_config

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.mindspore import MsprobeStep, PrecisionDebugger, record
from msprobe_ms.support.errors import UsageError

#: Inputs that MindSpore computed unseen inside a backward that has an entry of its own.
UNSEEN = {"lstm": {"Kernel.Transpose.1.backward": "Kernel.SelectViewGrad.1.backward"}}


class Seen(mindspore.MsDispatchMode):
    """The test's own view of what is launched."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        self.names.append(func.name)
        return func(*args)


def contents(array: np.ndarray) -> tuple[str, int, int]:
    """The same for every view of the same numbers."""
    return str(array.dtype), array.size, zlib.crc32(np.sort(array.reshape(-1)).tobytes())


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Step, list[str], dict[str, np.ndarray]]]:
    """Each net's step at L2 with all tensors; what a mode of the test's own saw; the gradients."""
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    found = {}
    for name in nets.NETS:
        net, x, labels = nets.make(name)
        with Seen() as seen:
            bare, bare_gradients = nets.value_and_grad(net, x, labels)
        net, x, labels = nets.make(name)
        path = tmp_path_factory.mktemp(name) / "dump"
        with recording(net, path, level="L2", task="tensor"):
            value, gradients = nets.value_and_grad(net, x, labels)
        assert value == bare and not [k for k in gradients if not np.array_equal(gradients[k], bare_gradients[k])]
        found[name] = read_step(path), seen.names, gradients
    return found


@pytest.mark.parametrize("name", nets.NETS)
def test_every_kernel_in_launch_order(steps: dict[str, Any], name: str) -> None:
    step, seen, _ = steps[name]
    shown = [kernel for kernel in seen if kernel not in ("make_range", "typeof", "make_slice")]
    recorded = [entry.split(".")[1] for entry in step.data if entry.startswith("Kernel.")]
    # Backward kernels that nobody is shown stand between those that are.
    assert [kernel for kernel in recorded if not kernel.endswith("Grad") or kernel in shown] == shown
    assert {entry.rpartition(".")[2] for entry in step.data} == {"forward", "backward"}


@pytest.mark.parametrize("name", nets.NETS)
def test_no_number_comes_from_nowhere(steps: dict[str, Any], name: str) -> None:
    """What a kernel reads is a parameter, the batch, or was written by an entry before it."""
    step, _, gradients = steps[name]
    net, x, labels = nets.make(name)
    known = {contents(value.asnumpy()) for value in (*net.parameters_dict().values(), x, labels)}
    unknown = []
    for entry, fields in step.data.items():
        for field in ("input_args", "input"):
            arrays = [step.array(leaf) for _, leaf in leaves(fields.get(field, []))]
            # Constants that MindSpore makes are single numbers.
            unknown += [entry for array in arrays if array.ndim and contents(array) not in known]
        known |= {contents(step.array(leaf)) for _, leaf in leaves(fields["output"])}
    assert unknown == list(UNSEEN.get(name, {}))
    assert set(UNSEEN.get(name, {}).values()) <= set(step.data)
    assert [key for key, gradient in gradients.items() if contents(gradient) not in known] == []


@pytest.mark.parametrize("name", nets.NETS)
def test_figures_are_those_of_the_files(steps: dict[str, Any], name: str) -> None:
    step, _, _ = steps[name]
    for fields in step.data.values():
        for _, leaf in leaves(fields):
            array = step.array(leaf)
            assert list(array.shape) == leaf["shape"]
            if array.dtype.kind == "f" and array.ndim:
                assert (leaf["Max"], leaf["Min"]) == (array.max(), array.min())
                assert leaf["Norm"] == pytest.approx(np.linalg.norm(array.astype(np.float64).reshape(-1)), rel=1e-6)


def test_what_a_kernel_reads_and_writes(steps: dict[str, Any]) -> None:
    step, _, _ = steps["encoder"]
    checked = 0
    for entry, fields in step.data.items():
        if not entry.startswith("Kernel.MatMul."):
            continue
        a, b, transpose_a, transpose_b = fields["input_args" if entry.endswith("forward") else "input"]
        left, right = step.array(a), step.array(b)
        left = left.T if transpose_a["value"] else left
        right = right.T if transpose_b["value"] else right
        np.testing.assert_allclose(step.array(fields["output"][0]), left @ right, rtol=1e-4, atol=1e-5)
        checked += 1
    assert checked == 7 * 3


def test_kernels_know_their_cell_and_line(steps: dict[str, Any]) -> None:
    step, _, _ = steps["two_linear"]
    assert step.construct["Kernel.MatMul.1.forward"] == "Cell.fc2.Dense.forward.0"
    assert step.construct["Kernel.MatMul.0.backward"] == "Cell.fc2.Dense.backward.0"
    assert step.construct["Kernel.ReluGrad.0.backward"] == "Cell.relu.ReLU.backward.0"
    frames = {entry: frames for entries, frames in step.stack.values() for entry in entries}
    assert any("self.fc2(" in frame for frame in frames["Kernel.MatMul.0.backward"])
    assert set(frames) == set(step.data)


def test_a_net_is_not_needed(ms: Any, dump_path: Path) -> None:
    net, x, labels = nets.make("two_linear")
    with recording(None, dump_path, level="L2"):
        nets.value_and_grad(net, x, labels)
    step = read_step(dump_path)
    assert "Kernel.MatMul.1.backward" in step.data and set(step.construct.values()) == {None}


class Wild(nn.Cell):
    """Views, indexing, in-place updates, a compiled function."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        y = x * self.weight
        z = squares(y[1:])
        return z.sum() + y.astype(mindspore.float16).astype(mindspore.float32)[0].sum()


@mindspore.jit
def squares(x: Tensor) -> Tensor:
    return x * x


def gradient(net: nn.Cell, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    value, (grad,) = mindspore.value_and_grad(net, None, [net.weight])(x)
    return value.asnumpy().copy(), grad.asnumpy().copy()


# Kernels inside of compiled functions are told not to be recorded where graphs ran before, in another test.
def test_what_the_framework_does_not_show(ms: Any, dump_path: Path) -> None:
    x = Tensor(np.ones((3, 4), np.float32))
    bare = gradient(Wild(), x)
    net = Wild()
    with recording(net, dump_path, level="L2", task="tensor"):
        value, grad = gradient(net, x)
        x[0, 0] = 3.0
    assert (value, grad.tobytes()) == (bare[0], bare[1].tobytes())
    step = read_step(dump_path, troubles=True)
    inside = step.forward("Jit.squares")
    assert np.array_equal(step.array(inside["output"][0]), np.arange(4, 12, dtype=np.float32).reshape(2, 4) ** 2)
    back = step.backward("Jit.squares")
    assert np.array_equal(step.array(back["output"][0]), 2 * np.arange(4, 12, dtype=np.float32).reshape(2, 4))
    written = step.forward("Tensor.__setitem__")
    assert step.array(written["input_args"][0])[0, 0] == 1
    assert step.array(written["output"][0])[0, 0] == 3
    # Of the gradients of indexing no kernel is shown.
    indexing = [name for name in step.data if "Grad." in name]
    assert indexing == ["Kernel.SelectViewGrad.0.backward", "Kernel.StridedSliceGrad.0.backward"]
    expected = np.zeros((3, 4), np.float32)
    expected[1:] = 2 * np.arange(4, 12).reshape(2, 4)
    assert np.array_equal(step.array(step.data[indexing[1]]["output"][0]), expected)


def test_an_optimizer_is_one_graph(ms: Any, dump_path: Path) -> None:
    net, x, labels = nets.make("two_linear")
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    with recording(net, dump_path, level="L2"):
        _, gradients = mindspore.value_and_grad(
            lambda x, labels: nets.loss(net, x, labels), None, optimizer.parameters
        )(x, labels)
        optimizer(gradients)
    entry = read_step(dump_path, troubles=True).forward("Jit.SGD")
    norms = [np.linalg.norm(gradient.asnumpy()) for gradient in gradients]
    assert [leaf["Norm"] for _, leaf in leaves(entry["input_args"])] == pytest.approx(norms, rel=1e-6)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"list": ["MatMul"]}, {"MatMul"}),
        ({"list": ["Cell.fc2."]}, {"MatMul", "BiasAdd", "BiasAddGrad"}),
        ({"list": ["Cell.fc2."], "data_mode": ["backward"]}, {"MatMul", "BiasAddGrad"}),
        ({"scope": ["Kernel.ReLU.0.forward", "Kernel.MatMul.1.forward"]}, {"ReLU", "MatMul"}),
        ({"scope": ["Cell.fc2.Dense.forward.0"]}, {"MatMul", "BiasAdd"}),
    ],
)
def test_selection(ms: Any, dump_path: Path, keys: dict[str, Any], expected: set[str]) -> None:
    net, x, labels = nets.make("two_linear")
    with recording(net, dump_path, level="L2", **keys):
        nets.value_and_grad(net, x, labels)
    assert {name.split(".")[1] for name in read_step(dump_path).data} == expected


def test_overflow_check_finds_the_kernel(ms: Any, dump_path: Path) -> None:
    net, x, labels = nets.make("two_linear")
    net.fc2.bias.set_data(Tensor(np.full(10, np.inf, np.float32)))
    with recording(net, dump_path, level="L2", task="overflow_check"):
        nets.value_and_grad(net, x, labels)
    assert list(read_step(dump_path).data) == ["Kernel.BiasAdd.1.forward"]


class Fails(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x: Tensor, fails: bool) -> Tensor:
        y = self.fc(x)
        return ops.matmul(y, Tensor(np.ones((3, 3), np.float32))) if fails else y


def test_an_exception_passes_and_the_next_step_is_whole(ms: Any, dump_path: Path) -> None:
    net, x = Fails(), Tensor(np.ones((2, 4), np.float32))
    debugger = PrecisionDebugger(write_config(dump_path, level="L2"))
    for fails in (True, False):
        debugger.start(net)
        if fails:
            with pytest.raises((RuntimeError, ValueError)):
                net(x, True)
        else:
            mindspore.grad(lambda x: net(x, False).sum())(x)
        debugger.step()
    assert list(read_step(dump_path, 0).data) == ["Kernel.MatMul.0.forward", "Kernel.BiasAdd.0.forward"]
    second = read_step(dump_path, 1)
    assert second.construct["Kernel.MatMul.0.forward"] == "Cell.fc.Dense.forward.0"
    assert "Kernel.MatMul.0.backward" in second.data


class Raises(nn.Cell):
    """Its backward raises when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.raises = False

    def construct(self, x: Tensor) -> Tensor:
        return x * 1

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        if self.raises:
            raise ValueError("no way back")
        return (dout,)


@pytest.mark.parametrize("ends", ["before its backward", "after its backward raised"])
def test_no_gradient_outlives_its_backward(ms: Any, dump_path: Path, ends: str) -> None:
    """Not even until Python looks for cycles: steps of a large net would not fit into memory."""
    net, x, shape = Raises(), Tensor(np.ones((3, 5, 7, 11), np.float32)), (3, 5, 7, 11)
    net.raises = ends == "after its backward raised"
    debugger = PrecisionDebugger(write_config(dump_path, level="L2"))

    def loss(x: Tensor) -> Tensor:
        y = ops.tanh(net(ops.sin(x) * 2))
        if not net.raises:
            debugger.stop()
            debugger.step()
        return ops.exp(y).sum()

    def tensors() -> list[Tensor]:
        return [each for each in gc.get_objects() if type(each) is Tensor]

    gc.collect()
    gc.disable()
    try:
        # Tensors of other tests are not asked for their shape: one that never came to be would wait for ever.
        before = {id(tensor) for tensor in tensors()}
        debugger.start(net)
        with pytest.raises(ValueError, match="no way back") if net.raises else nullcontext():
            mindspore.grad(loss)(x)
        debugger.stop()
        debugger.step()
        assert not [tensor for tensor in tensors() if id(tensor) not in before and tensor.shape == shape]
    finally:
        gc.enable()


def test_recomputed_kernels_are_marked(ms: Any, dump_path: Path) -> None:
    net, x, labels = nets.make("two_linear")
    net.fc1.recompute()
    with recording(net, dump_path, level="L2"):
        nets.value_and_grad(net, x, labels)
    data = read_step(dump_path).data
    forward = [name for name in data if name.startswith("Kernel.MatMul.") and name.endswith("forward")]
    assert [name for name in forward if data[name].get("recompute")] == ["Kernel.MatMul.2.forward"] == forward[2:]


def test_another_thread_is_not_left_out(ms: Any, dump_path: Path) -> None:
    x = Tensor(np.ones(3, np.float32))
    with recording(None, dump_path, level="L2"):
        thread = threading.Thread(target=lambda: ops.exp(x))
        thread.start()
        thread.join()
        ops.sin(x)
    # The framework shows the kernels of one thread; a call of another is recorded as a call.
    assert list(read_step(dump_path).data) == ["Functional.exp.0.forward", "Kernel.Sin.0.forward"]


def test_nothing_when_off(ms: Any, dump_path: Path) -> None:
    modes = mindspore._c_expression._DispatchGuardStack
    with recording(None, dump_path, level="L2"):
        assert modes.depth() == 1
    assert modes.depth() == 0
    ops.exp(Tensor([1.0]))
    assert not read_step(dump_path).data


def test_the_scripts_own_dispatch_mode(ms: Any, dump_path: Path) -> None:
    x = Tensor(np.ones(3, np.float32))
    debugger = PrecisionDebugger(write_config(dump_path, level="L2"))
    with Seen() as before:
        debugger.start()
        ops.exp(x)
        debugger.stop()
        ops.exp(x)
    debugger.step()
    debugger.start()
    with Seen() as within:
        ops.exp(x)
        debugger.stop()
        ops.exp(x)
    debugger.step()
    assert before.names == within.names == ["Exp", "Exp"]
    assert [list(read_step(dump_path, step).data) for step in (0, 1)] == [["Kernel.Exp.0.forward"]] * 2
    modes = mindspore._c_expression._DispatchGuardStack
    for _ in range(3):  # what could not be taken off is used again
        debugger.start()
        with Seen():
            debugger.stop()
        debugger.step()
        assert modes.depth() == 1
    debugger.start()
    debugger.stop()
    assert modes.depth() == 0


def test_forgetting_stop_ends_well(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np, mindspore as ms\n"
        "from mindspore import Tensor, ops\n"
        "from msprobe_ms.mindspore import PrecisionDebugger\n"
        "ms.runtime.launch_blocking()\n"
        "PrecisionDebugger(dump_path='dump', level='L2').start()\n"
        "ops.exp(Tensor(np.ones(3, np.float32)))\n"
    )
    ended = run_forked(script.name, framework="mindspore", cwd=tmp_path, timeout=120)
    assert ended.returncode == 0, ended.stderr
    dump = json.loads((step_folder(tmp_path / "dump") / "dump.json").read_text())
    assert dump["level"] == "L2" and list(dump["data"]) == ["Kernel.Exp.0.forward"]


def test_record_and_model_api(ms: Any, dump_path: Path) -> None:
    net, x, labels = nets.make("two_linear")
    with record(net, level="L2", dump_path=dump_path) as dump:
        net(x)
    assert dump["Kernel.MatMul.0.forward"].parent == "Cell.fc1.Dense.forward.0"
    data = mindspore.dataset.NumpySlicesDataset((x.asnumpy(), labels.asnumpy()), ["x", "y"], shuffle=False).batch(4)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = mindspore.train.Model(net, loss, nn.SGD(net.trainable_params(), 0.1))
    path = dump_path.with_name("model")
    model.train(1, data, callbacks=[MsprobeStep(PrecisionDebugger(dump_path=path, level="L2"))])
    assert {"Kernel.MatMul.1.backward", "Jit.SGD.0.forward"} <= set(read_step(path, troubles=True).data)


def test_compare_names_the_kernel(ms: Any, tmp_path: Path) -> None:
    for name, epsilon in (("good", 1e-5), ("bad", 1e-2)):
        net, x, labels = nets.make("encoder")
        net.layers[0].norm2.layer_norm = ops.LayerNorm(-1, -1, epsilon)
        with recording(net, tmp_path / name, level="L2"):
            nets.value_and_grad(net, x, labels)
    bad, good = (read_dump(step_folder(tmp_path / name)) for name in ("bad", "good"))
    origins = compare_dumps(bad, good, Options()).origins
    assert [origin.target for origin in origins[:1]] == ["Kernel.LayerNorm.1.forward.output.0"]
    assert origins[0].details[0] == "input.5 is 0.01 against 1e-05"
    assert any(each.endswith("called in Cell.layers.0.norm2.LayerNorm.forward.0") for each in origins[0].details)


def test_where_kernels_cannot_be_seen(tmp_path: Path) -> None:
    from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger

    with pytest.raises(UsageError, match="dumped by an Ascend device, and there is none here"):
        TorchDebugger(dump_path=tmp_path, level="L2")
