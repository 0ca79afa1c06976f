"""Steps after one that diverges: what differs in them is not consistent, whoever is asked."""

from __future__ import annotations

import json
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
    for folder in (target, golden):
        shutil.rmtree(folder / "step0")
    told = str(msprobe_ms.compare(target / "step1", golden / "step1"))
    assert "an error of an earlier step may hide in them: record and compare the first step too" in told
