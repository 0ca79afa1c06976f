"""Console commands for the files of dumps: ``convert``, ``recover`` and ``index``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, FAILED, add_command, add_output, print_lines

_CONVERT_EPILOG = """\
examples:
  msprobe convert dump/step0/rank0/dump_tensor_data/Cell.fc.Dense.forward.0.output.0.npy --to txt
  msprobe convert dump/step0/rank0/dump_tensor_data --to csv -o tables
  msprobe convert kernel.bin --to npy --dtype bfloat16 --shape 2,3

txt  one line a row of the last axis; the first line tells shape and dtype, numpy.loadtxt(file).reshape(shape) reads it
csv  the same rows, nothing else: of (2, 3, 4) six rows of four
Of .bin files the dump.json beside them, or their own name, tells dtype and shape; else --dtype and --shape have to.
bfloat16 and float8 become float32. Links inside a folder that lead out of it are not followed."""

_INDEX_EPILOG = """\
A step is an iteration as the framework counts it: of a script with one compiled graph, one step of training each.
examples:
  msprobe index ./dump              (writes ./dump/step0/rank0/dump.json …)
  msprobe index ./ge_dump -o ./index"""


def add_convert(commands: Any) -> None:
    told = "write tensor files of a dump as npy, txt or csv"
    parser = add_command(commands, "convert", _convert, told, _CONVERT_EPILOG)
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


def _convert(options: argparse.Namespace) -> int:
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


def add_recover(commands: Any) -> None:
    parser = add_command(commands, "recover", _recover, "rebuild the JSON files of a dump whose process was killed")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a dump folder, one of its steps, or a rank of a step")


def _recover(options: argparse.Namespace) -> int:
    from msprobe_ms.dump.kernels.index import recover_kernels
    from msprobe_ms.dump.names import counted_entries
    from msprobe_ms.dump.writing.export import recover
    from msprobe_ms.dump.writing.journal import JOURNAL_NAME

    failed = False
    indexed = list(recover_kernels(options.folder)) if options.folder.is_dir() else []
    has_journals = options.folder.is_dir() and any(options.folder.rglob(JOURNAL_NAME))
    for result in (*indexed, *(recover(options.folder) if has_journals or not indexed else ())):
        failed = failed or bool(result.problem)
        print_lines([f"{result.folder}: {result.problem or f'{counted_entries(result.entries)} recovered'}"])
    return FAILED if failed else DONE


def add_index(commands: Any) -> None:
    parser = add_command(
        commands, "index", _index, "write dump.json for the raw kernel files of compiled graphs", _INDEX_EPILOG
    )
    parser.add_argument(
        "root", type=Path, metavar="DIR", help="a folder with kernel files: a dump, a rank, an iteration"
    )
    add_output(parser, "where the index goes (default: the dump)")


def _index(options: argparse.Namespace) -> int:
    from msprobe_ms.dump.kernels.index import index_root
    from msprobe_ms.dump.names import counted_entries

    failed = False
    for result in index_root(options.root, options.output_path):
        failed = failed or bool(result.problem)
        print_lines([f"{result.folder}: {result.problem or counted_entries(result.entries)}"])
    return FAILED if failed else DONE
