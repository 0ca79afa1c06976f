"""Console commands about single APIs of a dump: ``run_overflow_check`` and ``op_generate``."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from msprobe_ms.cli.accuracy.acc_check import add_dump, dump_file_of, options_for, section_of, selection_of
from msprobe_ms.cli.common import DIVERGENT, DONE, add_command, print_lines, print_verdict
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_join

_OVERFLOW_EPILOG = tr("""\
examples:
  msprobe run_overflow_check -api_info dump/step0/rank0/dump.json

Each API of the dump is run on the device and by its reference. An overflow is normal where the right result does not
fit the dtype either, or the input already held NaN; it is abnormal where the reference gives numbers.""")

_GENERATE_EPILOG = tr("""\
examples:
  msprobe op_generate -i config_op.json -o scripts
  msprobe op_generate -api_info dump.json --api_name Mint.sub.0 -o scripts

config_op.json: {"dump_json_path": "dump.json", "api_name": "Mint.sub.0", "propagation": "forward"}; data_mode is
random_data or real_data, random_seed a number. The script needs the framework and numpy, and the tensors beside it.""")


def add_run_overflow_check(commands: Any) -> None:
    parser = add_command(
        commands, "run_overflow_check", _overflow, tr("say which overflows are the device's fault"),
        _OVERFLOW_EPILOG,
    )  # fmt: skip
    add_dump(parser)


def _overflow(options: argparse.Namespace) -> int:
    from msprobe_ms.accuracy.calls import read_calls
    from msprobe_ms.accuracy.overflow import Verdict, check_overflows, counted
    from msprobe_ms.accuracy.selection import select

    calls = read_calls(dump_file_of(options.api_info_file))
    wanted = options_for(options, calls)
    chosen = select(calls, selection_of(options, section_of(options)))
    rows = check_overflows(calls, chosen, wanted, options.out_path or Path("."), options.num_splits)
    counts = Counter(row.verdict for row in rows)
    abnormal = [row for row in rows if row.verdict is Verdict.ABNORMAL]
    word = tr("ABNORMAL") if abnormal else tr("NORMAL")
    print_verdict(
        [
            tr("{word}: {counts}", word=word, counts=tr_join(", ", (counted(each, counts[each]) for each in Verdict))),
            *(
                tr(
                    "  abnormal: {name}: {device} elements are NaN or infinite, in the reference none",
                    name=row.name,
                    device=row.device,
                )
                for row in abnormal[:20]
            ),
        ]
    )
    return DIVERGENT if options.exit_code and abnormal else DONE


def add_op_generate(commands: Any) -> None:
    parser = add_command(
        commands,
        "op_generate",
        _generate,
        tr("write a script that repeats one call of a dump alone"),
        _GENERATE_EPILOG,
    )
    parser.add_argument("-i", "--config_input", type=Path, metavar="FILE", help="config_op.json")
    parser.add_argument("-api_info", "--api_info_file", type=Path, metavar="FILE", help="the dump.json")
    parser.add_argument("--api_name", metavar="NAME", help="the call, as the dump names it: Mint.sub.0")
    parser.add_argument("-o", "--output_path", type=Path, default=Path("."), metavar="DIR", help="where files go")
    parser.add_argument("--seed", type=int, default=1234, metavar="N", help="seed of the random data (default 1234)")


def _generate(options: argparse.Namespace) -> int:
    from msprobe_ms.accuracy.calls import read_calls
    from msprobe_ms.accuracy.config_file import read_single_call
    from msprobe_ms.accuracy.execution.single_call import save_call
    from msprobe_ms.accuracy.options import Options
    from msprobe_ms.support.text import suggestion

    dump, name, seed, real, backward = options.api_info_file, options.api_name, options.seed, None, True
    if options.config_input is not None:
        single = read_single_call(options.config_input)
        dump, name, seed = single.dump_json_path, single.api_name, single.random_seed
        real, backward = single.data_mode == "real_data", single.propagation == "backward"
    if dump is None or not name:
        raise UsageError(tr("op_generate: needs -i config_op.json, or -api_info and --api_name"))
    calls = read_calls(dump_file_of(Path(dump)))
    name = next((name.removesuffix(ending) for ending in (".forward", ".backward") if name.endswith(ending)), name)
    call = calls.apis.get(name)
    if call is None:
        raise UsageError(
            tr(
                "{path}: no call {name}{suggestion}",
                path=calls.path,
                name=name,
                suggestion=suggestion(name, calls.apis),
            )
        )
    wanted = Options(
        dump=calls.path.absolute(), framework=calls.framework,
        tensor_folder=calls.tensor_folder, real_data=calls.has_tensors if real is None else real,
        seed=seed, same_library=True,
    )  # fmt: skip
    call = call if backward else replace(call, output_gradients=None)
    print_lines([tr("file: {save_call}", save_call=save_call(call, wanted, options.output_path))])
    return DONE
