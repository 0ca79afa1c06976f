"""Why a call was not compared: the words of the Message column in rows that are ``SKIP``."""

from __future__ import annotations

from msprobe_ms.support.translation import tr

NO_REFERENCE = tr("no reference")
NO_KERNEL = tr("no kernel on this device")
NOT_IN_WHITE_LIST = tr("not in white list")
IN_BLACK_LIST = tr("in black list")
RANDOM_OUTPUT = tr("random output")
NEEDS_RECORDED_MASK = tr("needs recorded mask")
IN_PLACE = tr("in-place not reproducible")
DISTRIBUTED = tr("distributed")
NO_GRADIENT = tr("no gradient")
DATA_FILE_MISSING = tr("data file missing")
NOT_RECEIVED = tr("not received")
LOST_WITH_WORKER = tr("lost with worker")


def timed_out(seconds: float) -> str:
    """Say that a call took too long.

    >>> timed_out(60.0)
    'timed out after 60 s'
    """
    return tr("timed out after {seconds:g} s", seconds=seconds)


def crashed(exit_status: int) -> str:
    """Say how a process ended, by its exit status as ``subprocess`` has it: negative for a signal.

    >>> crashed(-11), crashed(3)
    ('crashed: signal 11', 'exit 3')
    """
    return (
        tr("crashed: signal {number}", number=-exit_status)
        if exit_status < 0
        else tr("exit {status}", status=exit_status)
    )


def failed(error: BaseException) -> str:
    """Say what a call raised, in one line.

    >>> failed(ValueError("no such axis\\nin the call"))
    'error: ValueError: no such axis'
    """
    lines = str(error).strip().splitlines() or [""]
    return tr("error: {what}", what=f"{type(error).__name__}: {lines[0].strip()}".removesuffix(": "))


def same_arguments(first: str) -> str:
    """Say that a call is left out, as it differs from an earlier one only in the values of tensors."""
    return tr("same arguments as {first}", first=first)


def was_left_out(message: str) -> bool:
    """Return whether a call was not checked because the user did not want it.

    >>> [was_left_out(each) for each in (IN_BLACK_LIST, same_arguments("Mint.sub.0"), NO_REFERENCE)]
    [True, True, False]
    """
    return message in (IN_BLACK_LIST, NOT_IN_WHITE_LIST) or message.startswith(same_arguments(""))


def kind(message: str) -> str:
    """Return what a reason is counted under: numbers and texts of errors left out.

    >>> [kind(text) for text in ("timed out after 60 s", "crashed: signal 11", "error: ValueError: x", "no reference")]
    ['timed out', 'crashed', 'error: ValueError', 'no reference']
    """
    first = message if "\n" not in message else message.partition("\n")[0]
    if first.startswith("error: "):
        return tr("error: {what}", what=first.split(": ")[1])
    for beginning in (tr("timed out"), tr("crashed"), "exit"):
        if first.startswith(beginning):
            return tr("crashed") if beginning == "exit" else beginning
    return first
