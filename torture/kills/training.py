"""``python -m torture.kills.training FRAMEWORK``: reads plans, a line each, and runs each in a process of its own.

The framework is imported once; each training is a fork of this process, which itself computes nothing. It answers
with two lines of JSON a plan: the training's process id, and its exit status when it is over.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from torture.kills.plans import SIGNALLED, STEPS, Plan
from torture.kills.telling import FileOperations, Telling, end_with_parent
from torture.recordings import write_config

#: Files of a run. TOLD and OUTPUT are written by the training, DUMP by the tool.
TOLD, OUTPUT, DUMP = "told.jsonl", "output.txt", "dump"
#: Nothing takes that long: a training that does hangs, and dies of SIGALRM.
PATIENCE = 60


class NoDebugger:
    """In place of a debugger."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def train(framework: Any, plan: Plan, folder: Path) -> None:
    telling = Telling(plan, folder / TOLD)
    training = framework.Training(plan.setting.mode, telling)
    config = write_config(folder, plan.setting.task, level=plan.setting.level)
    debugger = framework.PrecisionDebugger(config) if plan.setting.recorded else NoDebugger()
    training.step(1.0)  # what is slow, or compiled, the first time
    files = FileOperations(folder / DUMP, plan.at if plan.way == "kill at file" else 0)
    if plan.way in ("term handled", "term closing"):
        signal.signal(signal.SIGTERM, lambda *_: leave(debugger if plan.way == "term closing" else NoDebugger()))
    training.save_by(debugger.save)
    telling.begin()
    for step in range(STEPS):
        telling.step_begins(step)
        debugger.start(training.net)
        training.step(float("inf") if plan.setting.task == "overflow" else 1 + step / 8)
        debugger.stop()
        telling.tell("stopped")
        debugger.step()
        telling.tell("over")
    telling.tell("end", files=files.count)
    sys.settrace(None)
    if plan.way in SIGNALLED:
        signal.pause()  # the signal is on its way


def leave(debugger: Any) -> None:
    """What scripts do when their time is up."""
    debugger.stop()
    debugger.step()
    sys.exit(143)


def main(name: str) -> None:
    framework = importlib.import_module(f"torture.kills.{name}_training")
    end_with_parent()
    gc.freeze()  # what is imported is looked through by no child's collector, which would copy all of it
    for line in sys.stdin:
        plan, folder = Plan.from_json(line)
        pid = os.fork()
        if pid == 0:
            end_with_parent()
            faulthandler.register(signal.SIGALRM, chain=True)  # where it hangs
            signal.alarm(PATIENCE)
            os.chdir(folder)
            for descriptor, file in ((0, os.devnull), (1, OUTPUT), (2, OUTPUT)):
                os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
            break
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    else:
        return
    train(framework, plan, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
