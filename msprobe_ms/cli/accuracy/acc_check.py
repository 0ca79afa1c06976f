"""Console command ``acc_check``, and the names that msprobe gave it: is each recorded API right?"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.accuracy.receiving import add_receiving, check_status, receive
from msprobe_ms.cli.common import add_command, print_verdict, seconds
from msprobe_ms.cli.parser import mistaken
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.accuracy.calls import Calls
    from msprobe_ms.accuracy.config_file import Section
    from msprobe_ms.accuracy.options import Options
    from msprobe_ms.accuracy.selection import Selection

_EPILOG = tr("""\
examples:
  msprobe acc_check -api_info dump/step0/rank0/dump.json -o report
  msprobe multi_acc_check -api_info dump.json -n 4            (four workers)
  msprobe acc_check --listen 0.0.0.0:59208 --tls certificates --ranks 0-7 -o report   (of trainings elsewhere)
  msprobe acc_check -api_info dump.json -csv_path report/accuracy_checking_result_20260101000000.csv   (go on)

Each API call of the dump is run again, alone, forward and backward, and compared with a reference in float64: the same
operation in PyTorch on the CPU, a formula in NumPy, or a reference of your own. For a dump of task tensor, the recorded
tensors are the arguments, the recorded results are judged, and no device is needed. For a dump of task statistics, the
arguments are random data with the recorded statistics, and the call is run here.
An interrupted run continues when the same command is given again.""")

#: Names of the command: of 26.x, and of 1.1.0; those with multi_ have several workers by default.
_NAMES = ("acc_check", "run_ut", "multi_acc_check", "multi_run_ut")
#: Workers of the commands with multi_, as msprobe has them.
_SPLITS = 8


def add_acc_check(commands: Any) -> None:
    for name in _NAMES:
        summary = tr("check each recorded API alone against a more precise reference")
        if name != _NAMES[0]:
            several = name.startswith("multi")
            summary = tr("acc_check with several workers") if several else tr("another name of acc_check")
        parser = add_command(commands, name, _acc_check, summary, _EPILOG)
        add_dump(parser, several=name.startswith("multi"), required=False)
        add_receiving(parser.add_argument_group("calls that trainings send, in place of a dump"))
        parser.add_argument(
            "-csv_path", "--result_csv_path", type=Path, metavar="FILE",
            help="accuracy_checking_result_<time>.csv of a run that was ended: its calls are not checked again",
        )  # fmt: skip
        parser.add_argument("--no-html", action="store_true", help="write no page to look at")


def add_dump(parser: argparse.ArgumentParser, *, several: bool = False, required: bool = True) -> None:
    """Add the options that all commands about the APIs of a dump have; ``required``: a dump must be named."""
    parser.add_argument(
        "-api_info", "--api_info_file", "-api_info_file", type=Path, metavar="FILE", required=required,
        help="the dump.json of a step (level L1 or mix), or the folder that holds it",
    )  # fmt: skip
    parser.add_argument("-o", "--out_path", type=Path, metavar="DIR", help="where tables go (default: here)")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 where an API is wrong")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="with --exit-code: also where an API call could not be checked, or nothing was",
    )
    _add_selection(parser.add_argument_group("which calls"))
    _add_judging(parser.add_argument_group("how they are judged"))
    _add_running(parser.add_argument_group("how they are run"), several=several)


def _add_selection(group: Any) -> None:
    group.add_argument("--backward", action="store_true", help="check gradients where the dump has no backward, too")
    group.add_argument(
        "-f",
        "--filter_api",
        action="store_true",
        help="if several calls differ only in the values of tensors, check only the first of them",
    )
    group.add_argument(
        "--white_list", nargs="+", default=[], metavar="API", help="only these: sub, Mint.sub, Mint.sub.0"
    )
    group.add_argument("--black_list", nargs="+", default=[], metavar="API", help="without these")
    group.add_argument(
        "-config", "--config_path", type=Path, metavar="FILE", help="config.json with a section run_ut or acc_check"
    )


def _add_judging(group: Any) -> None:
    group.add_argument(
        "--precision", choices=("double", "peer", "same"), default="double",
        help="what the reference computes in: float64; one step above the arguments; their own dtype",
    )  # fmt: skip
    group.add_argument("--profile", choices=("own", "latest", "v110"), default="own", help="whose rules and columns")
    group.add_argument("--thresholds", type=Path, metavar="FILE", help="yaml that changes what passes")
    group.add_argument("--references", type=Path, metavar="FILE", help="yaml that names references of your own")
    add_reference_python(group)
    group.add_argument(
        "--self", action="store_true", help="use the same library, in higher precision, as the reference"
    )


def add_reference_python(group: Any) -> None:
    """Add the option that names a Python for references."""
    group.add_argument(
        "--reference-python", metavar="PROGRAM",
        help="the Python that has PyTorch, where this one has MSAdapter in its place (it needs numpy and PyYAML, too)",
    )  # fmt: skip


def _add_running(group: Any, *, several: bool) -> None:
    group.add_argument(
        "-n", "--num_splits", "--workers", type=_count, metavar="N", default=_SPLITS if several else 1,
        help=tr("workers (default {which})", which=_SPLITS if several else 1),
    )  # fmt: skip
    group.add_argument("--scheduler", metavar="ADDRESS", help="check on the Dask cluster there")
    group.add_argument(
        "-d", "--device", type=_device, nargs="+", default=[], metavar="ID", help="devices to distribute workers over"
    )
    group.add_argument("-j", "--jit_compile", action="store_true", help="accepted for compatibility; no effect")
    group.add_argument("--rerun", action="store_true", help="run the APIs of a tensor dump again, on what was recorded")
    group.add_argument("--seed", type=int, default=1234, metavar="N", help="seed of the random data (default 1234)")
    group.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds for one call (default 60)")
    group.add_argument(
        "-save_error_data",
        "--save_error_data",
        action="store_true",
        help="keep tensors of what is wrong, with a script",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise mistaken(tr("{text}; accepted are 1 to 64 workers", text=repr(text)))
    return int(text)


def _device(text: str) -> int:
    if not text.isdecimal() or int(text) > 4095:
        raise mistaken(tr("{text}; accepted are 0 to 4095", text=repr(text)))
    return int(text)


def _acc_check(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from tqdm import tqdm

    from msprobe_ms.accuracy.calls import Calls, read_calls
    from msprobe_ms.accuracy.execution.run import check_calls
    from msprobe_ms.accuracy.summary import summary_lines
    from msprobe_ms.comparison.many.run import cluster

    if len(set(options.device)) != len(options.device):
        raise UsageError(tr("-d {devices}: a device is named twice", devices=" ".join(map(str, options.device))))
    section = section_of(options)
    if options.listen or section.is_online:
        sent = Calls(Path(), {"task": "tensor"})
        return receive(options, section, options_for(options, sent), selection_of(options, section))
    if options.api_info_file is None:
        raise UsageError(
            tr(
                "{command}: give the dump.json with -api_info, or --listen (is_online in the file of "
                "-config) for calls that trainings send",
                command=options.command,
            )
        )
    calls = read_calls(dump_file_of(options.api_info_file))
    wanted, selection = options_for(options, calls), selection_of(options, section)
    with (
        cluster(options.scheduler) if options.scheduler else nullcontext() as pool,
        tqdm(unit="call", disable=None, leave=False) as bar,
    ):

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        checked = check_calls(
            calls, wanted, selection, options.out_path or Path("."), workers=options.num_splits, pool=pool,
            resumed=options.result_csv_path, page=not options.no_html, progress=progress,
        )  # fmt: skip
    print_verdict(summary_lines(calls.path, checked, drawn=not wanted.real_data))
    return check_status(options, checked)


def dump_file_of(path: Path) -> Path:
    """Return the dump.json that a path names: itself, or the one at or below the folder. Raises MsprobeError."""
    from msprobe_ms.dump.reading.locate import find_places

    if path.is_file():
        return path
    places = find_places(path)
    if len(places) > 1:
        named = listed([str(place) for place in places], 4)
        raise UsageError(tr("{path}: holds several dumps, {named}; give the folder of one", path=path, named=named))
    return next(iter(places.values()))


def options_for(options: argparse.Namespace, calls: Calls) -> Options:
    """Return what the command line asks for. Raises UsageError."""
    from msprobe_ms.accuracy.judging.thresholds import load_thresholds
    from msprobe_ms.accuracy.options import Options
    from msprobe_ms.accuracy.precision import Precision

    return Options(
        dump=calls.path.absolute(),
        framework=calls.framework,
        tensor_folder=calls.tensor_folder,
        recorded=calls.has_tensors and not options.rerun,
        real_data=calls.has_tensors,
        precision=Precision(options.precision),
        seed=options.seed,
        timeout=options.timeout,
        references=options.references and options.references.absolute(),
        reference_python=options.reference_python,
        same_library=options.self,
        all_gradients=options.backward,
        save_errors=options.save_error_data,
        devices=tuple(options.device),
        thresholds=load_thresholds(options.thresholds),
        profile=options.profile,
    )


def section_of(options: argparse.Namespace) -> Section:
    """Return what the configuration file says of a pre-check. Raises ConfigError."""
    from msprobe_ms.accuracy.config_file import Section, read_section

    return Section() if options.config_path is None else read_section(options.config_path)


def selection_of(options: argparse.Namespace, section: Section) -> Selection:
    """Return which calls the command line and the configuration file choose."""
    from msprobe_ms.accuracy.selection import Selection

    return Selection(
        white_list=frozenset((*options.white_list, *section.white_list)),
        black_list=frozenset((*options.black_list, *section.black_list)),
        once=options.filter_api,
    )
