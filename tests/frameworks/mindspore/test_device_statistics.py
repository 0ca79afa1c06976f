"""Figures computed where tensors are and read back together, here on the CPU: what an accelerator is sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mindspore
import nets_mindspore
import numpy as np
import pytest
from mindspore import Tensor, _c_expression, amp, nn, ops
from recording import FIGURES, SKETCH, leaves, read_step, recording, same_sketch, write_config
from thorough import thorough

import msprobe_ms.recording.output.deferred_statistics
from msprobe_ms.arrays.statistics import summary
from msprobe_ms.frameworks.mindspore import device_statistics
from msprobe_ms.frameworks.mindspore.arrays import to_numpy
from msprobe_ms.mindspore import PrecisionDebugger

#: What is left of a sum that a device adds up in float32, relative to the largest term.
ROUNDING = 2e-5


@pytest.fixture
def reads(ms: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tensors count as a device's; how many each read-back was for."""
    counts: list[int] = []
    read = device_statistics.read

    def counting(found: Any) -> Any:
        counts.append(len(found))
        return read(found)

    monkeypatch.setattr(msprobe_ms.recording.output.deferred_statistics, "LONGEST", 1000.0)
    monkeypatch.setattr(device_statistics, "is_there", lambda: True)
    monkeypatch.setattr(device_statistics, "read", counting)
    return counts


def close(one: Any, other: Any, scale: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (
            one == other or math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING * scale) or one != one != other
        )
    return bool(one == other)


def differing(first: dict[str, Any], second: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Leaves of two dumps of the same calls that are not alike."""
    assert list(first) == list(second)
    found = {}
    for (place, one), (_, other) in zip(leaves(first), leaves(second), strict=True):
        scale = max((abs(one[key]) for key in FIGURES[:2] if isinstance(one[key], float)), default=0.0)
        rounded = (*FIGURES, SKETCH)
        same = {key: value for key, value in one.items() if key not in rounded} == {
            key: value for key, value in other.items() if key not in rounded
        } and same_sketch(one.get(SKETCH), other.get(SKETCH), ROUNDING)
        if not same or not all(close(one[key], other[key], scale) for key in FIGURES):
            found[place] = one, other
    return found


VALUES = {
    "many": np.random.default_rng(1).normal(size=(4, 64, 33)),
    "more": np.random.default_rng(3).normal(size=(9, 95, 97)),
    "block": np.random.default_rng(4).normal(size=(64, 1024)),
    "view": np.random.default_rng(2).normal(size=(6, 4)).T,
    "zeros": np.zeros((3, 3)),
    "negative": -np.ones(3),
    "scalar": np.array(2.5),
    "largest": np.full(5, 3e38),
    "smallest": np.full(7, 1e-30),
    "nan": np.array([1, np.nan, 2]),
    "zeros and nan": np.array([0, np.nan]),
    "inf": np.array([1, np.inf]),
    "negative inf": np.array([5, -np.inf]),
    "both inf": np.array([-np.inf, np.inf, 0]),
    "inf and nan": np.array([np.inf, np.nan]),
    "tiny": np.full(9, 2e-38),
    "negative inf and nan": np.array([-np.inf, np.nan, 2]),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", VALUES)
def test_figures_are_the_hosts(ms: Any, name: str, dtype: str) -> None:
    with np.errstate(over="ignore"):
        tensor = Tensor(VALUES[name].astype(np.float32)).astype(getattr(mindspore, dtype))
    host, sketch = summary(to_numpy(tensor))
    ((*device, text),) = device_statistics.read([device_statistics.start(tensor, sketch=True)])
    assert same_sketch(text, sketch, ROUNDING)
    ((*others, nothing),) = device_statistics.read([device_statistics.start(tensor, sketch=False)])
    assert nothing is None and str(others) == str(device)
    scale = abs(host.maximum) if isinstance(host.maximum, float) and math.isfinite(host.maximum) else 0.0
    assert all(close(one, other, scale) for one, other in zip(device, host, strict=True)), (device, host)


@pytest.mark.parametrize("dtype", ["int32", "bool_", "float64", "complex64"])
def test_other_dtypes_are_left_to_the_host(ms: Any, dtype: str) -> None:
    assert device_statistics.start(Tensor(np.ones(3), getattr(mindspore, dtype)), sketch=True) is None
    assert device_statistics.start(Tensor(np.ones((0, 3)), mindspore.float32), sketch=True) is None


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("residual", "mix"), ("lstm", "L2"),
        thorough(("two_linear", "L0")), thorough(("lstm", "L1")), thorough(("two_linear", "L2")),
    ],
)  # fmt: skip
def test_a_dump_is_the_hosts_with_few_read_backs(
    ms: Any, dump_path: Path, name: str, level: str, request: pytest.FixtureRequest
) -> None:
    def step(folder: Path) -> tuple[Any, dict[str, Any]]:
        net, x, labels = nets_mindspore.make(name)
        with recording(net, folder, level=level):
            found = nets_mindspore.value_and_grad(net, x, labels)
        return found, read_step(folder).data

    host, on_host = step(dump_path.with_name("host"))
    reads = request.getfixturevalue("reads")
    device, on_device = step(dump_path.with_name("device"))
    assert not differing(on_host, on_device)
    assert sum(reads) > 10 and len(reads) < sum(reads) / 10
    assert host[0] == device[0]
    assert all(host[1][key].tobytes() == device[1][key].tobytes() for key in host[1])


@pytest.mark.parametrize("kind", ["O2", "O3", "auto", "to_float"])
def test_mixed_precision_does_not_reach_the_figures(
    ms: Any, dump_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    def step(folder: Path) -> dict[str, Any]:
        net, x, labels = nets_mindspore.make("two_linear")
        net = net.to_float(mindspore.float16) if kind == "to_float" else amp.auto_mixed_precision(net, kind)
        with recording(net, folder, level="mix"):
            nets_mindspore.value_and_grad(net, Tensor(x.asnumpy() * 12000, mindspore.float32), labels)
        return read_step(folder).data

    on_host = step(dump_path.with_name("host"))
    reads = request.getfixturevalue("reads")
    on_device = step(dump_path.with_name("device"))
    assert reads and not differing(on_host, on_device)
    assert any(leaf["Norm"] > 70000 for _, leaf in leaves(on_device)), "no figure beyond float16"


def test_what_is_written_in_place_later_does_not_show(reads: list[int], dump_path: Path) -> None:
    class Doubling(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            total = x + 0.0
            ops.assign(x, total * 2.0)
            return x

    class Around(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Doubling()

        def construct(self, x: Tensor) -> Tensor:
            return self.inner(x)

    model = Around()
    with recording(model, dump_path):
        model(Tensor(np.full(4, 3.0, np.float32)))
    entry = read_step(dump_path).data["Cell.inner.Doubling.forward.0"]
    assert entry["input_args"][0]["Max"] == 3.0
    assert entry["output"][0]["Max"] == 6.0
    assert sum(reads) == 2


def test_overflow_is_found_as_it_happens(reads: list[int], dump_path: Path, warnings: list[str]) -> None:
    net, x, _ = nets_mindspore.make("two_linear")
    debugger = PrecisionDebugger(write_config(dump_path, task="overflow_check", level="L0"))
    debugger.start(net)
    net(x * float("inf"))
    told = [text for text in warnings if "overflow_check: Cell.fc1.Dense.forward.0" in text]
    debugger.stop()
    debugger.step()
    assert told
    assert reads == [], "tensors that are stored are read at once"


def test_figures_that_cannot_be_read_leave_the_calls(
    reads: list[int], dump_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(found: Any) -> Any:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(device_statistics, "read", lost)
    net, x, _ = nets_mindspore.make("two_linear")
    with recording(net, dump_path):
        net(x)
    step = read_step(dump_path, troubles=True)
    assert "Cell.fc1.Dense.forward.0" in step.data
    assert step.forward("Cell.fc1.Dense")["output"][0]["Max"] is None
    assert json.loads((step.folder / "dump.json").read_text())["incomplete"]
    assert sum("the device is gone" in text for text in warnings) == 1


class Running:
    """Whether MindSpore runs ahead of Python, which only changing it tells."""

    def __init__(self) -> None:
        self._executor = _c_expression.PyNativeExecutor_.get_instance()

    def ahead(self) -> bool:
        was_in_step = self._executor.disable_frontend_and_bprop_pipeline()
        if not was_in_step:
            self._executor.enable_frontend_and_bprop_pipeline()
        return not was_in_step


def test_mindspore_runs_in_step_only_while_calls_are_recorded(ms: Any, dump_path: Path) -> None:
    running = Running()
    net, x, _ = nets_mindspore.make("two_linear")
    debugger = PrecisionDebugger(write_config(dump_path, step=[0, 2]))
    seen = []
    for _ in range(4):
        debugger.start(net)
        net(x)
        seen.append(running.ahead())
        debugger.stop()
        assert running.ahead()
        debugger.step()
    assert seen == [False, True, False, True]


def test_mindspore_runs_ahead_again_though_stop_was_never_called(ms: Any, dump_path: Path) -> None:
    net, x, _ = nets_mindspore.make("two_linear")
    debugger = PrecisionDebugger(write_config(dump_path))
    debugger.start(net)
    net(x)
    debugger.step()
    assert Running().ahead()


def test_who_had_mindspore_in_step_keeps_it_so(ms: Any, dump_path: Path) -> None:
    executor = _c_expression.PyNativeExecutor_.get_instance()
    net, x, _ = nets_mindspore.make("two_linear")
    executor.disable_frontend_and_bprop_pipeline()
    try:
        with recording(net, dump_path):
            net(x)
        assert not Running().ahead()
    finally:
        executor.enable_frontend_and_bprop_pipeline()


def test_hooks_of_saved_tensors_that_begin_while_recording_keep_it_in_step(ms: Any, dump_path: Path) -> None:
    net, x, _ = nets_mindspore.make("two_linear")
    debugger = PrecisionDebugger(write_config(dump_path))
    debugger.start(net)
    with mindspore.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        net(x)
        debugger.stop()
        debugger.step()
        assert not Running().ahead()
    debugger.start(net)
    debugger.stop()
    debugger.step()
    assert Running().ahead()


def test_on_a_device_mindspore_runs_ahead(reads: list[int], dump_path: Path) -> None:
    net, x, _ = nets_mindspore.make("two_linear")
    with recording(net, dump_path):
        net(x)
        assert Running().ahead()
