"""Time and peak memory of ``msprobe compare`` on two made dumps. See README.md beside this file."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_APIS = ("Functional.matmul", "Tensor.__add__", "Functional.softmax", "Functional.gelu", "Tensor.reshape")


def _write_dump(folder: Path, entries: int, noise: float) -> Path:
    generator, noises = np.random.default_rng(0), np.random.default_rng(1)
    data, counts = {}, dict.fromkeys(_APIS, 0)
    for index in range(entries):
        api = _APIS[index % len(_APIS)]
        name = f"{api}.{counts[api]}.forward"
        counts[api] += 1
        leaves = []
        for _ in range(3):
            figures = (np.abs(generator.standard_normal(4)) + 0.5) * (1 + noise * noises.standard_normal(4))
            leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [256, 256]}
            leaf.update(Max=figures[0] + 3, Min=-figures[1] - 3, Mean=figures[2] / 10, Norm=256 * figures[3])
            leaves.append(leaf)
        data[name] = {"input_args": leaves[:2], "input_kwargs": {}, "output": leaves[2:]}
    envelope = {"task": "statistics", "level": "L1", "framework": "mindspore", "dump_data_dir": None, "data": data}
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text(json.dumps(envelope, indent=1))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        golden = _write_dump(root / "golden", options.entries, 0.0)
        target = _write_dump(root / "target", options.entries, 1e-6)
        for form in ("--csv", "--xlsx"):
            command = [sys.executable, "-m", "msprobe_ms", "compare", form]
            command += ["-tp", str(target), "-gp", str(golden), "-o", str(root / "out")]
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wall = time.perf_counter() - begin
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(
                f"{options.entries} entries, 3 tensors each, {form[2:]}: {wall:.1f} s, peak {peak:.0f} MB", flush=True
            )


if __name__ == "__main__":
    main()
