"""Compiled steps, recorded: ``compiled_steps.py SCENARIO FOLDER [KEYS]``; what each prints last is one line of JSON.

MindSpore reads the configuration of its kernel dump once a process, so each scenario has a process of its own.
FOLDER gets ``dump/`` and its ``config.json`` with KEYS (JSON); without KEYS nothing is recorded.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import mindspore as ms
import nets_mindspore as nets
import numpy as np
from mindspore import Tensor, nn, ops
from recording import write_config

from msprobe_ms.config.vocabulary import DUMP_TASKS
from msprobe_ms.mindspore import MsprobeStep, PrecisionDebugger, record
from msprobe_ms.support.errors import ConfigError, UsageError

try:
    from mindspore.graph import _parse as parser
except ImportError:  # before 2.9
    from mindspore._extends import parse as parser

VARIABLES = ("MINDSPORE_DUMP_CONFIG", "MS_ACL_DUMP_CFG_PATH")


class Nothing:
    """In place of a debugger: nothing is recorded."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def debugger_of(folder: Path, keys: dict[str, Any] | None) -> Any:
    return Nothing() if keys is None else PrecisionDebugger(write_config(folder / "dump", level="L2", **keys))


def variables() -> list[str | None]:
    return [os.environ.get(name) for name in VARIABLES]


def digest(array: np.ndarray) -> str:
    return f"{zlib.crc32(array.tobytes()):08x}"


class Loss(nn.Cell):
    """Kernels are named after the Cells around them where Cells call Cells."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Tensor, labels: Tensor) -> Tensor:
        return nets.loss(self.net, x, labels)


class Step(nn.Cell):
    """The loss and all gradients, as a training step's Cell computes them."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.loss = Loss(net)
        self.weights = ms.ParameterTuple(net.trainable_params())
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x: Tensor, labels: Tensor) -> Any:
        return self.loss(x, labels), self.grad(self.loss, self.weights)(x, labels)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(4, 3)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(3, 2)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc2(self.relu(self.fc1(x)))


def small() -> tuple[Net, Tensor, Tensor]:
    generator = np.random.default_rng(3)
    net = Net()
    nets.set_weights(net, generator)
    x, y = (generator.standard_normal(shape).astype(np.float32) for shape in ((5, 4), (5, 2)))
    return net, Tensor(x), Tensor(y)


def trained(net: Net, loss: Any = None) -> Any:
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss or nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    return step.set_train()


def every_net(folder: Path, keys: dict[str, Any] | None) -> Any:
    """A step a net, and when recorded another of the encoder in which one LayerNorm has another epsilon.

    The graph of the third begins with a Cell, those of the others with a function. With ``nets`` only the first ones.
    """
    names = nets.NETS if keys is None else (*nets.NETS, "faulty")[: keys.pop("nets", None)]
    debugger = debugger_of(folder, keys)
    found = {}
    for name in names:
        net, x, labels = nets.make("encoder" if name == "faulty" else name)
        if name in ("encoder", "faulty"):
            epsilon = 1e-2 if name == "faulty" else 1e-5
            net.layers[0].norm2.layer_norm = ops.LayerNorm(-1, -1, epsilon)
        debugger.start(net)
        if name == "residual":
            loss, gradients = Step(net)(x, labels)
            figures = [loss.asnumpy(), *(gradient.asnumpy() for gradient in gradients)]
        else:
            value, by_name = nets.value_and_grad(net, x, labels)
            figures = [value, *by_name.values()]
        debugger.stop()
        debugger.step()
        found[name] = [digest(figure) for figure in figures]
    return found


def training(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Five steps of two graphs; an evaluation runs before each ``start``, another net after each ``stop``."""
    net, x, y = small()
    other = nn.Dense(4, 7)
    before, genuine = variables(), parser.get_scope_name
    debugger = debugger_of(folder, keys)
    during = variables()
    criterion, optimizer = nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)

    def forward(x: Tensor, y: Tensor) -> Tensor:
        return criterion(net(x), y)

    gradient = ms.value_and_grad(forward, None, net.trainable_params())
    losses = []
    for _ in range(5):
        net(x)
        debugger.start(net)
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        losses.append(loss.asnumpy().tobytes().hex())
        debugger.stop()
        other(x)
        debugger.step()
        if keys and "step" in keys and len(losses) > max(keys["step"]):
            debugger.start(net)
            assert parser.get_scope_name is genuine and variables() == before
            debugger.stop()
    debugger.retire()
    assert parser.get_scope_name is genuine
    return {"losses": losses, "variables": [before, during, variables()]}


def after_a_graph(folder: Path, keys: dict[str, Any] | None) -> Any:
    """A graph ran before anything is configured."""
    net, x, y = small()
    net(x)
    debugger = debugger_of(folder, keys)
    debugger.start(net)
    trained(net)(x, y)
    debugger.stop()
    debugger.step()


def odd_path(folder: Path, keys: dict[str, Any] | None) -> Any:
    """A dump path that MindSpore does not accept."""
    net, x, _ = small()
    debugger = PrecisionDebugger(dump_path=folder / "v1.0 é", level="L2", task="tensor")
    debugger.start(net)
    net(x)
    debugger.stop()
    debugger.step()
    (configuration,) = (folder / "v1.0 é").glob("*.json")
    link = Path(json.loads(configuration.read_text())["common_dump_settings"]["path"])
    assert link.resolve() == folder / "v1.0 é"
    return str(link)


def many_starts(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Two windows in one step, which counts from 7, with a graph between them that is not recorded."""
    net, x, _ = small()
    debugger = debugger_of(folder, keys)
    debugger.set_init_step(7)
    for _ in range(2):
        debugger.start(net)
        net(x)
        debugger.stop()
        net(x)
    debugger.step()


def one_start(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Four iterations of two graphs between one ``start`` and the end of the process."""
    net, x, y = small()
    debugger = debugger_of(folder, keys)
    debugger.start(net)
    criterion, optimizer = nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)

    def forward(x: Tensor, y: Tensor) -> Tensor:
        return criterion(net(x), y)

    gradient = ms.value_and_grad(forward, None, net.trainable_params())
    for number in range(4):
        _, gradients = gradient(x * (number + 1), y)
        optimizer(gradients)
    return [digest(parameter.asnumpy()) for parameter in net.get_parameters()]


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.norm = nn.LayerNorm((4,))

    @ms.jit
    def construct(self, x: Tensor) -> Tensor:
        return ops.tanh(self.norm(self.fc(x)))


class Outer(nn.Cell):
    """A dynamic net that calls a jitted Cell twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(4, 4)
        self.inner = Inner()
        self.last = nn.Dense(4, 2)

    def construct(self, x: Tensor) -> Tensor:
        return self.last(self.inner(self.inner(self.first(x))))


@ms.jit
def squares(x: Tensor) -> Tensor:
    return (x * x).sum()


def train_outer(debugger: Any, steps: int) -> list[str]:
    net, optimizer = Outer(), None
    nets.set_weights(net, np.random.default_rng(3))
    gradient = ms.value_and_grad(lambda x: squares(net(x)), None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    x = Tensor(np.random.default_rng(4).standard_normal((2, 4)).astype(np.float32))
    for _ in range(steps):
        debugger.start(net)
        _, gradients = gradient(x)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    return [digest(parameter.asnumpy()) for parameter in net.get_parameters()]


def jitted(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Compiled functions in dynamic steps; with ``late`` a graph has run before."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if (keys or {}).pop("late", False):
        squares(Tensor(np.ones(2, np.float32)))
    before = variables()
    debugger = debugger_of(folder, keys)
    weights = train_outer(debugger, 3)
    if keys is not None:
        assert variables() == before and not list(debugger.config.dump_path.glob("*.json"))
        debugger.retire()
    return weights


def jitted_twice(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Two debuggers with folders of their own; MindSpore knows that of the first, which is gone by then."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for name in ("a", "b"):
        (folder / name).mkdir()
        debugger = debugger_of(folder / name, keys)
        train_outer(debugger, 1)
        debugger.retire()
        (folder / "a").rename(folder / "moved") if name == "a" else None
    train_outer(Nothing(), 1)


def switching(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Dynamic, compiled, dynamic: a step each; a change in the middle of a step is not recorded."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net, x, _ = small()
    debugger = debugger_of(folder, keys)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        debugger.start(net)
        net(x)
        debugger.stop()
        if mode == ms.GRAPH_MODE:
            ms.set_context(mode=ms.PYNATIVE_MODE)
            debugger.start(net)
        debugger.step()


def with_block(folder: Path, keys: dict[str, Any] | None) -> Any:
    """``record`` twice into one folder, then a graph that nobody asked for."""
    net, x, _ = small()
    found = []
    for _ in range(2):
        with record(net, level="L2", task="tensor", dump_path=folder / "dump") as dump:
            expected = net(x).asnumpy()
        found.append([list(dump), (dump["Kernel.BiasAdd.1.forward"]["output.0"].numpy() == expected).all().item()])
    net(x)
    return found


def of_model(folder: Path, keys: dict[str, Any] | None) -> Any:
    """``Model.train`` with the callback, data sinking or not."""
    net, x, y = small()
    sink = (keys or {}).pop("sink")
    data = ms.dataset.NumpySlicesDataset((x.asnumpy()[:4], y.asnumpy()[:4]), ["x", "y"], shuffle=False).batch(2)
    model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(2, data, callbacks=[MsprobeStep(debugger_of(folder, keys))], dataset_sink_mode=sink)


def endless(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Steps without end; each line is the number of one that is over."""
    net, x, y = small()
    debugger, step = debugger_of(folder, keys), trained(net)
    for number in range(10**6):
        debugger.start(net)
        step(x, y)
        debugger.stop()
        debugger.step()
        os.write(1, f"{number}\n".encode())


def raising(folder: Path, keys: dict[str, Any] | None) -> Any:
    """A kernel that raises; the script never comes to ``stop``."""
    net, x, _ = small()
    debugger = debugger_of(folder, keys)
    cholesky = ops.Cholesky()
    debugger.start(net)
    cholesky(-ops.eye(3, 3, ms.float32) + 0 * net(x).sum())


def child(folder: Path, keys: dict[str, Any] | None) -> Any:
    """A forked child, as a data loader's worker is, touches nothing."""
    net, x, _ = small()
    debugger = debugger_of(folder, keys)
    debugger.start(net)
    net(x)
    if (pid := os.fork()) == 0:
        debugger.step()
        os._exit(0)
    os.waitpid(pid, 0)
    there = sorted(path.name for path in (folder / "dump" / "step0").rglob("*.json"))
    debugger.step()
    return there


def every_way(folder: Path, keys: dict[str, Any] | None) -> Any:
    """Whether a debugger can be made at each level, with each task, in both kinds of compiled graphs."""
    found = {}
    refused = write_config(folder / "refused", level="L2", list=["name-regex((?P<a>x)(?P=a))"])
    try:
        PrecisionDebugger(refused)
    except UsageError as error:
        found["refused"] = str(error)
    assert variables() == [None, None]
    for jit_level, level, task in product(("O0", "O1", "O2"), ("L0", "L1", "mix", "L2"), DUMP_TASKS):
        ms.set_context(jit_config={"jit_level": jit_level})
        try:
            PrecisionDebugger(dump_path=folder / "dump", level=level, task=task).retire()
            found[f"{jit_level} {level} {task}"] = "made"
        except (UsageError, ConfigError) as error:
            found[f"{jit_level} {level} {task}"] = str(error)
    return found


class Twice(nn.Cell):
    """Recomputed, held under two names, in a list, and holding its holder."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Net()
        self.first.recompute()
        self.again = self.first
        self.rest = nn.CellList([nn.Dense(2, 4), nn.Tanh()])

    def construct(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return self.again(x).sum()


def recomputed(folder: Path, keys: dict[str, Any] | None) -> Any:
    """A graph that begins with a function; the Cells' paths are MindSpore's own."""
    net = Twice()
    nets.set_weights(net, np.random.default_rng(5))
    x = small()[1]

    def forward(x: Tensor) -> Tensor:
        return net(x)

    debugger = debugger_of(folder, keys)
    debugger.start(net)
    paths = {id(cell): parser.get_scope_name(cell) for cell in net.cells()} if keys else {}
    loss, gradients = ms.value_and_grad(forward, None, net.trainable_params())(x)
    debugger.stop()
    debugger.step()
    debugger.retire()
    if keys:
        net.generate_scope()
        assert paths == {id(cell): cell.get_scope() for cell in net.cells()}
        net.rest.insert_child_to_cell("above", net)
        debugger.start(net)  # ends, although the net is inside itself
    return [digest(array.asnumpy()) for array in (loss, *gradients)]


def switched(folder: Path, keys: dict[str, Any] | None) -> Any:
    """The configuration is edited while the job runs: off, on, elsewhere with another selection."""
    net, x, _ = small()
    file = write_config(folder / "dump", level="L2", dump_enable=False, **(keys or {}))
    debugger = PrecisionDebugger(file)
    written = json.loads(file.read_text())
    for changed in ({}, {"dump_enable": True}, {"dump_path": str(folder / "other"), "step": [2]}):
        written |= changed
        file.write_text(json.dumps(written))
        debugger.start(net)
        net(x)
        debugger.stop()
        debugger.step()


def token_range(folder: Path, keys: dict[str, Any] | None) -> Any:
    try:
        debugger_of(folder, keys).start(small()[0], token_range=[0, 1])
    except UsageError as error:
        return str(error)


SCENARIOS = (
    odd_path,
    recomputed,
    switched,
    token_range,
    every_way,
    every_net, training, after_a_graph, many_starts, one_start, switching, with_block, of_model, endless, raising,
    child, jitted, jitted_twice,
)  # fmt: skip


def main(scenario: str, folder: str, keys: str = "null", jit_level: str = "O0") -> None:
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": jit_level})
    (run,) = (each for each in SCENARIOS if each.__name__ == scenario)
    print(json.dumps(run(Path(folder), json.loads(keys))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
