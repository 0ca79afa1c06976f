"""A new metric is one entry of ``METRICS``: every table shows it (CONTRIBUTING.md, "A metric of tensors").

The package is copied, the entry added to the copy, and the copy compares two dumps and two checkpoints.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import msprobe_ms

CALL = "Functional.relu.0.forward"
ENTRY = '    Metric("mean_square_error", "MeanSquareErr", lambda sums: float(sums.error / sums.size)'
ENTRIES = {"msprobe": f'{ENTRY}, (), "27"),\n', "own": f"{ENTRY}),\n"}
SCRIPT = """
import sys
from msprobe_ms.cli import main
from msprobe_ms.comparison.kernels.table import Table
target, golden, output, *weights = sys.argv[1:]
for profile in ("own", "latest", "v110"):
    main(["compare", "-tp", target, "-gp", golden, "-o", f"{output}/{profile}", "--csv", "--profile", profile])
main(["compare_weights", *weights, "-o", f"{output}/weights", "--csv"])
print([metric.title for metric in Table(None, None, None, "latest").metrics])
"""


@pytest.fixture(params=["msprobe", "own"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write_dump(folder: Path, array: np.ndarray) -> None:
    """A dump of one call with one result, as msprobe 26 has it."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    name = f"{CALL}.output.0.npy"
    np.save(folder / "dump_tensor_data" / name, array)
    statistics = {"Max": array.max(), "Min": array.min(), "Mean": array.mean(), "Norm": np.linalg.norm(array)}
    leaf = {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": list(array.shape),
        **{key: float(value) for key, value in statistics.items()},
        "data_name": name,
    }
    dump = {"task": "tensor", "level": "L1", "framework": "mindspore", "data": {CALL: {"output": [leaf]}}}
    (folder / "dump.json").write_text(json.dumps(dump), encoding="utf-8")


def test_a_new_metric_is_one_entry(tmp_path: Path, kind: str) -> None:
    package = tmp_path / "packages" / "msprobe_ms"
    shutil.copytree(Path(msprobe_ms.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    metrics = package / "arrays" / "metrics.py"
    text = metrics.read_text(encoding="utf-8")
    marker = "METRICS = (\n"
    assert text.count(f"\n{marker}") == 1
    end = text.index("\n)\n", text.index(f"\n{marker}")) + 1
    metrics.write_text(text[:end] + ENTRIES[kind] + text[end:], encoding="utf-8")

    values = {"target": np.array([1.0, 2.0, 4.0], np.float32), "golden": np.array([1.0, 2.0, 3.0], np.float32)}
    for side, array in values.items():
        write_dump(tmp_path / side, array)
        np.savez(tmp_path / f"{side}.npz", weight=array)
    command = [sys.executable, "-c", SCRIPT, *(str(tmp_path / name) for name in ("target", "golden", "out"))]
    command += [str(tmp_path / "target.npz"), str(tmp_path / "golden.npz")]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    expected = {"own": True, "latest": kind == "msprobe", "v110": False, "weights": kind == "msprobe"}
    for folder, shown in expected.items():
        (table,) = (tmp_path / "out" / folder).glob("compare_*.csv")
        with open(table, newline="", encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
        assert ("MeanSquareErr" in row) == shown, folder
        if shown:
            assert float(row["MeanSquareErr"]) == pytest.approx(1 / 3)
    assert ("MeanSquareErr" in done.stdout) == (kind == "msprobe")
