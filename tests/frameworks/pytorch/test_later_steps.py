"""Steps after one that diverges: what differs in them is not consistent, whoever is asked."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from compare_parts import compared_steps

import msprobe_ms
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.pytorch import PrecisionDebugger


def train(folder: Path, factor: float) -> Path:
    """Two steps, recorded at level L0; the loss of the first is off by a factor."""
    torch.manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    debugger = PrecisionDebugger(level="L0", dump_path=str(folder), step=[0, 1])
    for step in range(2):
        inputs = torch.randn(8, 16)
        debugger.start(net)
        loss = (factor if step == 0 else 1.0) * net(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        debugger.stop()
        optimizer.step()
        debugger.step()
    return folder


def test_a_step_after_one_that_diverges_inherits_its_error_whoever_is_asked(tmp_path: Path) -> None:
    target, golden = train(tmp_path / "target", 1.0), train(tmp_path / "golden", 1.01)
    results = compared_steps(target, golden)
    first, second = results.found
    assert (first.verdict, first.inherits) == (Verdict.DIVERGENT, None)
    assert (second.verdict, second.inherits, second.origins) == (Verdict.DIVERGENT, 0, [])
    assert "DIVERGENT: 2 pairs of dumps: 2 divergent" in str(results)
    alone = results[1, -1]
    assert alone.verdict == Verdict.DIVERGENT
    assert str(alone).startswith("DIVERGENT: inherits the error of step 0; none begins in this one")
    alone.to_html(tmp_path / "page.html")
    assert "inherits the error of step 0" in (tmp_path / "page.html").read_text(encoding="utf-8")
    (summary,) = results.to_xlsx(tmp_path / "report")[-1:]
    ranks = json.loads(summary.read_text(encoding="utf-8"))["ranks"]
    assert [(each["verdict"], each["inherits"]) for each in ranks] == [("divergent", None), ("divergent", 0)]
    with pytest.raises(AssertionError, match="in 2 of 2 pairs"):
        msprobe_ms.assert_consistent(target, golden)


def test_a_later_step_alone_says_that_an_earlier_error_may_hide_in_it(tmp_path: Path) -> None:
    target, golden = train(tmp_path / "target", 1.0), train(tmp_path / "golden", 1.001)
    told = str(msprobe_ms.compare(target / "step1", golden / "step1"))
    assert told.startswith("CONSISTENT, as far as a step after updates of the parameters shows")
    assert "an error of an earlier step may hide in them: give -tp and -gp the folders that hold all steps" in told
    (size,) = re.findall(r"may hide in them, too, if it is no larger than (\S+) of the size of \S+", told)
    assert 5.7e-6 < float(size) < 1e-3  # beyond the tolerance; the learning rates are 1e-3 apart
    for folder in (target, golden):
        shutil.rmtree(folder / "step0")
    told = str(msprobe_ms.compare(target / "step1", golden / "step1"))
    assert "an error of an earlier step may hide in them: record and compare the first step too" in told


class Timesteps(torch.nn.Module):
    """Sines of times, up to 9000, whose frequencies are computed in one of two ways."""

    def __init__(self, by_powers: bool) -> None:
        super().__init__()
        self._by_powers = by_powers

    def forward(self, times: torch.Tensor) -> torch.Tensor:
        exponents = torch.arange(64) / 64
        powers = 10000.0**-exponents
        frequencies = powers if self._by_powers else torch.exp(-exponents * torch.log(torch.tensor(10000.0)))
        return torch.sin(times[:, None] * frequencies)


def embedded(folder: Path, by_powers: bool, factor: float = 1.0) -> Path:
    """Two steps; ``factor``: of the second step's sines."""
    torch.manual_seed(5)
    net = torch.nn.Sequential(Timesteps(by_powers), torch.nn.Linear(64, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    debugger = PrecisionDebugger(level="L0", dump_path=str(folder), step=[0, 1])
    for step, times in enumerate(([4560, 5890], [2520, 8990])):
        net[0].register_forward_hook(lambda _, __, given, by=factor if step else 1.0: given * by)
        debugger.start(net)
        optimizer.zero_grad()
        net(torch.tensor(times)).square().mean().backward()
        debugger.stop()
        optimizer.step()
        debugger.step()
    return folder


def test_what_the_condition_of_a_call_explains_was_not_wrong_in_the_first_step(tmp_path: Path) -> None:
    """A sine rounds as its argument does: thousands of times as much as what is computed from it."""
    golden = embedded(tmp_path / "golden", by_powers=True)
    healthy = compared_steps(embedded(tmp_path / "healthy", by_powers=False), golden)
    assert [found.verdict for found in healthy.found] == [Verdict.CONSISTENT] * 2
    wrong = compared_steps(embedded(tmp_path / "wrong", by_powers=False, factor=1.1), golden)
    assert [found.verdict for found in wrong.found] == [Verdict.CONSISTENT, Verdict.DIVERGENT]
    assert wrong.found[1].origins[0].target == "Module.0.Timesteps.forward.0.output.0"


class Affine(torch.nn.Module):
    """One scale and one bias, of which a norm behind it takes nothing: their gradients are rounding alone."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * x + self.bias


class Norm(torch.nn.Module):
    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self._by_hand = by_hand

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self._by_hand:
            return torch.nn.functional.layer_norm(x, x.shape[-1:])
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def normalised(folder: Path, by_hand: bool, shift: float = 0.0) -> Path:
    """Two steps, whose rate changes no weight by a rounding; ``shift``: of the first bias, before the first step."""
    torch.manual_seed(5)
    layers = (layer for _ in range(6) for layer in (torch.nn.Linear(16, 16), Affine(), Norm(by_hand)))
    net = torch.nn.Sequential(*layers, torch.nn.Linear(16, 4))
    with torch.no_grad():
        net[1].bias += shift
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
    debugger = PrecisionDebugger(level="L0", dump_path=str(folder), step=[0, 1])
    for _ in range(2):
        debugger.start(net)
        optimizer.zero_grad()
        net(torch.randn(8, 16)).square().mean().backward()
        debugger.stop()
        optimizer.step()
        debugger.step()
    return folder


def test_parameters_that_rounding_alone_updates_are_no_drift(tmp_path: Path) -> None:
    golden = normalised(tmp_path / "golden", by_hand=False)
    healthy = compared_steps(normalised(tmp_path / "healthy", by_hand=True), golden)
    assert [found.verdict for found in healthy.found] == [Verdict.CONSISTENT] * 2
    wrong = compared_steps(normalised(tmp_path / "wrong", by_hand=True, shift=1e-3), golden)
    assert wrong.found[0].origins[0].target == "Module.1.Affine.forward.0.parameters.bias"
