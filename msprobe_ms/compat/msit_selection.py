"""How msit selects what is dumped, as keys of a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msprobe_ms.dump.dialects import MODULE_PREFIXES
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

#: Which part of a call's tensors is recorded → ``data_mode``.
PARTS = {0: ["input"], 1: ["output"], 2: ["all"]}
#: ``mode`` → the level.
LEVELS = {("module",): "L0", ("api",): "L1", ("api", "module"): "mix"}

_PREFIXES = f"(?:{'|'.join(MODULE_PREFIXES)})"
_ENDS = rf"(?:{FORWARD}|{BACKWARD}|{PARAMETERS_GRAD})(?:\.\d+)?"
#: The network itself, as msit writes paths.
_ROOT = "root"


def module_pattern(layer: str, classes: Iterable[str] = ()) -> str:
    """Return the pattern of modules by their path, ``root.layers.0*``, and by their classes; "" and none for any.

    >>> module_pattern("root.layers.0*", ["Linear"])
    'name-regex((?:Cell|Module)\\.layers\\.0.*\\.(?:Linear)\\.(?:forward|backward|parameters_grad)(?:\\.\\d+)?)'
    """
    path = layer.removeprefix(f"{_ROOT}.") if layer != _ROOT else ""
    place = r"\." if layer == _ROOT else r"\.(?:.*\.)?" if not layer else rf"\.{_with_gaps(path)}\."
    kinds = "|".join(map(re.escape, classes)) or r"[^.]+"
    return rf"name-regex({_PREFIXES}{place}(?:{kinds})\.{_ENDS})"


def _with_gaps(path: str) -> str:
    """The expression for a text with ``*`` for any text, whose cost does not grow with the number of gaps."""
    first, *others = (re.escape(part) for part in path.split("*"))
    last = f".*{others.pop()}" if others else ""
    # The leftmost place of a part leaves the most room for those behind it: no other need be tried, and none is.
    middle = (rf"(?=(?P<gap{place}>.*?{part}))(?P=gap{place})" for place, part in enumerate(others) if part)
    return first + "".join(middle) + last


def logits_pattern() -> str:
    """Return the pattern of the network's own call, whose result the logits are."""
    return module_pattern(_ROOT)


def places(ids: str, *, children: bool) -> list[str]:
    """Return ``places`` for operation ids as ``-ids`` takes them, ``2, 3_1``; with what runs inside them, or without.

    Raises UsageError.

    >>> places("2, 3_1", children=True)
    ['2', '2_**', '3_1', '3_1_**']
    """
    found = []
    for part in filter(None, (each.strip() for each in ids.split(","))):
        if not re.fullmatch(r"\d{1,9}(_\d{1,9})*", part):
            raise UsageError(tr("-ids {part} is not accepted; give places from 0 up, such as 2,3_1", part=repr(part)))
        found += [part, f"{part}_**"] if children else [part]
    if not found and not children:
        return ["*"]
    return found


def executions(text: str) -> list[str]:
    """Return the steps of ``-er``: pairs of a first and a last token, both included.

    >>> executions("3,5,7,7")
    ['3-5', '7-7']
    """
    ends = [each.strip() for each in text.split(",")]
    if len(ends) % 2 or not all(re.fullmatch(r"\d{1,9}", end) for end in ends):
        raise UsageError(
            tr(
                "-er {text} is not accepted; give pairs of first and last token, such as 0,3 or 3,5,7,7",
                text=repr(text),
            )
        )
    return [f"{first}-{last}" for first, last in zip(ends[::2], ends[1::2], strict=True)]


def data_mode(part: int, time: int) -> tuple[list[str], str]:
    """Return ``data_mode`` for ``-stp`` and ``-time``, and what is to be said of it.

    Raises UsageError where nothing is left.
    """
    by_time: Sequence[int] = {0: (0,), 1: (1,)}.get(time, (0, 1))
    wanted = [each for each in by_time if part in (2, each)]
    if not wanted:
        raise UsageError(
            tr(
                "-time {time} with -stp {part} leaves nothing: results are there after the call alone",
                time=time,
                part=part,
            )
        )
    said = (
        ""
        if time in (0, 3)
        else tr("-time {time}: inputs are recorded as they are before a call, results after it", time=time)
    )
    return (["all"] if len(wanted) == 2 else PARTS[wanted[0]]), said
