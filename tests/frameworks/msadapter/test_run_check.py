"""``msprobe run --check`` on the ``torch`` that stands for MSAdapter: calls are judged, and no bit changes."""

from __future__ import annotations

import csv
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
import torch.nn.functional as F

mindspore.set_seed(1)
np.random.seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x, y = (torch.tensor(np.random.randn(*shape).astype(np.float32)) for shape in ((2, 4), (2, 3)))
gradient = mindspore.value_and_grad(lambda x: F.mse_loss(torch.softmax(net(x) * 2 + y, -1), y), grad_position=0)
losses = []
for _ in range(3):
    loss, found = gradient(x)
    losses.append(float(loss))
np.savez("end.npz", losses=losses, gradient=found.asnumpy(), drawn=np.random.rand(3))
"""
APIS = [
    "Functional.linear.0", "Functional.relu.0", "Functional.linear.1", "Tensor.__mul__.0", "Tensor.__add__.0",
    "Torch.softmax.0", "Functional.mse_loss.0",
]  # fmt: skip


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
    assert "PASS: calls within the training: 21 results judged" in done.stdout + done.stderr
    assert "cannot be watched" not in done.stderr
    for array in ends[0].files:
        np.testing.assert_array_equal(ends[0][array], ends[1][array], array)
    (table,) = (folder / "out").glob("accuracy_checking_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as opened:
        rows = {row["API Name"]: row["Forward Test Success"] for row in csv.DictReader(opened)}
    assert rows == {f"step{step}.{api}": "pass" for step in range(3) for api in APIS}
