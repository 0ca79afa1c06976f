"""What the zoo proves of a pair without the tool: that both sides compute the same up to rounding."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from zoo.alone import alone
from zoo.rounding import GRADIENT, LOSS, PARAMETER, Errors, beyond_rounding

ROOT = Path(__file__).parents[2]
#: A well conditioned array: PyTorch is off by four epsilons of float32.
_FINE = Errors(0, GRADIENT, "dense.weight", norm=1.0, golden=5e-7, target=6e-7)
_state: list[str] = []


@pytest.mark.parametrize(
    "other",
    [
        replace(_FINE, target=1e-5),  # a kernel that approximates
        replace(_FINE, golden=1e-3, target=1e-2),  # badly conditioned, as PyTorch itself shows
        replace(_FINE, moved=1e-3, target=3e-3),  # a value at the bend of a ReLU, on either side by rounding
        Errors(0, GRADIENT, "dense.bias", norm=1e-17, golden=2e-10, target=4e-10),  # noise, of a bias before a norm
        Errors(0, LOSS, "", norm=2.0, golden=0.0, target=5e-7),
        Errors(1, PARAMETER, "dense.weight", norm=1.0, golden=3e-8, target=9e-8),
    ],
)
def test_rounding_is_what_pytorch_suffers_too(other: Errors) -> None:
    assert beyond_rounding([_FINE, other]) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(_FINE, target=3e-4),
        Errors(0, GRADIENT, "query.weight", norm=1e-8, golden=1e-14, target=5e-4),  # one that ought to be almost 0
        Errors(0, GRADIENT, "frozen.weight", norm=0.1, golden=1e-8, target=0.1),  # does not train
        Errors(0, LOSS, "", norm=2.0, golden=1e-7, target=1e-3),
        Errors(0, PARAMETER, "dense.weight", norm=1.0, golden=3e-8, target=1e-3),
        Errors(1, GRADIENT, "dense.weight", norm=1.0, golden=5e-7, target=float("nan")),
    ],
)
def test_a_defect_stands_out_of_it(other: Errors) -> None:
    assert [each for _, each in beyond_rounding([_FINE, other])] == [other]


def test_a_call_alone_leaves_nothing_behind() -> None:
    assert alone(_remember, "one") == ["one"]
    assert alone(_remember, "other") == ["other"]
    with pytest.raises(ValueError, match="told"):
        alone(_fail)


def _remember(what: str) -> list[str]:
    _state.append(what)
    return _state


def _fail() -> None:
    raise ValueError("told")


#: Pairs of a dense layer and a norm, trained by Adam; the target of one has another epsilon.
_PAIRS = """
import sys
from pathlib import Path
from types import ModuleType
import mindspore, torch._dynamo  # once, before processes are forked: the first optimizer imports it
import numpy as np
from zoo.pair import Pair
from zoo.proof import prove

class Small(Pair):
    optimizer = "adam"
    learning_rate = 1e-3
    epsilon = 1e-5
    names = (("^0$", "0"),)
    def golden(self):
        import torch
        return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    def target(self):
        from mindspore import nn
        return nn.SequentialCell(nn.Dense(6, 8), nn.LayerNorm((8,), epsilon=self.epsilon), nn.Dense(8, 3))
    def batch(self, generator):
        rows = generator.standard_normal((4, 6)).astype(np.float32)
        return {"rows": rows, "labels": generator.integers(0, 3, 4)}
    def golden_loss(self, net, batch, cross_entropy):
        return cross_entropy(net(batch["rows"]), batch["labels"])

class Other(Small):
    epsilon = 1e-2

for kind in (Small, Other):
    module = sys.modules[f"zoo.pairs.{kind.__name__}"] = ModuleType(kind.__name__)
    module.PAIR = kind()
    try:
        print(kind.__name__, len(prove(kind.__name__, Path(sys.argv[1]))))
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_both_steps_of_a_pair_are_held_against_float64(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PAIRS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    healthy, other = done.stdout.splitlines()[-2:]
    # In two steps a loss and six gradients, and after the first six parameters.
    assert healthy == "Small 20", done.stdout + done.stderr
    assert other.startswith("Disagree Other: ")
