"""Console command ``run``: record a training script that was not edited, or check a sample of its calls."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.accuracy.receiving import add_encryption
from msprobe_ms.cli.common import add_command, seconds
from msprobe_ms.cli.parser import mistaken
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_list

if TYPE_CHECKING:
    from msprobe_ms.accuracy.online.settings import Budget, Judging
    from msprobe_ms.frameworks.training import Networks
    from msprobe_ms.recording.debugger import BaseDebugger
    from msprobe_ms.recording.entry_points.auto import Steps
    from msprobe_ms.remote.addresses import Address

_RUN_EPILOG = tr("""\
examples:
  msprobe run --config config.json train.py --epochs 3
  msprobe run --level L0 --step 0 -m mypackage.train
  msprobe run --exec "bash train.sh" --level L0         (every Python that it runs: shell scripts, torchrun, msrun)
  msprobe run --check -o report train.py                (checks a sample of the API calls, keeps no dump)
  msprobe run --check --to 10.0.0.7:59208 --tls certificates train.py       (another machine judges)

The network is the one given to value_and_grad, grad, GradOperation, TrainOneStepCell or Model; in PyTorch the outermost
module called. A step ends when the optimizer has run, each of them where there are several; without any, when the
network is called again. The log says what they were taken for. See docs/run.md, for --check docs/accuracy_check.md.""")

#: Levels of a configuration; `run` refuses the last with a word of its own.
_LEVELS = ("L0", "L1", "mix", "L2", "debug")


def add_run(commands: Any) -> None:
    parser = add_command(
        commands, "run", _run, tr("run a training script that was not edited, and record it"), _RUN_EPILOG
    )
    parser.runs_script = True
    parser.add_argument("--config", type=Path, metavar="FILE", help="config.json (default: statistics at level L1)")
    parser.add_argument("--level", help="overrides the file: L0, L1, mix, L2")
    parser.add_argument(
        "--task",
        help=tr(
            "overrides the file: statistics, tensor, structure, overflow_check, free_benchmark, grad_probe; "
            "at L2 exception_dump"
        ),
    )
    parser.add_argument("--dump_path", metavar="DIR", help="overrides the file")
    parser.add_argument("--step", type=_steps, metavar="N,N,…", help="overrides the file: steps to record, such as 0,5")
    judges = tr("judge a sample of the API calls while the training goes on")
    _add_check(parser.add_argument_group("check", judges))
    parser.add_argument(
        "--exec", metavar="COMMAND", help="a shell command in place of the script, all Pythons below it"
    )
    add_values(parser)
    parser.add_argument("-m", action="store_true", dest="as_module", help="what follows is the name of a module")
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its arguments")


def add_values(parser: Any) -> None:
    """Add the options that say which values are recorded, and how random numbers begin."""
    parser.add_argument(
        "-stp", "--save-tensor-part", type=int, choices=(0, 1, 2), default=2, metavar="0|1|2",
        help="0 inputs alone, 1 outputs alone, 2 both (the default)",
    )  # fmt: skip
    parser.add_argument(
        "-seed", dest="fixed_seed", type=_seed, nargs="?", const=2024, metavar="N",
        help="seed Python, numpy and the framework with N (2024 without a number), and compute deterministically",
    )  # fmt: skip


#: Options that mean something with ``--check`` alone; without a value it is the default of the check.
_CHECK = ("out_path", "to", "tls", "unencrypted", "share", "calls", "disk", "seed", "timeout", "patience", "profile",
          "thresholds", "references", "reference-python", "save_error_data")  # fmt: skip
#: Of them, those that the machine that judges has instead, and those that say how it is reached.
_OF_HOST = ("timeout", "profile", "thresholds", "references", "reference-python", "save_error_data")
_OF_SENDING = ("tls", "unencrypted")


def _add_check(group: Any) -> None:
    group.add_argument("--check", action="store_true", help="judge API calls; nothing is kept but tables")
    group.add_argument("-o", "--out_path", type=Path, metavar="DIR", help="where tables go (default: here)")
    group.add_argument(
        "--to", metavar="HOST:PORT|FOLDER", help="another machine judges: acc_check --listen (docs/online_check.md)"
    )
    add_encryption(group)
    group.add_argument(
        "--share", type=_share, metavar="PERCENT",
        help="by how much the training may take longer (default 5); 100 samples every step",
    )  # fmt: skip
    group.add_argument("--calls", type=_positive, metavar="N", help="calls judged of one API at most (default 100)")
    group.add_argument("--disk", type=_positive, metavar="MIB", help="tensors that wait to be judged (default 1024)")
    group.add_argument("--seed", type=int, metavar="N", help="of which calls are sampled (default 1234)")
    group.add_argument("--timeout", type=seconds, metavar="S", help="seconds to judge one call in (default 20)")
    group.add_argument(
        "--patience", type=seconds, metavar="S",
        help="seconds without a judged call after which the end of the script waits no longer (default 300)",
    )  # fmt: skip
    group.add_argument("--profile", choices=("own", "latest", "v110"), help="whose rules and columns (default own)")
    group.add_argument("--thresholds", type=Path, metavar="FILE", help="yaml that changes what passes")
    group.add_argument("--references", type=Path, metavar="FILE", help="yaml that names references of your own")
    group.add_argument("--reference-python", metavar="PROGRAM", help="the Python that has PyTorch")
    group.add_argument(
        "--save_error_data", action="store_true", default=None, help="keep tensors of what is wrong, with a script"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 24:
        raise mistaken(tr("{text}; accepted is a whole number from 1", text=repr(text)))
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 32:
        raise mistaken(tr("{text}; accepted is a whole number from 0 to {value}", text=repr(text), value=(1 << 32) - 1))
    return int(text)


def _share(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if not 0 < percent <= 100:
        raise mistaken(tr("{text}; accepted are percents above 0, to 100", text=repr(text)))
    return percent / 100


def _steps(text: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in text.split(",")]


#: Part of ``-stp`` → which values are recorded.
PARTS = {0: ["input"], 1: ["output"], 2: ["all"]}


def _run(options: argparse.Namespace) -> Callable[[], int]:
    from msprobe_ms.recording.entry_points.script import prepare_script

    if (options.script is None) == (options.exec is None):
        raise UsageError(tr("run: give either a script with its arguments, or --exec and a command in quotes"))
    if options.check:
        return _prepare_check(options)
    if given := [key for key in _CHECK if getattr(options, key.replace("-", "_")) is not None]:
        raise UsageError(tr("run: --{given}: only --check takes it", given=", --".join(given)))
    parts = {} if options.save_tensor_part == 2 else {"data_mode": PARTS[options.save_tensor_part]}
    settings = _debugger_settings(options, parts)
    if options.exec is not None:
        if options.as_module or options.arguments:
            raise UsageError(tr("run: with --exec all of the command stands in its quotes, -m and arguments too"))
        return partial(run_recorded, options.exec, settings, options.fixed_seed, settings["dump_path"])
    return prepare_script(
        options.script, options.arguments, as_module=options.as_module, seed=options.fixed_seed, **settings
    )


def _debugger_settings(options: argparse.Namespace, further: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a debugger; ``further`` are keys of its configuration. Raises ConfigError."""
    from msprobe_ms.config import load_config

    settings = {
        "config_path": options.config,
        "level": options.level,
        "task": options.task,
        "dump_path": options.dump_path,
        "step": options.step,
        "settings": further,
    }
    if options.level is not None and options.level not in _LEVELS:
        raise UsageError(
            tr(
                "argument level: {level} is not accepted; use one of {levels}",
                level=options.level,
                levels=tr_list(level for level in _LEVELS if level != "debug"),
            )
        )
    config = load_config(**settings)  # a mistake is told before the script begins
    if config.level == "debug":
        raise UsageError(
            tr(
                "run: level debug records what a script itself gives to debugger.save; use one of L0, L1, "
                "mix, L2, or run the script with python"
            )
        )
    # The script may change the working folder before the debugger is made.
    settings["config_path"] = options.config and options.config.absolute()
    if options.dump_path or config.dump_enable is None:
        settings["dump_path"] = config.dump_path
    return settings


def run_recorded(
    command: str,
    settings: dict[str, Any],
    seed: int | None,
    folder: Path,
    after: Callable[[list[Path]], None] | None = None,
    *,
    may_be_empty: bool = False,
) -> int:
    """Run a command with all its Pythons recorded; its exit status.

    ``settings`` are the debuggers', ``after`` is given the dumps below ``folder`` that were written. Says where none
    was, unless that may be.
    """
    from msprobe_ms.frameworks import FRAMEWORKS
    from msprobe_ms.recording.entry_points.every_python import run_command, written_since
    from msprobe_ms.support.log import logger

    with written_since(folder) as written:
        status = run_command(command, settings, seed=seed, frameworks=FRAMEWORKS)
    dumps = list(written())
    if not dumps and not may_be_empty:
        logger.warning(
            tr(
                "msprobe run: nothing was recorded: no Python that {command} ran called a network that the "
                "configuration selects; a Python is recorded if msprobe_ms is installed in it, on this machine, "
                "and if it begins without -S, -E and -I",
                command=repr(command),
            ),
        )
    if after is not None:
        after(dumps)
    return status


def _prepare_check(options: argparse.Namespace) -> Callable[[], int]:
    """Prepare a run in which a sample of the calls is judged."""
    from msprobe_ms.accuracy.judging.thresholds import load_thresholds
    from msprobe_ms.accuracy.online.settings import MIB, Budget, Judging
    from msprobe_ms.config import load_config
    from msprobe_ms.recording.entry_points.script import prepare_script

    if options.exec is not None:
        raise UsageError(
            tr("run: --check judges the calls of one script, SCRIPT; with --exec record, then use acc_check")
        )
    given = [key for key in ("level", "task", "dump_path", "fixed_seed") if getattr(options, key) is not None]
    if given or options.save_tensor_part != 2:
        raise UsageError(
            tr("run: --check records what it needs by itself; leave out --{given}", given=", --".join(given))
        )
    address = _address(options)
    output = (options.out_path or Path(".")).absolute()
    # The script may change the working folder before the debugger is made.
    settings = {
        "config_path": options.config and options.config.absolute(),
        "level": "L1",
        "task": "tensor",
        "dump_path": output,
        "step": options.step,
    }
    # A mistake is told before the script begins.
    if load_config(**settings).online_run_ut:
        raise UsageError(tr("run: --check samples calls, and online_run_ut of the file sends all; use one of them"))
    load_thresholds(options.thresholds)
    if options.references is not None and not options.references.is_file():
        raise UsageError(
            tr("{references}: no such file; give a yaml that names references", references=options.references)
        )
    files: dict[str, Any] = {
        key: str(file.absolute()) for key in ("references", "thresholds") if (file := getattr(options, key))
    }
    judging = Judging(
        str(output),
        **_given(options, timeout="timeout", patience="patience", profile="profile", save_error_data="save_errors",
                 reference_python="reference_python"),
        **files,
    )  # fmt: skip
    disk = {} if options.disk is None else {"disk": options.disk * MIB}
    budget = Budget(**_given(options, share="share", calls="calls", seed="seed"), **disk)
    drive = partial(_sampling, budget, judging, address)
    return prepare_script(options.script, options.arguments, as_module=options.as_module, drive=drive, **settings)


def _address(options: argparse.Namespace) -> Address | None:
    """Where samples are sent to; None where they are judged here. Raises UsageError."""
    from msprobe_ms.remote.addresses import CLIENT, address_of

    idle = _OF_SENDING if options.to is None else _OF_HOST
    if given := [key for key in idle if getattr(options, key.replace("-", "_")) is not None]:
        why = (
            tr("only --to takes it")
            if options.to is None
            else tr("acc_check --listen takes it, where calls are judged")
        )
        raise UsageError(tr("run: --{given}: {why}", given=", --".join(given), why=why))
    if options.to is None:
        return None
    return address_of(options.to, options.tls, unencrypted=bool(options.unencrypted)).checked(CLIENT)


def _given(options: argparse.Namespace, **names: str) -> dict[str, Any]:
    """The options that are given, by the names that they go by."""
    return {name: value for key, name in names.items() if (value := getattr(options, key)) is not None}


def _sampling(
    budget: Budget, judging: Judging, address: Address | None, debugger: BaseDebugger, find: Networks
) -> Steps:
    from msprobe_ms.accuracy.online.driver import SamplingDriver

    return SamplingDriver(debugger, find.device, budget, judging, address)
