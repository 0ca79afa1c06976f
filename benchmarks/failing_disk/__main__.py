"""Every call of recorded trainings that touches their dumps fails in turn: ``python -m benchmarks.failing_disk``.

Each scenario has a process of its own. The exit code is 0 when every case passed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.failing_disk.real import wrapper
from benchmarks.failing_disk.run import Outcome, run, run_real
from benchmarks.failing_disk.trainings import SCENARIOS

#: A file system in memory, where there is one: cases are many.
_MEMORY = Path("/dev/shm")
_ROOT = Path(__file__).parents[2]
#: Failures of one scenario that are printed.
_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failing_disk", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="those whose names hold one of these words (default: all)")
    parser.add_argument("--every", type=int, default=1, help="only each N-th call fails (default: every call)")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    parser.add_argument(
        "--real", action="store_true", help="disks that are really full, folders really closed or removed"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        how = run_real if options.real else run
        print(json.dumps(asdict(how(options.one, Path.cwd(), options.every))))
        return 0
    before = wrapper() if options.real else ()
    if before is None:
        print("no disk can be made to fail in earnest here: that takes unshare and setpriv, and the right to mount")
        return 2
    words = options.scenarios or [""]
    chosen = [name for name in SCENARIOS if any(word in name for word in words)]
    outcomes = []
    print(f"{'scenario':32}{'cases':>8}{'failed':>8}{'lacking':>9}{'by warning':>12}{'seconds':>9}", flush=True)
    for name in chosen:
        outcomes.append(outcome := _in_process(name, options.every, before))
        figures = (outcome["lacking"], outcome["by_warning_alone"], outcome["seconds"])
        print(f"{name:32}{_cases(outcome):8}{len(outcome['failures']):8}{figures[0]:9}{figures[1]:12}{figures[2]:9.0f}")
        for text in outcome["failures"][:_SHOWN]:
            print(f"  {text}")
        sys.stdout.flush()
        if options.json:
            options.json.write_text(json.dumps(outcomes, indent=1))
    cases, failures = sum(map(_cases, outcomes)), sum(len(outcome["failures"]) for outcome in outcomes)
    print(f"{len(outcomes)} scenarios, {cases} cases, {failures} failures")
    return bool(failures)


def _cases(outcome: dict[str, Any]) -> int:
    return sum(outcome["cases"].values())


def _in_process(name: str, every: int, before: Sequence[str]) -> dict[str, Any]:
    """``before`` stands before the command of a real disk; () where calls fail."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        command = [*before, sys.executable, "-m", "benchmarks.failing_disk", "--one", name, "--every", str(every)]
        command += ["--real"] if before else []
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        outcome = asdict(Outcome(name, failures=[f"exit code {done.returncode}: {done.stderr[-2000:]}"]))
    else:
        outcome = json.loads(done.stdout.splitlines()[-1])
    return {**outcome, "seconds": time.monotonic() - began}


if __name__ == "__main__":
    sys.exit(main())
