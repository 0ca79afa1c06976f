"""Wall time and peak memory of ``msprobe compare`` on made dumps, and of another command beside it, in one run.

    python benchmarks/compare_time.py                      every case but the million rows
    python benchmarks/compare_time.py --cases million      a million rows
    python benchmarks/compare_time.py --peer /path/to/bin/msprobe --repeat 3

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_APIS = (
    "Functional.matmul", "Tensor.__add__", "Functional.softmax", "Functional.gelu", "Primitive.layer_norm.LayerNorm",
    "Tensor.reshape", "Tensor.transpose", "Mint.add", "MintFunctional.silu", "Functional.dropout",
)  # fmt: skip
#: Relative noise of a healthy pair, and the relative fault from the middle on.
_NOISE, _FAULT = 1e-6, 0.8
#: Elements of a tensor in real data mode.
_ELEMENTS = 1 << 16


@dataclass(frozen=True)
class Case:
    """Two dumps of ``entries`` calls with three tensors each, and how they are compared; ``limits``: s and MB."""

    entries: int
    mode: str
    arguments: tuple[str, ...]
    limits: tuple[float, float]


CASES = {
    "no page": Case(20_000, "statistics", ("--csv", "--no-html"), (2.5, 400)),
    "csv": Case(20_000, "statistics", ("--csv",), (2.5, 400)),
    "xlsx": Case(20_000, "statistics", ("--xlsx",), (10, 400)),
    "fuzzy": Case(20_000, "statistics", ("--csv", "-fm"), (4, 400)),
    "md5": Case(2_000, "md5", ("--csv",), (2.5, 400)),
    "tensor": Case(667, "tensor", ("--csv",), (2.5, 400)),
    "20,000": Case(6_667, "statistics", ("--csv",), (2.5, 400)),
    "200,000": Case(66_667, "statistics", ("--csv",), (25, 600)),
    "million": Case(333_334, "statistics", ("--csv",), (float("inf"), 1200)),
}


def _write_dump(folder: Path, case: Case, *, target: bool) -> None:
    values, noises = np.random.default_rng(0), np.random.default_rng(1)
    rank = folder / "step0" / "rank0"
    tensors = rank / "dump_tensor_data"
    (tensors if case.mode == "tensor" else rank).mkdir(parents=True)
    counts, names = dict.fromkeys(_APIS, 0), []
    head = {"task": "tensor" if case.mode == "tensor" else "statistics", "level": "L1", "framework": "mindspore"}
    with (rank / "dump.json").open("w") as file:
        file.write(json.dumps({**head, "dump_data_dir": str(tensors) if case.mode == "tensor" else None})[:-1])
        file.write(', "data": {')
        for index in range(case.entries):
            api = _APIS[index % len(_APIS)]
            name = f"{api}.{counts[api]}.forward"
            counts[api] += 1
            names.append(name)
            leaves = []
            for place in ("input.0", "input.1", "output.0"):
                late = index > case.entries // 2 or (index == case.entries // 2 and place == "output.0")
                strength = (_FAULT if late else _NOISE) if target else 0.0
                leaves.append(_leaf(tensors, case.mode, name, place, strength, values, noises))
            body = {"input_args": leaves[:2], "input_kwargs": {}, "output": leaves[2:]}
            file.write(f"{', ' if index else ''}\n{json.dumps(name)}: {json.dumps(body, indent=1)}")
        file.write("}}")
    stacks = {}
    for line in range(min(50, len(names))):
        stacks[str(line)] = [names[line::50], [f"File /work/model.py, line {line}, in construct, \n x = self.f(x)"]]
    (rank / "stack.json").write_text(json.dumps(stacks))
    (rank / "construct.json").write_text("{}")


def _leaf(
    tensors: Path, mode: str, name: str, place: str, strength: float, values: Any, noises: Any
) -> dict[str, object]:
    leaf: dict[str, object] = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [256, _ELEMENTS // 256]}
    if mode == "tensor":
        array = values.standard_normal(_ELEMENTS, np.float32)
        array = (array * (1 + strength * noises.standard_normal(_ELEMENTS, np.float32))).astype(np.float32)
        figures = array.max(), array.min(), array.mean(), np.linalg.norm(array)
        leaf["data_name"] = f"{name}.{place}.npy"
        np.save(tensors / str(leaf["data_name"]), array.reshape(256, -1))
    else:
        size = (np.abs(values.standard_normal(4)) + 0.5) * (1 + strength * noises.standard_normal(4))
        figures = size[0] + 3, -size[1] - 3, size[2] / 10, 256 * size[3]
        if mode == "md5":
            leaf["md5"] = f"{zlib.crc32(repr((name, place, strength > _NOISE)).encode()):08x}"
    return {**leaf, **dict(zip(("Max", "Min", "Mean", "Norm"), map(float, figures), strict=True))}


def _dumps(root: Path, case: Case) -> Path:
    folder = root / f"{case.mode}_{case.entries}"
    if not folder.exists():
        for side in ("golden", "target"):
            _write_dump(folder / side, case, target=side == "target")
    return folder


def _run(command: list[str], folder: Path, output: Path) -> tuple[float, float, float, float]:
    """Wall seconds, CPU seconds and peak MB of one comparison, and the MB of the page that it wrote."""
    sides = ("-tp", "target"), ("-gp", "golden")
    files = [part for flag, side in sides for part in (flag, str(folder / side / "step0" / "rank0" / "dump.json"))]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*command, *files, "-o", str(output)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    page = sum(path.stat().st_size for path in output.glob("compare_report_*.html")) / 1e6
    shutil.rmtree(output, ignore_errors=True)
    if status:
        raise SystemExit(f"{' '.join(command)} {' '.join(files)}: ended with {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, page


def _results(root: Path, names: list[str], tools: dict[str, list[str]], repeat: int) -> Iterator[dict[str, object]]:
    for name in names:
        case = CASES[name]
        folder = _dumps(root, case)
        for tool, command in tools.items():
            arguments = [each for each in case.arguments if tool == "msprobe_ms" or each != "--csv"]  # its default
            runs = [_run([*command, *arguments], folder, root / "output") for _ in range(repeat)]
            wall, cpu, peak, page = (statistics.median(each) for each in zip(*runs, strict=True))
            yield {
                "case": name,
                "tool": tool,
                "entries": case.entries,
                "wall": wall,
                "least": min(each[0] for each in runs),
                "cpu": cpu,
                "peak": peak,
                "page": page,
                "limits": case.limits if tool == "msprobe_ms" else None,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[name for name in CASES if name != "million"])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case; figures are medians")
    parser.add_argument("--peer", type=Path, metavar="FILE", help="the command msprobe of mindstudio-probe")
    parser.add_argument("--folder", type=Path, help="where the made dumps stay for another time (default: nowhere)")
    options = parser.parse_args()
    # Set, every start compiles the package anew, and it is the compiler that is timed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tools = {"msprobe_ms": [sys.executable, "-m", "msprobe_ms", "compare"]}
    if options.peer:
        tools["peer"] = [str(options.peer), "compare"]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    titles = f"{'case':8} {'entries':>8} {'tool':10} {'wall s':>7} {'least':>7} {'CPU s':>7} {'peak MB':>8}"
    print(f"{titles} {'page MB':>8}   asked")
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        for result in _results(root, options.cases, tools, options.repeat):
            limits = result["limits"]
            asked = f"{limits[0]:g} s, {limits[1]:g} MB" if isinstance(limits, tuple) else ""
            print(
                f"{result['case']:8} {result['entries']:8} {result['tool']:10} {result['wall']:7.2f} "
                f"{result['least']:7.2f} {result['cpu']:7.2f} {result['peak']:8.0f} "
                f"{result['page']:8.2f}   {asked}",
                flush=True,
            )


if __name__ == "__main__":
    main()
