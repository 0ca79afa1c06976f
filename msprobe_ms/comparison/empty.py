"""Refuse to compare a dump that holds no call."""

from __future__ import annotations

from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import is_loss
from msprobe_ms.dump.reading.locate import beside_halves
from msprobe_ms.support.errors import CompareError
from msprobe_ms.support.translation import tr

#: Tasks that record a call only if something is wrong with it.
_OF_FAULTS = ("overflow_check", "free_benchmark")


class EmptyDumpError(CompareError):
    """A dump holds no call."""


def refuse_empty(target: Dump, golden: Dump) -> None:
    """Return if both dumps hold calls, or are damaged, so that what they lack may be lost.

    :raises EmptyDumpError: one holds none; names which, where it is and what makes a dump empty
    """
    empty = [side for side, dump in (("target", target), ("golden", golden)) if not (dump.damage or _holds_calls(dump))]
    if len(empty) > 1 and target.entries and golden.entries:
        return  # the losses are compared
    if len(empty) > 1:
        where = tr("target {target}, golden {golden}", target=target.path, golden=golden.path)
        raise EmptyDumpError(tr("both dumps are empty: {where}. {why}", where=where, why=_why(target)))
    for side in empty:
        dump = target if side == "target" else golden
        raise EmptyDumpError(
            tr("the {side} is empty: {path} holds no call. {why}", side=tr(side), path=dump.path, why=_why(dump))
        )


def _holds_calls(dump: Dump) -> bool:
    """Whether there is more than the loss, which is recorded unasked at every level but debug."""
    return any(dump.level == "debug" or not is_loss(entry.parsed) for entry in dump.entries.values())


def _why(dump: Dump) -> str:
    if dump.task in _OF_FAULTS:
        return tr("Task {task} records only calls with a fault, and found none", task=dump.task)
    if where := beside_halves(dump.path):
        return tr("Of that step {where}", where=where)
    return tr(
        "An exception ended its step early, or start was given another network than the one that ran, or list, scope "
        'or skip selected no call. The log of that training says which: look for "{nothing}", or for a line that '
        "begins with list, scope or skip",
        nothing=tr("nothing was recorded"),
    )
