"""PyTorch scripts on MindSpore, recorded. The provider is mindtorch (mindnlp), which changes `mindspore.Tensor` for the
whole process: every test runs scripts in processes of their own, and nothing of it is imported here."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from recording import leaves, write_config
from repository import ROOT

from msprobe_ms.dump.writing.writer import ERROR_LOG

pytestmark = pytest.mark.skipif(
    find_spec("mindtorch") is None, reason="mindnlp is not installed: pip install --no-deps mindnlp==0.5.1"
)

HERE = Path(__file__).parent
#: On the path, ``torch`` is mindtorch.
ON_MINDSPORE = ROOT / "tests" / "make" / "on_mindspore"
SCRIPTS = HERE / "scripts"
LEVELS = ("L0", "L1", "mix")


def run_script(*arguments: str | Path, cwd: Path, path: tuple[Path, ...] = (ON_MINDSPORE,)) -> str:
    """Run Python and return what it printed; ``path`` goes before everything else."""
    alias = ROOT / "msprobe_ms" / "compat"
    places = [*map(str, path), str(ROOT), str(alias), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = run_forked(*arguments, framework="mindspore", cwd=cwd, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Step:
    """One step's dump as a user finds it."""

    def __init__(self, dump_path: Path, step: int = 0) -> None:
        (self.folder,) = (dump_path / f"step{step}").iterdir()
        log = self.folder / ERROR_LOG
        assert not log.exists(), log.read_text()
        dump, self.stack, self.construct = (
            json.loads((self.folder / f"{name}.json").read_text()) for name in ("dump", "stack", "construct")
        )
        self.data = dump.pop("data")
        self.envelope = dump


# -- the documented script ---------------------------------------------------------------------------------------------

IN_MIX = [
    "Functional.linear.0.forward",
    "Module.linear1.Linear.forward.0",
    "Functional.linear.1.forward",
    "Module.linear2.Linear.forward.0",
    "Functional.relu.0.forward",
    "Functional.relu.0.backward",
    "Functional.linear.1.backward",
    "Module.linear2.Linear.backward.0",
    "Functional.linear.0.backward",
    "Module.linear1.Linear.backward.0",
]


@pytest.mark.parametrize("level", LEVELS)
def test_the_documented_script_runs_unchanged(level: str, tmp_path: Path) -> None:
    config = write_config(tmp_path / "output", task="tensor", level=level, step=[0, 1])
    config.rename(tmp_path / "config.json")
    shutil.copy(SCRIPTS / "net.py", tmp_path)
    run_script("net.py", cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "output").iterdir()) == ["step0", "step1"]
    for number in (0, 1):
        step = Step(tmp_path / "output", number)
        kept = {"L0": ("Module.",), "L1": ("Functional.",), "mix": ("Module.", "Functional.")}[level]
        assert list(step.data) == [name for name in IN_MIX if name.startswith(kept)]
        assert {key: step.envelope[key] for key in ("task", "level", "framework")} == {
            "task": "tensor", "level": level, "framework": "mindtorch",
        }  # fmt: skip
        if level == "mix":
            assert step.construct["Functional.linear.1.backward"] == "Module.linear2.Linear.backward.0"
        else:
            assert set(step.construct) == (set() if level == "L1" else set(step.data))
        for name in step.data:
            for place, leaf in leaves(step.data[name]):
                assert (leaf["type"], leaf["dtype"]) == ("mindspore.Tensor", "Float32"), (name, place)
                assert leaf["requires_grad"] is ("forward" in name), (name, place)
        for entry in set(step.data) & {"Module.linear2.Linear.forward.0", "Functional.relu.0.forward"}:
            (frames,) = (frames for names, frames in step.stack.values() if entry in names)
            assert frames[0].startswith(f"File {tmp_path / 'net.py'}, line ")
            assert ("self.linear2(x1)" if entry.startswith("Module.") else "F.relu(x2)") in frames[0]


def test_kernels_of_the_documented_script(tmp_path: Path) -> None:
    write_config(tmp_path / "output", level="L2", step=[0]).rename(tmp_path / "config.json")
    shutil.copy(SCRIPTS / "net.py", tmp_path)
    run_script("net.py", cwd=tmp_path)
    step = Step(tmp_path / "output")
    assert {name: step.construct[name] for name in step.data} == {
        "Kernel.Dense.0.forward": "Module.linear1.Linear.forward.0",
        "Kernel.Dense.1.forward": "Module.linear2.Linear.forward.0",
        "Kernel.ReLU.0.forward": None,
        "Kernel.Ones.0.backward": None,
        "Kernel.ReluGrad.0.backward": None,
        "Kernel.MatMul.0.backward": "Module.linear2.Linear.backward.0",
        "Kernel.MatMul.1.backward": "Module.linear1.Linear.backward.0",
    }


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"list": ["class:Linear"]}, [name for name in IN_MIX if "inear" in name]),
        ({"list": ["Functional.*1.forward"]}, ["Functional.linear.1.forward"]),
        ({"skip": 2}, [name for name in IN_MIX if "linear.1" in name or "linear2" in name]),
        ({"scope": {"from": "Functional.relu.0.forward", "until": "class:linear"}},
         ["Functional.relu.0.forward", "Functional.relu.0.backward"]),
    ],
)  # fmt: skip
def test_selection(section: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    write_config(tmp_path / "output", level="mix", step=[0], **section).rename(tmp_path / "config.json")
    shutil.copy(SCRIPTS / "net.py", tmp_path)
    run_script("net.py", cwd=tmp_path)
    assert list(Step(tmp_path / "output").data) == expected


# -- which framework it is ---------------------------------------------------------------------------------------------


def test_the_framework_is_told_by_what_torch_is(tmp_path: Path) -> None:
    construct = (
        "from msprobe_ms import PrecisionDebugger\n"
        "print(PrecisionDebugger(level='L1', dump_path='dump')._framework.dialect.name)\n"
    )
    assert run_script("-c", "import torch\n" + construct, cwd=tmp_path).split() == ["mindtorch"]
    # It is asked when the debugger is made, and torch is not imported for it.
    late = "import msprobe_ms.mindspore, torch\n" + construct
    assert run_script("-c", late, cwd=tmp_path).split() == ["mindtorch"]
    unasked = construct + "import sys; print('torch' in sys.modules)\n"
    assert run_script("-c", unasked, cwd=tmp_path).split() == ["mindspore", "False"]
    # PyTorch itself beside MindSpore, and a module that only shares the name.
    assert run_script("-c", "import torch\n" + construct, cwd=tmp_path, path=()).split() == ["mindspore"]
    stub = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
    assert run_script("-c", stub + construct, cwd=tmp_path).split() == ["mindspore"]


def test_another_network_is_refused_in_words(tmp_path: Path) -> None:
    code = (
        "import torch, mindspore\n"
        "from msprobe_ms import PrecisionDebugger\n"
        "from msprobe_ms.support.errors import UsageError\n"
        "try:\n"
        "    PrecisionDebugger(level='L0', dump_path='dump').start(mindspore.nn.ReLU())\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    assert run_script("-c", code, cwd=tmp_path).strip() == (
        "start: model is a ReLU, a network of MindSpore: import PrecisionDebugger from msprobe_ms.mindspore"
    )


# -- providers as they come --------------------------------------------------------------------------------------------


def test_a_provider_that_replaces_what_recording_uses(tmp_path: Path) -> None:
    """mindtorch as published prints dtypes its own way and has a `Tensor.register_hook` that cannot work."""
    code = (
        "import mindspore, torch\n"
        "kind = mindspore._c_expression.typing.Type\n"
        "kind.__str__ = kind.__repr__\n"
        "def broken(self, hook): return self._data.register_hook(hook)\n"
        "mindspore.Tensor.register_hook = broken\n"
        "from msprobe_ms import PrecisionDebugger\n"
        "net = torch.nn.Sequential(torch.nn.Linear(3, 2))\n"
        "debugger = PrecisionDebugger(level='mix', dump_path='dump')\n"
        "debugger.start(net)\n"
        "x = torch.tensor([[1.0, 2.0, 3.0]])\n"
        "def loss(x):\n"
        "    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool):\n"
        "        torch.squeeze(torch.ones(2, dtype=dtype))\n"
        "    return torch.sum(net(x), dtype=torch.float32)\n"
        "mindspore.value_and_grad(loss, 0, net[0].weight)(x)\n"
        "net[0].weight.requires_grad_(False)\n"
        "mindspore.value_and_grad(lambda x: net(x), 0)(x)\n"
        "debugger.stop()\n"
        "debugger.step()\n"
    )
    run_script("-c", code, cwd=tmp_path)
    step = Step(tmp_path / "dump")
    texts = [leaf["dtype"] for i in range(6) for _, leaf in leaves(step.data[f"Torch.squeeze.{i}.forward"]["output"])]
    assert texts == ["BFloat16", "Float16", "Float64", "Int64", "UInt8", "Bool"]
    ((_, gradient),) = leaves(step.data["Module.0.Linear.parameters_grad.0"])
    assert (gradient["Max"], gradient["Min"], gradient["shape"]) == (3.0, 1.0, [2, 3])
    assert step.data["Torch.sum.0.forward"]["input_kwargs"]["dtype"] == {"type": "torch.dtype", "value": "Float32"}
    frozen = [step.data[f"Module.0.Linear.forward.{call}"]["parameters"]["weight"] for call in (0, 1)]
    assert [leaf["requires_grad"] for leaf in frozen] == [True, False]


def test_a_module_that_raises_leaves_the_next_calls_whole(tmp_path: Path) -> None:
    code = (
        "import mindspore, torch\n"
        "from msprobe_ms import PrecisionDebugger\n"
        "class Checked(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        y = torch.abs(x)\n"
        "        if x.shape[1] != 3:\n"
        "            raise ValueError(x.shape)\n"
        "        return super().forward(y)\n"
        "net = torch.nn.Sequential(Checked(3, 4), torch.nn.Linear(4, 2))\n"
        "debugger = PrecisionDebugger(level='mix', dump_path='dump')\n"
        "debugger.start(net)\n"
        "for columns in (5, 3):\n"
        "    try:\n"
        "        mindspore.value_and_grad(lambda x: net(x), 0)(torch.ones(2, columns))\n"
        "    except ValueError as error:\n"
        "        print('raised')\n"
        "debugger.stop()\n"
        "debugger.step()\n"
    )
    assert run_script("-c", code, cwd=tmp_path).split() == ["raised"]
    step = Step(tmp_path / "dump")
    assert list(step.data) == [
        "Torch.abs.0.forward",
        "Torch.abs.1.forward",
        "Functional.linear.0.forward",
        "Module.0.Checked.forward.1",
        "Functional.linear.1.forward",
        "Module.1.Linear.forward.0",
        "Functional.linear.1.backward",
        "Module.1.Linear.backward.0",
        "Functional.linear.0.backward",
        "Torch.abs.1.backward",
        "Module.0.Checked.backward.1",
    ]
    assert step.construct["Torch.abs.1.forward"] == "Module.0.Checked.forward.1"
    assert step.construct["Module.1.Linear.forward.0"] is None


def test_updates_of_parameters(tmp_path: Path) -> None:
    code = (
        "import mindspore, tape, torch\n"
        "from msprobe.mindspore import PrecisionDebugger\n"
        "class Momentum(torch.optim.Optimizer):\n"  # mindtorch's own do not run on the CPU
        "    def step(self):\n"
        "        for group in self.param_groups:\n"
        "            for weight in group['params']:\n"
        "                held = self.state[weight].get('momentum_buffer', 0) * group['momentum']\n"
        "                self.state[weight]['momentum_buffer'] = held + weight.grad\n"
        "                mindspore.ops.assign(weight, weight - group['lr'] * self.state[weight]['momentum_buffer'])\n"
        "net = torch.nn.Sequential(torch.nn.Linear(3, 2))\n"
        "optimizer = Momentum(net.parameters(), {'lr': 0.5, 'momentum': 0.9})\n"
        "debugger = PrecisionDebugger('config.json')\n"
        "for _ in range(2):\n"
        "    debugger.start(net)\n"
        "    for weight in net.parameters():\n"
        "        weight.grad = None\n"
        "    net(torch.ones(4, 3)).sum().backward()\n"
        "    debugger.stop()\n"
        "    optimizer.step()\n"
        "    debugger.step()\n"
    )
    write_config(tmp_path / "dump", level="L0", optimizer=True).rename(tmp_path / "config.json")
    run_script("-c", code, cwd=tmp_path)
    first, second = Step(tmp_path / "dump", 0), Step(tmp_path / "dump", 1)
    update, names = second.data["Optimizer.0.bias.0.forward"], [name for name in first.data if "Optimizer" in name]
    assert names == ["Optimizer.0.weight.0.forward", "Optimizer.0.bias.0.forward"]
    given = update["input_kwargs"]
    assert (given["lr"]["value"], given["momentum"]["value"], given["gradient"]["Mean"]) == (0.5, 0.9, 4.0)
    assert given["momentum_buffer"]["Mean"] == 4.0
    moved = first.data["Optimizer.0.bias.0.forward"]["output"][0]["Mean"] - update["output"][0]["Mean"]
    assert moved == pytest.approx(0.5 * (0.9 * 4 + 4), rel=1e-4)


INTERFACES = """
import torch
from maca_tools import accuracy
from msit_llm import DumpConfig, register_hook
net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
x = torch.ones(2, 8)
for folder in ("one", "two"):
    accuracy.start_record(output_dir=folder, ranks=[0])
    torch.relu(net(x))
    accuracy.record_switch(False)
accuracy.gen_report("one", "two", "report")
register_hook(net, DumpConfig(dump_weight=True, seed=3))
net(x)
"""


def test_interfaces_of_other_tools(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(INTERFACES)
    modules = ROOT / "msprobe_ms" / "compat" / "modules"
    run_script("script.py", cwd=tmp_path, path=(ON_MINDSPORE, modules))
    layers = ["Layer.Linear.1.forward", "Layer.ReLU.2.forward", "Torch.relu.3.forward"]
    assert list(Step(tmp_path / "two").data) == layers
    assert len(list(tmp_path.glob("report/accuracy_report_*.xlsx"))) == 1
    weights = Step(tmp_path / "msit_dump").data
    assert {name: list(entry) for name, entry in weights.items()} == {"Module.0.Linear.forward.0": ["parameters"]}


FUNCTIONS = """
import copy, pickle, sys
import torch
import torch.nn.functional as F
from msprobe.mindspore import PrecisionDebugger

FIND = [lambda: F.relu, lambda: F.linear, lambda: torch.matmul, lambda: torch.Tensor.add, lambda: torch.Tensor.__add__]
genuine = [find() for find in FIND]
table = {function: number for number, function in enumerate(genuine)}
assert [table[find()] for find in FIND] == list(range(len(FIND)))
debugger = PrecisionDebugger(config_path="./config.json")
x = torch.ones(2, 2)
debugger.start(model=torch.nn.Linear(2, 2))
assert not any(find() is each for find, each in zip(FIND, genuine))
assert [table[find()] for find in FIND] == list(range(len(FIND)))
assert all(isinstance(find(), type(each)) for find, each in zip(FIND, genuine))
stored = {find(): [find()] for find in FIND}
F.relu(x)
debugger.stop()
debugger.step()
assert all(stored[each] == [each] for each in genuine)
assert all(pickle.loads(pickle.dumps(stored[each]))[0] is each for each in genuine)
assert all(copy.deepcopy(stored[each])[0] is each is find() for find, each in zip(FIND, genuine))
print([each(x).shape for (each,) in list(stored.values())[:1]])
"""


def test_functions_are_what_they_are(tmp_path: Path) -> None:
    """To tables, pickles, copies and whoever compares or inspects them, made before, meanwhile or after."""
    configuration = {"task": "statistics", "dump_path": "./dump", "rank": [], "step": [], "level": "L1"}
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    assert run_script("-c", FUNCTIONS, cwd=tmp_path).strip()
    assert list(Step(tmp_path / "dump").data) == ["Functional.relu.0.forward"]
