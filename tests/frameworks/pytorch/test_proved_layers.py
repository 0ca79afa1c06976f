"""Standard layers of PyTorch at level L0: what each was made with is found, and that it is right in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from msprobe_ms.accuracy.proof.operation import Workshop
from msprobe_ms.accuracy.proof.prove import prove
from msprobe_ms.accuracy.proof.question import question_of_dump, question_of_dumps
from msprobe_ms.accuracy.proof.verdict import Finding
from msprobe_ms.comparison.run import Options
from msprobe_ms.pytorch import PrecisionDebugger

#: Name → layer, shape of its input (None: indices), and what is told of its settings.
LAYERS: dict[str, tuple[nn.Module, tuple[int, ...] | None, str]] = {
    "layer": (nn.LayerNorm(8, eps=3e-3), (4, 8), "(epsilon 0.003)"),
    "rms": (nn.RMSNorm(8, eps=1e-4), (3, 8), "(epsilon 0.0001)"),
    "group": (nn.GroupNorm(4, 8, eps=1e-4), (2, 8, 5, 5), "(num_groups 4, epsilon 0.0001)"),
    "batch": (nn.BatchNorm2d(8, eps=1e-2), (4, 8, 5, 5), "(epsilon 0.01)"),
    "plane": (nn.Conv2d(8, 6, 3, stride=2, padding=1, groups=2), (2, 8, 9, 9), "stride 2, dilation 1, groups 2"),
    "line": (nn.Conv1d(8, 6, 3, dilation=2, padding=2), (2, 8, 9), "stride 1, dilation 2, groups 1"),
    "linear": (nn.Linear(5, 3), (2, 5), ""),
    "embedding": (nn.Embedding(10, 4), None, ""),
    "softmax": (nn.Softmax(1), (3, 4, 5), "(dim 1)"),
    "logsoftmax": (nn.LogSoftmax(0), (3, 4, 5), "(dim 0)"),
    "leaky": (nn.LeakyReLU(0.07), (3, 5), "(negative_slope 0.07)"),
    "elu": (nn.ELU(0.3), (3, 5), "(alpha 0.3)"),
    "silu": (nn.SiLU(), (3, 5), ""),
    "most": (nn.MaxPool2d(2), (2, 3, 8, 8), "(kernel_size 2, stride 2, padding 0)"),
    "mean": (nn.AvgPool2d(3, stride=2, padding=1), (2, 3, 8, 8), "(kernel_size 3, stride 2, padding 1)"),
    "drop": (nn.Dropout(0.0), (3, 5), ""),
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name, (layer, _, _) in LAYERS.items():
            setattr(self, name, layer)

    def forward(self, given: dict[str, torch.Tensor]) -> torch.Tensor:
        return sum((getattr(self, name)(given[name]).square().sum() for name in LAYERS), torch.zeros(()))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder, net = tmp_path_factory.mktemp("dump"), Net()
    given = {
        name: torch.randint(0, 10, (3, 4)) if shape is None else torch.randn(*shape, requires_grad=True)
        for name, (_, shape, _) in LAYERS.items()
    }
    debugger = PrecisionDebugger(level="L0", task="tensor", dump_path=folder, step=[0])
    debugger.start(net)
    net(given).backward()
    debugger.stop()
    debugger.step()
    return folder


def test_what_each_layer_was_made_with_is_found_and_each_is_right(dump: Path) -> None:
    with Workshop() as workshop:
        for name, (_, _, settings) in LAYERS.items():
            proof = prove(question_of_dump(dump, name), workshop)
            assert proof.finding is Finding.RIGHT, f"{name}: {proof.sentence} {proof.trials}"
            assert settings in proof.sentence


def test_a_gradient_that_was_recorded_otherwise_is_wrong(dump: Path) -> None:
    (file,) = dump.rglob("Module.layer.LayerNorm.backward.0.output.0.pt")
    gradient = torch.load(file)
    torch.save(gradient + 0.01, file)
    try:
        proof = prove(question_of_dump(dump, "layer"))
    finally:
        torch.save(gradient, file)
    assert proof.finding is Finding.OPERATOR
    assert "backward" in proof.trials[0].note or "output.0" in proof.trials[0].note


def test_statistics_of_few_elements_tell_a_setting_whatever_numbers_are_drawn(tmp_path: Path) -> None:
    layers = {"few": (4, 16), "fewer": (3, 8), "more": (8, 32)}
    for side, approximate in (("target", "tanh"), ("golden", "none")):
        torch.manual_seed(2)
        net = nn.ModuleDict({name: nn.GELU(approximate) for name in layers})
        debugger = PrecisionDebugger(level="L0", dump_path=tmp_path / side, step=[0])
        debugger.start(net)
        for name, shape in layers.items():
            net[name](0.4 * torch.randn(*shape))
        debugger.stop()
        debugger.step()
    with Workshop() as workshop:
        for name in layers:
            question = question_of_dumps(tmp_path / "target", tmp_path / "golden", name, Options(align=True))
            proof = prove(question, workshop)
            assert proof.finding is Finding.SETTING, f"{name}: {proof.sentence}"
            assert "had approximate 'tanh'" in proof.sentence
