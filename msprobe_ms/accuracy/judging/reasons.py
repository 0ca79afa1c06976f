"""Why a call was not compared: the words of the Message column in rows that are ``SKIP``."""

from __future__ import annotations

NO_REFERENCE = "no reference"
NO_KERNEL = "no kernel on this device"
NOT_IN_WHITE_LIST = "not in white list"
IN_BLACK_LIST = "in black list"
RANDOM_OUTPUT = "random output"
NEEDS_RECORDED_MASK = "needs recorded mask"
IN_PLACE = "in-place not reproducible"
DISTRIBUTED = "distributed"
NO_GRADIENT = "no gradient"
DATA_FILE_MISSING = "data file missing"
NOT_RECEIVED = "not received"
LOST_WITH_WORKER = "lost with worker"


def timed_out(seconds: float) -> str:
    """Say that a call took too long.

    >>> timed_out(60.0)
    'timed out after 60 s'
    """
    return f"timed out after {seconds:g} s"


def crashed(exit_status: int) -> str:
    """Say how a process ended, by its exit status as ``subprocess`` has it: negative for a signal.

    >>> crashed(-11), crashed(3)
    ('crashed: signal 11', 'exit 3')
    """
    return f"crashed: signal {-exit_status}" if exit_status < 0 else f"exit {exit_status}"


def failed(error: BaseException) -> str:
    """Say what a call raised, in one line.

    >>> failed(ValueError("no such axis\\nin the call"))
    'error: ValueError: no such axis'
    """
    lines = str(error).strip().splitlines() or [""]
    return f"error: {type(error).__name__}: {lines[0].strip()}".removesuffix(": ")


def kind(message: str) -> str:
    """Return what a reason is counted under: numbers and texts of errors left out.

    >>> [kind(text) for text in ("timed out after 60 s", "crashed: signal 11", "error: ValueError: x", "no reference")]
    ['timed out', 'crashed', 'error: ValueError', 'no reference']
    """
    first = message.partition("\n")[0]
    if first.startswith("error: "):
        return ": ".join(first.split(": ")[:2])
    for beginning in ("timed out", "crashed", "exit"):
        if first.startswith(beginning):
            return "crashed" if beginning == "exit" else beginning
    return first
