"""The processes that hold one framework: run the APIs they are asked to, one after the other, until nobody asks.

``python -m msprobe_ms.accuracy.execution.server FRAMEWORK DESCRIPTOR``. The process imports the framework and forks the
ones that run APIs (`nursery`), each asked for with its `Role`.
"""

from __future__ import annotations

import inspect
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from msprobe_ms.accuracy.execution.messages import Answer, Describe, Described, Raised, Ran, Refused, Request, Role
from msprobe_ms.accuracy.execution.nursery import keep
from msprobe_ms.accuracy.execution.roles import finder
from msprobe_ms.accuracy.execution.runnable import Find
from msprobe_ms.accuracy.judging.reasons import NO_GRADIENT, NO_KERNEL
from msprobe_ms.frameworks import runner_class
from msprobe_ms.frameworks.api_calls import ApiOutcome, NoGradientError, NoKernelError
from msprobe_ms.support.process import end_with_parent
from msprobe_ms.support.text import printable
from msprobe_ms.support.translation import tr

#: Defaults of arguments that mean the same in another process.
_PLAIN = (type(None), bool, int, float, str)
#: Characters of an exception's first line that are reported.
_LONGEST_REASON = 300


def serve(connection: Connection, find: Find, seed: Callable[[int], None]) -> None:
    """Answer requests until the other end is closed."""
    with suppress(EOFError, OSError):
        while True:
            request = connection.recv()
            if isinstance(request, Describe):
                connection.send(_described(request, find))
            else:
                connection.send(_answer(request, find, seed))


def _described(request: Describe, find: Find) -> Described:
    """What is known of an API's arguments: nothing of one that is written in C++."""
    found = find(request.prefix, request.api, request.attributes)
    described = getattr(found, "signature", None)
    try:
        signature = described if described is not None else inspect.signature(found.function)  # type: ignore[union-attr]
    except (AttributeError, TypeError, ValueError):
        return Described(())
    return Described(
        tuple(
            (each.name, each.default is not each.empty, each.default if isinstance(each.default, _PLAIN) else None)
            for each in signature.parameters.values()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        )
    )


def _answer(request: Request, find: Find, seed: Callable[[int], None]) -> Answer:
    try:
        found = find(request.prefix, request.api, request.attributes)
        if isinstance(found, str):
            return Refused(found)
        outcomes: list[ApiOutcome | None] = []
        for arguments, gradients in zip(request.arguments, request.output_gradients, strict=True):
            seed(request.seed)
            try:
                outcomes.append(found.run(arguments, gradients))
            except Exception:
                if not outcomes:
                    raise
                outcomes.append(None)
        return Ran(tuple(outcomes), found.how)
    except NoKernelError as error:
        return Refused(tr("{reason}: {error}", reason=NO_KERNEL, error=first_line(error)))
    except NoGradientError as error:
        return Refused(tr("{reason}: {error}", reason=NO_GRADIENT, error=first_line(error)))
    except NotImplementedError as error:
        return Refused(_told(error))
    except Exception as error:
        reason = getattr(error, "reason", None)  # of a reference that cannot be made: its words
        return Refused(reason) if isinstance(reason, str) and reason else Raised(_told(error))


def _told(error: Exception) -> str:
    return tr("error: {what}", what=f"{type(error).__name__}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text that says something."""
    lines = (line.strip() for line in str(error).splitlines())
    return printable(next(filter(None, lines), "")[:_LONGEST_REASON])


def main(arguments: Sequence[str]) -> None:
    """Serve by children, at the control socket that was handed over."""
    framework, descriptor = arguments
    os.dup2(2, 1)  # what a framework prints is no answer of the command
    end_with_parent()
    _end_first()
    runner_class(framework)
    keep(socket.socket(fileno=int(descriptor)), begin)


def begin(message: bytes, connection: Connection) -> None:
    """Be the process of the role that ``message`` names."""
    find, seed = finder(Role(*json.loads(message)))
    connection.send("ready")
    serve(connection, find, seed)


def _end_first() -> None:
    """Have Linux end this process before any other where memory ends: a dump may say that a result is huge."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    main(sys.argv[1:])
