"""Operations whose references are formulae run in this process."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from proof_calls import floats, layer_norm

from msprobe_ms.accuracy.execution.messages import Describe
from msprobe_ms.accuracy.proof.operation import CannotRun, Operation, Parameter, Workshop, described
from msprobe_ms.frameworks.api_calls import Arguments


def test_a_formula_runs_in_double_with_the_attributes_of_its_primitive() -> None:
    made = Operation(Workshop(), "mindspore", "Primitive", "GeLU")
    x = floats(5)
    (y,) = made.in_double(Arguments((x,))).outputs
    assert y.dtype == "float64"
    assert np.allclose(y.values, x.values * 0.5 * (1 + np.tanh(0.7978845608 * (x.values + 0.044715 * x.values**3))))
    with pytest.raises(CannotRun, match="signature known"):
        made.in_double(Arguments((x, x, x)))
    assert made.with_attributes({"axis": 1}).attributes == {"axis": 1}


def test_what_it_takes_is_told_by_its_signature() -> None:
    names = [each.name for each in layer_norm().operation.parameters]
    assert names == ["input", "normalized_shape", "weight", "bias", "eps"]
    assert described(inspect.signature(lambda a, *rest, b=2, **more: None)) == (
        Parameter("a", False), Parameter("b", True, 2),
    )  # fmt: skip


@pytest.mark.processes
def test_a_process_that_does_not_start_is_tried_once(tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho once >> {tried}\necho no torch here >&2\nexit 1\n")
    python.chmod(0o755)
    with Workshop(reference_python=str(python)) as workshop:
        for _ in range(2):
            with pytest.raises(CannotRun, match="no torch here"):
                workshop.ask("reference", "pytorch", Describe("", ""))
    assert tried.read_text().split() == ["once"]
