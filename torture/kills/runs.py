"""Trainings, run one at a time and ended as planned."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from torture.harness import ROOT, environment
from torture.kills.plans import SIGNALLED, Plan
from torture.kills.training import OUTPUT, TOLD

_SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}


class Run(NamedTuple):
    """One training that is over. ``told`` are its lines."""

    plan: Plan
    folder: Path
    status: int
    told: list[dict[str, Any]]
    output: str

    @property
    def raised(self) -> str:
        """The exception that ended it, as Python tells it last."""
        lines = self.output.strip().splitlines() or [""]
        return next((line for line in reversed(lines) if line.startswith("torture.kills.telling.Planned")), "")


class Trainings:
    """A process for each framework, from which trainings are forked."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def run(self, plan: Plan, folder: Path) -> Run:
        """Run it in ``folder``, which must not be there yet; whatever it does, it is over when this returns."""
        folder.mkdir(parents=True)
        process = self._process(plan.setting.framework)
        assert process.stdin is not None and process.stdout is not None
        print(plan.to_json(folder), file=process.stdin, flush=True)
        pid = int(process.stdout.readline())
        if plan.way in SIGNALLED:
            _wait(pid, folder / TOLD, plan.at)
            time.sleep(plan.seconds)
            os.kill(pid, _SIGNALS[plan.way])
        status = int(process.stdout.readline())
        lines = (folder / TOLD).read_text().splitlines(keepends=True) if (folder / TOLD).exists() else []
        told = [json.loads(line) for line in lines if line.endswith("\n")]
        return Run(plan, folder, status, told, (folder / OUTPUT).read_text(errors="replace"))

    def _process(self, framework: str) -> subprocess.Popen[str]:
        if framework not in self._processes:
            self._processes[framework] = subprocess.Popen(
                [sys.executable, "-m", "torture.kills.training", framework], cwd=ROOT, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
            )  # fmt: skip
        return self._processes[framework]

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.communicate()


@contextmanager
def trainings() -> Iterator[Trainings]:
    found = Trainings()
    try:
        yield found
    finally:
        found.close()


def _wait(pid: int, told: Path, lines: int) -> None:
    """Until the training has told so much, or is over."""
    seen = b""
    while _runs(pid):
        if told.exists():
            seen = told.read_bytes()
        if seen.count(b"\n") >= lines:
            return
        time.sleep(0.0005)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
