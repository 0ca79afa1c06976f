"""Nets written twice, in MindSpore and in PyTorch: healthy pairs are consistent, a planted fault is named first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from compare_parts import compared
from repository import NETS, PYTHONPATH

from msprobe_ms.comparison.pairing.coverage import unmatched_modules
from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.comparison.run import Options

_NETS = ("two_linear", "lenet", "residual", "lstm", "encoder")
_TASKS = ("statistics", "tensor")
#: Nets whose functions are dumped too, and without their modules.
_FUNCTIONS = [("lenet", "mix"), ("residual", "mix"), ("encoder", "mix"), ("residual", "L1"), ("encoder", "L1")]

#: Net, fault → the entry of the layer it is planted in.
_FAULTS = {
    ("encoder", "eps"): "Cell.layers.1.norm1.LayerNorm.forward.0",
    ("encoder", "gelu"): "Cell.layers.1.act.GELU.forward.0",
    ("encoder", "transpose"): "Cell.layers.1.attention.v.Dense.forward.0",
    ("encoder", "axis"): "Cell.layers.1.attention.Attention.forward.0",
    ("residual", "scale"): "Cell.blocks.1.Block.forward.0",
    ("lenet", "pad"): "Cell.conv2.Conv2d.forward.0",
}

#: At level mix the function inside the module is named, where MindSpore's module calls a public one.
_FAULTS_IN_FUNCTIONS = {
    ("encoder", "gelu"): "Functional.gelu.",
    ("encoder", "axis"): "Functional.softmax.",
}


@dataclass(frozen=True)
class Dumps:
    """Every net and fault, dumped once: ``mindspore/NET-FAULT-LEVEL-TASK`` and ``pytorch/NET-LEVEL-TASK``."""

    root: Path

    def compared(self, out: Path, net: str, fault: str, level: str, task: str, step: int = 0) -> tuple[Any, Any]:
        """The comparison of one pair of dumps under the net's layer mapping, and the summary as it was written."""
        mapping = out / "layer.yaml"
        mapping.write_text(yaml.safe_dump(_layer_mappings()[net]), encoding="utf-8")
        options = Options(mappings=load_mappings(None, mapping, None), csv=True, profile="latest")
        target = self.root / "mindspore" / f"{net}-{fault}-{level}-{task}" / f"step{step}"
        golden = self.root / "pytorch" / f"{net}-{level}-{task}" / f"step{step}"
        outcome = compared(target, golden, out / "report", options)
        (summary,) = (out / "report").glob("compare_summary_*.json")
        return outcome.comparison, json.loads(summary.read_text(encoding="utf-8"))


def _layer_mappings() -> dict[str, dict[str, dict[str, str]]]:
    from cross.pytorch_nets import LAYER_MAPPINGS

    return LAYER_MAPPINGS


def _run(script: str, root: Path, jobs: list[str]) -> None:
    environment = dict(os.environ, PYTHONPATH=PYTHONPATH)
    done = subprocess.run(
        [sys.executable, str(NETS / "cross" / script), str(root), *jobs],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    """One process a framework dumps everything; two steps of the healthy nets, one of the faulty."""
    root = tmp_path_factory.mktemp("cross")
    kinds = [(net, "L0", task) for net in _NETS for task in _TASKS]
    kinds += [(net, level, "statistics") for net, level in _FUNCTIONS]
    faults = [(net, fault, "L0", task) for net, fault in _FAULTS for task in _TASKS]
    faults += [(net, fault, "mix", "statistics") for net, fault in _FAULTS_IN_FUNCTIONS]
    _run("pytorch_nets.py", root, [f"{net}:{level}:{task}:2" for net, level, task in kinds])
    jobs = [f"{net}::{level}:{task}:2" for net, level, task in kinds]
    _run("mindspore_nets.py", root, jobs + [":".join((*fault, "1")) for fault in faults])
    return Dumps(root)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize(
    ("net", "level", "task"),
    [(net, "L0", task) for net in _NETS for task in _TASKS] + [(net, level, "statistics") for net, level in _FUNCTIONS],
)
def test_healthy_twins_are_consistent(dumps: Dumps, tmp_path: Path, net: str, level: str, task: str, step: int) -> None:
    comparison, summary = dumps.compared(tmp_path, net, "", level, task, step)
    assert unmatched_modules(comparison.pairs) == ([], []), "a framework's own parts of a layer need none"
    assert [row.reason for row in comparison.rows if row.result == "error"] == []
    assert (summary["verdict"], summary["origins"], summary["mode"]) == ("consistent", [], task)
    if level == "L0":
        assert summary["unmatched_golden"] == 0


@pytest.mark.parametrize("task", _TASKS)
@pytest.mark.parametrize(("net", "fault"), _FAULTS)
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
    assert f"called in {_FAULTS[net, fault]}" in first["reason"]


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
