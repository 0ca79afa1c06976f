"""A key that selects nothing is said once, with what may have been meant."""

from __future__ import annotations

from collections.abc import Iterator
from logging import Handler, LogRecord
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import write_config
from torch import nn

from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.recording.selection.filters import NameList, Range, Scope, Skip
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.support.log import logger


class Texts(Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: LogRecord) -> None:
        if record.levelname == "WARNING":
            self.texts.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[list[str]]:
    handler = Texts()
    logger.addHandler(handler)
    yield handler.texts
    logger.removeHandler(handler)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm1, self.norm2 = nn.Linear(2, 2), nn.LayerNorm(2), nn.LayerNorm(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm2(self.norm1(self.attention(x)))


def steps(dump_path: Path, count: int = 1, **keys: Any) -> PrecisionDebugger:
    model = nn.Sequential(Layer(), Layer(), nn.ReLU())
    debugger = PrecisionDebugger(write_config(dump_path, **keys))
    for _ in range(count):
        debugger.start(model)
        model(torch.ones(1, 2)).sum().backward()
        debugger.stop()
        debugger.step()
    return debugger


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"list": ["atention"]},
         'list ["atention"] selects none of the 9 names in this step; did you mean '
         "Module.0.attention.Linear or Module.1.attention.Linear?"),
        ({"list": ["class:Lnear"]},
         'list ["class:Lnear"] selects none of the 9 names in this step; did you mean '
         "Module.0.attention.Linear or Module.1.attention.Linear?"),
        ({"list": ["relu"]}, 'list ["relu"] selects none of the 9 names in this step; did you mean Module.2.ReLU?'),
        ({"list": ["zzzzzz"]}, 'list ["zzzzzz"] selects none of the 9 names in this step'),
        ({"list": ["*;["]}, 'list ["*;["] selects none of the 9 names in this step'),
        ({"scope": ["Module.1.attention.Linear.forward.4", None]},
         'scope: "Module.1.attention.Linear.forward.4" does not come in this step, the range never begins; '
         "did you mean Module.1.attention.Linear.forward.0?"),
        ({"scope": [None, "Module.1.norm3.LayerNorm.backward.0"]},
         'scope: "Module.1.norm3.LayerNorm.backward.0" does not come in this step, the range ends with the step; '
         "did you mean Module.1.norm1.LayerNorm.backward.0?"),
        ({"scope": {"from": "class:LayrNorm"}},
         'scope: "class:LayrNorm" does not come in this step, the range never begins; did you mean '
         "Module.0.norm1.LayerNorm or Module.0.norm2.LayerNorm or Module.1.norm1.LayerNorm?"),
        ({"tensor_list": ["Attention"]},
         'tensor_list ["Attention"] selects none of what is recorded in this step; did you mean '
         "Module.0.attention.Linear or Module.1.attention.Linear?"),
        ({"scope": ["Module.1.norm1.LayerNorm.forward.0", "Module.0.norm1.LayerNorm.forward.0"]},
         'scope: "Module.0.norm1.LayerNorm.forward.0" comes before "Module.1.norm1.LayerNorm.forward.0" and not after '
         "it, the range ends with the step; are they in the wrong order?"),
        ({"scope": {"from": "Module.0.norm1.LayerNorm.backward.0", "until": "Module.1.norm1.LayerNorm.backward.0"}},
         'scope: "Module.1.norm1.LayerNorm.backward.0" comes before "Module.0.norm1.LayerNorm.backward.0" and not '
         "after it, the range ends with the step; are they in the wrong order?"),
        ({"list": ["norm1", "normm2"]},
         'list: "normm2" selects none of the names in this step, other patterns do; did you mean '
         "Module.0.norm2.LayerNorm or Module.1.norm2.LayerNorm or Module.0.norm1.LayerNorm?"),
        ({"level": "mix", "list": ["zzzzzz", "class:linear"]},
         'list: "zzzzzz" selects none of the names in this step, other patterns do'),
        ({"tensor_list": ["norm1", "zzzzzz"]},
         'tensor_list: "zzzzzz" selects none of the recorded entries in this step, other patterns do'),
        ({"skip": 41}, "skip 41 passes over all of the 9 calls in this step; use a smaller one"),
    ],
)  # fmt: skip
def test_what_is_said(dump_path: Path, said: list[str], keys: dict[str, Any], text: str) -> None:
    steps(dump_path, count=3, **keys)
    assert said == [text]


def test_a_backward_that_never_came(dump_path: Path, said: list[str]) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    debugger = PrecisionDebugger(write_config(dump_path, scope=["Module.0.Linear.backward.0"]))
    debugger.start(model)
    model(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    assert said == [
        'scope: "Module.0.Linear.backward.0" does not come in this step, the range never begins; its forward came'
    ]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"list": ["Linear"], "tensor_list": ["attention.Linear.forward"], "skip": 2},
        {"scope": ["Module.1.attention.Linear.forward.0", "Module.0.norm1.LayerNorm.backward.0"]},
        {"list": ["class:relu"], "scope": {"from": "Module.0.Layer.forward.0", "until": "Module.1.Layer.backward.0"}},
        {"level": "mix", "list": ["norm", "norm1", "norm1", "class:linear", "parameters_grad"]},
        {"tensor_list": ["norm", "norm1.LayerNorm.backward"]},
        {"scope": ["Module.0.norm1.LayerNorm.forward.0", "class:LayerNorm"]},
        {"scope": ["Module.1.norm1.LayerNorm.forward.0", "class:LayerNorm"]},
        {"task": "overflow_check", "scope": [None, "class:Layer"]},
    ],
)
def test_nothing_is_said_of_what_selects_something(dump_path: Path, said: list[str], keys: dict[str, Any]) -> None:
    steps(dump_path, count=2, **keys)
    assert said == []


def test_a_step_without_calls_says_nothing_of_what_was_selected(dump_path: Path, said: list[str]) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, list=["x"], scope=["Module.a.B.forward.0"], skip=4))
    debugger.start(nn.ReLU())
    debugger.stop()
    debugger.step()
    assert len(said) == 1 and "nothing was recorded: ReLU has no modules inside" in said[0], "and nothing of the keys"


def test_a_large_step_is_searched_in_seconds(said: list[str], dump_path: Path) -> None:
    config = PrecisionDebugger(write_config(dump_path, list=["layers.7.atention.*.q_porj"] * 20)).config
    calls = {
        f"Cell.layers.{layer}.attention.heads.{head}.{part}_proj.Dense": 1
        for layer in range(100) for head in range(64) for part in "qkvo"
    }  # fmt: skip
    names = NameList(config.list)
    assert not any(names.accepts(f"{base}.forward.0") for base in calls)
    UnusedSettings().warn(config, calls, names, Scope(Range(None, None)), Skip(1), None)
    assert len(said) == 1 and len(said[0]) < 1000
    assert "did you mean Cell.layers.7.attention.heads." in said[0]
