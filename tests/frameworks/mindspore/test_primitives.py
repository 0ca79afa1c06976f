"""Primitives, which layers call in place of functions: names, order, figures, gradients, and no trace after stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import nets_mindspore
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import Primitive
from recording import Step, read_step, recording

x = Tensor(np.array([[1, -2], [3, 4]], np.float32))


def step_of(net: Any, dump_path: Path, *args: Tensor, level: str = "mix", **keys: Any) -> Step:
    with recording(net, dump_path, level=level, task="tensor", **keys):
        mindspore.value_and_grad(lambda *a: net(*a).sum(), tuple(range(len(args))), net.trainable_params())(*args)
    return read_step(dump_path)


def primitives(step: Step) -> list[str]:
    return [entry for entry in step.data if entry.startswith("Primitive.")]


class Net(nn.Cell):
    """Two layers of the framework, a primitive held by the net itself."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 3, weight_init="ones", bias_init="ones")
        self.double = ops.Mul()

    def construct(self, a: Tensor) -> Tensor:
        return self.double(self.fc(a), Tensor(2, mindspore.float32))


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_names_parents_and_figures(ms: Any, dump_path: Path, level: str) -> None:
    step = step_of(Net(), dump_path, x, level=level)
    assert primitives(step) == [
        "Primitive.matmul.MatMul.0.forward",
        "Primitive.bias_add.BiasAdd.0.forward",
        "Primitive.double.Mul.0.forward",
        "Primitive.double.Mul.0.backward",
        "Primitive.bias_add.BiasAdd.0.backward",
        "Primitive.matmul.MatMul.0.backward",
    ]
    if level == "mix":
        assert step.construct["Primitive.matmul.MatMul.0.forward"] == "Cell.fc.Dense.forward.0"
        assert step.construct["Primitive.bias_add.BiasAdd.0.backward"] == "Cell.fc.Dense.backward.0"
        assert step.construct["Primitive.double.Mul.0.forward"] is None
    a, weight = x.asnumpy(), np.ones((3, 2), np.float32)
    matmul = step.forward("Primitive.matmul.MatMul")
    assert step.array(matmul["input_args"][0]).tolist() == a.tolist()
    assert step.array(matmul["input_args"][1]).tolist() == weight.tolist()
    assert step.array(matmul["output"][0]).tolist() == (a @ weight.T).tolist()
    assert step.array(step.forward("Primitive.double.Mul")["output"][0]).tolist() == ((a @ weight.T + 1) * 2).tolist()
    incoming = np.full((2, 3), 2, np.float32)
    backward = step.backward("Primitive.matmul.MatMul")
    assert step.array(backward["input"][0]).tolist() == incoming.tolist()
    # In the order of the arguments.
    assert step.array(backward["output"][0]).tolist() == (incoming @ weight).tolist()
    assert step.array(backward["output"][1]).tolist() == (incoming.T @ a).tolist()
    assert step.array(step.backward("Primitive.bias_add.BiasAdd")["output"][1]).tolist() == [4, 4, 4]


def entries_of(net: Any, given: Any, dump_path: Path, **keys: Any) -> list[str]:
    with recording(given, dump_path, level="L1", **keys):
        mindspore.value_and_grad(lambda a: net(a).sum(), 0, net.trainable_params())(x)
    return list(read_step(dump_path).data)


def test_names_do_not_depend_on_whether_start_is_given_the_model(ms: Any, dump_path: Path) -> None:
    call = nn.Cell.__call__
    net = nn.SequentialCell(Net(), nn.LayerNorm((3,)))
    given = entries_of(net, net, dump_path)
    assert entries_of(net, None, dump_path.with_name("without")) == given
    assert "Primitive.double.Mul.0.backward" in given
    assert nn.Cell.__call__ is call


def test_they_can_be_left_out(ms: Any, dump_path: Path) -> None:
    net = Net()
    left = entries_of(net, net, dump_path, primitives=False)
    assert left == entries_of(net, None, dump_path.with_name("without"), primitives=False)
    assert left and not any(name.startswith("Primitive.") for name in left)


def test_called_directly_they_go_by_their_class(ms: Any, dump_path: Path) -> None:
    own = ops.MatMul(transpose_b=True)
    with recording(None, dump_path, level="L1", task="tensor"):
        result = mindspore.grad(lambda a: own(a, a).sum())(x)
    step = read_step(dump_path)
    assert primitives(step) == ["Primitive.MatMul.MatMul.0.forward", "Primitive.MatMul.MatMul.0.backward"]
    # The tensor's gradient stands at both of its places.
    for leaf in step.backward("Primitive.MatMul.MatMul")["output"]:
        assert np.array_equal(step.array(leaf), result.asnumpy())


def test_shared_and_repeated(ms: Any, dump_path: Path) -> None:
    """One primitive called twice keeps its calls apart; a cell called through another name is the same cell."""

    class Twice(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.cube = ops.Pow()

        def construct(self, a: Tensor) -> Tensor:
            return self.cube(self.cube(a, 3) * 5, 3)

    step = step_of(Twice(), dump_path, Tensor(np.array([1, 2], np.float32)))
    assert primitives(step) == [
        "Primitive.cube.Pow.0.forward", "Primitive.cube.Pow.1.forward",
        "Primitive.cube.Pow.1.backward", "Primitive.cube.Pow.0.backward",
    ]  # fmt: skip
    inner = 5 * np.array([1, 8], np.float32)
    outer = step.backward("Primitive.cube.Pow", 1)
    assert np.allclose(step.array(outer["output"][0]), 3 * inner**2, rtol=1e-6)
    first = step.backward("Primitive.cube.Pow", 0)
    assert np.allclose(step.array(first["input"][0]), 5 * 3 * inner**2, rtol=1e-6)


def test_only_the_outermost(ms: Any, dump_path: Path) -> None:
    """A function's own primitives are its affair; those of a cell called in a primitive's place are not."""
    with recording(None, dump_path, level="L1"):
        ops.relu(x)
        ops.cross_entropy(x, Tensor(np.array([0, 1], np.int32)))
    assert list(read_step(dump_path).data) == ["Functional.relu.0.forward", "Functional.cross_entropy.0.forward"]


def test_a_cell_called_inside_an_api(ms: Any, dump_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_blocks.py").write_text("def block(cell, x):\n    return cell(x)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "own_blocks", raising=False)
    own_blocks = __import__("own_blocks")
    apis = dump_path.with_name("apis.yaml")
    apis.write_text("own_blocks:\n  - block\n")
    net = nn.SequentialCell(nn.Dense(2, 3))
    with recording(net, dump_path, level="mix", api_list=str(apis)):
        own_blocks.block(net[0], x)
    assert list(read_step(dump_path).data) == [
        "Primitive.matmul.MatMul.0.forward", "Primitive.bias_add.BiasAdd.0.forward",
        "Cell.0.Dense.forward.0", "own_blocks.block.0.forward",
    ]  # fmt: skip


def test_a_primitive_that_raises(ms: Any, dump_path: Path) -> None:
    bad = ops.MatMul()
    with recording(None, dump_path, level="L1"):
        with pytest.raises(TypeError):
            bad("no tensor", x)
        bad(x, x)
        ops.relu(x)
    assert list(read_step(dump_path).data) == ["Primitive.MatMul.MatMul.1.forward", "Functional.relu.0.forward"]


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_questions_of_shape_are_left_out(ms: Any, dump_path: Path, level: str) -> None:
    net, batch, labels = nets_mindspore.make("residual")
    with recording(net, dump_path, level=level):
        nets_mindspore.value_and_grad(net, batch, labels)
    found = {entry.split(".")[2] for entry in primitives(read_step(dump_path))}
    assert {"Conv2D", "BatchNorm", "ReLU", "MatMul", "BiasAdd"} <= found
    assert not found & {"Shape", "Rank", "ProxyOp", "CompileOp", "StringToEnum", "DtypeToEnum", "HookBackward", "Add"}


def test_a_plain_primitive_goes_by_its_own_name(ms: Any, dump_path: Path) -> None:
    """Some are objects of Primitive itself: typeof, a question, and others that users define."""
    double = Primitive("MakeTuple")
    with recording(None, dump_path, level="L1"):
        ops.typeof(x)
        double(x, x)
    assert list(read_step(dump_path).data) == ["Primitive.MakeTuple.MakeTuple.0.forward"]


def test_results_that_nothing_computes_are_null(ms: Any, dump_path: Path) -> None:
    """The second and third result of BatchNorm on CPU are memory that nobody wrote."""
    net = nn.BatchNorm2d(2)
    net.set_train()
    step = step_of(net, dump_path, Tensor(np.random.rand(2, 2, 3, 3).astype(np.float32)), level="L1")
    output = step.forward("Primitive.bn_train.BatchNorm")["output"]
    assert [leaf is None or leaf.get("shape") is None for leaf in output] == [False, True, True, False, False]


#: What mindstudio-probe 26.2.0 recorded of such a net at level mix, Shape aside.
PEER = (
    "conv2d.Conv2D.0", "bias_add.BiasAdd.0", "bn_train.BatchNorm.0", "relu.ReLU.0", "max_pool.MaxPool.0",
    "conv2d.Conv2D.1", "bias_add.BiasAdd.1", "relu.ReLU.1", "max_pool.MaxPool.1",
    "matmul.MatMul.0", "bias_add.BiasAdd.2", "relu.ReLU.2", "matmul.MatMul.1", "bias_add.BiasAdd.3", "relu.ReLU.3",
    "matmul.MatMul.2", "bias_add.BiasAdd.4",
)  # fmt: skip


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_names_and_order_are_the_peers(ms: Any, dump_path: Path, level: str) -> None:
    net, batch, labels = nets_mindspore.make("lenet")
    net.bn1 = nn.BatchNorm2d(6)
    net.set_train()

    def construct(a: Tensor) -> Tensor:
        a = net.pool(net.relu(net.bn1(net.conv1(a))))
        a = net.flatten(net.pool(net.relu(net.conv2(a))))
        return net.fc3(net.relu(net.fc2(net.relu(net.fc1(a)))))

    net.construct = construct
    with recording(net, dump_path, level=level):
        nets_mindspore.value_and_grad(net, batch, labels)
    forward = [f"Primitive.{name}.forward" for name in PEER]
    backward = [f"Primitive.{name}.backward" for name in reversed(PEER)]
    assert primitives(read_step(dump_path)) == forward + backward


class Norms(nn.Cell):
    """Two layers of one name below different parents, whose primitives were made with different arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.LayerNorm((2,), epsilon=epsilon) for epsilon in (1e-5, 1e-2)])

    def construct(self, a: Tensor) -> Tensor:
        for layer in self.layers:
            a = layer(a)
        return ops.relu(ops.Transpose()(a, (1, 0)))


def test_what_a_primitive_was_made_with_is_recorded(ms: Any, dump_path: Path) -> None:
    step = step_of(Norms(), dump_path, x)
    made = [body.get("attributes") for name, body in step.data.items() if "LayerNorm.0.forward" in name or
            "LayerNorm.1.forward" in name]  # fmt: skip
    attributes = [each for each in made if each is not None]
    assert [each["epsilon"] for each in attributes] == [
        {"type": "float", "value": 1e-5},
        {"type": "float", "value": 1e-2},
    ]
    assert attributes[0]["begin_norm_axis"] == {"type": "int", "value": -1}
    assert "attributes" not in step.forward("Primitive.Transpose.Transpose"), "it is made with nothing"


@pytest.mark.parametrize(
    ("data_mode", "fields"),
    [("input", ["input_args", "input_kwargs", "attributes"]), ("output", ["output"])],
)
def test_it_belongs_to_the_inputs(ms: Any, dump_path: Path, data_mode: str, fields: list[str]) -> None:
    step = step_of(Norms(), dump_path, x, level="L1", data_mode=[data_mode])
    assert list(step.forward("Primitive.layer_norm.LayerNorm")) == fields


def test_operators_that_are_made_anew_for_each_call_are_not_held_without_end(ms: Any, dump_path: Path) -> None:
    with recording(None, dump_path, level="L1") as debugger:
        for number in range(50):
            ops.ReduceSum(keep_dims=number % 2 == 0)(x, 0)
    assert debugger is not None
    step = read_step(dump_path)
    kept = [body["attributes"]["keep_dims"]["value"] for name, body in step.data.items() if "ReduceSum" in name]
    assert kept == [number % 2 == 0 for number in range(50)]
