"""Every call of a recorded training fails in turn."""

from __future__ import annotations

import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torture.failing_disk import judge
from torture.failing_disk.disk import FAULTS, Disk, FailingDisk, Fault
from torture.failing_disk.real import PAGE, ClosedFolders, FullDisk, RemovedFolder
from torture.failing_disk.trainings import SCENARIOS, Result, Training
from torture.harness import Outcome
from torture.recordings import write_config

_STEPS = 2
#: Before and after each of three recorded iterations.
_MOMENTS = 6


class Runner:
    """Runs one scenario again and again below ``work``, which should be a file system in memory."""

    def __init__(self, name: str, work: Path) -> None:
        self._name = name
        self._work = work
        self.dump_path = work / "dump"
        self._golden = work / "golden"
        scenario = SCENARIOS[name]
        self._training: Training = scenario.make()
        self._config = write_config(work, scenario.task, level=scenario.level)
        self._compared: set[object] = set()
        #: Cases by what went wrong; after how many a dump was not whole, those that only a warning tells, and compared.
        self._figures: dict[str, Any] = {"cases": Counter(), "lacking": 0, "by_warning_alone": 0, "compared": 0}
        self.outcome = Outcome(name, figures=self._figures)
        for _ in range(2):  # the first opens and compiles what is opened and compiled once
            self._clean()
            voice = judge.Voice()
            debugger, counting = self._debugger(), FailingDisk(self.dump_path, FAULTS[0], 0)
            with voice.listening(), counting:
                self._results: list[Result] = self._training.run(debugger)
        self._usual, self._kinds = voice.warnings, counting.kinds
        self._expected = judge.contents(self.dump_path)
        shutil.rmtree(self._golden, ignore_errors=True)
        shutil.copytree(self.dump_path, self._golden)
        self._traces = self._training.traces()
        #: Bytes that its dumps take on a disk, at most; moments at which something can happen to them.
        self.size = 2 * sum(
            -(-len(file) // PAGE) * PAGE + PAGE for dump in self._expected.values() for file in dump.values()
        )
        self.moments = _MOMENTS
        self._files = judge.open_files(self._work)
        assert len(self._expected) >= _STEPS, self._expected.keys()

    def calls(self, fault: Fault) -> int:
        """How many calls of a run the fault can hit."""
        return sum(count for kind, count in self._kinds.items() if kind in fault.calls)

    def _debugger(self) -> Any:
        with judge.Voice().listening():
            return self._training.debugger(config_path=self._config)

    def run(self, disk: Disk) -> None:
        """One case: train, look at what is left, and clean up."""
        self._clean()
        voice, results, debugger = judge.Voice(), None, self._debugger()
        with disk, voice.listening():
            try:
                results = self._training.run(debugger, disk.moment)
            except Exception as error:  # this is what must not happen
                voice.unraisable.append(f"raised into the training: {error!r}")
        wrong = [*voice.unraisable]
        if results != self._results:
            wrong.append("loss or gradients differ")
        self._figures["cases"][str(disk).partition(",")[0]] += 1
        with judge.Voice().listening():
            wrong += self._wrong(disk, voice.warnings)
        self.outcome.problems += [f"{self._name}, {disk} ({disk.first}): {text}" for text in wrong]
        disk.clean()

    def _wrong(self, disk: Disk, warnings: list[str]) -> Iterator[str]:
        told = judge.Told(self.dump_path, self._expected, warnings)
        yield from judge.unreadable(told.other, self._work / "scratch")
        yield from told.silent()
        if disk.once:  # a call that failed costs one call of the training, in one direction or both
            yield from told.lost_more_than(2, self._work / "scratch")
        yield from judge.flood(warnings, self._usual, _STEPS)
        if told.lacking and not disk.failed:
            yield f"{told.lacking} differ although no call failed"
        if not disk.leaves_temporary_files and (left := [path.name for path in self.dump_path.rglob("*.tmp")]):
            yield f"left behind: {left}"
        if (files := judge.open_files(self._work)) != self._files:
            yield f"open files: {[each for each in files if each not in self._files]}"
            self._files = files
        if threads := [thread.name for thread in threading.enumerate() if thread.name.startswith("msprobe_ms")]:
            yield f"threads: {threads}"
        if (traces := self._training.traces()) != self._traces:
            yield f"left in place: {[name for name in traces if traces[name] != self._traces.get(name)][:5]}"
            self._traces = traces
        self._figures["lacking"] += bool(told.lacking)
        self._figures["by_warning_alone"] += bool(told.by_warning_alone)
        kind = re.sub(r"[0-9a-f]{16}|\d+", "", disk.first.rpartition("/")[2]), disk.first.split(" ")[0]
        if told.lacking and kind not in self._compared and not told.by_warning_alone:
            self._compared.add(kind)
            self._figures["compared"] += 1
            for name in told.lacking:
                if judge.says_whole(self.dump_path / name, self._golden / name):
                    yield f"compare finds {name} consistent, which is not whole"

    def _clean(self) -> None:
        shutil.rmtree(self.dump_path, ignore_errors=True)


def run(name: str, work: Path, every: int = 1, faults: Sequence[Fault] = FAULTS) -> Outcome:
    """Run scenario ``name``: each ``every``-th call of it fails, alone and with all that follow."""
    runner = Runner(name, work.resolve())
    for number, fault in enumerate(faults):
        for at in range(1 + number % every, runner.calls(fault) + 2, every):
            runner.run(FailingDisk(runner.dump_path, fault, at))
    return runner.outcome


def run_real(name: str, work: Path, every: int = 1) -> Outcome:
    """Run scenario ``name`` on disks that are really full, folders closed or removed at each moment of the training.

    Raises PermissionError where this process may do neither.
    """
    runner = Runner(name, work.resolve())
    for size in range(PAGE, runner.size + PAGE, PAGE * every):
        runner.run(FullDisk(runner.dump_path, size))
    if "kernels" in name:  # MindSpore raises into the training where it cannot open a file of its own
        return runner.outcome
    for kind in (ClosedFolders, RemovedFolder):
        for at in range(1, runner.moments + 1):
            runner.run(kind(runner.dump_path, at))
    return runner.outcome
