"""``msprobe run --exec``: a command whose Pythons are all recorded, as if each were run by ``msprobe run``.

Each finds `startup/sitecustomize.py` at the head of its path, which calls `record_this_process`. Nothing is imported
there before a framework is, by the script itself.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msprobe_ms.recording.entry_points.when_imported import WhenImported, forget_imports

#: What is to be recorded, as JSON; the startup file knows the name as well.
VARIABLE = "MSPROBE_RUN"
_STARTUP = Path(__file__).parent / "startup"
#: Where dumps lie below their folder, those of compiled graphs among them.
_DUMPS = ("step*/*/dump.json", "*/step*/*/dump.json")
#: Signals to one process; a terminal sends others to all that run in it.
_HANDED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
#: Coarsest steps of the times of files.
_STEP_OF_TIMES = 2.0


def run_command(command: str, settings: Mapping[str, Any], *, seed: int | None, frameworks: Iterable[str]) -> int:
    """Run ``command`` in a shell, each Python below it recorded; returns its exit status, as a shell gives it.

    ``settings`` are the debugger's; ``seed`` is what each Python seeds itself with once it has imported a framework.
    """
    request = {"settings": settings, "seed": seed, "frameworks": list(frameworks)}
    path = os.pathsep.join(filter(None, (str(_STARTUP), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, VARIABLE: json.dumps(request, default=str)}
    if seed is not None:
        environment.setdefault("PYTHONHASHSEED", str(seed))
    with _handing_on() as begun:
        process = begun(subprocess.Popen(["sh", "-c", command], env=environment))
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:  # which the command has had as well
                continue
    return status if status >= 0 else 128 - status


@contextmanager
def _handing_on() -> Iterator[Callable[[subprocess.Popen[bytes]], subprocess.Popen[bytes]]]:
    """Hand on what a scheduler sends to the process that it started to the one that is given to what this gives.

    It would end this process alone, and the training would go on without it.
    """
    processes: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def handle(number: int, frame: object) -> None:
        for process in processes:
            process.send_signal(number)
        if not processes:
            early.append(number)

    def begun(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        processes.append(process)
        for number in early:
            process.send_signal(number)
        return process

    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in _HANDED_ON:
            if signal.getsignal(number) is signal.SIG_DFL:  # the command ignores what this process ignores
                handlers[number] = signal.signal(number, handle)
    try:
        yield begun
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def written_since(folder: Path) -> Iterator[Callable[[], Iterator[Path]]]:
    """Give what yields the dumps below ``folder`` that were written since the block began."""
    start = time.time() - _STEP_OF_TIMES

    def dumps() -> Iterator[Path]:
        for place in _DUMPS:
            yield from (file for file in folder.glob(place) if file.stat().st_mtime > start)

    yield dumps


def record_this_process(text: str) -> None:
    """Record what this process trains once it imports a framework; ``text`` is the request of `run_command`."""
    request = json.loads(text)
    forget_imports()
    imported, watch = [name for name in request["frameworks"] if name in sys.modules], _Imports(request)
    WhenImported([name for name in request["frameworks"] if name not in imported], watch).install()
    for name in imported:
        watch(name)


class _Imports:
    """Watches each framework that was imported. Whatever fails here leaves the script alone."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._watches: Any = None

    def __call__(self, name: str) -> None:
        from msprobe_ms.support.log import logger
        from msprobe_ms.support.translation import tr

        try:
            self._watch(name)
        except Exception as error:
            logger.warning(
                tr(
                    "msprobe run: {argv} is not recorded: {name}: {error}",
                    argv=sys.argv[:1],
                    name=type(error).__name__,
                    error=error,
                )
            )

    def _watch(self, name: str) -> None:
        from msprobe_ms.recording.entry_points.script import Watches

        if self._watches is None:
            self._watches = Watches(alone=False, seed=self._request["seed"], **self._request["settings"])
            atexit.register(self._watches.remove)
        self._watches.watch(name)
