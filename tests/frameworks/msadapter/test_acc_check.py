"""The command acc_check on a dump of the ``torch`` that stands for MSAdapter: a real defect of it, found unprompted."""

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

SCRIPT = """
import mindspore, numpy as np, torch
import torch.nn.functional as F
from msprobe_ms.mindspore import PrecisionDebugger

net = torch.nn.Linear(4, 3)
x, y = (torch.tensor(np.random.randn(*shape).astype(np.float32)) for shape in ((2, 4), (2, 3)))
debugger = PrecisionDebugger(dump_path="dump", level="mix")
debugger.start(net)
mindspore.value_and_grad(lambda x: F.mse_loss(torch.softmax(F.relu(net(x)) * 2 + y, -1), y), grad_position=0)(x)
debugger.stop()
debugger.step()

from msprobe_ms.cli import main
import glob
main(["acc_check", "-api_info", glob.glob("dump/step0/*")[0], "-o", "out"])
"""


def test_gradients_of_zeros_are_found_though_the_dump_has_none(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests" / "make" / "on_mindspore"), str(ROOT)])
    done = run_forked("-c", SCRIPT, framework="mindspore", cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = (tmp_path / "out").glob("accuracy_checking_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as opened:
        rows = {row["API Name"]: row for row in csv.DictReader(opened)}
    assert rows["Functional.mse_loss.0"]["Backward Test Success"] == "error"
    apis = [row for name, row in rows.items() if not name.startswith(("Module.", "loss."))]
    assert [row["Forward Test Success"] for row in apis] == ["pass"] * 6
    assert [row["Backward Test Success"] for row in apis].count("pass") == 5
