"""Level L2 in dynamic graphs: kernels inside of compiled functions, forward and backward."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import run_forked
from processes import environment
from recording import Step, leaves, read_step

SCRIPT = Path(__file__).with_name("compiled_steps.py")


def run(folder: Path, scenario: str, keys: Any = None, **variables: str) -> tuple[Any, str]:
    """What a scenario printed, and its log."""
    folder.mkdir(exist_ok=True)
    arguments = scenario, folder, json.dumps(keys)
    ended = run_forked(SCRIPT, *arguments, framework="mindspore", env={**environment(), **variables})
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1]), ended.stderr


@pytest.fixture(scope="module")
def jitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, str]:
    """The folder of a training whose second step is recorded, its weights, its log."""
    folder = tmp_path_factory.mktemp("jitted")
    return folder, *run(folder, "jitted", {"task": "tensor", "step": [1]})


@pytest.fixture(scope="module")
def step(jitted: tuple[Path, Any, str]) -> Step:
    return read_step(jitted[0] / "dump", 1)


def kernels(step: Step, operator: str, direction: str = "forward") -> list[str]:
    return [name for name in step.data if name.startswith(f"Kernel.{operator}.") and name.endswith(f".{direction}")]


def test_the_training_is_that_without(jitted: tuple[Path, Any, str], tmp_path: Path) -> None:
    folder, weights, log = jitted
    assert weights == run(tmp_path / "bare", "jitted")[0]
    assert [path.name for path in (folder / "dump").iterdir()] == ["step1"], "raw files, or a configuration, stay"
    assert "no entries of its own" not in log and "not recorded" not in log


def test_kernels_stand_where_they_ran(step: Step) -> None:
    forward = [name for name in step.data if name.endswith(".forward") and "SGD" not in name]
    operators = [name.split(".")[1] for name in forward]
    inner = ["MatMul", "BiasAdd", "LayerNorm", "Tanh", "Inner"]
    assert operators[: operators.index("squares") + 1] == [
        "MatMul", "BiasAdd", *inner, *inner, "MatMul", "BiasAdd", "Mul", "ReduceSum", "squares"
    ]  # fmt: skip
    order = list(step.data)
    backward = [order.index(name) for name in kernels(step, "LayerNormGrad", "backward")]
    assert len(backward) == 2
    assert order.index("Jit.Inner.1.backward") < backward[0] < order.index("Jit.Inner.0.backward") < backward[1]
    assert len(kernels(step, "SGD")) == 8


def test_they_are_those_of_the_same_code_without_compiling(step: Step, tmp_path: Path) -> None:
    run(tmp_path, "jitted", {"task": "tensor", "step": [1]}, MS_JIT="0")
    plain = read_step(tmp_path / "dump", 1)
    for operator in ("MatMul", "BiasAdd", "LayerNorm", "Tanh"):
        names = kernels(plain, operator)
        assert names and kernels(step, operator) == names
        for name in names:
            assert step.construct[name] == plain.construct[name]
            mine, theirs = (each.array(each.data[name]["output"][0]) for each in (step, plain))
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_numbers_pass_from_one_to_the_next(step: Step) -> None:
    """From the dynamic part into the graph, through it and back."""

    def array(entry: str, field: str, place: int = 0) -> np.ndarray:
        return step.array(step.data[entry][field][place])

    assert np.array_equal(array("Kernel.BiasAdd.0.forward", "output"), array("Kernel.MatMul.1.forward", "input_args"))
    assert np.array_equal(array("Kernel.Tanh.0.forward", "output"), array("Jit.Inner.0.forward", "output"))
    assert np.array_equal(array("Jit.Inner.1.backward", "input"), array("Kernel.TanhGrad.0.backward", "input", 1))
    for _, leaf in leaves(step.data):
        values = step.array(leaf).astype(np.float64)
        assert leaf["Max"] == pytest.approx(values.max(), rel=1e-6)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"list": ["LayerNorm"]}, {"LayerNorm", "LayerNormGrad"}),
        ({"list": ["Jit.squares"], "data_mode": ["forward"]}, {"Mul", "ReduceSum", "squares"}),
        ({"scope": ["Kernel.LayerNorm.0.forward", "Kernel.Tanh.0.forward"]}, {"LayerNorm", "Tanh"}),
        ({"list": ["Tanh"], "task": "structure"}, {"Tanh", "TanhGrad"}),
    ],
)
def test_selection(tmp_path: Path, keys: dict[str, Any], expected: set[str]) -> None:
    run(tmp_path, "jitted", {"step": [0], **keys})
    assert {name.split(".")[1] for name in read_step(tmp_path / "dump", 0).data} == expected


def test_a_second_debugger_of_the_process(tmp_path: Path) -> None:
    run(tmp_path, "jitted_twice", {"task": "tensor"})
    first, second = (read_step(tmp_path / name / "dump", 0) for name in ("moved", "b"))
    assert list(first.data) == list(second.data) and kernels(first, "Tanh")
    assert [path.name for path in (tmp_path / "b" / "dump").iterdir()] == ["step0"]


@pytest.mark.parametrize(
    ("late", "why"),
    [
        (True, "none came: MindSpore reads the configuration of its kernel dump once a process"),
        (False, "MINDSPORE_DUMP_CONFIG is set, and MindSpore dumps what that file says"),
    ],
)
def test_where_none_can_be_had_it_is_said_once(tmp_path: Path, late: bool, why: str) -> None:
    settings = {"dump_mode": 0, "path": str(tmp_path / "own"), "net_name": "Own", "iteration": "all"}
    settings |= {"saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0]}
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"common_dump_settings": settings, "e2e_dump_settings": {"enable": True}}))
    variables = {} if late else {"MINDSPORE_DUMP_CONFIG": str(own)}
    _, log = run(tmp_path, "jitted", {"step": [0, 1], "late": late}, **variables)
    assert log.count("kernels inside of compiled functions are not recorded") == 1 and why in log
    step = read_step(tmp_path / "dump", 0, troubles=True)
    assert "Jit.Inner.1.backward" in step.data and not kernels(step, "Tanh")
    assert (tmp_path / "own").exists() != late
