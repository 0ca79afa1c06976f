"""Level debug: what ``debugger.save`` is given stands in debug.json, gradients included."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from forked import run_forked
from mindspore import Parameter, Tensor, ops
from recording import step_folder, write_config

from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.export import recover
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger
from msprobe_ms.support.errors import ConfigError, UsageError

VALUES = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


def saved(dump_path: Path, step: int = 0) -> dict[str, Any]:
    folder = step_folder(dump_path, step)
    assert {path.name for path in folder.iterdir()} <= {"debug.json", "dump_tensor_data"}
    return json.loads((folder / "debug.json").read_text())


def file_of(dump_path: Path, name: str) -> np.ndarray:
    path = step_folder(dump_path) / "dump_tensor_data" / name
    return np.load(path) if path.suffix == ".npy" else torch.load(path).numpy()


def run_mindspore(debugger: Any) -> tuple[bytes, list[bytes]]:
    weight = Parameter(Tensor(np.eye(2, dtype=np.float32) * 2), name="weight")

    def forward(x: Tensor) -> Tensor:
        h = ops.matmul(x, weight)
        y = h * h
        if debugger is not None:
            debugger.save(x, "x")
            debugger.save({"h": h, "more": [1.5, (y, "text")]}, "both")
            debugger.save(weight, "weight")
            debugger.save(h, "quiet", save_backward=False)
        loss = y.sum() + h.sum()
        if debugger is not None:
            debugger.save(loss, "loss")
        return loss

    loss, (gradient, gradients) = mindspore.value_and_grad(forward, 0, [weight])(Tensor(VALUES))
    return loss.asnumpy().tobytes(), [g.asnumpy().tobytes() for g in (gradient, *gradients)]


def run_torch(debugger: Any) -> tuple[bytes, list[bytes]]:
    weight = torch.nn.Parameter(torch.eye(2) * 2)
    x = torch.tensor(VALUES, requires_grad=True)
    h = x @ weight
    y = h * h
    if debugger is not None:
        debugger.save(x, "x")
        debugger.save({"h": h, "more": [1.5, (y, "text")]}, "both")
        debugger.save(weight, "weight")
        debugger.save(h, "quiet", save_backward=False)
    loss = y.sum() + h.sum()
    if debugger is not None:
        debugger.save(loss, "loss")
    loss.backward()
    return loss.detach().numpy().tobytes(), [g.grad.numpy().tobytes() for g in (x, weight)]


@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize(("make", "run"), [(PrecisionDebugger, run_mindspore), (TorchDebugger, run_torch)])
def test_values_and_gradients(ms: Any, dump_path: Path, make: Any, run: Any, started: bool) -> None:
    expected = run(None)
    debugger = make(write_config(dump_path, task="tensor", level="debug"))
    if started:
        debugger.start()
    assert run(debugger) == expected
    if started:
        debugger.stop()
    debugger.step()
    content = saved(dump_path)
    assert (content["task"], content["level"]) == ("tensor", "debug")
    suffix = "npy" if make is PrecisionDebugger else "pt"
    h = VALUES * 2
    arrays = {
        "x.0.debug": VALUES,
        "both.0.debug.h": h,
        "both.0.debug.more.1.0": h * h,
        "weight.0.debug": np.eye(2) * 2,
        "quiet.0.debug": h,
        "loss.0.debug": (h * h).sum() + h.sum(),
        "loss_grad.0.debug": 1,
        "both_grad.0.debug.h": 2 * h + 1,
        "both_grad.0.debug.more.1.0": np.ones((2, 2)),
        "x_grad.0.debug": (2 * h + 1) * 2,
        "weight_grad.0.debug": VALUES.T @ (2 * h + 1),
    }
    names = {path.name for path in (step_folder(dump_path) / "dump_tensor_data").iterdir()}
    assert names == {f"{name}.{suffix}" for name in arrays}
    for name, array in arrays.items():
        assert np.array_equal(file_of(dump_path, f"{name}.{suffix}"), array), name
    data = content["data"]
    assert data["both.0.debug"]["more"][0] == {"type": "float", "value": 1.5}
    assert data["both.0.debug"]["more"][1][1] == {"type": "str", "value": "text"}
    assert data["both_grad.0.debug"]["more"][0] is None
    assert data["both_grad.0.debug"]["more"][1][1] is None
    assert data["both_grad.0.debug"]["h"]["Max"] == (2 * h + 1).max()
    dump = read_dump(step_folder(dump_path))
    assert dump.level == "debug"
    assert {"both_grad.0.debug.h", "both.0.debug.more.0", "loss.0.debug"} <= {
        item.name for entry in dump.entries.values() for item in entry.items
    }


def test_saves_of_a_name_are_counted_and_steps_begin_anew(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="debug"))
    for _ in range(2):
        for number in range(3):
            debugger.save(number, "n")
        PrecisionDebugger.save("a", "t")
        PrecisionDebugger.step()
    for step in (0, 1):
        values = {name: leaf["value"] for name, leaf in saved(dump_path, step)["data"].items()}
        assert values == {"n.0.debug": 0, "n.1.debug": 1, "n.2.debug": 2, "t.0.debug": "a"}


def test_gradients_that_never_come_are_null(ms: Any, dump_path: Path) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="debug"))
    x = torch.ones(2, requires_grad=True)
    debugger.save([x * 2, 3, torch.ones(1)], "values")
    debugger.save(torch.ones(1), "no_gradient")
    debugger.step()
    data = saved(dump_path)["data"]
    assert data["values_grad.0.debug"] == [None, None, None]
    assert "no_gradient_grad.0.debug" not in data


def test_hooks_are_gone_after_the_step(ms: Any, dump_path: Path) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="debug"))
    weight = torch.nn.Parameter(torch.ones(2))
    debugger.save(weight, "w")
    debugger.step()
    assert not weight._backward_hooks
    weight.sum().backward()
    assert saved(dump_path)["data"]["w_grad.0.debug"] is None


def test_a_tensor_changed_later_was_saved_as_it_was(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="debug", task="tensor"))
    x = Tensor(VALUES.copy())
    debugger.save(x, "x")
    x += 1
    debugger.save(x, "x")
    debugger.step()
    assert np.array_equal(file_of(dump_path, "x.0.debug.npy"), VALUES)
    assert np.array_equal(file_of(dump_path, "x.1.debug.npy"), VALUES + 1)


def test_only_selected_steps(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="debug", step=[1]))
    for step in range(3):
        debugger.save(step, "n")
        debugger.step()
    assert [path.name for path in dump_path.iterdir()] == ["step1"]
    assert saved(dump_path, 1)["data"]["n.0.debug"]["value"] == 1


def test_other_levels_leave_save_in_the_script(ms: Any, dump_path: Path) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1"))
    debugger.save(1, "n")
    debugger.step()
    assert not dump_path.exists()


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_name_that_is_none(ms: Any, dump_path: Path, name: Any) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="debug"))
    with pytest.raises(UsageError) as refused:
        debugger.save(1, name)
    assert str(refused.value) == f'save: name {name!r} is not accepted; give a text, such as "loss"'


@pytest.mark.parametrize("keys", [{"list": ["x"]}, {"scope": ["Functional.relu.0.forward"]}, {"data_mode": ["input"]}])
def test_selection_by_entry_is_refused(ms: Any, dump_path: Path, keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"level debug records what save\(\) is given, all of it; remove this key"):
        PrecisionDebugger(write_config(dump_path, level="debug", **keys))


def test_a_killed_process_keeps_what_was_saved(dump_path: Path) -> None:
    config = write_config(dump_path, level="debug")
    code = f"""
import os, signal, torch
from msprobe_ms.pytorch import PrecisionDebugger
debugger = PrecisionDebugger({str(config)!r})
x = torch.ones(2, requires_grad=True)
loss = (x * 3).sum()
debugger.save([loss, "text"], "loss")
loss.backward()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = run_forked("-c", code, framework="torch")
    assert done.returncode == -signal.SIGKILL
    assert [(found.entries, found.problem) for found in recover(dump_path)] == [(2, "")]
    data = json.loads((step_folder(dump_path) / "debug.json").read_text())["data"]
    assert data["loss.0.debug"][0]["Max"] == 6
    assert data["loss_grad.0.debug"][0]["Max"] == 1
    assert data["loss_grad.0.debug"][1] is None


def test_a_step_without_save_is_told_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="debug"))
    for _ in range(2):
        debugger.start(torch.nn.ReLU())
        debugger.stop()
        debugger.step()
    debugger.retire()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "save: nothing was recorded: level debug records what save is given, and it was not called in step 0: "
        "debugger.save(tensor, name)"
    ]


@pytest.mark.parametrize("saves", [False, True])
def test_a_job_without_save_or_start_is_told_at_its_end(
    dump_path: Path, caplog: pytest.LogCaptureFixture, saves: bool
) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="debug"))
    for step in range(2):
        if saves and step:
            debugger.save(1, "n")
        debugger.step()
    debugger.retire()
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == ([] if saves else ["nothing was recorded: save was not called in any of 2 steps"])
