"""What a script may ask of a debugger while it runs: switching, registering, pausing."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import read_step, write_config

from msprobe_ms.errors import ConfigError, UsageError
from msprobe_ms.pytorch import PrecisionDebugger


def net() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())


def one_step(debugger: PrecisionDebugger, model: torch.nn.Module) -> None:
    debugger.start(model)
    model(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    debugger.step()


def edit(path: Path, **keys: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def recorded(dump_path: Path) -> list[str]:
    return sorted(path.name for path in dump_path.iterdir()) if dump_path.exists() else []


# -- dump_enable -----------------------------------------------------------------------------------------------------


def test_a_running_job_is_switched_on_and_off(dump_path: Path) -> None:
    path = write_config(dump_path, level="mix", dump_enable=False)
    debugger, model, relu = PrecisionDebugger(path), net(), torch.relu
    one_step(debugger, model)
    debugger.start(model)
    assert torch.relu is relu and not model[0]._forward_hooks
    debugger.stop()
    debugger.step()
    assert recorded(dump_path) == []
    edit(path, dump_enable=True, statistics={"list": ["ReLU"]})
    one_step(debugger, model)
    one_step(debugger, model)
    edit(path, dump_enable=False)
    one_step(debugger, model)
    edit(path, dump_enable=True, statistics={})
    one_step(debugger, model)
    assert recorded(dump_path) == ["step2", "step3", "step5"]
    assert not any("Linear" in name for name in read_step(dump_path, 3).data)
    assert any("Linear" in name for name in read_step(dump_path, 5).data)


def test_a_running_job_is_given_another_selection(dump_path: Path) -> None:
    path = write_config(dump_path, level="L0", dump_enable=True, list=["class:linear"])
    debugger, model = PrecisionDebugger(path), net()
    for statistics in (
        {"list": ["class:relu"]},
        {"skip": 1},
        {"scope": {"from": "Module.1.ReLU.forward.0", "until": "Module.1.ReLU.backward.0"}},
        {"skip": -1},
        {"list": ["name-regex(.+forward.+)"]},
    ):
        one_step(debugger, model)
        edit(path, statistics=statistics)
    one_step(debugger, model)
    forward = [[name for name in read_step(dump_path, step).data if "forward" in name] for step in range(6)]
    linear, relu = "Module.0.Linear.forward.0", "Module.1.ReLU.forward.0"
    assert forward == [[linear], [relu], [relu], [relu], [relu], [linear, relu]]
    assert [name for name in read_step(dump_path, 2).data if "backward" in name] == ["Module.1.ReLU.backward.0"]
    assert list(read_step(dump_path, 3).data) == list(read_step(dump_path, 4).data) == [relu]


def test_a_step_that_has_begun_is_not_cut(dump_path: Path) -> None:
    path = write_config(dump_path, dump_enable=True)
    debugger, model = PrecisionDebugger(path), net()
    debugger.start(model)
    edit(path, dump_enable=False)
    debugger.stop()
    debugger.start(model)
    model(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    one_step(debugger, model)
    assert recorded(dump_path) == ["step0"]
    assert len(read_step(dump_path).data) == 2


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"dump_path": "x", "dump_enable": 3}', '{"dump_path": "x", "level": "L1", "dump_enable": true}'],
)
def test_a_mistake_in_the_edited_file_changes_nothing(
    dump_path: Path, content: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_config(dump_path, dump_enable=True)
    debugger, model = PrecisionDebugger(path), net()
    path.write_text(content)
    one_step(debugger, model)
    path.unlink()
    one_step(debugger, model)
    assert recorded(dump_path) == ["step0", "step1"]
    write_config(dump_path, dump_enable=False)
    one_step(debugger, model)
    assert recorded(dump_path) == ["step0", "step1"]


def test_without_the_key_the_file_is_read_once(dump_path: Path) -> None:
    path = write_config(dump_path)
    debugger, model = PrecisionDebugger(path), net()
    edit(path, dump_enable=False)
    one_step(debugger, model)
    assert recorded(dump_path) == ["step0"]


def test_it_is_true_or_false(dump_path: Path) -> None:
    with pytest.raises(ConfigError, match='dump_enable: "on" is not accepted; use true or false'):
        PrecisionDebugger(write_config(dump_path, dump_enable="on"))


def test_dump_enable_holds_for_save(dump_path: Path) -> None:
    path = write_config(dump_path, level="debug", dump_enable=False)
    debugger = PrecisionDebugger(path)
    debugger.save(1, "n")
    debugger.step()
    edit(path, dump_enable=True)
    debugger.save(1, "n")
    debugger.step()
    assert recorded(dump_path) == ["step1"]


# -- functions of one's own ------------------------------------------------------------------------------------------


@pytest.fixture
def kernels() -> types.ModuleType:
    module = types.ModuleType("my_package.kernels")
    module.twice = lambda x: x * 2  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(("prefix", "name"), [(None, "kernels.twice"), ("Fused", "Fused.twice")])
@pytest.mark.parametrize("late", [False, True])
def test_a_registered_function_is_recorded_until_it_is_restored(
    dump_path: Path, kernels: Any, prefix: str | None, name: str, late: bool
) -> None:
    own = kernels.twice
    debugger = PrecisionDebugger(write_config(dump_path, level="L1"))
    if not late:
        debugger.register_custom_api(kernels, "twice", prefix)
        assert kernels.twice is own
    debugger.start()
    if late:
        debugger.register_custom_api(kernels, "twice", prefix)
    x = torch.ones(2, requires_grad=True)
    kernels.twice(x).sum().backward()
    debugger.stop()
    assert kernels.twice is own
    debugger.step()
    debugger.restore_custom_api(kernels, "twice")
    debugger.start()
    kernels.twice(x)
    debugger.stop()
    debugger.step()
    data = read_step(dump_path).data
    assert {f"{name}.0.forward", f"{name}.0.backward"} <= set(data)
    assert data[f"{name}.0.backward"]["output"][0]["Max"] == 2
    assert "Tensor.__mul__.0.forward" not in data, "what an API calls is not recorded"
    assert not any("twice" in entry for entry in read_step(dump_path, 1).data)


def test_restoring_while_recording(dump_path: Path, kernels: Any) -> None:
    own = kernels.twice
    debugger = PrecisionDebugger(write_config(dump_path, level="L1"))
    debugger.register_custom_api(kernels, "twice")
    debugger.start()
    assert kernels.twice is not own
    debugger.restore_custom_api(kernels, "twice")
    assert kernels.twice is own
    debugger.step()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, "f"), "register_custom_api: module is a int; give a module or a class written in Python"),
        ((json, "nope"), "register_custom_api: 'nope' is not something that can be called in json; give its name"),
        ((json, "dumps", ""), "register_custom_api: api_prefix '' is not accepted; give a text, such as \"Custom\""),
    ],
)
def test_what_cannot_be_registered(dump_path: Path, arguments: tuple[Any, ...], message: str) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1"))
    with pytest.raises(UsageError) as refused:
        debugger.register_custom_api(*arguments)
    assert str(refused.value) == message


# -- pausing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["stop", "forward_backward_dump_end"])
def test_backward_after_stop_and_before_step_is_recorded(dump_path: Path, end: str) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path, level="mix")), net()
    debugger.start(model)
    loss = model(torch.ones(1, 2)).sum()
    getattr(debugger, end)()
    loss.backward()
    debugger.step()
    data = read_step(dump_path).data
    assert {"Module.0.Linear.backward.0", "Module.0.Linear.parameters_grad.0", "Module.1.ReLU.backward.0"} <= set(data)
