"""Console command ``convert``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, FAILED, add_command, add_output, print_lines

_EPILOG = """\
examples:
  msprobe convert dump/step0/rank0/dump_tensor_data/Cell.fc.Dense.forward.0.output.0.npy --to txt
  msprobe convert dump/step0/rank0/dump_tensor_data --to csv -o tables
  msprobe convert kernel.bin --to npy --dtype bfloat16 --shape 2,3

txt  one line a row of the last axis; the first line tells shape and dtype, numpy.loadtxt(file).reshape(shape) reads it
csv  the same rows, nothing else: of (2, 3, 4) six rows of four
Of .bin files the dump.json beside them, or their own name, tells dtype and shape; else --dtype and --shape have to.
bfloat16 and float8 become float32. Links inside a folder that lead out of it are not followed."""


def add_convert(commands: Any) -> None:
    parser = add_command(commands, "convert", _run, "write tensor files of a dump as npy, txt or csv", _EPILOG)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help=".npy, .bin or .pt, or a folder of them")
    parser.add_argument("--to", required=True, choices=("npy", "txt", "csv"), help="what they become")
    add_output(parser, "where to (default: beside each file)")
    parser.add_argument("--dtype", metavar="NAME", help="what .bin files hold: float32, bfloat16, int64, …")
    parser.add_argument("--shape", type=_shape, metavar="N,N,…", help="their shape; () for a single number")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; accepted are 2,3,4 or () for a single number")
    return tuple(map(int, parts))


def _run(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from msprobe_ms.convert import Source, convert

    done = failed = 0
    source = Source(options.dtype, options.shape)
    for result in convert(options.files, options.to, options.output_path, source, overwrite=options.overwrite):
        if result.problem:
            failed += 1
            print_lines([f"msprobe: {result.problem}"], sys.stderr)
        else:
            done += 1
            print_lines([f"{result.written}: {result.told}"])
    if failed or not done:
        print(f"msprobe: {done} converted, {failed} not" if failed else "msprobe: no .npy, .bin or .pt in it",
              file=sys.stderr)  # fmt: skip
    return FAILED if failed or not done else DONE
