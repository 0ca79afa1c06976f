"""References of users: found, called, preferred, and every mistake told with its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference_calls import arguments, normal, plain

from msprobe_ms.accuracy.references import NotJudged, NotReproducible, find_reference, user_references
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.support.errors import UsageError

FUNCTIONS = """
import numpy as np

def forward(x, factor, *, bias=0.0):
    assert x.dtype == np.float64
    return x * factor + bias, factor

def backward(gradients, x, factor, *, bias=0.0):
    of_y, of_factor = gradients
    assert of_factor is None
    return [of_y * factor, of_y.sum()]

def alone(x):
    return x + 1

def failing(x):
    raise ValueError("not today")
"""
YAML = """
operators:
  NPU.npu_scale: {forward: "functions.py:forward", backward: "functions.py:backward", description: scales}
  npu_next: {forward: "functions.py:alone"}
  npu_failing: {forward: "functions.py:failing"}
  npu_rms_norm: {forward: "numpy:tanh"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "references.yaml").write_text(YAML)
    return tmp_path / "references.yaml"


def test_forward_and_backward_are_called_with_the_arguments(file: Path) -> None:
    found = user_references(file)["NPU", "npu_scale"]
    x, g = normal(2, 3), normal(2, 3, seed=1)
    call = arguments(x.astype(np.float32), np.array(2.0), bias=0.5)
    assert found.description == "scales"
    np.testing.assert_allclose(plain(found.run(call).outputs)[0], 2 * x + 0.5, rtol=1e-6)
    of_x, of_factor = found.run(call, [TypedArray("float64", g), None]).gradients
    np.testing.assert_array_equal(of_x.values, 2 * g)
    assert of_factor.values == g.sum()


def test_the_user_s_comes_before_the_built_in_one(file: Path) -> None:
    users = user_references(file)
    assert find_reference("pytorch", "NPU", "npu_rms_norm", users) is users["", "npu_rms_norm"]
    assert find_reference("mindspore", "Functional", "npu_next", users) is users["", "npu_next"]
    assert find_reference("pytorch", "Torch", "npu_scale", users) is None
    built_in = find_reference("pytorch", "NPU", "npu_swiglu", users)
    assert built_in is not None and built_in.name == "npu_swiglu"


def test_without_backward_gradients_are_not_judged(file: Path) -> None:
    outcome = user_references(file)["", "npu_next"].run(arguments(normal(2)), [TypedArray("float64", normal(2))])
    assert outcome.gradients == (NotJudged("the reference has no backward"),)


def test_a_function_that_fails_leaves_the_call_out(file: Path) -> None:
    with pytest.raises(NotReproducible, match="reference of npu_failing: ValueError: not today"):
        user_references(file)["", "npu_failing"].run(arguments(normal(2)))
    users = user_references(file)
    with pytest.raises(NotReproducible, match="returned 2 gradients, 1 are needed"):
        users["NPU", "npu_scale"].run(arguments(normal(2), 3.0), [TypedArray("float64", normal(2)), None])


@pytest.mark.parametrize(("text", "reason"), [
    ("operators: [1]", "expected operators"), ("{}", "expected operators"), ("operators: {a: {}}", "operators.a"),
    ("operators: {a: {forward: x, more: y}}", "operators.a"),
    ("operators: {a: {forward: functions.py}}", "MODULE:FUNCTION"),
    ("operators: {a: {forward: 'functions.py:gone'}}", "there is no function gone"),
    ("operators: {a: {forward: 'absent.py:f'}}", "FileNotFoundError"), ("a: [", "not yaml"),
    ("operators: {a: {forward: 'no_such_module_here:f'}}", "ModuleNotFoundError"),
])  # fmt: skip
def test_mistakes_are_told_with_their_place(file: Path, text: str, reason: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError, match=reason) as told:
        user_references(file)
    assert str(file) in str(told.value)


def test_installed_packages_give_references(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = file.parent / "some_operators-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: some-operators\nVersion: 1.0\n")
    points = installed / "entry_points.txt"
    points.write_text("[msprobe_ms.references]\nNPU.npu_next = numpy:tanh\nnpu_next = numpy:sin\n")
    monkeypatch.syspath_prepend(file.parent)
    users = user_references(file)
    assert users["NPU", "npu_next"].forward is np.tanh
    assert users["", "npu_next"].forward is not np.sin, "the file comes first"
    points.write_text("[msprobe_ms.references]\nnpu_gone = numpy:gone\n")
    with pytest.raises(UsageError, match="npu_gone"):
        user_references()
