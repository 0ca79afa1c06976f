"""A training that records as a debugger does, without a framework: ``sparse_recorder.py CONFIG CALLS [WRONG [FADES]]``.

A chain of CALLS calls, each of which takes what the one before gave. Call WRONG is wrong by a thousandth; with FADES
the difference becomes a tenth less in each further call. Before call ``more`` is one that gives what it takes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def leaf(value: float) -> dict[str, Any]:
    figures = {"Max": value, "Min": value / 2, "Mean": value * 0.75, "Norm": value * 2}
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "requires_grad": False, **figures}


def record(config: Path, calls: int, wrong: int, fades: bool, more: int = -1) -> None:
    written = json.loads(config.read_text())
    section = written[written["task"]]
    first, last = section["scope"] or (None, None)
    skip = max(1, section["skip"])
    data: dict[str, Any] = {}
    value, error, is_open = 1.0, 0.0, first is None
    count = 0

    def call(name: str, taken: float, given: float) -> None:
        nonlocal count, is_open
        is_open = is_open or name == first
        if is_open and count % skip == skip - 1:
            data[name] = {"input_args": [leaf(taken)], "input_kwargs": {}, "output": [leaf(given)]}
        is_open = is_open and name != last
        count += 1

    for number in range(calls):
        taken = value + error
        if number == more:
            call("Torch.clone.0.forward", taken, taken)
        value = 1.0 + (number + 1) / 1000
        if number == wrong:
            error = 1e-3
        elif fades:
            error *= 0.9
        call(f"Torch.add.{number}.forward", taken, value + error)
    folder = Path(written["dump_path"], "step0", "rank0")
    folder.mkdir(parents=True)
    envelope = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(envelope))


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[2:]]
    record(Path(sys.argv[1]), given[0], given[1] if len(given) > 1 else -1, len(given) > 2)
