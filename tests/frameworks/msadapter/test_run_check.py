"""``msprobe run --check`` on the ``torch`` that stands for MSAdapter: calls are judged, and no bit changes."""

from __future__ import annotations

import csv
import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from forked import run_forked
from repository import ROOT

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        find_spec("mindtorch") is None, reason="mindnlp is not installed: pip install --no-deps mindnlp==0.5.1"
    ),
]

SCRIPT = """
import mindspore, numpy as np, torch

mindspore.set_seed(1)
np.random.seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x, y = (torch.tensor(np.random.randn(*shape).astype(np.float32)) for shape in ((2, 4), (2, 3)))
gradient = mindspore.value_and_grad(lambda x: (torch.softmax(net(x) * 2 + y, -1) ** 2).mean(), grad_position=0)
losses = []
for _ in range(3):
    loss, found = gradient(x)
    losses.append(float(loss))
np.savez("end.npz", losses=losses, gradient=found.asnumpy(), drawn=np.random.rand(3))
"""
APIS = [
    "Functional.linear.0", "Functional.relu.0", "Functional.linear.1", "Tensor.__mul__.0", "Tensor.__add__.0",
    "Torch.softmax.0", "Tensor.__pow__.0", "Tensor.mean.0",
]  # fmt: skip


WITH_BACKWARD = """
import mindspore, numpy as np, torch, tape

class Descent(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.assign_value(mindspore.Tensor(parameter.asnumpy() - 0.1 * parameter.grad.asnumpy()))

np.random.seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x = torch.tensor(np.random.randn(2, 4).astype(np.float32))
optimizer = Descent(list(net.parameters()))
for _ in range(2):
    for parameter in net.parameters():
        parameter.grad = None
    (net(x) ** 2).mean().backward()
    optimizer.step()
"""


def test_networks_of_msadapter_are_found_with_their_gradients(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests" / "make" / "on_mindspore"), str(ROOT)])
    (tmp_path / "train.py").write_text(WITH_BACKWARD)
    done = run_forked(
        *("-m", "msprobe_ms", "run", "--level", "mix", "--dump_path", "dump", "train.py"),
        framework="mindspore", cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a step ends with each call of the optimizer Descent" in done.stdout + done.stderr
    files = sorted((tmp_path / "dump").glob("step*/*/dump.json"))
    assert [file.parent.parent.name for file in files] == ["step0", "step1"]
    for file in files:
        entries = set(json.loads(file.read_text())["data"])
        for number in (0, 2):
            names = {f"Module.{number}.Linear.{kind}.0" for kind in ("forward", "backward", "parameters_grad")}
            assert names <= entries
        assert {f"Functional.linear.{number}.backward" for number in (0, 1)} <= entries


def test_calls_of_msadapter_are_judged_while_it_trains(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests" / "make" / "on_mindspore"), str(ROOT)])
    ends = []
    for name, command in (
        ("plain", ()),
        ("checked", ("-m", "msprobe_ms", "run", "--check", "--share", "100", "-o", "out")),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(SCRIPT)
        done = run_forked(
            *command, "train.py", framework="mindspore", cwd=folder, env={**os.environ, "PYTHONPATH": path}
        )
        assert done.returncode == 0, done.stdout + done.stderr
        ends.append(np.load(folder / "end.npz"))
    assert "PASS: calls within the training: " in done.stdout + done.stderr
    assert "cannot be watched" not in done.stderr
    for array in ends[0].files:
        np.testing.assert_array_equal(ends[0][array], ends[1][array], array)
    (table,) = (folder / "out").glob("accuracy_checking_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as opened:
        columns = ("Forward Test Success", "Backward Test Success")
        rows = {row["API Name"]: [row[column] for column in columns] for row in csv.DictReader(opened)}
    assert rows == {f"step{step}.{api}": ["pass", "pass"] for step in range(3) for api in APIS}
