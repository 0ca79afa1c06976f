"""Task free_benchmark on PyTorch's names over MindSpore: found what is planted, and gradients as without it."""

from __future__ import annotations

import csv
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from forked import run_forked
from repository import ROOT

pytestmark = pytest.mark.skipif(
    find_spec("mindtorch") is None, reason="mindnlp is not installed: pip install --no-deps mindnlp==0.5.1"
)

#: On the path, ``torch`` is mindtorch, and ``msprobe`` this package.
_PATH = [str(ROOT / part) for part in ("tests/make/on_mindspore", "", "msprobe_ms/compat")]

_SCRIPT = """
import json
import mindspore
import numpy as np
import torch
import torch.nn.functional as F
from msprobe.mindspore import PrecisionDebugger

first, second = torch.nn.Linear(8, 4), torch.nn.Linear(4, 2)

def forward(x):
    raised = torch.tanh(first(x)) + 1e5
    lost = raised - 1e5
    return (F.relu(second(lost)) + F.dropout(second(lost), 0.0, True)).sum()

step = mindspore.value_and_grad(forward, grad_position=0)
x = torch.tensor(np.linspace(-1, 1, 80, dtype=np.float32).reshape(10, 8))
loss, gradient = step(x)
for stage in ("forward", "backward"):
    section = {"pert_mode": "add_noise", "fuzz_stage": stage}
    with open("config.json", "w") as file:
        json.dump({"task": "free_benchmark", "dump_path": stage, "free_benchmark": section}, file)
    debugger = PrecisionDebugger("config.json")
    debugger.start()
    again, gradient_again = step(x)
    debugger.stop()
    debugger.step()
    print(float(loss) == float(again), bool((gradient.asnumpy() == gradient_again.asnumpy()).all()))
"""


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def test_a_script_of_pytorch_on_mindspore(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_PATH)}
    done = run_forked("-c", _SCRIPT, framework="mindspore", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["True"] * 4
    (row,) = _rows(tmp_path / "forward" / "free_benchmark.csv")
    assert (row["api_name"], row["kind"], row["pert_type"]) == ("torch.Tensor.__sub__", "change", "add_noise")
    assert not (tmp_path / "backward" / "free_benchmark.csv").exists()
    for stage, calls in (("forward", 3), ("backward", 3)):
        summary = {row["api_name"]: row for row in _rows(tmp_path / stage / "free_benchmark_summary.csv")}
        linear, dropout = summary["torch.nn.functional.linear"], summary["torch.nn.functional.dropout"]
        assert (linear["calls"], linear["checked"], linear["inconsistent"]) == (str(calls), str(calls), "0")
        assert dropout["why"].startswith("it draws random numbers whose state cannot be put back")
