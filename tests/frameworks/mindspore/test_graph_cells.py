"""Cells inside compiled graphs: what is recorded, and that nothing else shows it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nets_compiled
import numpy as np
import pytest
from compare_parts import compared
from recording import Step, assert_figures, leaves, read_step, recording, write_config
from thorough import sampled, thorough

from msprobe_ms.comparison.run import Options
from msprobe_ms.mindspore import MsprobeStep, PrecisionDebugger
from msprobe_ms.support.errors import UsageError

ms = pytest.importorskip("mindspore")
nets = pytest.importorskip("nets_mindspore")

from graph_steps import APART, Outcome, assert_like, assert_same, gradient_step, loss_of, recorded  # noqa: E402
from mindspore import Tensor, _c_expression, nn  # noqa: E402
from mindspore.dataset import NumpySlicesDataset  # noqa: E402
from mindspore.train import Callback, Model  # noqa: E402


@pytest.fixture
def compiled() -> Iterator[Any]:
    """MindSpore in GRAPH_MODE, for this test."""
    ms.set_context(mode=ms.GRAPH_MODE)
    yield ms
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture(autouse=True)
def pynative_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where MindSpore leaves what it could not compile
    ms.set_context(mode=ms.PYNATIVE_MODE)


# -- the five nets ---------------------------------------------------------------------------------------------------


def dumped(name: str, dump_path: Path, *, mode: Any, epsilon: float | None = None) -> Step:
    """A net's step, recorded in this mode; with ``epsilon`` a fault in the encoder's layer."""
    ms.set_context(mode=mode)
    try:
        net, x, labels = nets.make(name)
        if epsilon is not None:
            norm = net.layers[0].norm1
            norm.layer_norm = ms.ops.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1, epsilon=epsilon)
        return recorded(net, gradient_step(net, x, labels, loss=loss_of(net)), dump_path)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture(scope="module")
def compiled_encoder(tmp_path_factory: pytest.TempPathFactory) -> Step:
    return dumped("encoder", tmp_path_factory.mktemp("encoder") / "graph", mode=ms.GRAPH_MODE)


@pytest.mark.parametrize("name", sampled(nets.NETS, {"encoder", "lstm"}.__contains__))
def test_a_compiled_net_dumps_what_the_dynamic_one_does(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name == "encoder":
        graph = request.getfixturevalue("compiled_encoder")
    else:
        graph = dumped(name, tmp_path / "graph", mode=ms.GRAPH_MODE)
    dynamic = dumped(name, tmp_path / "dynamic", mode=ms.PYNATIVE_MODE)
    if name == "lstm":  # nobody needs the gradient of the net's input, which the graph does not compute
        dynamic.data["Cell.lstm.rnn._DynamicLSTMCPUGPU.backward.0"]["output"][0] = None
    assert_like(graph, dynamic)
    outcome = compared(graph.folder, dynamic.folder, tmp_path / "report", Options(csv=True))
    assert outcome.comparison.verdict == "consistent"


def test_a_planted_epsilon_is_named(compiled_encoder: Step, tmp_path: Path) -> None:
    faulty = dumped("encoder", tmp_path / "faulty", mode=ms.PYNATIVE_MODE, epsilon=1e-2)
    outcome = compared(faulty.folder, compiled_encoder.folder, tmp_path / "report", Options(csv=True))
    assert outcome.comparison.origins[0].target.startswith("Cell.layers.0.norm1.LayerNorm.forward.0")


def test_a_jitted_step_has_the_place_of_a_dynamic_one(tmp_path: Path) -> None:
    net, x = nets_compiled.make(nets_compiled.Two)
    graph = recorded(net, gradient_step(net, x, jit=True), tmp_path / "jitted")
    with recording(net, tmp_path / "dynamic"):
        gradient_step(net, x)()
    assert_like(graph, read_step(tmp_path / "dynamic"))
    assert sorted(path.name for path in (tmp_path / "jitted").iterdir()) == ["step0"]


# -- what is hard about calls ----------------------------------------------------------------------------------------


_HARDEST = (
    nets_compiled.Containers, nets_compiled.Arguments, nets_compiled.While, nets_compiled.WithOwnBackward,
    nets_compiled.Recomputed,
)  # fmt: skip


@pytest.mark.parametrize("net_class", sampled(nets_compiled.NETS, _HARDEST.__contains__))
def test_calls_of_every_shape(net_class: type[nn.Cell], tmp_path: Path, compiled: Any) -> None:
    net, x = nets_compiled.make(net_class)
    graph = recorded(net, gradient_step(net, x), tmp_path / "graph")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net, x = nets_compiled.make(net_class)
    dynamic = recorded(net, gradient_step(net, x), tmp_path / "dynamic")
    if net_class is nets_compiled.While:  # the graph computes a gradient for the input of its first turn as well
        graph.data["Cell.fc.Dense.backward.0"]["output"] = dynamic.data["Cell.fc.Dense.backward.0"]["output"]
    assert_like(graph, dynamic, without=APART.get(net_class, ()))


def test_a_second_start_records_every_cell_once(tmp_path: Path, compiled: Any) -> None:
    net, x = nets_compiled.make(nets_compiled.Two)
    run = gradient_step(net, x)
    with recording(net, tmp_path / "once"):
        run()
    once = read_step(tmp_path / "once")
    debugger = PrecisionDebugger(dump_path=tmp_path / "twice", level="L0", task="statistics")
    debugger.start(net)
    debugger.start(net)
    run()
    debugger.stop()
    debugger.step()
    twice = read_step(tmp_path / "twice", troubles=True)
    assert list(twice.data) == list(once.data)
    assert_like(twice, once)


def test_a_net_that_is_jitted_itself(tmp_path: Path) -> None:
    """As any jitted Cell: its call outside of the graph, with its parameters' gradients, and inside."""

    class Given(nets_compiled.ParameterGiven):
        @ms.jit
        def construct(self, x: Tensor) -> Tensor:
            return (self.product(self.fc(x), self.weight) + self.product(x, self.weight)).sum()

    net, x = nets_compiled.make(Given)
    outside = recorded(net, gradient_step(net, x), tmp_path / "dump")
    inside = read_step(tmp_path / "dump" / "graph")
    assert [name for name in outside.data if "Given" in name] == [
        "Cell.Given.forward.0", "Cell.Given.backward.0", "Cell.Given.parameters_grad.0"
    ]  # fmt: skip
    assert inside.construct["Cell.product.TakesParameter.forward.1"] == "Cell.Given.forward.0"
    own, same = (step.data["Cell.Given.forward.0"]["parameters"] for step in (inside, outside))
    assert list(own) == list(same) == ["weight"] and own["weight"]["Norm"] == pytest.approx(same["weight"]["Norm"])


@cache
def jitted(net_class: type[nn.Cell]) -> tuple[nn.Cell, Callable[[], Outcome], Outcome]:
    """A dynamic net around a jitted Cell, its step, and what that gives without the tool."""
    inner, x = nets_compiled.make(net_class)
    outer = nn.SequentialCell(nets_compiled.Jitted(inner))
    run = gradient_step(outer, x)
    return outer, run, run()


@pytest.mark.parametrize(
    ("net_class", "data_mode"),
    [
        (nets_compiled.Containers, "all"), (nets_compiled.Two, "backward"),
        thorough((nets_compiled.Normed, "all")), thorough((nets_compiled.Loop, "all")),
        thorough((nets_compiled.Two, "forward")),
    ],
)  # fmt: skip
def test_a_jitted_cell_in_a_dynamic_net(net_class: type[nn.Cell], data_mode: str, tmp_path: Path) -> None:
    outer, run, before = jitted(net_class)
    with recording(outer, tmp_path / "dump", data_mode=[data_mode]):
        assert_same(run(), before)
    assert_same(run(), before)
    folders = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert folders == ["graph", "pynative"]
    graph, python = read_step(tmp_path / "dump" / "graph"), read_step(tmp_path / "dump" / "pynative")
    inside = {name for name in graph.data if name.startswith("Cell.0.net.")}
    assert inside
    assert not any(name.startswith("Cell.0.net.") and ".parameters_grad." not in name for name in python.data)
    if data_mode == "all":
        # Whole gradients of parameters are what Python sees; in the graph each call has but its part.
        assert any(".parameters_grad." in name for name in python.data)
    envelope = json.loads((graph.folder / "dump.json").read_text())
    assert envelope["dump_data_dir"] is None


def test_what_ran_in_graphs_is_exported_when_stop_returns(tmp_path: Path) -> None:
    inner, x = nets_compiled.make(nets_compiled.One)
    net = nn.SequentialCell(nets_compiled.Jitted(inner))
    run = gradient_step(net, x)
    debugger = PrecisionDebugger(write_config(tmp_path / "dump"))
    debugger.start(net)
    run()
    debugger.stop()
    (found,) = (tmp_path / "dump" / "graph").glob("step0/*/dump.json")
    assert any(name.startswith("Cell.0.net.") for name in json.loads(found.read_text())["data"])
    debugger.step()


@pytest.mark.parametrize("net_class", nets_compiled.BRANCHING)
def test_branches_whose_gradient_is_taken_outside_are_left_alone(net_class: type[nn.Cell], tmp_path: Path) -> None:
    inner, x = nets_compiled.make(net_class)
    net = nn.SequentialCell(nets_compiled.Jitted(inner))
    step = recorded(net, gradient_step(net, x), tmp_path / "dump")
    assert {name.rpartition(".forward")[0] for name in step.data if ".forward." in name} == {"Cell.0.Jitted"}
    said = (step.folder.parents[1] / "graph").rglob("dump_error_info.log")
    log = next((path.read_text() for path in said), "") or (step.folder / "dump_error_info.log").read_text()
    assert "branches or loops that depend on tensors, whose gradient is taken outside of it" in log


def test_gradients_that_a_graph_cannot_tell_are_said(tmp_path: Path, compiled: Any) -> None:
    net, x = nets_compiled.make(nets_compiled.WithOwnBackward)
    step = recorded(net, gradient_step(net, x), tmp_path / "dump")
    log = (step.folder / "dump_error_info.log").read_text()
    assert (
        "Cell.own.OwnBackward: not recorded in compiled graphs: its gradients, for which it has a bprop of its own"
        in log
    )


@pytest.mark.parametrize(
    ("net_class", "keys", "names"),
    [
        (nets_compiled.One, {"list": ["Dense.forward.7"]}, []),
        (nets_compiled.While, {"data_mode": ["forward"]}, ["Cell.0.Jitted.forward.0", "loss.0.debug"]),
    ],
)
def test_a_graph_without_entries_leaves_no_dump(
    net_class: type[nn.Cell], keys: dict[str, Any], names: list[str], tmp_path: Path
) -> None:
    inner, x = nets_compiled.make(net_class)
    net = nn.SequentialCell(nets_compiled.Jitted(inner))
    with recording(net, tmp_path / "dump", **keys):
        gradient_step(net, x)()
    assert [path.name for path in (tmp_path / "dump").iterdir()] == ["step0"]
    step = read_step(tmp_path / "dump", troubles=True)  # nothing but a whole dump lies there
    assert list(step.data) == names
    log = step.folder / "dump_error_info.log"
    assert log.exists() == (net_class is nets_compiled.While)
    assert not log.exists() or "branches or loops that depend on tensors" in log.read_text()


@pytest.mark.parametrize("jitted", [False, True])
def test_what_writes_in_place_is_left_alone(jitted: bool, tmp_path: Path) -> None:
    net, x = nets_compiled.make(nets_compiled.InPlace)
    if jitted:
        net = nn.SequentialCell(nets_compiled.Jitted(net))
    else:
        ms.set_context(mode=ms.GRAPH_MODE)
    recorded(net, gradient_step(net, x), tmp_path / "dump")
    logs = [log.read_text() for log in (tmp_path / "dump").rglob("dump_error_info.log")]
    said = "a compiled graph: what runs inside is not recorded: a function that writes into a tensor in place"
    assert sum(said in log for log in logs) == 1
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_random_numbers_of_a_graph_are_said_to_differ(tmp_path: Path, compiled: Any) -> None:
    net, x = nets_compiled.make(nets_compiled.Drops)
    run = gradient_step(net, x)
    with recording(net, tmp_path / "dump"):
        run()
    step = read_step(tmp_path / "dump", troubles=True)
    assert len(step.calls("Cell.drop.Dropout")) == 2
    log = (step.folder / "dump_error_info.log").read_text()
    assert log.count("a compiled graph draws random numbers (Dropout): MindSpore keeps their sequence") == 1


class Noisy(nn.Cell):
    """Gets the seed of its operator when it is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.relu(x) + ms.ops.randn(2, 2)


def drawn(dump: Path, steps: int, recorded: Callable[[int], bool]) -> tuple[list[str], list[str]]:
    """What a graph draws in each step, and what is drawn outside of it."""
    ms.set_seed(5)
    net, inside, outside = Noisy(), [], []
    debugger = PrecisionDebugger(write_config(dump))
    for step in range(steps):
        if recorded(step):
            debugger.start(net)
        inside.append(str(net(Tensor(np.ones((2, 2), np.float32)))))
        outside.append(str(ms.ops.randn(2)))
        debugger.stop()
        debugger.step()
    debugger.retire()
    return inside, outside


def test_compiling_for_a_record_takes_no_random_numbers_from_the_training(tmp_path: Path, compiled: Any) -> None:
    inside, outside = drawn(tmp_path / "none", 4, lambda step: False)
    assert drawn(tmp_path / "all", 4, lambda step: True) == (inside, outside)
    late, beside = drawn(tmp_path / "late", 4, lambda step: step == 2)
    assert beside == outside
    assert [*late[:2], late[3]] == inside[:3]  # the sequence of a graph is the graph's


def test_token_range_is_refused(tmp_path: Path, compiled: Any) -> None:
    debugger = PrecisionDebugger(write_config(tmp_path / "dump"))
    with pytest.raises(UsageError) as caught:
        debugger.start(nn.SequentialCell(nn.Dense(4, 4)), token_range=[1, 1])
    assert str(caught.value) == (
        "start: token_range counts calls of a model in dynamic graphs; leave it out in compiled ones"
    )
    debugger.step()


def test_shapes_that_only_the_running_graph_knows(tmp_path: Path, compiled: Any) -> None:
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU())
    net.set_inputs(Tensor(shape=[None, 4], dtype=ms.float32))
    batches = [np.random.standard_normal((size, 4)).astype(np.float32) for size in (2, 5)]
    plain = [net(Tensor(batch)).asnumpy().copy() for batch in batches]
    with recording(net, tmp_path / "dump", task="tensor"):
        assert_same([net(Tensor(batch)).asnumpy().copy() for batch in batches], plain)
    step = read_step(tmp_path / "dump", troubles=True)
    for number, batch in enumerate(batches):
        (leaf,) = step.forward("Cell.0.Dense", number)["input_args"]
        assert leaf["shape"] == list(batch.shape)
        assert leaf["Max"] == batch.max()
        assert leaf["Min"] == batch.min()
        assert leaf["Mean"] == pytest.approx(float(batch.mean()), abs=1e-6)
        assert leaf["Norm"] == pytest.approx(float(np.linalg.norm(batch)), rel=1e-6)
        assert "data_name" not in leaf
    log = (step.folder / "dump_error_info.log").read_text()
    assert "tensors whose shape only the running graph knows have figures, but no files" in log


def test_dtypes(tmp_path: Path, compiled: Any) -> None:
    class Pass(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return ms.ops.concat((x, x))

    class PassAll(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pass_one = Pass()

        def construct(self, *each: Tensor) -> Any:
            return [self.pass_one(x) for x in each]

    dtypes = ["float16", "bfloat16", "float64", "int32", "int8", "bool_"]
    values = np.array([[0, 1, 1], [1, 0, 3]])
    net = PassAll()
    with recording(net, tmp_path / "dump", task="tensor", summary_mode="md5"):
        net(*(Tensor(values, getattr(ms, dtype)) for dtype in dtypes))
    step = read_step(tmp_path / "dump")
    for number, dtype in enumerate(dtypes):
        (leaf,) = step.forward("Cell.pass_one.Pass", number)["output"]
        assert leaf["dtype"] == {"bool_": "Bool", "bfloat16": "BFloat16"}.get(dtype, dtype.capitalize())
        assert len(leaf["md5"]) == 8
        twice = np.concatenate((values, values))
        np.testing.assert_array_equal(step.array(leaf), twice.astype(bool) if dtype == "bool_" else twice)


# -- what configurations ask for -------------------------------------------------------------------------------------


def test_files_hold_what_the_figures_say(tmp_path: Path, compiled: Any) -> None:
    net, x, labels = nets.make("two_linear")
    run = gradient_step(net, x, labels, loss=loss_of(net))
    for name, keys in {"now": {}, "later": {"async_dump": True}}.items():
        with recording(net, tmp_path / name, task="tensor", list=["Cell"], **keys):
            outcome = run()
        step = read_step(tmp_path / name)
        assert assert_figures(step) == 8 + 6 + 2 * 3 - 1
        (leaf,) = step.data["Cell.fc2.Dense.parameters_grad.0"]["weight"]
        names = [parameter.name for parameter in net.trainable_params()]
        np.testing.assert_array_equal(step.array(leaf), outcome[1 + names.index("fc2.weight")])


def test_list_scope_and_structure(tmp_path: Path, compiled: Any) -> None:
    net, x = nets_compiled.make(nets_compiled.Two)
    run = gradient_step(net, x)
    with recording(net, tmp_path / "list", list=["fc2"]):
        run()
    assert set(read_step(tmp_path / "list").data) == {
        "Cell.fc2.Dense.forward.0", "Cell.fc2.Dense.backward.0", "Cell.fc2.Dense.parameters_grad.0",
    }  # fmt: skip
    with recording(net, tmp_path / "scope", scope=["Cell.relu.ReLU.forward.0", "Cell.fc2.Dense.forward.0"]):
        run()
    assert set(read_step(tmp_path / "scope").data) == {"Cell.relu.ReLU.forward.0", "Cell.fc2.Dense.forward.0"}
    with recording(net, tmp_path / "structure", task="structure"):
        run()
    structure = read_step(tmp_path / "structure")
    assert structure.data["Cell.fc1.Dense.forward.0"] == {}
    assert "Cell.fc1.Dense.backward.0" in structure.construct


def test_only_selected_steps_run_with_callbacks(tmp_path: Path, compiled: Any) -> None:
    net, x = nets_compiled.make(nets_compiled.Two)
    run = gradient_step(net, x)
    plain = run()
    executors = (_c_expression.JitExecutor_, _c_expression.GraphExecutor_)
    genuine = [(vars(each)["compile"], vars(each)["generate_arguments_key"]) for each in executors]
    debugger = PrecisionDebugger(write_config(tmp_path / "dump", step=[1, 3]))
    for number in range(5):
        debugger.start(net)
        # What stands in place of a function equals it.
        patched = any(vars(each)["compile"] is not own for each, (own, _) in zip(executors, genuine, strict=True))
        assert patched == (number in (1, 3))
        assert_same(run(), plain)
        debugger.stop()
        assert [(vars(each)["compile"], vars(each)["generate_arguments_key"]) for each in executors] == genuine
        assert not any("construct" in vars(cell) for cell in net.cells())
        assert "msprobe" not in str([cell.phase_cache for cell in (net, *net.cells())])
        debugger.step()
    assert sorted(path.name for path in (tmp_path / "dump").iterdir()) == ["step1", "step3"]
    for number in (1, 3):
        assert len(read_step(tmp_path / "dump", number).data) == 8


def test_several_networks_in_one_script(tmp_path: Path, compiled: Any) -> None:
    (first, x), (second, _) = nets_compiled.make(nets_compiled.Two), nets_compiled.make(nets_compiled.One)
    run, run2 = gradient_step(first, x), gradient_step(second, x)
    before = run(), run2()
    debugger = PrecisionDebugger(write_config(tmp_path / "dump"))
    for model in ([first, second], first, second):
        debugger.start(model)
        assert_same(run(), before[0])
        assert_same(run2(), before[1])
        debugger.stop()
        debugger.step()
    both, one, other = (read_step(tmp_path / "dump", number).data for number in range(3))
    assert {name.split(".")[1] for name in both} == {"0", "1"}
    assert {f"Cell.0.{name.partition('.')[2]}" for name in one} | {
        f"Cell.1.{name.partition('.')[2]}" for name in other
    } == set(both)


def test_mistakes_of_the_user_are_raised_as_they_are(tmp_path: Path, compiled: Any) -> None:
    net = nn.SequentialCell(nn.Dense(5, 4))
    x = Tensor(np.ones((2, 4), np.float32))
    with pytest.raises(ValueError, match="input dimensions must be equal") as plain:
        net(x)
    with recording(net, tmp_path / "dump"), pytest.raises(ValueError, match="input dimensions must be equal") as raised:
        net(x)
    assert str(raised.value).splitlines()[0] == str(plain.value).splitlines()[0]
    net = nn.SequentialCell(nn.Dense(4, 4))
    with recording(net, tmp_path / "next"):
        net(x)
    assert list(read_step(tmp_path / "next").data) == ["Cell.0.Dense.forward.0"]


class Losses(Callback):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_train_step_end(self, run_context: Any) -> None:
        self.seen.append(float(run_context.original_args().net_outputs.asnumpy()))


@pytest.mark.parametrize("sink", [False, True])
def test_the_callback_of_model(sink: bool, tmp_path: Path, compiled: Any) -> None:
    def train(*callbacks: Callback) -> tuple[list[float], list[bytes]]:
        generator = np.random.default_rng(3)
        net = nn.SequentialCell(nn.Dense(4, 3), nn.LayerNorm((3,)))
        nets.set_weights(net, generator)
        rows = nets._values((8, 4), generator), generator.integers(0, 3, 8).astype(np.int32)
        data = NumpySlicesDataset(rows, shuffle=False).batch(2)
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        model = Model(net, loss, nn.SGD(net.trainable_params(), 0.01))
        losses = Losses()
        model.train(1, data, callbacks=[losses, *callbacks], dataset_sink_mode=sink)
        return losses.seen, [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]

    plain = train()
    debugger = PrecisionDebugger(write_config(tmp_path / "dump", step=[1, 2]))
    assert train(MsprobeStep(debugger)) == plain
    assert sorted(path.name for path in (tmp_path / "dump").iterdir()) == ["step1", "step2"]
    for number in (1, 2):
        step = read_step(tmp_path / "dump", number)
        assert len(step.data) == 2 + 2 + 2
        assert step.data["Cell.1.LayerNorm.parameters_grad.0"]["gamma"][0]["shape"] == [3]


# -- processes ---------------------------------------------------------------------------------------------------------


def test_a_forked_child_ends_a_step_whose_files_a_thread_writes(dump_path: Path, compiled: Any) -> None:
    """The thread is the parent's: in a child there is nobody to wait for, and the parent's dump is left alone."""
    net, x = nets_compiled.make(nets_compiled.Loop)
    debugger = PrecisionDebugger(write_config(dump_path, task="tensor", async_dump=True))
    debugger.start(net)
    net(x)
    if (child := os.fork()) == 0:
        signal.alarm(60)  # ends it, should it wait
        debugger.stop()
        debugger.step()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    assert step.data
    assert all("data_name" in leaf for _, leaf in leaves(step.data))


def test_what_is_compiled_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture, compiled: Any) -> None:
    caplog.set_level("INFO")
    net = nn.Dense(2, 2)
    x = Tensor(np.ones((2, 2), np.float32))

    @ms.jit
    def halved(x: Any) -> Any:
        return net(x) / 2

    for number, (run, named) in enumerate(
        [
            (net, "Cell.Dense"),
            (halved, "the function halved"),
            (ms.jit(ms.value_and_grad(net)), "a step of Dense"),
        ]
    ):
        caplog.clear()
        with recording(net, tmp_path / str(number), level="L0"):
            run(x)
        assert f"MindSpore compiles {named} as a graph" in caplog.text
