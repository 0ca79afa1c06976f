"""Single APIs of the ``torch`` that stands for MSAdapter, in a process of its own."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from forked import run_forked
from repository import ROOT

pytestmark = pytest.mark.skipif(
    find_spec("mindtorch") is None, reason="mindnlp is not installed: pip install --no-deps mindnlp==0.5.1"
)

SCRIPT = """
import json
import numpy as np
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks import runner
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument

of_msadapter = runner("mindtorch")
x = TypedArray("float32", np.arange(6, dtype=np.float32).reshape(2, 3) / 7)
one = TypedArray("float32", np.ones((), np.float32))

def run(name, *positional, gradients=None):
    function = of_msadapter.find(*name.split("."))
    try:
        outcome = of_msadapter.run(function, Arguments(positional), gradients)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    arrays = outcome.outputs + outcome.gradients
    return [None if each is None else [each.dtype, each.values.tolist()] for each in arrays]

print(json.dumps({
    "version": of_msadapter.version,
    "relu": run("Torch.relu", x, gradients=[x]),
    "add_": run("Tensor.add_", x, x),
    "to": run("Tensor.to", x, DtypeArgument("float16")),
    "mse_loss": run("Functional.mse_loss", x, TypedArray("float32", x.values * 2), gradients=[one]),
    "l1_loss": run("Functional.l1_loss", x, x, gradients=[one]),
    "layer_norm": run("Functional.layer_norm", x, (3,), gradients=[x]),
    "norm": run("Torch.norm", x),
    "collective": of_msadapter.find("Distributed", "all_reduce"),
}))
"""


def test_apis_and_the_defects_that_are_known_of_them(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests" / "make" / "on_mindspore"), str(ROOT)])
    done = run_forked("-c", SCRIPT, framework="mindspore", cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["version"].startswith("mindtorch ") and " on mindspore " in found["version"]
    x = found["relu"][0][1]
    assert found["relu"] == [["float32", x], ["float32", x]]
    assert found["add_"] == [["float32", [[2 * each for each in row] for row in x]]]
    assert found["to"][0][0] == "float16"
    value, *gradients = found["mse_loss"]
    assert value[1] > 0 and gradients == [["float32", [[0.0] * 3] * 2]] * 2
    assert found["l1_loss"].startswith("TypeError") and found["norm"].startswith("TypeError")
    assert len(found["layer_norm"]) == 2  # what failed before it left no graph behind
    assert found["collective"] is None
