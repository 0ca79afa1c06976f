"""Run a script on two ranks as msrun does: ``python forked_ranks.py PORT LOGS SCRIPT ARGUMENT…``, by `run_forked`.

A scheduler and two workers are forked from this process, so the framework is imported once for all. When one fails,
the others are killed. What the workers print goes to ``worker_0.log`` and ``worker_1.log`` in LOGS. The exit status is
1 where one failed, and CRASHED_AT_ITS_END where its script was over and a segmentation fault ended it.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path

#: What msrun tells each process, beside what it tells all: file of its log → its part of the environment.
ROLES = {
    "scheduler.log": {"MS_ROLE": "MS_SCHED", "RANK_ID": "0"},
    "worker_0.log": {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "RANK_ID": "0"},
    "worker_1.log": {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1", "RANK_ID": "1"},
}
#: The exit status of a run whose first failure was a segmentation fault after the last line of the script.
CRASHED_AT_ITS_END = 3


def main(port: str, logs: str, *command: str) -> None:
    os.environ.update(MS_WORKER_NUM="2", MS_SCHED_HOST="127.0.0.1", MS_SCHED_PORT=port)
    children = {}
    for name, role in ROLES.items():
        if (child := os.fork()) == 0:
            os.environ.update(role)
            log = os.open(Path(logs, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for stream in (1, 2):
                os.dup2(log, stream)
            sys.argv[:] = command
            sys.path.insert(0, str(Path(command[0]).parent))  # as Python does
            runpy.run_path(command[0], run_name="__main__")
            _over(Path(logs, name)).touch()
            return
        children[child] = Path(logs, name)
    failure = 0
    while children:
        child, status = os.wait()
        log = children.pop(child)
        if status and not failure:
            crashed = os.waitstatus_to_exitcode(status) == -signal.SIGSEGV
            failure = CRASHED_AT_ITS_END if crashed and _over(log).exists() else 1
            for other in children:
                os.kill(other, signal.SIGKILL)
    sys.exit(failure)


def _over(log: Path) -> Path:
    """The file that tells that a script has come to its end."""
    return log.with_suffix(".over")


if __name__ == "__main__":
    main(*sys.argv[1:])
