"""Prints as JSON all that a script can see of the interpreter that runs it: run with python and with msprobe run."""

from __future__ import annotations

# ruff: noqa: E402 - what there is before anything is imported
import sys

BEGINNING = dict(globals())
PATH, MODULES = list(sys.path), set(sys.modules)

import atexit
import gc
import inspect
import json
import locale
import logging
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import warnings


class Mine:
    """Pickled by name."""


def where() -> list[str]:
    """The frames below this one."""
    return [f"{frame.filename}:{frame.name}" for frame in traceback.extract_stack()]


def in_a_process(method: str) -> list[str]:
    """What a child process says of its ``__main__``."""
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(sender, Mine()))
    process.start()
    sender.close()
    try:
        answer: list[str] = receiver.recv()
    except EOFError:  # of a package's __main__, which children do not import
        answer = []
    process.join()
    return [*answer, str(process.exitcode)]


def child(sender: object, mine: Mine) -> None:
    main = sys.modules["__main__"]
    told = [__name__, main.__name__, str(main.__file__), type(mine).__module__, *sys.argv]
    sender.send(told)  # type: ignore[attr-defined]


def streams() -> dict[str, list[object]]:
    named = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    return {
        name: [type(each).__name__, each.name, each.encoding, each.errors, each.line_buffering, each.write_through,
               each.newlines, each.mode, each.isatty(), each is getattr(sys, f"__{name}__")]
        for name, each in named.items()
    }  # fmt: skip


def seen() -> dict[str, object]:
    main = sys.modules["__main__"]
    keys = [key for key in BEGINNING if key != "annotations"]  # __future__ puts it there
    started = {key: repr(BEGINNING[key]) for key in ("__name__", "__doc__", "__package__", "__spec__", "__cached__")}
    loader = BEGINNING["__loader__"]
    return {
        "names": keys,
        "main": started,
        "main is sys.modules": main.__dict__ is globals(),
        "main's type": [type(main).__name__, repr(main)],
        "loader": [type(loader).__name__, getattr(loader, "name", None), str(getattr(loader, "path", None))],
        "source by the loader": "in_a_process" in str(loader.get_source(getattr(loader, "name", "__main__"))),
        "annotations": [type(__annotations__).__name__, list(__annotations__)],
        "builtins": repr(__builtins__),
        "file": __file__,
        "code": where.__code__.co_filename,
        "argv": sys.argv,
        "path": PATH,
        "path as now": sys.path,
        "flags": repr(sys.flags),
        "options": [sys.warnoptions, repr(sys._xoptions), sys.dont_write_bytecode, sys.pycache_prefix],
        "executable": [sys.executable, sys.prefix, sys.base_prefix],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.int_info.default_max_str_digits],
        "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__,
                  sys.unraisablehook is sys.__unraisablehook__, threading.excepthook is threading.__excepthook__,
                  sys.gettrace() is None, sys.getprofile() is None, sys.breakpointhook is sys.__breakpointhook__],
        "path hooks": list(map(repr, sys.path_hooks)),
        "finders": list(map(repr, sys.meta_path)),
        "streams": streams(),
        "encodings": [sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors(),
                      locale.setlocale(locale.LC_ALL)],
        "filters": list(map(str, warnings.filters)),
        "showwarning": warnings.showwarning.__module__,
        "logging": [logging.getLogger().handlers, logging.getLogger().level, logging.root.manager.disable],
        "signals": {str(each): str(signal.getsignal(each)) for each in sorted(signal.valid_signals())},
        "collector": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
        "threads": [each.name for each in threading.enumerate()],
        "start method": multiprocessing.get_start_method(allow_none=True),
        "working folder": os.getcwd(),
        "umask": _umask(),
        "environment": dict(os.environ),
        "files": sorted(os.listdir("/proc/self/fd")),
        "exit functions": atexit._ncallbacks(),  # type: ignore[attr-defined]
        "source": inspect.getsource(Mine),
        "source file": inspect.getsourcefile(Mine),
        "module of": inspect.getmodule(Mine) is main,
        "pickle": type(pickle.loads(pickle.dumps(Mine()))) is Mine,
        "frames": where(),
        "children": {method: in_a_process(method) for method in ("fork", "spawn", "forkserver")},
        "modules": sorted(MODULES),
    }  # fmt: skip


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    print(json.dumps(seen(), indent=1))
