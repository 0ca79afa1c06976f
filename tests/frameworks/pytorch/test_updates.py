"""Two steps of real trainings: what one optimizer does otherwise is named at the second step, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compare_parts import compared_steps
from recording import write_config

from msprobe_ms.comparison.node.report import node_report
from msprobe_ms.comparison.run import Options
from msprobe_ms.pytorch import PrecisionDebugger

Setting = Callable[[torch.nn.Module], torch.optim.Optimizer]


def train(folder: Path, optimizer_of: Setting) -> Path:
    torch.manual_seed(3)
    net = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(12, 12), torch.nn.Tanh())])
    batch = torch.randn(8, 12)
    optimizer = optimizer_of(net)
    debugger = PrecisionDebugger(write_config(folder, level="L0"))
    for _ in range(2):
        debugger.start(net)
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
        debugger.stop()
        debugger.step()
    return folder


def sgd(**changed: float) -> Setting:
    return lambda net: torch.optim.SGD(net.parameters(), **{"lr": 0.1, **changed})


def adam(**changed: float) -> Setting:
    return lambda net: torch.optim.Adam(net.parameters(), **{"lr": 1e-3, **changed})


def frozen(net: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([each for name, each in net.named_parameters() if name != "4.weight"], lr=0.1)


@pytest.mark.parametrize(
    ("target", "golden", "said"),
    [
        (sgd(lr=0.2), sgd(), "the target's updates of all 8 parameters whose gradients agreed are 2 times"),
        (adam(lr=5e-4), adam(), "the target's updates of all 8 parameters whose gradients agreed are 0.5 times"),
        (sgd(weight_decay=0.3), sgd(), "look at weight decay"),
        (sgd(), sgd(weight_decay=0.3), "look at weight decay"),
        (frozen, sgd(), "the target did not update this parameter in the step before, the golden did: is it frozen?"),
        (adam(), sgd(), "look at the optimizer's settings"),
    ],
)
def test_what_the_optimizer_did_is_named(target: Setting, golden: Setting, said: str, tmp_path: Path) -> None:
    results = compared_steps(train(tmp_path / "target", target), train(tmp_path / "golden", golden))
    first, second = results.found
    assert (first.verdict, second.verdict) == ("consistent", "divergent")
    (origin,) = second.origins
    assert origin.kind == "update"
    assert said in origin.reason


def test_trainings_alike_are_consistent(tmp_path: Path) -> None:
    results = compared_steps(train(tmp_path / "target", adam()), train(tmp_path / "golden", adam()))
    assert [result.verdict for result in results.found] == ["consistent"] * 2


def test_all_that_is_known_of_a_parameter_names_the_updates_that_set_it_apart(tmp_path: Path) -> None:
    folders = train(tmp_path / "target", sgd(lr=5.05)), train(tmp_path / "golden", sgd(lr=5.0))
    second = compared_steps(*folders).found[1]
    assert second.verdict == "consistent"
    steps = [next((folder / "step1").iterdir()) for folder in folders]
    report = node_report(*steps, "Module.0.Linear.forward.0.parameters.weight", Options())
    (told,) = [line for line in report.lines if "explained by" in line and "parameters.weight" in line]
    assert "explained by optimizer updates (up to 0.00117)" in told
