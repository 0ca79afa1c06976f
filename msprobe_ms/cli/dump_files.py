"""Console commands for the files of dumps: ``convert``, ``recover`` and ``index``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.common import DONE, FAILED, add_command, add_output, print_lines
from msprobe_ms.cli.parser import mistaken
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

if TYPE_CHECKING:
    from msprobe_ms.convert import Converted

#: Kinds of files that the tool whose command this is writes, and txt.
_TYPES = ("npy", "msnpy", "bin", "txt", "pt")

_CONVERT_EPILOG = tr("""\
examples:
  msprobe convert dump/step0/rank0/dump_tensor_data/Cell.fc.Dense.forward.0.output.0.npy --to txt
  msprobe convert dump/step0/rank0/dump_tensor_data --to csv -o tables
  msprobe convert kernel.bin --to npy --dtype bfloat16 --shape 2,3

txt  one line a row of the last axis; the first line tells shape and dtype, numpy.loadtxt(file).reshape(shape) reads it
csv  the same rows, nothing else: of (2, 3, 4) six rows of four
Of .bin files the dump.json beside them, or their own name, tells dtype and shape; else --dtype and --shape have to.
bfloat16 and float8 become float32. Links inside a folder that lead out of it are not followed.

  msprobe convert -d Conv2D.conv1.3.2.1700000000000000 -out npy -f NCHW

Dump files of Ascend's devices (-d) hold several tensors, each becomes a file; -o then is the index of an output.""")

_INDEX_EPILOG = tr("""\
A step is an iteration as the framework counts it: of a script with one compiled graph, one step of training each.
examples:
  msprobe index ./dump              (writes ./dump/step0/rank0/dump.json …)
  msprobe index ./ge_dump -o ./index""")


def add_convert(commands: Any) -> None:
    told = tr("write tensor files of a dump as npy, txt or csv")
    parser = add_command(commands, "convert", _convert, told, _CONVERT_EPILOG)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help=".npy, .bin or .pt, or a folder of them")
    parser.add_argument("--to", choices=("npy", "txt", "csv"), help="what they become")
    add_output(parser, tr("where to (default: beside each file); with -d the index of the output to convert"))
    parser.add_argument("--dtype", metavar="NAME", help="what .bin files hold: float32, bfloat16, int64, …")
    parser.add_argument("-s", "--shape", type=_shape, metavar="N,N,…", help="their shape; () for a single number")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    _add_device_dump(parser)
    parser.set_defaults(usage_error=parser.error)


def _add_device_dump(parser: argparse.ArgumentParser) -> None:
    device = parser.add_argument_group("dump files of Ascend's devices, as msaccucmp.py takes them")
    device.add_argument(
        "-d", "--dump_file", metavar="FILE,…", help="files after commas, or a folder, not those below it"
    )
    device.add_argument("-out", "--output", "--out", type=Path, metavar="DIR", help="where to (default: here)")
    device.add_argument("-f", "--format", metavar="LAYOUT", help="what their tensors become: NCHW, NHWC, ND, …")
    device.add_argument(
        "--output_tensor", type=Path, dest="output_path", metavar="INDEX", help="the same as -o with -d"
    )
    device.add_argument("-i", "--input_tensor", metavar="INDEX", help="the input to convert; not with -o")
    device.add_argument("-v", "--version", choices=("1", "2"), default="2", help="1 is read as 2, the only form")
    device.add_argument("-t", "--type", choices=_TYPES, default="npy", help="what they become (default npy)")
    device.add_argument("-c", "--custom_script_path", help=argparse.SUPPRESS)


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.strip("()[] ").split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise mistaken(tr("{text} is no shape; accepted are 2,3,4 or () for a single number", text=repr(text)))
    return tuple(map(int, parts))


def _convert(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from msprobe_ms.convert import Source, convert

    if options.dump_file is not None:
        return _convert_device_dumps(options)
    missing = [name for name, given in (("FILE", options.files), ("--to", options.to)) if not given]
    if missing:
        options.usage_error(tr("the following arguments are required: {missing}", missing=tr_list(missing)))
    source = Source(options.dtype, options.shape)
    folder = options.output_path or options.output
    results = convert(options.files, options.to, folder, source, overwrite=options.overwrite)
    return _print_converted(results, tr("no .npy, .bin or .pt in it"))


def _convert_device_dumps(options: argparse.Namespace) -> int:
    from msprobe_ms.convert_device_dump import Wanted, convert_device_dumps

    output, given = options.output_path, options.input_tensor
    if options.files or options.to or options.dtype:
        raise UsageError(tr("convert: -d stands alone, without FILE, --to and --dtype; -t and -f say what is written"))
    if output is not None and given is not None:
        raise UsageError(tr("convert: -o and -i exclude each other"))
    if options.type == "pt":
        raise UsageError(
            tr("convert: -t pt is not written; torch.from_numpy(numpy.load(file)) reads what -t npy writes")
        )
    if options.custom_script_path:
        raise UsageError(tr("convert: -c runs code from a folder, which is refused; convert what -t npy writes"))
    if options.shape is not None and not options.format:
        logger.warning(tr("-s is the shape of what -f writes; without -f it says nothing"))
    if options.version == "1":
        logger.warning(tr("-v 1 is read as 2"))
    layout = options.format and options.format.upper()
    chosen = _index_of("-o", output), _index_of("-i", given)
    wanted = Wanted(layout, options.shape, *chosen, options.type, options.overwrite)
    paths = [Path(name) for name in options.dump_file.split(",") if name]
    return _print_converted(convert_device_dumps(paths, options.output or Path(), wanted), tr("no dump file in it"))


def _index_of(flag: str, text: object) -> int | None:
    if text is not None and not (str(text).isdecimal() and len(str(text)) < 10):
        raise UsageError(
            tr(
                "convert: {flag} {text} is no index; with -d, -out is the folder and {flag} a number from 0",
                flag=flag,
                text=text,
            )
        )
    return None if text is None else int(str(text))


def _print_converted(results: Iterable[Converted], none: str) -> int:
    done = failed = 0
    for result in results:
        if result.problem:
            failed += 1
            print_lines([tr("msprobe: {problem}", problem=result.problem)], sys.stderr)
        else:
            done += 1
            print_lines([tr("{written}: {told}", written=result.written, told=result.told)])
    if failed or not done:
        told = tr("{done} converted, {failed} not", done=done, failed=failed) if failed else none
        print_lines(["msprobe: " + told], sys.stderr)
    return FAILED if failed or not done else DONE


def add_recover(commands: Any) -> None:
    parser = add_command(commands, "recover", _recover, tr("rebuild the JSON files of a dump whose process was killed"))
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
        print_lines(
            [
                tr(
                    "{folder}: {problem}",
                    folder=result.folder,
                    problem=result.problem or tr("{entries} recovered", entries=counted_entries(result.entries)),
                )
            ]
        )
    return FAILED if failed else DONE


def add_index(commands: Any) -> None:
    parser = add_command(
        commands, "index", _index, tr("write dump.json for the raw kernel files of compiled graphs"), _INDEX_EPILOG
    )
    parser.add_argument(
        "root", type=Path, metavar="DIR", help="a folder with kernel files: a dump, a rank, an iteration"
    )
    add_output(parser, tr("where the index goes (default: the dump)"))


def _index(options: argparse.Namespace) -> int:
    from msprobe_ms.dump.kernels.index import index_root
    from msprobe_ms.dump.names import counted_entries

    failed = False
    for result in index_root(options.root, options.output_path):
        failed = failed or bool(result.problem)
        print_lines(
            [tr("{folder}: {problem}", folder=result.folder, problem=result.problem or counted_entries(result.entries))]
        )
    return FAILED if failed else DONE
