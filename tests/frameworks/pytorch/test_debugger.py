"""What a script may ask of a debugger while it runs: switching, registering, pausing."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import run_forked
from recording import read_step, write_config
from repository import ROOT

from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.support.errors import ConfigError, UsageError
from msprobe_ms.support.stand_in import StandIn
from msprobe_ms.support.translation import speaking


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
        {"skip": 2},
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
    assert list(read_step(dump_path, 3).data) == list(read_step(dump_path, 4).data) == [relu, "loss.0.debug"]


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


def test_a_file_that_goes_is_told_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_config(dump_path, dump_enable=True)
    debugger, model = PrecisionDebugger(path), net()
    path.unlink()
    for _ in range(2):
        one_step(debugger, model)
    write_config(dump_path, dump_enable=False)
    one_step(debugger, model)
    path.unlink()
    one_step(debugger, model)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{path} is gone: what was read from it last stays in force until it is back"
    ]
    assert recorded(dump_path) == ["step0", "step1"]


@pytest.mark.parametrize("given", [{"level": "L0"}, 3, ["config.json"]])
def test_what_is_no_path_of_a_configuration(given: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        PrecisionDebugger(given)
    accepted = "use the path of a json file"
    if isinstance(given, dict):
        accepted += ", or the arguments task, dump_path, level and step"
    assert str(refused.value) == f"argument config_path: {json.dumps(given)} is not accepted; {accepted}"


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
        (
            (torch.nn, "Linear"),
            "register_custom_api: Linear is a class; give it as the module, and the name of a method",
        ),
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


# -- mistakes that must not cost a day -------------------------------------------------------------------------------


def test_an_unknown_argument_is_named_with_what_is_accepted(dump_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        PrecisionDebugger(dump_pth=dump_path, rank=[0])
    assert str(refused.value) == (
        'PrecisionDebugger: dump_pth: unknown argument (did you mean "dump_path"?); '
        "every other key goes into settings={…}, or into the file that config_path names\n"
        "PrecisionDebugger: rank: unknown argument; every other key goes into settings={…}, or into the file that "
        "config_path names\naccepted are config_path, task, dump_path, level, step, settings"
    )
    with speaking("zh"), pytest.raises(UsageError, match="未知的参数（是否想写"):
        PrecisionDebugger(dump_pth=dump_path)


def test_the_network_may_be_given_to_the_debugger(dump_path: Path) -> None:
    model, other = net(), torch.nn.Sequential(torch.nn.Tanh())
    debugger = PrecisionDebugger(write_config(dump_path), model=model)
    debugger.start()
    model(torch.ones(1, 2))
    debugger.stop()
    debugger.start(other)
    other(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    names = ["Module.0.Linear.forward.0", "Module.1.ReLU.forward.0", "Module.0.Tanh.forward.0"]
    assert [name for name in read_step(dump_path).data if name.startswith("Module")] == names
    with pytest.raises(UsageError, match=r"^PrecisionDebugger: model\[1\] is a str; give a torch.nn.Module or a list"):
        PrecisionDebugger(write_config(dump_path), model=[model, "net"])


def test_forgetting_step_is_told_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path)), net()
    for _ in range(3):
        debugger.start(model)
        model(torch.ones(1, 2)).sum().backward()
        debugger.stop()
    debugger.step()
    said = "start: called again before step(), so that step 0 goes on; call step() after each training step"
    assert caplog.messages.count(said) == 1
    assert "Module.0.Linear.backward.2" in read_step(dump_path).data, "and nothing is lost"


def test_pauses_within_a_forward_pass_are_no_mistake(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path)), net()
    debugger.start(model)
    hidden = model(torch.ones(1, 2))
    debugger.stop()
    debugger.start(model)
    model(hidden).sum().backward()
    debugger.stop()
    debugger.step()
    one_step(debugger, model)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_process_alone_whose_rank_is_not_selected_is_told_once(
    dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path, rank=[5, 3])), net()
    for _ in range(2):
        one_step(debugger, model)
    assert recorded(dump_path) == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "rank: nothing is recorded: this process is part of no distributed job that is initialised, and taken for "
        "rank 0; the configuration selects 3, 5. Remove the key or add 0, or name this process's rank: "
        "start(model, rank_id=3)"
    ]


def test_a_rank_that_is_known_and_not_selected_stays_quiet(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "msprobe_ms")
    debugger = PrecisionDebugger(write_config(dump_path, rank=[3]))
    debugger.start(net(), rank_id=1)
    debugger.stop()
    debugger.step()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("DEBUG", "rank: this process is rank 1, recorded are 3")
    ]


def test_stop_without_start_is_told_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, step=[5]))
    one_step(debugger, net())  # not selected, but no mistake
    assert not any("stop:" in message for message in caplog.messages)
    debugger.stop()
    debugger.stop()
    assert caplog.messages.count("stop: nothing to stop, start was not called since the last step()") == 1


def test_starting_twice_records_once(dump_path: Path) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path, level="mix")), net()
    debugger.start(model)
    debugger.start(model)
    model(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    debugger.step()
    data = read_step(dump_path).data
    assert [name for name in data if "Linear.forward" in name] == ["Module.0.Linear.forward.0"]
    assert not model[0]._forward_hooks and not isinstance(torch.relu, StandIn)


def test_a_second_debugger_takes_over_when_it_starts(dump_path: Path) -> None:
    first, model = PrecisionDebugger(dump_path=dump_path / "first", level="L1"), net()
    first.start(model)
    second = PrecisionDebugger(dump_path=dump_path / "second", level="L1")
    model(torch.ones(1, 2))
    second.start(model)
    model(torch.ones(1, 2))
    second.stop()
    second.step()
    for name in ("first", "second"):
        assert list(read_step(dump_path / name).data) == ["Functional.linear.0.forward", "Functional.relu.0.forward"]
    assert not isinstance(torch.relu, StandIn)


@pytest.mark.parametrize(
    ("keys", "model", "why"),
    [
        (
            {"level": "L0"},
            net(),
            "no module of Sequential was called between start and stop. Either an exception ended the step before "
            "that, or the step calls another network than the one that start was given",
        ),
        (
            {"level": "L0"},
            torch.nn.ReLU(),
            "ReLU has no modules inside and no parameters, hence no entry; use level L1 or mix",
        ),
        (
            {"level": "L0"},
            torch.nn.Linear(2, 2),
            "no module of Linear was called between start and stop. Either an exception ended the step before that, or "
            "the step calls another network than the one that start was given",
        ),
        ({"level": "L1"}, None, "no API that level L1 records was called between start and stop"),
    ],
)
def test_a_step_without_entries_says_why(
    dump_path: Path, keys: dict[str, Any], model: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, **keys))
    debugger.start(model)
    if keys["level"] == "L0":
        net()(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    folder = dump_path / "step0" / f"proc{os.getpid()}"
    assert f"{folder}: nothing was recorded: {why}" in caplog.messages


@pytest.mark.parametrize(
    ("level", "place", "why"),
    [
        ("L0", "before", "before any module of Failing was called"),
        ("L0", "inside", "before Module.inner.Raising.forward.0 returned"),
        ("mix", "inside", "before Module.inner.Raising.forward.0 returned"),
        ("L1", "before", "before any API that level L1 records was called"),
    ],
)
def test_a_step_that_an_exception_ended_names_it(
    dump_path: Path, level: str, place: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Raising(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("a wrong mask\nand more")

    class Failing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Raising()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if place == "before":
                raise ValueError("a wrong mask\nand more")
            return self.inner(x)

    debugger = PrecisionDebugger(write_config(dump_path, level=level))
    try:
        raise KeyError("an exception of before, which ended nothing")
    except KeyError:
        debugger.start(model := Failing())
        with suppress(ValueError):
            try:
                model(torch.ones(1, 2))
            finally:
                debugger.stop()
    debugger.step()
    (said,) = [message for message in caplog.messages if "nothing was recorded" in message]
    assert said.endswith(f"nothing was recorded: an exception ended the step {why} (ValueError: a wrong mask)")


def test_a_step_whose_exception_was_handled_elsewhere_says_that_there_may_be_one(
    dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path, level="L0")), net()
    debugger.start(model)
    with suppress(RuntimeError):
        model(torch.ones(1, 3))
    debugger.stop()
    debugger.step()
    said = "Module.0.Linear.forward.0 began but did not return. Either it raised an exception, or stop was called"
    assert any(f"nothing was recorded: {said}" in message for message in caplog.messages)


def test_a_data_mode_that_keeps_nothing_is_named(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path, data_mode=["backward"])), net()
    debugger.start(model)
    model(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    said = "nothing was recorded: what was called has nothing that data_mode [backward] keeps"
    assert any(message.endswith(said) for message in caplog.messages)


def test_a_list_that_selects_nothing_is_told_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one_step(PrecisionDebugger(write_config(dump_path, list=["Softmax"])), net())
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_a_token_range_that_never_comes_is_named(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path)), net()
    debugger.start(model, token_range=[5, 6])
    model(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    said = "nothing was recorded: the model was not called as often as token_range says"
    assert any(message.endswith(said) for message in caplog.messages)


def test_no_overflow_is_no_mistake(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one_step(PrecisionDebugger(write_config(dump_path, task="overflow_check")), net())
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (False, "start was not called in any of 3 steps"),
        (True, "no step that is selected (7, 9) was reached"),
    ],
)
def test_a_run_without_a_dump_says_so_at_its_end(
    dump_path: Path, start: bool, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    debugger, model = PrecisionDebugger(write_config(dump_path, step=[7, 9])), net()
    for _ in range(3):
        if start:
            debugger.start(model)
        debugger.step()
    assert not any("nothing was recorded" in message for message in caplog.messages)
    debugger.retire()
    assert caplog.messages[-1] == f"nothing was recorded: {said}"


def test_the_end_of_the_last_selected_step_is_said_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    debugger, model = PrecisionDebugger(write_config(dump_path, step=[0, 2])), net()
    successes = []
    for _ in range(5):
        one_step(debugger, model)
        successes.append([each for each in caplog.messages if "msprobe ends successfully" in each])
    said = "msprobe ends successfully: step 2 was the last that is selected, training goes on unrecorded"
    assert successes == [[], [], *[[f"{said}; the dump is in {dump_path}"]] * 3]


def test_a_list_that_selects_nothing_does_not_end_successfully(
    dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    debugger, model = PrecisionDebugger(write_config(dump_path, step=[0], list=["nowhere"])), net()
    one_step(debugger, model)
    assert caplog.messages[-1] == (
        "nothing was recorded: step 0 was the last that is selected, training goes on unrecorded"
    )
    assert not any("ends successfully" in message or "the dump is in" in message for message in caplog.messages)


def test_a_run_that_recorded_something_ends_quietly(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, step=[0]))
    one_step(debugger, net())
    one_step(debugger, net())
    debugger.retire()
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


RUN = """
import sys, torch
from msprobe_ms.pytorch import PrecisionDebugger
debugger, net = PrecisionDebugger(dump_path=sys.argv[1], level="L0"), torch.nn.Sequential(torch.nn.Linear(2, 2))
debugger.start(net)
net(torch.ones(1, 2))
if len(sys.argv) > 2:
    import os
    os._exit(9)
debugger.step()
"""


def test_a_second_run_into_the_same_folder(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every run keeps its own dump; told at start; compare takes the latest run's unless another is named."""

    def run(*arguments: str) -> tuple[str, str]:
        before = set(recorded(dump_path / "step0"))
        done = run_forked("-c", RUN, dump_path, *arguments, framework="torch")
        (new,) = set(recorded(dump_path / "step0")) - before
        return new, done.stderr

    step = dump_path / "step0"
    killed, said = run("killed")
    assert "other processes" not in said
    first, said = run()
    expected = f"{step} holds dumps of other processes already: {killed}; compare takes the latest, or the one that you"
    assert expected in said
    second, _ = run()
    assert find_dumps(step) == {second: step / second / "dump.json"}
    os.utime(step / first / "dump.json", (2e9, 2e9))
    assert list(find_dumps(step)) == list(find_dumps(dump_path)) == [first]
    assert list(find_dumps(step / second)) == [second]


@pytest.mark.parametrize(
    ("framework", "name", "extra"), [("mindspore", "MindSpore", "mindspore"), ("torch", "PyTorch", "pytorch")]
)
def test_a_missing_framework_says_how_to_get_it(framework: str, name: str, extra: str) -> None:
    module = "msprobe_ms.pytorch" if framework == "torch" else "msprobe_ms"
    hidden = (
        "import sys, importlib.abc\n"
        "class Hidden(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {framework!r}: raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{hidden}from {module} import PrecisionDebugger"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == (
        f'ModuleNotFoundError: {name} is not installed, and recording needs it: pip install "msprobe-ms[{extra}]"; '
        "the commands compare and recover work without"
    )
    assert "During handling" not in done.stderr


@pytest.mark.parametrize("precision", ["high", "low"])
def test_statistics_are_wide_whatever_precision_says(
    dump_path: Path, precision: str, caplog: pytest.LogCaptureFixture
) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", precision=precision))
    said = 'precision "low" changes nothing: statistics are taken in float32 or wider, as with "high"'
    assert (said in caplog.messages) == (precision == "low")
    assert not any("no effect" in message for message in caplog.messages)
    debugger.start()
    torch.relu(torch.full((4,), 60000.0, dtype=torch.float16))
    debugger.stop()
    debugger.step()
    output = read_step(dump_path).data["Torch.relu.0.forward"]["output"][0]
    assert (output["dtype"], output["Norm"], output["Mean"]) == ("torch.float16", 120000.0, 60000.0)
