"""docs/references.md lists the references that there are, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from reference_calls import arguments, normal, plain
from repository import ROOT

from msprobe_ms.accuracy.references import mindspore_operators, user_references
from msprobe_ms.accuracy.references.table import fused_references
from msprobe_ms.arrays.typed import TypedArray

PAGE = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")


def test_the_table_has_every_operator() -> None:
    rows = [
        line.split(" | ") for line in PAGE.partition("## What the formulae")[0].splitlines() if line.startswith("| ")
    ]
    for column, apis in ((1, "mindspore"), (2, "pytorch")):
        told = {name for row in rows for name in re.findall(r"`(\w+)`", row[column])}
        found = fused_references(apis)
        refused = {name for (_, name), each in found.items() if each.formula is mindspore_operators.not_known}
        assert told == {name for _, name in found} - refused, apis
        assert all(f"`{name}`" in PAGE for name in refused)


def test_the_example_is_a_reference(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "references.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "my_operators.py").write_text(code, encoding="utf-8")
    found = user_references(tmp_path / "references.yaml")["", "npu_scaled_tanh"]
    x, g = normal(2, 3), normal(2, 3, seed=1)
    outcome = found.run(arguments(x, 2.0), [TypedArray("float64", g)])
    np.testing.assert_array_equal(plain(outcome.outputs)[0], 2 * np.tanh(x))
    np.testing.assert_allclose(plain(outcome.gradients)[0], g * 2 / np.cosh(x) ** 2, rtol=1e-12)
