"""The command prove on dumps of the ``torch`` that stands for MSAdapter, beside PyTorch's."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from forked import run_forked
from repository import ROOT

pytestmark = pytest.mark.skipif(
    find_spec("mindtorch") is None, reason="mindnlp is not installed: pip install --no-deps mindnlp==0.5.1"
)

NET = """
import sys, numpy as np, torch
import torch.nn.functional as F
is_adapter = sys.argv[1] == "adapter"
if is_adapter:
    import mindspore
    from msprobe_ms.mindspore import PrecisionDebugger
else:
    from msprobe_ms.pytorch import PrecisionDebugger

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)
        self.act = torch.nn.GELU(approximate="tanh" if is_adapter else "none")
    def forward(self, x):
        return self.act(self.fc(x))

random = np.random.default_rng(0)
x, weight, bias = (random.normal(size=shape).astype(np.float32) for shape in ((4, 8), (8, 8), (8,)))

def step(net):
    loss = lambda x: (torch.softmax(net(x), -1) * 2).sum()
    if is_adapter:
        mindspore.value_and_grad(loss, None, list(net.parameters()))(torch.tensor(x))
    else:
        loss(torch.tensor(x)).backward()

for level in ("L0", "mix"):
    net = Net()
    with torch.no_grad():
        net.fc.weight.copy_(torch.tensor(weight))
        net.fc.bias.copy_(torch.tensor(bias))
    debugger = PrecisionDebugger(dump_path=f"{sys.argv[1]}_{level}", level=level, task="tensor")
    debugger.start(net)
    step(net)
    debugger.stop()
    debugger.step()
"""

PROVE = """
import json
from pathlib import Path
from msprobe_ms.accuracy.proof.operation import Workshop
from msprobe_ms.accuracy.proof.prove import prove
from msprobe_ms.accuracy.proof.question import question_of_dumps
from msprobe_ms.comparison.run import Options
from msprobe_ms.cli import main

proofs = []
with Workshop() as workshop:
    for level, node in (("L0", "Module.fc.Linear.parameters_grad.0"), ("mix", "Functional.gelu.0")):
        proof = prove(question_of_dumps(Path(f"adapter_{level}"), Path(f"torch_{level}"), node, Options()), workshop)
        trials = {trial.what: trial.agrees for trial in proof.trials}
        proofs.append({"finding": proof.finding.value, "sentence": proof.sentence, "trials": trials})
with open("proofs.json", "w") as file:
    json.dump(proofs, file)
main(["prove", "-tp", "adapter_L0", "-gp", "torch_L0", "--node", "act", "-o", "out"])
"""


def test_a_setting_and_a_gradient_are_named(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests" / "make" / "on_mindspore"), str(ROOT)])
    on_adapter = {**os.environ, "PYTHONPATH": path}
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "prove.py").write_text(PROVE)
    for arguments, framework, environment in (
        (("net.py", "adapter"), "mindspore", on_adapter),
        (("net.py", "torch"), "torch", None),
        (("prove.py",), "mindspore", on_adapter),
    ):
        done = run_forked(*arguments, framework=framework, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (tmp_path / "out").glob("proof_*.json")
    setting = json.loads(file.read_text())
    gradient, api = json.loads((tmp_path / "proofs.json").read_text())
    assert setting["sentence"].startswith(
        "the setting `approximate` differs: 'tanh' in MSAdapter's GELU, 'none' in PyTorch's GELU. "
    )
    assert gradient["finding"] == "input"
    assert "MSAdapter's Linear is right, but the gradient that arrives at it already differs" in gradient["sentence"]
    assert "look at Module.act.GELU.backward.0, which made it" in gradient["sentence"]
    assert api["finding"] == "setting"
    assert api["trials"]["the same call run here in MSAdapter, compared with float64"] is True
