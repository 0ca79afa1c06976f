"""In which part of the training step an error begins."""

from __future__ import annotations

import pytest
from compare_nodes import FAULT, REST, node, only

from msprobe_ms.comparison.model import OriginKind
from msprobe_ms.comparison.origin.stages import stage_of


@pytest.mark.parametrize(
    ("entry", "kind", "stage"),
    [
        ("Cell.a.Dense.forward.0", OriginKind.COMPUTATION, "forward"),
        ("Functional.add.0.forward", OriginKind.PRECISION, "forward"),
        ("Cell.a.Dense.backward.0", OriginKind.COMPUTATION, "backward"),
        ("Cell.a.Dense.parameters_grad.0", OriginKind.COMPUTATION, "backward"),
        ("Cell.a.Dense.parameters_grad.0", OriginKind.MISSING_GRADIENT, "backward"),
        ("Cell.a.Dense.forward.0", OriginKind.PARAMETER, "parameters"),
        ("Cell.a.Dense.forward.0", OriginKind.UPDATE, "update"),
        ("Functional.cross_entropy.0.forward", OriginKind.COMPUTATION, "loss"),
        ("Cell.criterion.SoftmaxCrossEntropyWithLogits.forward.0", OriginKind.COMPUTATION, "loss"),
        ("Module.head.MSELoss.forward.0", OriginKind.OUTSIDE, "loss"),
        ("loss.0.debug", OriginKind.COMPUTATION, "loss"),
        ("hidden.0.debug", OriginKind.COMPUTATION, None),
        ("no entry at all", OriginKind.COMPUTATION, None),
    ],
)
def test_names_and_kinds_tell_the_stage(entry: str, kind: OriginKind, stage: str | None) -> None:
    assert stage_of(entry, kind) == stage


def test_a_tensor_that_differs_before_anything_ran_is_data() -> None:
    first = node("Cell.embed.Conv2d.forward.0", input_0=FAULT, output_0=FAULT)
    assert only(first, node("Cell.a.Dense.forward.0", None, (7.0, 2.0), input_0=FAULT, output_0=FAULT)).stage == "data"


def test_a_tensor_that_code_between_two_calls_makes_is_of_forward() -> None:
    first = node("Cell.embed.Conv2d.forward.0", input_0=REST, output_0=REST)
    found = only(first, node("Cell.a.Dense.forward.0", None, (7.0, 2.0), input_0=FAULT, output_0=FAULT))
    assert (found.target, found.stage) == ("Cell.a.Dense.forward.0.input.0", "forward")


def test_a_gradient_that_arrives_otherwise_is_of_backward() -> None:
    first = node("Cell.a.Dense.forward.0", input_0=REST, output_0=REST)
    assert only(first, node("Cell.a.Dense.backward.0", input_0=FAULT, output_0=FAULT)).stage == "backward"
