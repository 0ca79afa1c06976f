"""A NaN that was planted: the commands name what made it, or where it came in, and not what it went through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from msprobe_ms.comparison.kernels.first_nonfinite import answer_lines, first_bad
from msprobe_ms.comparison.view.nonfinite_ranks import analysis_lines, analyze
from msprobe_ms.pytorch import PrecisionDebugger

NAN = float("nan")


class NanGradient(torch.autograd.Function):
    """The identity, whose gradient is NaN."""

    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        return gradient / 0 * 0


class Net(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.first, self.act, self.last = nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4)
        self.guard = nn.LayerNorm(8)
        if fault == "parameter":
            self.last.weight.data[0, 0] = NAN

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.guard(self.act(self.first(x)))
        if self.fault == "forward":
            hidden = torch.log(hidden - 100)
        if self.fault == "backward":
            hidden = torch.sqrt(hidden * 0)
        if self.fault == "between":
            hidden = NanGradient.apply(hidden)
        return self.last(hidden)


def recorded(folder: Path, fault: str, level: str) -> Path:
    net, x = Net(fault), torch.randn(3, 8)
    optimizer = torch.optim.Adam(net.parameters())
    if fault == "data":
        x[0, 0] = NAN
    if fault == "state":
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        optimizer.state[net.first.weight]["exp_avg_sq"][0, 0] = NAN
    path = folder / f"{fault}_{level}"
    debugger = PrecisionDebugger(level=level, task="statistics", dump_path=path, step=[0], settings={"optimizer": True})
    debugger.start(net)
    net(x).sum().backward()
    optimizer.step()
    debugger.stop()
    debugger.step()
    return path


#: Fault → what each level names: the value, and where it came from ("" where the entry made it).
NAMED = {
    "none": {"L0": ("", ""), "mix": ("", "")},
    "data": {
        "L0": ("Module.first.Linear.forward.0.input.0", "data"),
        "mix": ("Functional.linear.0.forward.input.0", "data"),
    },
    "parameter": {
        "L0": ("Module.last.Linear.forward.0.parameters.weight", "a weight"),
        "mix": ("Functional.linear.1.forward.input.1", "the weight Module.last.Linear.forward.0.parameters.weight"),
    },
    "forward": {
        "L0": ("Module.last.Linear.forward.0.input.0", "code that was not recorded"),
        "mix": ("Torch.log.0.forward.output.0", ""),
    },
    "backward": {
        "L0": ("Module.guard.LayerNorm.backward.0.input.0", "a gradient from code that was not recorded"),
        # The square root makes infinities of both signs, and their products with 0 are NaN.
        "mix": ("Tensor.__mul__.0.backward.output.0", ""),
    },
    "between": {
        "L0": ("Module.guard.LayerNorm.backward.0.input.0", "a gradient from code that was not recorded"),
    },
    "state": {
        "L0": ("Optimizer.first.weight.0.forward.input.exp_avg_sq", "what an optimizer keeps"),
    },
}


@pytest.mark.parametrize("fault", NAMED)
def test_a_planted_nan_is_named_where_it_came_from(fault: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    for level, (value, source) in NAMED[fault].items():
        path = recorded(tmp_path, fault, level)
        (answer,), (step,) = first_bad(path), analyze(path)
        analysed, told = " ".join(analysis_lines(step)), " ".join(answer_lines(answer))
        if not value:
            assert answer.first is answer.outside is None and analysed.startswith("FINITE")
            continue
        named = answer.outside if source else answer.first_nan or answer.first
        assert named is not None and f"{named.entry}.{named.item}" == value, told
        assert f"at {value}" in analysed
        assert ("no recorded call made it" in analysed) is bool(source)
        assert source in analysed and source in told
        if source:
            assert answer.first is None, "nothing that was recorded made it"
