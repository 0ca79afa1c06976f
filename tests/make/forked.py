"""Python scripts in processes of their own, forked from one that has imported the framework: an import takes seconds.

A script begins as it would in a fresh interpreter, in its folder and environment and with its arguments, but that its
framework and, if it does not ask to import that itself, this package are imported, and that the framework read the
environment of the tests then. It ends when its threads and exit functions have; modules are not taken apart. What it
prints goes to files. Tests of imports, of the interpreter's start and end, of tracebacks, hash seeds or pipes need
`subprocess.run`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from forked_ranks import CRASHED_AT_ITS_END
from processes import environment, free_port
from repository import PYTHONPATH, ROOT

#: Framework → what is imported beforehand. The first optimizer of PyTorch imports the last, for two seconds.
IMPORTS = {"mindspore": ("mindspore",), "torch": ("torch", "torch._dynamo")}
#: The same of this package.
OURS = {
    "mindspore": ("msprobe_ms.mindspore", "msprobe_ms.config.load"),
    "torch": ("msprobe_ms.pytorch", "msprobe_ms.config.load"),
}
#: Where the processes that have imported a framework listen, and the id of the process with which they end.
FOLDER, OWNER = "MSPROBE_FORKED_FOLDER", "MSPROBE_FORKED_OWNER"

_READY = "ready\n"
#: That of the tests, whatever one of them has changed of it since.
_ENVIRONMENT = {**os.environ, "PYTHONPATH": PYTHONPATH}
#: Those that this process began; others use them as well.
_begun: list[subprocess.Popen[str]] = []
#: Seconds of a processor that each script took, which are not among those of this process's children.
seconds: list[float] = []


def run_forked(
    *arguments: str | Path,
    framework: str,
    alone: bool = False,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run ``python *arguments`` (a file, ``-c`` or ``-m``) to its end; what it printed, and how it ended.

    ``framework`` is mindspore or torch; ``alone``: without this package. Raises subprocess.TimeoutExpired.
    """
    command = [*map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        streams = [str(Path(folder, name)) for name in ("stdout", "stderr")]
        found = dict(os.environ if env is None else env)
        request = {"command": command, "cwd": str(cwd or os.getcwd()), "env": found, "streams": streams}
        with _connect(framework, alone) as connection:
            status = _run(connection, request, timeout)
        output, errors = (Path(stream).read_text(errors="replace") for stream in streams)
    return subprocess.CompletedProcess([sys.executable, *command], status, output, errors)


def record_forked(module: str, *arguments: str) -> int:
    """Run a module that records nets, ``torture.faults.record_mindspore`` or its twin; its exit status."""
    framework = "mindspore" if module.endswith("mindspore") else "torch"
    done = run_forked("-m", module, *arguments, framework=framework, cwd=ROOT, env=environment())
    print(done.stdout, done.stderr)
    return done.returncode


def run_forked_ranks(folder: Path, script: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run ``script FOLDER ARGUMENT…`` on two ranks in ``folder``, emptied: how they ended, and what each printed.

    With or without recording, MindSpore 2.10 crashes now and then as ranks leave the cluster: a thread of `TCPClient`
    reads from a null pointer while `ClusterContext::Finalize` waits for its end. Such a run is repeated.
    """
    ranks, logs = ROOT / "tests" / "make" / "forked_ranks.py", folder / "log"
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        logs.mkdir(parents=True)
        command = (ranks, str(free_port()), logs, script, folder, *arguments)
        ended = run_forked(*command, framework="mindspore", cwd=folder, env=environment())
        if ended.returncode != CRASHED_AT_ITS_END:
            break
    return ended, [(logs / f"worker_{number}.log").read_text() for number in range(2)]


def _run(connection: socket.socket, request: dict[str, Any], timeout: float) -> int:
    answers = connection.makefile()
    connection.sendall(f"{json.dumps(request)}\n".encode())
    child = int(answers.readline())
    connection.settimeout(timeout)
    try:
        status, used = json.loads(answers.readline())
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        raise subprocess.TimeoutExpired(request["command"], timeout) from None
    seconds.append(used)
    return status


def _connect(framework: str, alone: bool) -> socket.socket:
    """A connection to the process that has imported the framework: one for all that run tests at the same time."""
    address = Path(os.environ[FOLDER], framework)
    connection = socket.socket(socket.AF_UNIX)
    with open(f"{address}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            _begin(framework, address)
    connection.connect(_of_framework(str(address)) if alone else str(address))
    return connection


def _of_framework(address: str) -> str:
    """Where the process listens that has not imported this package."""
    return f"{address}.alone"


def _begin(framework: str, address: Path) -> None:
    """Return once it listens at ``address``."""
    process = subprocess.Popen(
        [sys.executable, __file__, framework, str(address), os.environ[OWNER]], env=_ENVIRONMENT, cwd=ROOT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == _READY, f"{framework} cannot be imported"
    _begun.append(process)


# -- the process that has imported the framework -----------------------------------------------------------------------


def _serve(framework: str, address: str, owner: str) -> None:
    """Fork for each connection, which sends a line; answer with the process's id, then with its exit status and the
    seconds that it used. There are two such processes: this one, and its child, which has imported this package too.

    They end with the process that runs the tests.
    """
    listener = _listen(IMPORTS[framework], _of_framework(address))
    if _fork_quietly() == 0:
        listener.close()
        listener = _listen(OURS[framework], address)
        print(_READY, end="", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _answer(listener, owner)


def _listen(imports: Sequence[str], address: str) -> socket.socket:
    for name in imports:
        __import__(name)
    gc.freeze()  # what is imported is looked through by no child's collector, which would copy all of it
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    return listener


def _fork_quietly() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which only wait here
        return os.fork()


def _answer(listener: socket.socket, owner: str) -> None:
    running: dict[int, tuple[int, socket.socket]] = {}
    tests = os.pidfd_open(int(owner))
    while True:
        ready = select.select([listener, tests, *running], [], [])[0]
        if tests in ready:
            return
        for each in ready:
            if each is listener:
                _fork(listener, tests, running)
            else:
                child, connection = running.pop(each)
                _, status, used = os.wait4(child, 0)
                os.close(each)
                answer = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
                with connection, suppress(BrokenPipeError):
                    connection.sendall(f"{json.dumps(answer)}\n".encode())


def _fork(listener: socket.socket, tests: int, running: dict[int, tuple[int, socket.socket]]) -> None:
    connection = listener.accept()[0]
    line = connection.makefile().readline()
    child = _fork_quietly()
    if child == 0:
        for other in (listener, connection, *(each for _, each in running.values())):
            other.close()
        for descriptor in (tests, *running):
            os.close(descriptor)
        _end(_become(**json.loads(line)))
    running[os.pidfd_open(child)] = child, connection
    connection.sendall(f"{child}\n".encode())


def _end(status: int) -> NoReturn:
    """Do what Python does as it ends, but do not take the framework's modules apart: that takes a third of a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def _become(command: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> int:
    """Run a command as this process's only one; return its exit status."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, file in enumerate(streams, 1):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
    os.chdir(cwd)
    del sys.path[: 1 + len(_places())]
    os.environ.clear()
    os.environ.update(env)
    if "coverage" in sys.modules and (measured := sys.modules["coverage"].Coverage.current()) is not None:
        measured.switch_context(env.get("PYTEST_CURRENT_TEST", ""))  # whose lines these are
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    try:
        _execute(command)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _places() -> list[str]:
    return [os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]


def _execute(command: list[str]) -> None:
    kind, arguments = (command[0], command[1:]) if command[0] in ("-c", "-m") else ("", command)
    first = {"-c": "", "-m": os.getcwd()}.get(kind) if kind else str(Path(arguments[0]).resolve().parent)
    sys.path[:0] = [first, *_places()]  # type: ignore[list-item]
    sys.argv[:] = ["-c", *arguments[1:]] if kind == "-c" else arguments
    main: Any = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if kind == "-m":
        import runpy

        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        main.__dict__.update(__builtins__=__builtins__)
        exec(compile(arguments[0], "<string>", "exec", dont_inherit=True), main.__dict__)
    else:
        file = os.path.abspath(arguments[0])
        main.__dict__.update(__builtins__=__builtins__, __file__=file, __cached__=None)
        exec(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True), main.__dict__)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
