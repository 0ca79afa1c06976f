"""Console command ``llm``: the commands of msit, ``llm dump``, ``llm compare`` and ``llm errcheck``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import LOG_LEVELS, add_command, set_log_level
from msprobe_ms.cli.comparison.compare import add_compare
from msprobe_ms.cli.parser import HelpFormatter, mistaken
from msprobe_ms.cli.run import add_values, run_recorded
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

_DUMP_EPILOG = tr("""\
examples:
  msprobe llm dump --exec "bash run.sh" --type model tensor -er 0,1 -o out
  msprobe llm dump --exec "python infer.py" --type model tensor -ids 3_1
  msprobe llm dump --exec "torchrun --nproc_per_node 8 infer.py" -sd -opname self

Every Python below the command is recorded; each call of the network is a token. See docs/coming_from_msit.md.""")

#: What ``--type`` can not give, and what does.
_REFUSED = {
    "kernel": tr("kernels are recorded of MindSpore: msprobe run --level L2"),
    "cpu_profiling": tr("times are no matter of a dump; use torch.profiler or mindspore.Profiler"),
}
_TYPES = ("model", "layer", "op", "kernel", "tensor", "cpu_profiling", "onnx")
#: The folder that is made in the output folder.
_FOLDER = "msit_dump"


def add_llm(commands: Any) -> None:
    parser = commands.add_parser(
        "llm", help=tr("the commands of msit: dump, compare, errcheck"), formatter_class=HelpFormatter
    )
    parser.set_defaults(run=lambda options: _without_command())
    below = parser.add_subparsers(dest="llm_command", metavar="COMMAND")
    _add_dump(below)
    add_compare(below, csv=True)
    told = tr("run a command, and name the calls in which an infinity or a NaN is")
    check = add_command(below, "errcheck", _errcheck, told)
    _add_execution(check)
    check.add_argument("--type", nargs="+", choices=("overflow",), default=["overflow"], help="what is looked for")
    check.add_argument("--exit", action="store_true", help=argparse.SUPPRESS)


def _without_command() -> int:
    raise UsageError(tr("llm: give one of dump, compare, errcheck; see msprobe llm -h"))


def _add_execution(parser: Any) -> None:
    parser.add_argument("--exec", required=True, metavar="COMMAND", help="a shell command, in quotes")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), metavar="DIR", help="where dumps go (here)")
    parser.add_argument("-l", "--log-level", choices=LOG_LEVELS, default="info", help="what is logged (default info)")


def _add_dump(commands: Any) -> None:
    told = tr("run a command, and record what the networks in it take in and give out")
    parser = add_command(commands, "dump", _dump, told, _DUMP_EPILOG)
    _add_execution(parser)
    parser.add_argument("--type", nargs="+", choices=_TYPES, default=["tensor", "model"], help="default tensor model")
    parser.add_argument("-sd", "--only-save-desc", action="store_true", help="statistics of tensors, no files")
    parser.add_argument(
        "-ids", "--save-operation-ids", nargs="+", default=[], metavar="ID",
        help="places of calls, from 0: 2,3_1 is the third, and in the fourth the second (default all)",
    )  # fmt: skip
    parser.add_argument(
        "-er", "--execute-range", default="0,0", metavar="FIRST,LAST,…", help="tokens, pairs of ends (default 0,0)"
    )
    parser.add_argument(
        "-child", "--save-operation-child", type=_boolean, default=True, metavar="BOOL",
        help="False: without what runs inside the calls of -ids, or of the network's own (default True)",
    )  # fmt: skip
    parser.add_argument(
        "-time", "--save-time", type=int, choices=(0, 1, 2, 3), default=3, metavar="0|1|2|3",
        help="0 before, 1 after, 2 both, 3 (the default) inputs before and results after a call",
    )  # fmt: skip
    parser.add_argument(
        "-opname", "--operation-name", metavar="NAME,…", help="beginnings of kinds: self is SelfAttention"
    )
    parser.add_argument("-tiling", "--save-tiling", action="store_true", help=argparse.SUPPRESS)
    add_values(parser)
    parser.add_argument("-device", "--device-id", type=int, metavar="N", help="the rank that records (default all)")


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "t", "f", "1", "0", "yes", "no", "y", "n"):
        raise mistaken(tr("{text}; accepted are True and False", text=repr(text)))
    return text.lower() in ("true", "t", "1", "yes", "y")


def _dump(options: argparse.Namespace) -> Callable[[], int]:
    set_log_level(options.log_level)
    keys = _selection(options)
    after = _export_onnx if "onnx" in options.type else None
    return _recorded(options, keys, after)


def _selection(options: argparse.Namespace) -> dict[str, Any]:
    """The keys of a configuration that the options of ``llm dump`` stand for."""
    from msprobe_ms.compat.msit_selection import data_mode, executions, places
    from msprobe_ms.support.log import logger

    if refused := [kind for kind in options.type if kind in _REFUSED]:
        raise UsageError(
            tr("llm dump: --type {refused}: {other_refused}", refused=refused[0], other_refused=_REFUSED[refused[0]])
        )
    if options.save_tiling:
        raise UsageError(tr("llm dump: -tiling: tiling is of Ascend's kernels; their tensors: msprobe run --level L2"))
    modes, said = data_mode(options.save_tensor_part, options.save_time)
    if said:
        logger.info("%s", said)
    described = "statistics" if options.only_save_desc or "tensor" not in options.type else "tensor"
    kinds = [each.strip() for each in (options.operation_name or "").split(",")]
    return {
        "task": described if {"tensor", "op"} & set(options.type) else "structure",
        "level": "mix",
        "model_itself": True,
        "step": executions(options.execute_range),
        "rank": [] if options.device_id is None else [options.device_id],
        "places": places(",".join(options.save_operation_ids), children=options.save_operation_child),
        "list": [f"class:{kind}*" for kind in kinds if kind],
        "data_mode": modes,
    }


def _errcheck(options: argparse.Namespace) -> Callable[[], int]:
    if options.exit:
        raise UsageError(tr("llm errcheck: --exit: a training is never ended; the log names each call as it comes"))
    set_log_level(options.log_level)
    keys = {"task": "overflow_check", "level": "L1", "overflow_nums": -1}
    return _recorded(options, keys, _tell_overflow, may_be_empty=True)


def _recorded(
    options: argparse.Namespace,
    keys: dict[str, Any],
    after: Callable[[Path, list[Path]], None] | None,
    *,
    may_be_empty: bool = False,
) -> Callable[[], int]:
    """Prepare to run the command with ``keys``; ``after`` is given the output folder and the dumps written."""
    from msprobe_ms.config import load_config

    settings = {**keys, "dump_path": options.output / _FOLDER}
    config = load_config(settings=settings)  # a mistake is told before the command begins
    settings["dump_path"] = config.dump_path
    seed = getattr(options, "fixed_seed", None)
    return partial(
        run_recorded, options.exec, {"settings": settings}, seed, config.dump_path,
        after=None if after is None else partial(after, options.output), may_be_empty=may_be_empty,
    )  # fmt: skip


def _export_onnx(output: Path, dumps: list[Path]) -> None:
    from msprobe_ms.cli.common import print_lines
    from msprobe_ms.comparison.export.export import export
    from msprobe_ms.comparison.export.files import Naming
    from msprobe_ms.comparison.reporting.files import claimed_timestamp
    from msprobe_ms.comparison.settings import Settings

    for dump in dumps:
        with claimed_timestamp(output, "export_") as timestamp:
            for file in export(dump.parent, None, "onnx", Naming(output, timestamp), Settings().options()):
                print_lines([tr("onnx: {file}", file=file)])


def _tell_overflow(output: Path, dumps: list[Path]) -> None:
    from msprobe_ms.cli.common import print_lines
    from msprobe_ms.dump.reading.reader import read_dump

    found = [(dump, name) for dump in dumps for name in read_dump(dump).entries]
    if not found:
        return print_lines([tr("overflow: no call that was watched holds an infinity or a NaN")])
    lines = [
        tr("overflow: {count} calls hold an infinity or a NaN, the first of each process and step:", count=len(found))
    ]
    firsts = dict(reversed(found))
    return print_lines([*lines, *(f"  {name}  {dump.parent}" for dump, name in reversed(firsts.items()))])
