"""APIs at L1 and mix: what is recorded, under which name, and that nothing of ours remains after stop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from mindspore._c_expression import GraphExecutor_, JitExecutor_
from mindspore.graph import api as graph_api
from mindspore.graph import jit_trace
from mindspore.graph._utils.pijit_context import PIJitCaptureContext
from nets_mindspore import make, value_and_grad
from recording import read_step, recording, write_config
from repository import PACKAGE
from thorough import thorough

from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.support.errors import ConfigError

#: Taken before any debugger is made, as `from mindspore.ops import relu` at the head of a script.
early_relu = ops.relu

PATCHED = (
    ops,
    ops.functional,
    Tensor,
    mint,
    mint.nn.functional,
    graph_api._JitExecutor,
    graph_api._CellGraphExecutor,
    JitExecutor_,
    GraphExecutor_,
    PIJitCaptureContext,
    jit_trace,
    ops.Primitive,
    ops.MatMul,
    ops.BiasAdd,
    ops.ReLU,
    sys.modules[__name__],
)

x = Tensor(np.array([[1, -2], [3, 4]], np.float32))


def entries(dump_path: Path, act: Callable[[], Any], **keys: Any) -> list[str]:
    keys.setdefault("level", "L1")
    with recording(None, dump_path, **keys):
        act()
    return list(read_step(dump_path).data)


# -- what is recorded --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda: ops.relu(x), ["Functional.relu.0.forward"]),
        (lambda: ops.functional.relu(x), ["Functional.relu.0.forward"]),
        (lambda: mint.add(x, x, alpha=2), ["Mint.add.0.forward"]),
        (lambda: mint.nn.functional.relu(x), ["MintFunctional.relu.0.forward"]),
        (lambda: x.sum(axis=1), ["Tensor.sum.0.forward"]),
        (lambda: x.reshape(4), ["Tensor.reshape.0.forward"]),
        (lambda: x + 1, ["Tensor.__add__.0.forward"]),
        (lambda: 1 + x, ["Tensor.__radd__.0.forward"]),
        (lambda: 1 - x, ["Tensor.__rsub__.0.forward"]),
        (lambda: 2 / x, ["Tensor.__rtruediv__.0.forward"]),
        (lambda: x @ x, ["Tensor.__matmul__.0.forward"]),
        (lambda: x**2, ["Tensor.__pow__.0.forward"]),
        (lambda: -x, ["Tensor.__neg__.0.forward"]),
        (lambda: x > 0, ["Tensor.__gt__.0.forward"]),
        (lambda: x[0], ["Tensor.__getitem__.0.forward"]),
        (lambda: [x * 2, x * 3, ops.relu(x)], [
            "Tensor.__mul__.0.forward", "Tensor.__mul__.1.forward", "Functional.relu.0.forward",
        ]),
    ],
)  # fmt: skip
def test_names(ms: Any, dump_path: Path, act: Callable[[], Any], expected: list[str]) -> None:
    assert entries(dump_path, act) == expected


def test_in_place_assignment_is_recorded_as_it_was_before(ms: Any, dump_path: Path) -> None:
    y = Tensor(np.array([1, 2], np.float32))

    def act() -> None:
        y[0] = 9

    assert entries(dump_path, act, task="tensor") == ["Tensor.__setitem__.0.forward"]
    step = read_step(dump_path)
    forward = step.forward("Tensor.__setitem__")
    assert step.array(forward["input_args"][0]).tolist() == [1, 2]
    assert step.array(forward["output"][0]).tolist() == [9, 2]


def test_only_the_outermost_of_nested_calls_is_recorded(ms: Any, dump_path: Path) -> None:
    """ops.cross_entropy calls other functions of ops and tensor methods."""
    labels = Tensor(np.array([0, 1], np.int32))
    assert entries(dump_path, lambda: ops.cross_entropy(x, labels)) == ["Functional.cross_entropy.0.forward"]


def test_a_keyword_and_a_plain_result(ms: Any, dump_path: Path) -> None:
    entries(dump_path, lambda: mint.add(x, other=x, alpha=2), task="tensor")
    step = read_step(dump_path)
    forward = step.forward("Mint.add")
    assert step.array(forward["input_kwargs"]["other"]).tolist() == [[1, -2], [3, 4]]
    assert forward["input_kwargs"]["alpha"] == {"type": "int", "value": 2}
    assert step.array(forward["output"][0]).tolist() == [[3, -6], [9, 12]]
    assert forward["input_kwargs"]["other"]["data_name"] == "Mint.add.0.forward.kwargs.other.npy"


def test_backward_of_apis(ms: Any, dump_path: Path) -> None:
    with recording(None, dump_path, level="L1", task="tensor"):
        gradient = mindspore.grad(lambda y: (ops.relu(y) * ops.exp(y)).sum())(x)
    step = read_step(dump_path)
    exp = np.exp(x.asnumpy())
    relu = np.maximum(x.asnumpy(), 0)
    product = step.backward("Tensor.__mul__")
    assert np.array_equal(step.array(product["input"][0]), np.ones((2, 2)))
    assert np.allclose(step.array(product["output"][0]), exp, rtol=1e-5)
    assert np.allclose(step.array(product["output"][1]), relu, rtol=1e-5)
    assert np.allclose(step.array(step.backward("Functional.exp")["output"][0]), relu * exp, rtol=1e-5)
    assert np.allclose(gradient.asnumpy(), exp * (x.asnumpy() > 0) + relu * exp, rtol=1e-5)


def test_an_api_that_raises_is_not_recorded_and_hides_nothing(ms: Any, dump_path: Path) -> None:
    def act() -> None:
        with pytest.raises((ValueError, RuntimeError, TypeError)):
            ops.concat("no tensors")
        ops.relu(x)

    assert entries(dump_path, act) == ["Functional.relu.0.forward"]


def test_every_listed_api_exists_in_this_version_or_another() -> None:
    """The package's list is readable, and names mostly what this MindSpore has."""
    from msprobe_ms.frameworks.mindspore.framework import MindSpore
    from msprobe_ms.recording.hooks.api_list import ApiList

    apis = ApiList(MindSpore()).apis
    counts = {space.path: len(names) for space, names in apis.items()}
    missing = {
        space.path: [n for n in names if not callable(getattr(space.holder, n, None))] for space, names in apis.items()
    }
    assert counts["mindspore.ops"] >= 450
    assert counts["mindspore.Tensor"] >= 250
    assert counts["mindspore.mint"] >= 170
    assert counts["mindspore.mint.nn.functional"] >= 45
    assert all(len(missing[path]) <= counts[path] // 10 for path in counts)


# -- the user's own list -----------------------------------------------------------------------------------------------


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "own_kernels.py").write_text(
        "def twice(x, *, more=0):\n    return x * 2 + more\n\n\n"
        "class Kernels:\n    def __call__(self, x):\n        return x\n\n"
        "    def thrice(self, x):\n        return x * 3\n\n\nNUMBER = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("own_kernels")
    del sys.modules["own_kernels"]


def test_an_api_list_of_the_users(ms: Any, dump_path: Path, own_module: Any, warnings: list[str]) -> None:
    path = dump_path.with_name("apis.yaml")
    path.write_text("own_kernels:\n  - twice\nown_kernels.Kernels:\n  - thrice\nmindspore.ops:\n  - Custom\n")
    before = vars(own_module.Kernels)["thrice"], own_module.twice
    found = entries(
        dump_path,
        lambda: [own_module.twice(x, more=1), own_module.Kernels().thrice(x), isinstance(x, ops.Custom), ops.relu(x)],
        api_list=str(path),
    )
    assert found == ["own_kernels.twice.0.forward", "Kernels.thrice.0.forward", "Functional.relu.0.forward"]
    assert (vars(own_module.Kernels)["thrice"], own_module.twice) == before
    said = "mindspore.ops.Custom is a class, and not recorded; its methods can be, listed under its name"
    assert f"{path}: {said}" in warnings


def test_an_api_list_with_the_heads_of_support_wrap_ops(
    ms: Any, dump_path: Path, own_module: Any, warnings: list[str]
) -> None:
    path = dump_path.with_name("support_wrap_ops.yaml")
    path.write_text(
        "ops:\n  - erfinv\n  - of_another_version\ntensor:\n  - erfinv\nmint.ops:\n  - add\n"
        "mint.nn.functional:\n  - relu\ncommunication.comm_func:\n  - all_reduce\naten:\n  - add\n"
        "own_kernels:\n  - twice\n"
    )
    x = ms.Tensor(0.5)
    calls = [lambda: ops.erfinv(x), lambda: x.erfinv(), lambda: mint.nn.functional.relu(x), lambda: own_module.twice(x)]
    found = entries(dump_path, lambda: [call() for call in calls], api_list=str(path))
    assert found == [
        "Functional.erfinv.0.forward", "Tensor.erfinv.0.forward", "MintFunctional.relu.0.forward",
        "own_kernels.twice.0.forward",
    ]  # fmt: skip
    assert f"{path}: not recorded, not in this framework: ops.of_another_version, aten" in warnings


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("own_kernels:\n  - thrice\n", "own_kernels: 'thrice' is not something that can be called there"),
        ("mindspore.nn.Cell:\n  - __init__\n", "mindspore.nn.Cell: '__init__' handles objects, and is no operation"),
        ("builtins:\n  - isinstance\n",
         "builtins: belongs to Python; give a module or class whose functions take tensors"),
        ("own_kernels:\n  - NUMBER\n", "own_kernels: 'NUMBER' is not something that can be called there"),
        ("no_such_module:\n  - a\n",
         "no_such_module: no such module or class can be imported; give a dotted name like mindspore.ops"),
        ("own_kernels:\n  twice\n",
         'own_kernels: "twice" is not accepted; expected a mapping of a module or class to a list of names, such as\n'
         "  mindspore.ops:\n    - relu"),
        ("- a\n- b\n",
         "api_list holds a list; expected a mapping of a module or class to a list of names, such as\n"
         "  mindspore.ops:\n    - relu"),
    ],
)  # fmt: skip
def test_mistakes_in_an_api_list(ms: Any, dump_path: Path, own_module: Any, text: str, problem: str) -> None:
    path = dump_path.with_name("apis.yaml")
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        PrecisionDebugger(write_config(dump_path, level="L1", api_list=str(path)))
    assert str(caught.value) == f"{path}: {problem}"


@pytest.mark.parametrize("text", ["{", "\x00", "\ud800".encode("utf-8", "surrogatepass")])
def test_an_api_list_that_is_no_yaml(ms: Any, dump_path: Path, text: str | bytes) -> None:
    path = dump_path.with_name("apis.yaml")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=r"api_list: .*(this is not yaml|not UTF-8 text)"):
        PrecisionDebugger(write_config(dump_path, level="L1", api_list=str(path)))


def test_a_tag_in_an_api_list_makes_nothing(ms: Any, dump_path: Path, tmp_path: Path) -> None:
    path = dump_path.with_name("apis.yaml")
    path.write_text(f"a: !!python/object/apply:os.mkdir [{tmp_path / 'made'}]")
    with pytest.raises(ConfigError, match="a: no such module or class can be imported"):
        PrecisionDebugger(write_config(dump_path, level="L1", api_list=str(path)))
    assert not (tmp_path / "made").exists()


def test_a_module_that_fails_on_import(
    ms: Any, dump_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_kernels.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = dump_path.with_name("apis.yaml")
    path.write_text("broken_kernels:\n  - f\n")
    with pytest.raises(ConfigError) as caught:
        PrecisionDebugger(write_config(dump_path, level="L1", api_list=str(path)))
    assert str(caught.value) == f"{path}: broken_kernels: importing it failed: RuntimeError: half installed"


def test_a_module_that_lacks_something(
    ms: Any, dump_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking_kernels.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = dump_path.with_name("apis.yaml")
    path.write_text("lacking_kernels:\n  - f\n")
    with pytest.raises(ConfigError) as caught:
        PrecisionDebugger(write_config(dump_path, level="L1", api_list=str(path)))
    assert str(caught.value) == (
        f"{path}: lacking_kernels: importing it failed: ModuleNotFoundError: No module named 'no_such_dependency'"
    )


# -- only between start and stop ---------------------------------------------------------------------------------------


def attributes() -> dict[tuple[str, str], tuple[int, bool]]:
    """Identity of every attribute of the patched namespaces, and whether it is their own."""
    found = {}
    for holder in PATCHED:
        own = vars(holder)
        for name in dir(holder):
            try:
                value = own[name] if name in own else getattr(holder, name)
            except AttributeError:
                continue
            # A bound or slot wrapper is made anew at every look.
            found[holder.__name__, name] = (id(value) if name in own else 0, name in own)
    return found


class OurCalls(list[str]):
    """Calls into this package while it is watching."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        def profile(frame: Any, event: str, argument: Any) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
                self.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_nothing_when_off(ms: Any, dump_path: Path, level: str) -> None:
    """Invariant 3: before start, after stop, on unselected steps and ranks."""
    calls = OurCalls()
    net, batch, labels = make("two_linear")
    before = attributes()

    def train() -> None:
        with calls.watching():
            value_and_grad(net, batch, labels)

    debugger = PrecisionDebugger(write_config(dump_path, level=level, step=[1]))
    debugger.start(net)  # step 0 is not selected
    train()
    debugger.stop()
    debugger.step()
    assert attributes() == before
    debugger.start(net)
    assert attributes() != before
    with calls.watching():
        value_and_grad(net, batch, labels)
    assert calls  # the instrument works
    calls.clear()
    debugger.stop()
    assert attributes() == before
    train()
    debugger.step()
    train()
    assert calls == []
    other_rank = PrecisionDebugger(write_config(dump_path.with_name("other"), level=level, rank=[3]))
    other_rank.start(net)
    train()
    other_rank.stop()
    other_rank.step()
    assert calls == []
    assert not dump_path.with_name("other").exists()
    assert attributes() == before


def test_functions_imported_before_start_still_work(ms: Any, dump_path: Path) -> None:
    found = []
    assert entries(dump_path, lambda: found.append(early_relu(x))) == ["Functional.relu.0.forward"]
    assert np.array_equal(found[0].asnumpy(), np.maximum(x.asnumpy(), 0))


def test_functions_taken_between_start_and_stop_work_afterwards(ms: Any, dump_path: Path) -> None:
    with recording(None, dump_path, level="L1"):
        kept = ops.relu
    assert np.array_equal(kept(x).asnumpy(), np.maximum(x.asnumpy(), 0))
    assert ops.relu is early_relu
    assert list(read_step(dump_path).data) == []


def test_another_patch_made_meanwhile_stays(ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(None, dump_path, level="L1"):

        def mine(value: Any) -> Any:
            return value

        monkeypatch.setattr(ops, "relu", mine)
    assert ops.relu is mine
    monkeypatch.undo()
    ops.relu = early_relu


def test_wrappers_keep_what_introspection_sees(ms: Any, dump_path: Path) -> None:
    import inspect

    before = inspect.signature(ops.softmax)
    with recording(None, dump_path, level="L1"):
        assert ops.softmax.__name__ == "softmax"
        assert ops.softmax.__doc__
        assert inspect.signature(ops.softmax) == before


# -- compilers ---------------------------------------------------------------------------------------------------------


def jit_function(capture_mode: str) -> Callable[..., Any]:
    @mindspore.jit(capture_mode=capture_mode)
    def compiled(a: Tensor, b: Tensor) -> Tensor:
        return ops.relu(a @ b) * 2 + a.sum() + ops.exp(b)[0]

    return compiled


@pytest.mark.parametrize("capture_mode", ["ast", "bytecode"])
def test_jit_functions_compiled_while_recording(ms: Any, dump_path: Path, capture_mode: str) -> None:
    def act(function: Callable[..., Any]) -> tuple[bytes, list[bytes]]:
        value, gradients = mindspore.value_and_grad(lambda a, b: (function(a, b) * ops.exp(a)).sum(), (0, 1))(x, x + 1)
        return value.asnumpy().tobytes(), [gradient.asnumpy().tobytes() for gradient in gradients]

    expected = act(jit_function(capture_mode))
    function = jit_function(capture_mode)
    with recording(None, dump_path, level="L1"):
        assert act(function) == expected
        ops.relu(x)
    assert act(function) == expected
    data = read_step(dump_path).data
    assert "Functional.exp.0.forward" in data
    assert "Functional.relu.0.forward" in data


@pytest.mark.parametrize("capture_mode", ["ast", "bytecode"])
def test_a_jit_cell_in_a_recorded_net(ms: Any, dump_path: Path, capture_mode: str) -> None:
    class Compiled(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(2, 2, weight_init="ones", has_bias=False)

        @mindspore.jit(capture_mode=capture_mode)
        def construct(self, a: Tensor) -> Tensor:
            return ops.relu(self.fc(a)) + 1

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.block = Compiled()
            self.after = nn.Dense(2, 2, weight_init="ones", has_bias=False)

        def construct(self, a: Tensor) -> Tensor:
            return self.after(ops.exp(self.block(a)))

    def act(net: nn.Cell) -> tuple[bytes, list[bytes]]:
        value, gradients = mindspore.value_and_grad(lambda a: net(a).sum(), None, net.trainable_params())(x)
        return value.asnumpy().tobytes(), [gradient.asnumpy().tobytes() for gradient in gradients]

    expected = act(Net())
    for level in ("L0", "mix"):
        net = Net()
        with recording(net, dump_path.with_name(level), level=level):
            assert act(net) == expected
        # What the graph hides is said in the log.
        step = read_step(dump_path.with_name(level), troubles=capture_mode == "ast")
        assert step.calls("Cell.block.Compiled") == ["Cell.block.Compiled.forward.0", "Cell.block.Compiled.backward.0"]
        assert step.calls("Cell.after.Dense") == ["Cell.after.Dense.forward.0", "Cell.after.Dense.backward.0"]


@pytest.mark.parametrize("optimizer", [nn.Momentum, nn.Adam, thorough(nn.SGD), thorough(nn.AdamWeightDecay)])
def test_optimizers_compiled_while_recording(ms: Any, dump_path: Path, optimizer: Any) -> None:
    def train(record: bool) -> dict[str, bytes]:
        net, batch, _ = make("two_linear")
        arguments = {"learning_rate": 0.1, **({"momentum": 0.9} if optimizer is nn.Momentum else {})}
        update = optimizer(net.trainable_params(), **arguments)
        forward = mindspore.value_and_grad(lambda: net(batch).sum(), None, net.trainable_params())
        for step in range(2):
            if record:
                with recording(net, dump_path.with_name(f"step_{step}"), level="mix"):
                    update(forward()[1])
            else:
                update(forward()[1])
        return {parameter.name: parameter.asnumpy().tobytes() for parameter in net.get_parameters()}

    assert train(True) == train(False)
    assert "Cell.fc1.Dense.forward.0" in read_step(dump_path.with_name("step_1")).data


def test_compiled_code_is_one_entry(ms: Any, dump_path: Path) -> None:
    function = jit_function("ast")
    update = nn.Momentum([mindspore.Parameter(x * 1, name="w")], 0.1, 0.9)
    assert entries(dump_path, lambda: [function(x, x), function(x, x), update((x,)), update((x,))]) == [
        "Jit.compiled.0.forward", "Jit.compiled.1.forward",
    ]  # fmt: skip
