"""``msprobe run``: scripts that know nothing of the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msprobe_ms.store.reader import read_dump

ROOT = Path(__file__).parent.parent

PYTORCH = """
import torch
from torch import nn
torch.manual_seed(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 5), nn.Linear(5, 2)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
net, loss = nn.DataParallel(Net()) if 0 else Net(), nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(3, 4)
with torch.no_grad():
    net(x)
for _ in range(2):
    optimizer.zero_grad()
    loss(net(x), torch.zeros(3, 2)).backward()
    optimizer.step()
torch.save(net.fc1.weight.detach(), "weight.pt")
"""

MINDSPORE = """
import sys
import mindspore as ms, numpy as np
from mindspore import nn, ops
ms.runtime.launch_blocking()
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(4, 5, weight_init="ones"), nn.Dense(5, 2, weight_init="ones")
    def construct(self, x):
        return self.fc2(ops.relu(self.fc1(x)))
net, loss_fn = Net(), nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 0.01)
x, y = ms.Tensor(np.ones((3, 4), np.float32)), ms.Tensor(np.zeros((3, 2), np.float32))
def train_functional():
    def forward(x, y):
        output = net(x)
        return loss_fn(output, y), output
    gradient = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    for _ in range(2):
        (loss, _), gradients = gradient(x, y)
        optimizer(gradients)
def train_cell():
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
    for _ in range(2):
        step(x, y)
def train_model():
    data = ms.dataset.NumpySlicesDataset({"x": np.ones((6, 4), np.float32), "y": np.zeros((6, 2), np.float32)}, shuffle=False)
    ms.train.Model(net, loss_fn, optimizer).train(1, data.batch(3), dataset_sink_mode=False)
globals()["train_" + sys.argv[1]]()
"""  # noqa: E501


def run(folder: Path, *arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """``msprobe run`` in ``folder``, where ``code`` is train.py."""
    if code is not None:
        (folder / "train.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "msprobe_ms", "run", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def plain(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def dump_of(folder: Path, step: int) -> Any:
    (process,) = (folder / "dump" / f"step{step}").iterdir()
    return read_dump(process)


def test_a_pytorch_script_is_recorded_step_by_step(tmp_path: Path) -> None:
    config = {"task": "tensor", "level": "mix", "dump_path": "dump", "tensor": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = run(tmp_path, "--config", "config.json", "train.py", code=PYTORCH)
    assert result.returncode == 0, result.stderr
    assert "msprobe run: the network is Net (train.py), the outermost module called" in result.stderr
    assert "msprobe run: a step ends with each call of the optimizer SGD" in result.stderr
    dumps = [dump_of(tmp_path, step) for step in (0, 1)]
    for dump in dumps:
        names = list(dump.entries)
        # The pass without gradients belongs to no step; the loss does; what the optimizer computes does not.
        assert [name for name in names if name.endswith("fc1.Linear.forward.0")] == ["Module.fc1.Linear.forward.0"]
        assert "Functional.mse_loss.0.forward" in names and "Module.fc1.Linear.backward.0" in names
        assert "Module.fc1.Linear.parameters_grad.0" in names
        assert not any("fc1.Linear.forward.1" in name for name in names)
    weights = [
        dump.tensors.load(next(i for i in dump.entries["Module.fc1.Linear.forward.0"].items if i.path == ("weight",)))
        for dump in dumps
    ]
    assert not np.array_equal(*weights)
    recorded = (tmp_path / "weight.pt").read_bytes()
    assert plain(tmp_path, "train.py").returncode == 0
    assert (tmp_path / "weight.pt").read_bytes() == recorded
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"step0", "step1"}


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("functional", "given to grad or value_and_grad"),
        ("cell", "given to TrainOneStepCell"),
        ("model", "given to TrainOneStepCell"),
    ],
)
def test_a_mindspore_script_is_recorded_step_by_step(tmp_path: Path, form: str, found: str) -> None:
    arguments = ("--level", "mix", "--dump_path", "dump", "train.py", form)
    result = run(tmp_path, *arguments, code=MINDSPORE)
    assert result.returncode == 0, result.stderr
    assert f"msprobe run: the network is Net (train.py), {found}" in result.stderr
    assert "msprobe run: a step ends with each call of the optimizer SGD" in result.stderr
    firsts = []
    for step in (0, 1):
        entries = dump_of(tmp_path, step).entries
        assert {"Cell.fc1.Dense.forward.0", "Cell.fc2.Dense.backward.0", "Functional.relu.0.forward"} <= set(entries)
        assert "Cell.fc1.Dense.parameters_grad.0" in entries
        firsts.append(next(i for i in entries["Cell.fc1.Dense.forward.0"].items if i.path == ("weight",)).norm)
    assert firsts[0] == pytest.approx(np.sqrt(20)) and firsts[1] != firsts[0]
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"step0", "step1"}


COMPILED = """
import mindspore as ms, numpy as np
from mindspore import nn
net = nn.Dense(4, 2)
optimizer = nn.SGD(net.trainable_params(), 0.01)
def forward(x):
    return net(x).sum()
gradient = ms.value_and_grad(forward, None, optimizer.parameters)
@ms.jit
def step(x):
    loss, gradients = gradient(x)
    return loss
print("loss", step(ms.Tensor(np.ones((3, 4), np.float32))).shape)
"""


def test_a_jitted_step_runs_as_it_does_alone(tmp_path: Path) -> None:
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=COMPILED)
    assert plain(tmp_path, "train.py").stdout == result.stdout == "loss ()\n", result.stderr
    assert "nothing is recorded: the script computed no gradients of a network" in result.stderr


def test_a_compiled_pytorch_net_trains_as_it_does_alone(tmp_path: Path) -> None:
    code = PYTORCH.replace("else Net()", "else torch.compile(Net(), backend='eager')") + "print('done')"
    result = run(tmp_path, "--level", "mix", "--dump_path", "dump", "train.py", code=code)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    recorded = (tmp_path / "weight.pt").read_bytes()
    assert plain(tmp_path, "train.py").returncode == 0
    assert (tmp_path / "weight.pt").read_bytes() == recorded


SHOWS = """
import sys, pickle
class Mine: pass
print(__name__, sys.argv, sys.path[0] in ({here!r}, ""), sys.modules["__main__"].__dict__ is globals())
print(type(pickle.loads(pickle.dumps(Mine()))) is Mine)
"""


@pytest.mark.parametrize("flag", [[], ["-m"]])
def test_arguments_main_and_path_are_as_with_python(tmp_path: Path, flag: list[str]) -> None:
    target = "train" if flag else "train.py"
    result = run(tmp_path, *flag, target, "--lr", "1", "-m", code=SHOWS.format(here=str(tmp_path)))
    assert result.stdout == plain(tmp_path, *flag, target, "--lr", "1", "-m").stdout
    assert "True True\nTrue\n" in result.stdout


@pytest.mark.parametrize(
    "code", ["raise SystemExit(7)", "import sys; sys.exit('no data')", "def f():\n    1 / 0\nf()", "syntax error ("]
)
def test_exit_code_and_traceback_are_those_of_python(tmp_path: Path, code: str) -> None:
    result = run(tmp_path, "train.py", code=code)
    alone = plain(tmp_path, "train.py")
    assert result.returncode == alone.returncode
    kept = [line for line in result.stderr.split("\n") if "[WARNING] msprobe run: nothing is recorded" not in line]
    assert "\n".join(kept).replace(str(tmp_path) + "/", "") == alone.stderr.replace(str(tmp_path) + "/", "")


def test_an_exception_in_a_step_keeps_what_was_recorded(tmp_path: Path) -> None:
    code = PYTORCH.replace("    optimizer.step()", "    raise ValueError('mine')")
    result = run(tmp_path, "--level", "L0", "--dump_path", "dump", "train.py", code=code)
    assert result.returncode == 1
    assert "ValueError: mine" in result.stderr
    assert "Module.fc2.Linear.backward.0" in dump_of(tmp_path, 0).entries


def test_mistakes_are_told_before_the_script_runs(tmp_path: Path) -> None:
    missing = run(tmp_path, "absent.py")
    assert (missing.returncode, missing.stderr) == (
        2,
        "msprobe: run: absent.py: no such script; give a Python file, or -m and the name of a module\n",
    )
    wrong = run(tmp_path, "--level", "L7", "train.py", code="print('ran')")
    assert wrong.returncode == 2 and "argument level: " in wrong.stderr and wrong.stdout == ""


def test_the_network_is_found_behind_functions(ms: Any) -> None:
    from msprobe_ms.frameworks.mindspore_training import networks_of

    generator, critic = ms.nn.Dense(2, 2), ms.nn.SequentialCell(ms.nn.Dense(2, 1))
    loss = ms.nn.MSELoss()
    optimizer = ms.nn.SGD(critic.trainable_params(), 0.1)

    class Trainer:
        def __init__(self) -> None:
            self.net = generator

        def forward(self, x: Any) -> Any:
            return loss(self.net(x), x)

    def inner(x: Any) -> Any:
        optimizer(x)
        return critic[0](generator(x))

    def outer(x: Any) -> Any:
        return inner(x) + later(x)

    assert networks_of(critic, None) == [critic]
    assert networks_of(Trainer().forward, None) == [generator]
    found = networks_of(outer, None)
    assert {id(cell) for cell in found} == {id(generator), id(critic)} and len(found) == 2
    assert networks_of(outer, critic.trainable_params()) == [critic]
    assert networks_of(loss, None) == networks_of(len, None) == []
    later = generator
