"""Places of calls: which call of the call around it each is, from 0.

    3       the fourth call that the network makes
    3_1     the second call inside that one
    3_*     every call inside it, 3_** all that is inside those as well
    *       every call that the network makes itself

The network's own call has no place. At level L1 all calls of the step have one number, in their order; so have the
network's own where it is called again in the step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msprobe_ms.recording.calls import Call

#: So many of the outer calls are named where nothing stands at a place, down to those inside the network's own.
_MOST_NAMED, _DEEPEST = 8, 2

_PARTS = {"*": r"\d+", "**": r"\d+(?:_\d+)*"}


class Places:
    """``places``: a call is accepted when any of the patterns stands for its place. Lives for one step.

    ``inside``: the network's own call is recorded, so that calls outside of it are known, and have no place.
    """

    def __init__(self, patterns: Sequence[str], *, inside: bool = False) -> None:
        self._patterns = [re.compile("_".join(_PARTS.get(part, part) for part in each.split("_"))) for each in patterns]
        self._inside = inside
        self._outside = 0
        self._taken: set[str] = set()
        #: Calls that had a place.
        self.numbered = 0
        #: The first of them: place and name.
        self.first: list[str] = []

    def takes(self, call: Call) -> bool:
        """Number a call that begins, and say whether it is recorded."""
        call.place = self._place(call)
        if not call.place:
            return False
        self.numbered += 1
        if len(self.first) < _MOST_NAMED and call.place.count("_") < _DEEPEST:
            self.first.append(f"{call.place} {call.subject.base}")
        taken = any(pattern.fullmatch(call.place) for pattern in self._patterns)
        if taken:
            self._taken.add(call.subject.base)
        return taken

    def _place(self, call: Call) -> str:
        """Its place; "" for the network itself."""
        around = call.parent
        if around is None:
            if self._inside or (call.subject.is_module and call.subject.base.count(".") == 1):
                return ""
            number, self._outside = self._outside, self._outside + 1
            return str(number)
        number, around.made = around.made, around.made + 1
        return f"{around.place}_{number}" if around.place else str(number)

    def took(self, base: str) -> bool:
        """Whether any call of this module is recorded."""
        return base in self._taken

    @property
    def took_none(self) -> bool:
        return self.numbered > 0 and not self._taken
