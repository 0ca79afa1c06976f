"""The console command ``msprobe``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from msprobe_ms import __version__
from msprobe_ms.cli import compare as compares
from msprobe_ms.cli import convert as conversion
from msprobe_ms.cli import kernels as kernels
from msprobe_ms.cli import weights as weights
from msprobe_ms.cli.common import DONE, FAILED, add_command, tell
from msprobe_ms.compat.neighbour import warn_of_conflict
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.support.errors import MsprobeError, UsageError

_RUN_EPILOG = """\
examples:
  msprobe run --config config.json train.py --epochs 3
  msprobe run --level L0 --step 0 -m mypackage.train

The network is the one given to value_and_grad, grad, GradOperation, TrainOneStepCell or Model; in PyTorch the outermost
module called. A step ends when the optimizer has run, each of them where there are several; without any, when the
network is called again. The log says what they were taken for. See docs/run.md."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done, 1 divergence found with ``--exit-code``, 2 an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without UTF-8 is no reason to fail at a name
            stream.reconfigure(errors="backslashreplace")
    warn_of_conflict()
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return FAILED
    try:
        return int(options.run(options))
    except MsprobeError as error:
        print(f"msprobe: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        print("msprobe: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="msprobe", description="Find where two training runs begin to differ.")
    parser.add_argument("--version", action="version", version=f"msprobe_ms {__version__}")
    parser.add_argument(
        "-f", "--framework", choices=("mindspore", "pytorch"), help="the target's framework (optional: dumps tell it)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    compares.add_compare(commands)
    compares.add_merge_result(commands)
    weights.add_compare_weights(commands)
    conversion.add_convert(commands)
    _add_recover(commands)
    _add_run(commands)
    kernels.add_index(commands)
    kernels.add_overflow_check(commands)
    return parser


def _add_recover(commands: Any) -> None:
    parser = add_command(commands, "recover", _recover, "rebuild the JSON files of a dump whose process was killed")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a dump folder, one of its steps, or a rank of a step")


def _add_run(commands: Any) -> None:
    parser = add_command(commands, "run", _run, "run a training script that was not edited, and record it", _RUN_EPILOG)
    parser.add_argument("--config", type=Path, metavar="FILE", help="config.json (default: statistics at level L1)")
    parser.add_argument("--level", help="overrides the file: L0, L1, mix, L2")
    parser.add_argument("--task", help="overrides the file: statistics, tensor")
    parser.add_argument("--dump_path", metavar="DIR", help="overrides the file")
    parser.add_argument("--step", type=_steps, metavar="N,N,…", help="overrides the file: steps to record, such as 0,5")
    parser.add_argument("-m", action="store_true", dest="as_module", help="what follows is the name of a module")
    parser.add_argument("script", metavar="SCRIPT", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its arguments")


def _steps(text: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in text.split(",")]


def _run(options: argparse.Namespace) -> int:
    from msprobe_ms.config import load_config
    from msprobe_ms.recording.script import run_script

    settings = {
        "config_path": options.config,
        "level": options.level,
        "task": options.task,
        "dump_path": options.dump_path,
        "step": options.step,
    }
    config = load_config(**settings)  # a mistake is told before the script begins
    if config.level == "debug":
        raise UsageError(
            "run: level debug records what a script itself gives to debugger.save; use one of L0, L1, mix, L2, or "
            "run the script with python"
        )
    # The script may change the working folder before the debugger is made.
    settings["config_path"] = options.config and options.config.absolute()
    if options.dump_path or config.dump_enable is None:
        settings["dump_path"] = config.dump_path
    return run_script(options.script, options.arguments, as_module=options.as_module, **settings)


def _recover(options: argparse.Namespace) -> int:
    from msprobe_ms.dump.kernels.index_root import recover_kernels
    from msprobe_ms.dump.writing.export import recover

    failed = False
    indexed = list(recover_kernels(options.folder)) if options.folder.is_dir() else []
    has_journals = options.folder.is_dir() and any(options.folder.rglob(JOURNAL_NAME))
    for result in (*indexed, *(recover(options.folder) if has_journals or not indexed else ())):
        failed = failed or bool(result.problem)
        tell([f"{result.folder}: {result.problem or f'{counted_entries(result.entries)} recovered'}"])
    return FAILED if failed else DONE
