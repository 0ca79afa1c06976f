"""Nets written twice, in MindSpore and in PyTorch: healthy pairs are consistent, a planted fault is named first."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from compare_parts import compared
from forked import record_forked

from msprobe_ms.comparison.pairing.coverage import unmatched_modules
from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.comparison.run import Options
from torture.faults.__main__ import record
from torture.faults.jobs import MINDSPORE, PYTORCH, Job

_NETS = ("mlp", "lenet", "resnet", "lstm", "encoder", "vit")
_TASKS = ("statistics", "tensor")
#: Each net in one of the tasks, a small and a large one in both; `make faults` compares all in both.
_WHOLE = [(net, _TASKS[number % 2]) for number, net in enumerate(_NETS)] + [
    ("lenet", "statistics"),
    ("encoder", "tensor"),
]
#: Nets whose functions are dumped too, and without their modules.
_FUNCTIONS = [("lenet", "mix"), ("resnet", "mix"), ("encoder", "mix"), ("resnet", "L1"), ("encoder", "L1")]

#: Net, fault → the entry of the layer it is planted in.
_FAULTS = {
    ("encoder", "eps"): "Cell.layers.1.norm1.LayerNorm.forward.0",
    ("encoder", "gelu"): "Cell.layers.1.act.GELU.forward.0",
    ("encoder", "transposed"): "Cell.layers.1.attention.v.Dense.forward.0",
    ("encoder", "axis"): "Cell.layers.1.attention.Attention.forward.0",
    ("resnet", "scale"): "Cell.blocks.1.ResidualBlock.forward.0",
    ("lenet", "padding"): "Cell.conv2.Conv2d.forward.0",
    ("vit", "position"): "Cell.Vit.forward.0",
}

#: Each fault in one of the tasks.
_PLANTED = [(net, fault, _TASKS[number % 2]) for number, (net, fault) in enumerate(_FAULTS)]

#: At level mix the function inside the module is named, where MindSpore's module calls a public one.
_FAULTS_IN_FUNCTIONS = {
    ("encoder", "gelu"): "Functional.gelu.",
    ("encoder", "axis"): "Functional.softmax.",
}


@dataclass(frozen=True)
class Dumps:
    """Every net and fault, dumped once; PyTorch's nets have other names."""

    root: Path

    def compared(self, out: Path, net: str, fault: str, level: str, task: str, step: int = 0) -> tuple[Any, Any]:
        """The comparison of one pair of dumps under the net's layer mapping, and the summary as it was written."""
        mapping = out / "layer.yaml"
        mapping.write_text(yaml.safe_dump(_layer_mapping(net)), encoding="utf-8")
        options = Options(mappings=load_mappings(None, mapping, None), csv=True, profile="latest")
        target, golden = _target(net, fault, level, task), _golden(net, level, task)
        steps = (job.step(self.root, step) for job in (target, golden))
        outcome = compared(*steps, out / "report", options)
        (summary,) = (out / "report").glob("compare_summary_*.json")
        return outcome.comparison, json.loads(summary.read_text(encoding="utf-8"))


def _target(net: str, fault: str, level: str, task: str) -> Job:
    """Two steps of a healthy net, one of a faulty one."""
    return Job(MINDSPORE, net, fault, level=level, task=task, steps=1 if fault else 2)


def _golden(net: str, level: str, task: str) -> Job:
    return Job(PYTORCH, net, "renamed", level=level, task=task, steps=2)


def _layer_mapping(net: str) -> dict[str, dict[str, str]]:
    """What a user writes: class of the parent → child → its name in PyTorch."""
    from torture.nets.pytorch import NETS
    from torture.nets.pytorch.variants import NAMES

    mapping: dict[str, dict[str, str]] = {}
    for path, module in NETS[net]().named_modules():
        names = {name: NAMES[name] for name in module._modules if name in NAMES}
        mapping.setdefault(type(module).__name__ if path else "TopLayer", {}).update(names)
    return mapping


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    """One process a framework dumps everything."""
    root = tmp_path_factory.mktemp("cross")
    kinds = [(net, "L0", task) for net, task in {*_WHOLE, *((net, task) for net, _, task in _PLANTED)}]
    kinds += [(net, level, "statistics") for net, level in _FUNCTIONS]
    faults = [(net, fault, "L0", task) for net, fault, task in _PLANTED]
    faults += [(net, fault, "mix", "statistics") for net, fault in _FAULTS_IN_FUNCTIONS]
    faults += [(net, "", level, task) for net, level, task in kinds]
    record(root, {*(_target(*fault) for fault in faults), *(_golden(*kind) for kind in kinds)}, record_forked)
    return Dumps(root)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize(
    ("net", "level", "task"),
    [(net, "L0", task) for net, task in _WHOLE] + [(net, level, "statistics") for net, level in _FUNCTIONS],
)
def test_healthy_twins_are_consistent(dumps: Dumps, tmp_path: Path, net: str, level: str, task: str, step: int) -> None:
    comparison, summary = dumps.compared(tmp_path, net, "", level, task, step)
    assert unmatched_modules(comparison.pairs) == ([], []), "a framework's own parts of a layer need none"
    assert [row.reason for row in comparison.rows if row.result == "error"] == []
    assert (summary["verdict"], summary["origins"], summary["mode"]) == ("consistent", [], task)
    if level == "L0":
        assert summary["unmatched_golden"] == 0


@pytest.mark.parametrize(("net", "fault", "task"), _PLANTED)
def test_a_planted_fault_is_the_first_origin(dumps: Dumps, tmp_path: Path, net: str, fault: str, task: str) -> None:
    _, summary = dumps.compared(tmp_path, net, fault, "L0", task)
    assert summary["verdict"] == "divergent"
    assert [origin["target"].rpartition(".")[0].rpartition(".")[0] for origin in summary["origins"]] == [
        _FAULTS[net, fault]
    ]


@pytest.mark.parametrize(("net", "fault"), _FAULTS_IN_FUNCTIONS)
def test_at_level_mix_the_function_is_named(dumps: Dumps, tmp_path: Path, net: str, fault: str) -> None:
    _, summary = dumps.compared(tmp_path, net, fault, "mix", "statistics")
    first = summary["origins"][0]
    assert first["target"].startswith(_FAULTS_IN_FUNCTIONS[net, fault])
    assert any(f"called in {_FAULTS[net, fault]}" in detail for detail in first["details"])


@pytest.mark.parametrize(("net", "level"), _FUNCTIONS)
def test_every_function_finds_its_twin_whatever_it_is_made_of(
    dumps: Dumps, tmp_path: Path, net: str, level: str
) -> None:
    """Dense is matmul and bias_add here and linear there; at level L1 nothing tells in which module."""
    comparison, _ = dumps.compared(tmp_path, net, "", level, "statistics")
    alone = [pair.target or pair.golden for pair in comparison.pairs if not pair.matched]
    # PyTorch counts the batches a norm has seen; MindSpore does not.
    assert {entry.parsed.name for entry in alone if entry and entry.parsed} <= {"add_"}
    assert sum(pair.how == "group" for pair in comparison.pairs) >= 4
