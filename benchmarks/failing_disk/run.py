"""Every call of a recorded training fails in turn."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.failing_disk import judge
from benchmarks.failing_disk.disk import FAULTS, FailingDisk, Fault
from benchmarks.failing_disk.trainings import SCENARIOS, Result, Training

_STEPS = 2


@dataclass
class Outcome:
    """What came of the cases of one scenario."""

    scenario: str
    #: How many, by what went wrong.
    cases: dict[str, int] = field(default_factory=dict)
    #: Cases after which a dump was not whole, and those of them that only a warning could tell.
    lacking: int = 0
    by_warning_alone: int = 0
    compared: int = 0
    failures: list[str] = field(default_factory=list)


class Runner:
    """Runs one scenario again and again below ``work``, which should be a file system in memory."""

    def __init__(self, name: str, work: Path) -> None:
        self._name = name
        self._work = work
        self._dump = work / "dump"
        self._golden = work / "golden"
        scenario = SCENARIOS[name]
        self._training: Training = scenario.make()
        self._config = scenario.write_config(work / "config.json", self._dump)
        self._compared: set[object] = set()
        self.outcome = Outcome(name)
        for _ in range(2):  # the first opens and compiles what is opened and compiled once
            self._clean()
            voice = judge.Voice()
            with voice.listening():
                self._results: list[Result] = self._training.run(self._debugger())
        self._usual = voice.warnings
        self._expected = judge.contents(self._dump)
        shutil.rmtree(self._golden, ignore_errors=True)
        shutil.copytree(self._dump, self._golden)
        self._traces = self._training.traces()
        self._files = judge.open_files(self._work)
        assert len(self._expected) >= _STEPS, self._expected.keys()

    def calls(self, fault: Fault) -> int:
        """How many calls of a run the fault can hit."""
        self._clean()
        debugger = self._debugger()
        with FailingDisk(self._dump, fault, 0) as disk, judge.Voice().listening():
            self._training.run(debugger)
        return disk.calls

    def _debugger(self) -> Any:
        with judge.Voice().listening():
            return self._training.debugger(config_path=self._config)

    def run(self, fault: Fault, at: int) -> None:
        self._clean()
        voice, results, debugger = judge.Voice(), None, self._debugger()
        with FailingDisk(self._dump, fault, at) as disk, voice.listening():
            try:
                results = self._training.run(debugger)
            except Exception as error:  # this is what must not happen
                voice.unraisable.append(f"raised into the training: {error!r}")
        wrong = [*voice.unraisable]
        if results != self._results:
            wrong.append("loss or gradients differ")
        self.outcome.cases[str(fault)] = self.outcome.cases.get(str(fault), 0) + 1
        with judge.Voice().listening():
            wrong += self._wrong(disk, voice.warnings)
        self.outcome.failures += [f"{self._name}, {fault}, call {at} ({disk.first}): {text}" for text in wrong]

    def _wrong(self, disk: FailingDisk, warnings: list[str]) -> Iterator[str]:
        told = judge.Told(self._dump, self._expected, warnings)
        yield from judge.unreadable(told.other, self._work / "scratch")
        yield from told.silent()
        if not disk.fault.stays:  # a call that failed costs one call of the training, in one direction or both
            yield from told.lost_more_than(2, self._work / "scratch")
        yield from judge.flood(warnings, self._usual, _STEPS)
        if told.lacking and not disk.failed:
            yield f"{told.lacking} differ although no call failed"
        unlinks = "unlink" in disk.fault.calls and disk.fault.stays
        if not unlinks and (left := [path.name for path in self._dump.rglob("*.tmp")]):
            yield f"left behind: {left}"
        if (files := judge.open_files(self._work)) != self._files:
            yield f"open files: {[each for each in files if each not in self._files]}"
            self._files = files
        if threads := [thread.name for thread in threading.enumerate() if thread.name.startswith("msprobe_ms")]:
            yield f"threads: {threads}"
        if (traces := self._training.traces()) != self._traces:
            yield f"left in place: {[name for name in traces if traces[name] != self._traces.get(name)][:5]}"
            self._traces = traces
        self.outcome.lacking += bool(told.lacking)
        self.outcome.by_warning_alone += bool(told.by_warning_alone)
        kind = re.sub(r"[0-9a-f]{16}|\d+", "", disk.first.rpartition("/")[2]), disk.first.split(" ")[0]
        if told.lacking and kind not in self._compared and not told.by_warning_alone:
            self._compared.add(kind)
            self.outcome.compared += 1
            if judge.says_whole(self._dump, self._golden):
                yield "compare finds dumps consistent that are not whole"

    def _clean(self) -> None:
        shutil.rmtree(self._dump, ignore_errors=True)


def run(name: str, work: Path, every: int = 1, faults: Sequence[Fault] = FAULTS) -> Outcome:
    """Run scenario ``name``: each ``every``-th call of it fails, alone and with all that follow."""
    runner = Runner(name, work.resolve())
    for number, fault in enumerate(faults):
        for at in range(1 + number % every, runner.calls(fault) + 2, every):
            runner.run(fault, at)
    return runner.outcome
