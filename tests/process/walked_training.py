"""Records trainings in every way and ends them in every way; tells on stdout what is not as it was before.

``python walked_training.py FRAMEWORK FOLDER`` with ``mindspore`` or ``pytorch``. The last line is JSON: scenario →
names of attributes that hold another object than before the tool was imported, or functions of the tool still called.
"""

from __future__ import annotations

import gc
import importlib
import json
import operator
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from repository import PACKAGE

FRAMEWORK, FOLDER = sys.argv[1], Path(sys.argv[2])

#: What users' code holds of a framework: names, tables, attributes of classes, defaults.
USERS_CODE = """
from {source} import relu, tanh

TABLE = {{"relu": relu, 3: [relu]}}
ROWS = [relu, tanh]


class Holder:
    act = staticmethod(tanh)
    bound = relu

    def method(self, x, act=relu):
        return act(x)


def kernel(x):
    return x * 2


def act(x, function=relu, *, other=tanh):
    return function(x) + other(x)
"""
FOLDER.mkdir(parents=True, exist_ok=True)
(FOLDER / "users_code.py").write_text(
    USERS_CODE.format(source="mindspore.ops" if FRAMEWORK == "mindspore" else "torch")
)
sys.path.insert(0, str(FOLDER))
users_code = importlib.import_module("users_code")


class Raised(Exception):
    """The user's own."""


# -- walking -----------------------------------------------------------------------------------------------------------

#: Namespaces that are walked; those of the frameworks with all that is below them.
WALKED = ("mindspore", "torch", "numpy", "builtins", "sys", "os", "random", "threading", "users_code", "nets_dynamic")

#: What frameworks count and remember themselves: hooks ever made, names of data sets, late imports.
#: And the one thing that stays: torch.compile is told once to leave this package's functions alone.
THEIR_OWN = {
    "mindspore.common.hook_handle._HOOK_VERSION", "mindspore.common.hook_handle.HookHandle.unique_id",
    "mindspore.dataset.engine.datasets._OP_NAME",
    "torch.utils.hooks.RemovableHandle.next_id", "torch._tensor.Tensor.__slotnames__",
    "torch._opaque_base._FakeScriptObject_cls",
    "torch.overrides.__warningregistry__", "torch._dynamo.trace_rules.SKIP_DIRS_RE",
    # What MindSpore counts and keeps as it compiles: functions found, Cells made, operators that call Python, and
    # the latest phase of a Cell, which is never one of ours (`test_graph_cells`).
    ".__ms_tensor_func__", "mindspore.nn.cell.Cell.total_instance_count", "._phase_cache.train",
    "mindspore.ops.operations._pyfunc_registry.CustomPyFuncRegistry._instance",
}  # fmt: skip

#: Values whose identity says nothing.
PLAIN = (int, float, str, bytes, bool, complex)

Read = Callable[[], dict[Any, Any]]
#: The very objects that a place holds, in their order: quick to take and to compare.
Held = Callable[[], tuple[Any, ...]]


class Walk:
    """Every attribute of the frameworks' and the user's modules, classes, functions and networks, as they are now."""

    def __init__(self, models: list[Any]) -> None:
        self._seen: set[int] = set()
        self._places: list[tuple[str, Read, dict[Any, Any], Held, tuple[Any, ...]]] = []
        for name, module in list(sys.modules.items()):
            if isinstance(module, ModuleType) and name.partition(".")[0] in WALKED:
                names = ModuleType.__getattribute__(module, "__dict__")
                nested = name in ("users_code", "nets_dynamic")
                self._add(name, partial(dict, names), partial(held_by_table, names), nested=nested)
        for number, model in enumerate(models):
            for name, module in named(model):
                # Tables of hooks are among the attributes.
                read = partial(attributes, module)
                self._add(f"model{number}.{name}", read, lambda read=read: held_by_table(read()), nested=True)

    def _add(self, place: str, read: Read, held: Held, *, nested: bool) -> None:
        values = read()
        self._places.append((place, read, values, held, held()))
        for key, value in values.items():
            if id(value) in self._seen:
                continue
            below = f"{place}.{key}"
            function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            if isinstance(value, type):
                self._seen.add(id(value))
                table = type.__getattribute__(value, "__dict__")
                self._add(below, partial(dict, table), partial(held_by_table, table), nested=nested)
            elif isinstance(function, FunctionType):
                self._seen.add(id(value))
                self._add(below, partial(parts, function), partial(held_by_function, function), nested=False)
            elif nested and isinstance(value, (dict, list, tuple)):
                self._seen.add(id(value))
                held_now = partial(held_by_table, value) if isinstance(value, dict) else partial(tuple, value)
                self._add(below, partial(items, value), held_now, nested=nested)

    def differences(self) -> list[str]:
        """Places that hold another object now, new ones, and those that are gone."""
        changed = []
        for place, read, before, held, held_before in self._places:
            held_now = held()
            if len(held_now) == len(held_before) and all(map(operator.is_, held_now, held_before)):
                continue
            now = read()
            for key in before.keys() | now.keys():
                one, other = before.get(key, Walk), now.get(key, Walk)
                same = one is other or (type(one) is type(other) and isinstance(one, PLAIN) and one == other)
                imported = key not in before and isinstance(other, ModuleType)
                if not same and not imported and not f"{place}.{key}".endswith(tuple(THEIR_OWN)):
                    changed.append(f"{place}.{key}")
        return sorted(changed)


def attributes(module: Any) -> dict[Any, Any]:
    """A network's own.

    MindSpore makes its tables of hooks when they are first asked for: an empty one is none. In every call of a graph it
    writes _mutable_flags anew.
    """
    found = {key: None if "_lazy_" in key and value == {} else value for key, value in vars(module).items()}
    found.pop("_mutable_flags", None)
    return found


def held_by_table(table: Any) -> tuple[Any, ...]:
    return (*table, *table.values())


def held_by_function(function: FunctionType) -> tuple[Any, ...]:
    own, named = function.__dict__, function.__kwdefaults__
    rest = (*own, *own.values(), *(held_by_table(named) if named else ())) if own or named else ()
    return (function.__code__, function.__defaults__, *rest)  # defaults are a tuple, which holds the same for ever


def parts(function: FunctionType) -> dict[Any, Any]:
    found = {"__code__": function.__code__, **vars(function), **(function.__kwdefaults__ or {})}
    found.update(enumerate(function.__defaults__ or ()))
    return found


def items(value: Any) -> dict[Any, Any]:
    return dict(value) if isinstance(value, dict) else dict(enumerate(value))


def calls_of_the_tool(run: Callable[[], Any]) -> list[str]:
    """What is still called of the tool: hooks that no attribute shows."""
    calls: set[str] = set()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.add(f"called: {frame.f_code.co_name}")

    gc.collect()  # what is thrown away afterwards is no hook
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(calls)


# -- a training of each framework --------------------------------------------------------------------------------------


class Switch:
    """Makes a network raise."""

    on = False


if FRAMEWORK == "mindspore":
    import mindspore
    import nets_dynamic
    import nets_mindspore
    from mindspore import nn

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.runtime.launch_blocking()

    class Body(nets_dynamic.Jitted):
        """Parts under ast, bytecode and trace, and functions imported early."""

        def __init__(self) -> None:
            super().__init__(ast=True, captured=True)
            self.norm = nn.BatchNorm1d(8)
            self.again = nn.SequentialCell(nn.Dense(8, 8))
            self.again.recompute()
            self.held = users_code.tanh

        def construct(self, x: Any) -> Any:
            x = self.norm(self.again(users_code.kernel(users_code.act(self.held(x)))))
            if Switch.on:
                raise Raised
            return super().construct(x)

    def make() -> Any:
        return nets_dynamic.make(Body)

    net, batch, labels = make()
    named = nn.Cell.cells_and_names

    def forward() -> None:
        net(batch)

    def train() -> None:
        nets_mindspore.value_and_grad(net, batch, labels)

    def train_by_model(callbacks: Any) -> None:
        data = mindspore.dataset.NumpySlicesDataset((batch.asnumpy(), labels.asnumpy()), ["x", "y"]).batch(2)
        loss = nn.CrossEntropyLoss()
        model = mindspore.train.Model(net, loss, nn.SGD(net.trainable_params(), 0.0))
        model.train(1, data, callbacks=callbacks, dataset_sink_mode=False)

else:
    import torch
    import torch.utils.checkpoint

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.norm, self.fc2 = torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 8)
            self.again = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
            self.held = users_code.tanh

        def forward(self, x: Any) -> Any:
            x = self.norm(self.fc1(users_code.kernel(users_code.act(self.held(x)))))
            x = torch.utils.checkpoint.checkpoint(self.again, x, use_reentrant=False)
            if Switch.on:
                raise Raised
            return torch.nn.functional.softmax(self.fc2(x), -1)[:, 1:].exp()

    net, batch = Net(), torch.randn(2, 8)
    named = torch.nn.Module.named_modules

    def forward() -> None:
        net(batch)

    def train() -> None:
        net.zero_grad()
        net(batch).sum().backward()


# -- ways to record, ways to end ---------------------------------------------------------------------------------------


def record_and_compare() -> dict[str, list[str]]:
    # What frameworks remember of a training is remembered by now.
    train(), train(), forward()
    if FRAMEWORK == "mindspore":
        train_by_model([])
    gc.collect()
    gc.freeze()  # the frameworks are no garbage, and are not looked at again whenever a recording ends
    before = Walk([net])
    results: dict[str, list[str]] = {}

    def check(scenario: str) -> None:
        results[scenario] = before.differences()

    results["nothing"] = before.differences()
    tool = importlib.import_module("msprobe_ms" if FRAMEWORK == "mindspore" else "msprobe_ms.pytorch")
    check("import")
    for row, level in enumerate(LEVELS):
        for column, (scenario, way) in enumerate(WAYS.items() if level in FULL else [("plain", stop_then_step)]):
            # With each way both tasks, and at each level one of them or both.
            for task in TASKS if scenario == "plain" and level in FULL else TASKS[(row + column) % 2 :][:1]:
                name = f"{scenario} {level} {task}"
                keys = {"level": level, "task": task, "dump_path": str(FOLDER / name)}
                way(tool, keys, lambda point, name=name: check(f"{name} {point}"))
                results[f"{name} calls"] = calls_of_the_tool(train)
    return results


TASKS = ("statistics", "tensor")
LEVELS = ("L0", "L1", "mix", "L2") if FRAMEWORK == "mindspore" else ("L0", "L1", "mix")
#: Where every way is walked, the plain one at all levels: mix does what L0 and L1 do.
FULL = LEVELS if "MSPROBE_EVERY_WAY" in os.environ else ("mix",)

Check = Callable[[str], None]


def stop_then_step(tool: Any, keys: Any, check: Check) -> None:
    debugger = tool.PrecisionDebugger(**keys)
    check("constructed")
    debugger.start(net)
    check("RECORDING")
    train()
    debugger.stop()
    check("stop")
    debugger.step()
    check("step")


def segments(tool: Any, keys: Any, check: Check) -> None:
    debugger = tool.PrecisionDebugger(**keys)
    for _ in range(2):
        debugger.start(net)
        train()
        debugger.stop()
        check("between")
    debugger.start(net)
    debugger.start(net)
    train()
    debugger.step()
    check("step without stop")


def without_backward(tool: Any, keys: Any, check: Check) -> None:
    debugger = tool.PrecisionDebugger(**keys)
    debugger.start(net)
    forward()
    debugger.stop()
    debugger.step()
    check("step")


def exception(tool: Any, keys: Any, check: Check) -> None:
    debugger = tool.PrecisionDebugger(**keys)
    for end in (debugger.stop, debugger.step):
        Switch.on = True
        debugger.start(net)
        with suppress(Raised):
            train()
        Switch.on = False
        debugger.stop()
        end()
        check(end.__name__)


def recording(tool: Any, keys: Any, check: Check) -> None:
    with tool.record(net, **keys):
        train()
    check("left")
    Switch.on = True
    with suppress(Raised), tool.record(net, **keys):
        train()
    Switch.on = False
    check("left by an exception")


def custom(tool: Any, keys: Any, check: Check) -> None:
    debugger = tool.PrecisionDebugger(**keys)
    debugger.register_custom_api(users_code, "kernel")
    check("registered")
    debugger.start(net)
    train()
    debugger.restore_custom_api(users_code, "kernel")
    debugger.stop()
    check("restored while recording")
    debugger.register_custom_api(users_code, "kernel", "Mine")
    debugger.start(net)
    train()
    debugger.stop()
    check("stop")
    debugger.restore_custom_api(users_code, "kernel")
    debugger.step()
    check("restored")


def finish(tool: Any, keys: Any, check: Check) -> None:
    first, second = tool.PrecisionDebugger(**keys), tool.PrecisionDebugger(**{**keys, "step": [7]})
    first.start(net)
    train()
    second.start(net)  # ends the first's step, and records nothing: step 0 is not selected
    check("another debugger")
    first.start(net, token_range=[0, 0])
    train()
    first.retire()
    check("finish")


def model_api(tool: Any, keys: Any, check: Check) -> None:
    callbacks = [tool.MsprobeStep(tool.PrecisionDebugger(**keys))]
    train_by_model(callbacks)
    check("left")
    Switch.on = True
    with suppress(Raised):
        train_by_model(callbacks)
    Switch.on = False
    mindspore.common.api._pynative_executor.clear_res()
    check("left by an exception")


WAYS: dict[str, Callable[[Any, Any, Check], None]] = {
    "plain": stop_then_step, "segments": segments, "forward": without_backward, "exception": exception,
    "record": recording, "custom": custom, "finish": finish,
}  # fmt: skip
if FRAMEWORK == "mindspore":
    WAYS["Model"] = model_api

if __name__ == "__main__":
    print(json.dumps(record_and_compare()))
