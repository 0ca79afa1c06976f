"""Measure what a recording holds: large tensors, a stalled disk, very long steps, very many steps.

python -m benchmarks.bounded                              # everything, half an hour
python -m benchmarks.bounded --cases tensors stall --small   # the same in small, a minute
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

CASES = {
    "tensors": ("bfloat16", "float16", "float32", "int8", "complex64", "transposed", "sliced"),
    "stall": ("standing", "slow"),
    "entries": ("L0", "mix"),
    "steps": ("mindspore", "pytorch"),
}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.bounded", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--small", action="store_true", help="smaller tensors, shorter steps, fewer of them")
    arguments = parser.parse_args()
    failed = 0
    for case in arguments.cases:
        for kind in CASES[case]:
            # Each in a process of its own: what one leaves to Python's allocator is not the next one's.
            command = [sys.executable, "-m", "benchmarks.bounded.measure", case, kind, *(["small"] * arguments.small)]
            finished = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True)
            print(finished.stdout.strip() or f"{case} {kind}: ended with code {finished.returncode}", flush=True)
            failed += finished.returncode != 0
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
