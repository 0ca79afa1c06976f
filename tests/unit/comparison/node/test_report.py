"""``--node`` of calls that are one call on the other side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.node.report import node_report
from msprobe_ms.comparison.run import Options
from msprobe_ms.support.text import one_a_line
from msprobe_ms.support.translation import speaking


def tensor(values: np.ndarray, framework: str, *, sketched: bool = False) -> dict[str, object]:
    numbers = sketch(values) if sketched else None
    return ({"Sketch": encode(numbers, values.dtype)} if numbers is not None else {}) | {
        "type": f"{framework}.Tensor", "dtype": "Float32" if framework == "mindspore" else "torch.float32",
        "shape": list(values.shape), "Max": float(values.max()), "Min": float(values.min()),
        "Mean": float(values.mean()), "Norm": float(np.linalg.norm(values)), "requires_grad": False,
    }  # fmt: skip


def written(folder: Path, framework: str, calls: dict[str, list[np.ndarray]], *, sketched: bool = False) -> Path:
    """A dump of calls, of which the last value is the output."""
    folder.mkdir()
    data = {
        name: {
            "input_args": [tensor(each, framework, sketched=sketched) for each in inputs],
            "input_kwargs": {},
            "output": [tensor(output, framework, sketched=sketched)],
        }
        for name, (*inputs, output) in calls.items()
    }
    head = {"task": "statistics", "level": "L1", "framework": framework, "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}))
    return folder


def test_the_values_of_a_group_are_told_apart(tmp_path: Path) -> None:
    x, weight, product, bias = np.ones((4, 3), "f4"), np.ones((3, 5), "f4"), np.full((4, 5), 3, "f4"), np.ones(5, "f4")
    first, second = "Primitive.m.MatMul.0.forward", "Primitive.b.BiasAdd.0.forward"
    target = written(tmp_path / "a", "mindspore", {first: [x, weight, product], second: [product, bias, product + 1.5]})
    golden = written(tmp_path / "b", "pytorch", {"Functional.linear.0.forward": [x, weight, bias, product + 1]})
    lines = node_report(target, golden, second, Options()).lines
    values = [line.split()[0] for line in lines if line.startswith(("  Primitive.", "  input.", "  output."))]
    inner = [f"{first}.{place}" for place in ("input.0", "input.1", "output.0")]
    assert values[:6] == [*inner, "input.0", "input.1", "output.0"], lines
    beside = [line.split()[2] for line in lines if "(golden:" in line]
    assert beside == ["input.0)", "input.1)", "input.2)"], lines
    assert "look at that of Primitive.m.MatMul.0.forward.input.1 (transposed, permuted)" in one_a_line(lines)
    assert "  golden: Functional.linear.0.forward (pairing: group: several calls on one side are one call" in lines[1]
    with speaking("zh"):
        assert "（配对方式：成组，即一侧的多个调用对应另一侧的一个调用）" in one_a_line(lines)


@pytest.mark.parametrize("sketched", [True, False])
def test_a_deviation_that_sketches_estimate_is_said_to_be_an_estimate(sketched: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(6).normal(size=(40, 30)).astype("f4")  # whose norm its sketch estimates too large
    name = "Functional.scaled.0.forward"
    sides = [
        written(tmp_path / framework, framework, {name: [x, x * np.float32(factor)]}, sketched=sketched)
        for framework, factor in (("mindspore", 2.83), ("pytorch", 1))
    ]
    lines = node_report(*sides, f"{name}.output.0", Options()).lines
    (told,) = [line for line in lines if line.startswith("  deviation: ")]
    which = "an estimate, mostly right to within 20 %" if sketched else "by the norm, which differs most for the size"
    assert which in told
    assert "times its size" in one_a_line(lines)
