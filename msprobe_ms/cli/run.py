"""Console command ``run``: record a training script that was not edited."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import add_command
from msprobe_ms.support.errors import UsageError

_RUN_EPILOG = """\
examples:
  msprobe run --config config.json train.py --epochs 3
  msprobe run --level L0 --step 0 -m mypackage.train

The network is the one given to value_and_grad, grad, GradOperation, TrainOneStepCell or Model; in PyTorch the outermost
module called. A step ends when the optimizer has run, each of them where there are several; without any, when the
network is called again. The log says what they were taken for. See docs/run.md."""


def add_run(commands: Any) -> None:
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


def _run(options: argparse.Namespace) -> Callable[[], int]:
    from msprobe_ms.config import load_config
    from msprobe_ms.recording.script import prepare_script

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
    return prepare_script(options.script, options.arguments, as_module=options.as_module, **settings)
