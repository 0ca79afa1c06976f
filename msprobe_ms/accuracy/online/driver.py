"""Drives a debugger through a training: samples steps, hands what they recorded over to be judged."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msprobe_ms.accuracy.online.checker_process import CheckerProcess
from msprobe_ms.accuracy.online.sampled_calls import SampledCalls
from msprobe_ms.accuracy.online.sampled_steps import SampledSteps
from msprobe_ms.accuracy.online.settings import Budget, Judging
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.sending import SenderProcess, Sending, client_name
from msprobe_ms.remote.spool import DUMP, Progress, Spool
from msprobe_ms.support.interruptions import interrupts, suppress_own
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds from one report of how far the training is to the next, where nothing is sampled.
_BETWEEN_REPORTS = 1.0

_Result = TypeVar("_Result")


class SamplingDriver:
    """Starts and stops a debugger in the steps that the budget allows, and ends all steps.

    What fails here ends the sampling, not the training.
    """

    def __init__(
        self,
        debugger: BaseDebugger,
        device: Callable[[Any], str],
        budget: Budget,
        judging: Judging,
        address: Address | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``device`` tells what kind of device a network is on, ``clock`` the seconds that the training takes.
        ``address``: samples are sent there; None: they are judged here."""
        self._address = address
        self._debugger, self._device_of, self._judging = debugger, device, judging
        self._calls, self._steps = SampledCalls(budget), SampledSteps(budget.share, clock)
        debugger.quotas.calls = self._calls
        self._spool: Spool | None = None
        self._process: CheckerProcess | SenderProcess | None = None
        self._device = ""
        #: Samples that were handed over; how often steps were counted anew, and the latest step.
        self._samples, self._run, self._latest = 0, 1, -1
        #: Of the step that goes on: whether it is sampled, None before its first call; where its dump is; whether
        #: others are judged meanwhile.
        self._sampling: bool | None = None
        self._folder = Path()
        self._contended = False
        #: Whether samples may wait to be judged.
        self._waiting = False
        self._reported = 0.0
        self._failed = False

    def start(self, model: Any) -> None:
        """Forward begins. Raises UsageError where the debugger cannot record it."""
        if self._sampling is None:
            self._sampling = bool(self._guarded(partial(self._begin, model)))
        if self._sampling:
            self._debugger.start(model)

    def stop(self) -> None:
        """Forward and backward are over."""
        if self._sampling:
            self._debugger.stop()

    def step(self) -> None:
        """The step is over: what was recorded of it is handed over."""
        self._debugger.step()
        self._guarded(self._end)
        self._sampling = None

    def retire(self) -> None:
        """The training is over: wait for what is still to be judged."""
        self._debugger.retire()
        self._guarded(self._finish)

    @property
    def figures(self) -> dict[str, float]:
        """What the sampling cost and took so far: seconds, steps and calls."""
        steps, calls = self._steps, self._calls
        return {"spent": steps.spent, "sampled_steps": steps.sampled, "sampled_calls": calls.taken.total()}

    # -- steps -----------------------------------------------------------------------------------------------------

    def _begin(self, model: Any) -> bool:
        """Whether the step that begins is sampled."""
        self._contended = self._is_judging()
        if self._failed or not self._is_selected() or not self._steps.wants():
            return False
        if self._spool is None:
            self._spool = self._open(model)
        elif self._samples and not self._has_room(self._spool):
            return False
        self._calls.begin_step()
        self._folder = self._debugger.folder
        return True

    def _has_room(self, spool: Spool) -> bool:
        """Whether there is room for another sample, and a process that judges it."""
        alive = self._process is not None and self._process.keep_alive()
        return alive and spool.waiting() <= self._calls.most_waiting

    def _is_selected(self) -> bool:
        selected = self._debugger.config.step
        return not selected or _step_of(self._debugger.folder) in selected

    def _is_judging(self) -> bool:
        if self._waiting and self._spool is not None:
            self._waiting = bool(self._spool.samples())
        return self._waiting

    def _open(self, model: Any) -> Spool:
        """Make the folder where samples lie, in that of the tables; each rank has its own. Raises OSError."""
        rank = self._debugger.folder.name
        output = self._judging.folder / (rank if rank.startswith("rank") else "")
        self._judging = replace(self._judging, output=str(output), speaks=self._debugger.speaks)
        spool = Spool(output / f".samples_{os.getpid()}_{secrets.token_hex(4)}")
        spool.make()
        # Sketches and call sites are for readers of dumps.
        own = {"dump_path": spool.folder, "sketch": False, "extra_info": False}
        self._debugger.config = self._debugger.config.model_copy(update=own)
        self._device = self._device_of(model)
        if self._address is None:
            self._process = CheckerProcess(spool, self._judging)
        else:
            number = int(rank.removeprefix("rank")) if rank.startswith("rank") else 0
            name = client_name(number, spool)
            sending = Sending(self._address, name, number, self._judging.patience, self._debugger.speaks)
            self._process = SenderProcess(spool, sending)
        return spool

    def _end(self) -> None:
        if self._sampling:
            self._hand_over(self._folder)
        judging = self._contended or self._is_judging()
        self._steps.end(sampled=bool(self._sampling), judging=judging)
        if self._sampling or time.monotonic() - self._reported > _BETWEEN_REPORTS:
            self._report(ended=False)

    def _hand_over(self, folder: Path) -> None:
        """Have a sample judged; one without a call is removed."""
        if not (folder / DUMP).exists():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress_own(OSError):
                folder.parent.rmdir()
        elif self._spool is not None and self._process is not None:
            step = _step_of(folder)
            self._run += step <= self._latest
            self._latest = step
            self._samples += 1
            self._report(ended=False)
            run = "" if self._run == 1 else f"run{self._run}."
            self._spool.hand_over(folder, self._samples, f"{run}step{step}")
            self._waiting = True
            self._process.keep_alive()

    def _report(self, *, ended: bool) -> None:
        if self._spool is None:
            return
        calls, steps = self._calls, self._steps
        counts = {api: (seen, calls.taken[api]) for api, seen in calls.seen.items()}
        self._reported = time.monotonic()
        self._spool.tell(Progress(steps.steps, steps.sampled, counts, dict(calls.unchecked), self._device, ended))

    def _finish(self) -> None:
        if self._sampling is not None:  # the script ended in the middle of a step
            self._end()
        if self._spool is None or self._process is None:
            return
        if not self._samples:
            self._spool.discard()
            logger.warning(tr("check: nothing was judged: no API was called, or no call could be recorded"))
            return
        self._report(ended=True)
        self._process.finish()

    def _guarded(self, action: Callable[[], _Result]) -> _Result | None:
        """What ``action`` gives; None where it fails, and nothing is sampled from then on."""
        try:
            return action()
        except Exception as error:
            if interrupts(error):
                raise
            if not self._failed:
                self._failed = True
                logger.warning(
                    tr("check: no more calls are sampled: {name}: {error}", name=type(error).__name__, error=error)
                )
            return None


def _step_of(folder: Path) -> int:
    """The step whose dump is in the folder of a process."""
    return int(folder.parent.name.removeprefix("step"))
