"""Filters for the calls of a step and their fields: list, scope, data_mode, skip, tensor_list.

The keys: docs/format.md, "Selection".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.config.vocabulary import CASCADING_LEVELS, TENSOR_TASKS
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.dump.patterns import Matcher, Range, is_literal, matcher
from msprobe_ms.recording.selection.places import Places

if TYPE_CHECKING:
    from msprobe_ms.config import Config
    from msprobe_ms.recording.calls import Call
    from msprobe_ms.recording.quotas import CallQuota
    from msprobe_ms.recording.selection.unused_settings import UnusedSettings


#: Which side of ``data_mode`` a field of an entry stands on.
_SIDE = {
    "input_args": "input",
    "input_kwargs": "input",
    "parameters": "input",
    "input": "input",
    "output": "output",
    PARAMETERS_GRAD: "output",
}


class FieldFilter:
    """``data_mode``: a field is kept when ``all``, its direction or its side is named; without ``values`` no field is,
    but the calls whose fields would be."""

    def __init__(self, data_mode: Collection[str], *, values: bool = True, parameters: bool = True) -> None:
        kept = {
            (direction, field): bool({"all", direction, side, field} & set(data_mode))
            for direction in (FORWARD, BACKWARD)
            for field, side in _SIDE.items()
        }
        #: Whether a field of entries is recorded, by direction and name.
        self.kept = {place: values and keeps for place, keeps in kept.items()}
        if not parameters:
            self.kept[FORWARD, "parameters"] = False
        self._keeps_any = {
            direction: any(kept[direction, field] for field in fields)
            for direction, fields in (
                (BACKWARD, ("input", "output", PARAMETERS_GRAD)),
                (FORWARD, ("input_args", "output", "parameters")),
            )
        }
        #: Whether an entry is nothing without parameters.
        self.parameters_alone = values and set(data_mode) == {"parameters"}
        #: Whether a result of forward is recorded, with its values or without.
        self.keeps_results = kept[FORWARD, "output"]

    def keeps(self, direction: str, field: str) -> bool:
        return self.kept[direction, field]

    def keeps_any(self, direction: str) -> bool:
        return self._keeps_any[direction]


class NameList:
    """``list``: a name is accepted when any of the patterns stands for it; no patterns accept everything."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = list(patterns)
        #: Those that have accepted a name, and those that have not.
        self._hit: list[Matcher] = []
        self._unhit = [(pattern, matcher(pattern)) for pattern in dict.fromkeys(patterns)]
        #: Whether any name was asked for.
        self.asked = False

    def accepts(self, name: str) -> bool:
        if not self._patterns:
            return True
        self.asked = True
        accepted = False
        for pattern, matches in self._unhit:  # all of them: one pattern must not hide another
            if matches(name):
                accepted = True
                self._hit.append(matches)
                self._unhit = [each for each in self._unhit if each[0] != pattern]
        return accepted or any(matches(name) for matches in self._hit)

    @property
    def hit(self) -> bool:
        """Whether any name was accepted."""
        return bool(self._hit)

    @property
    def unhit(self) -> list[str]:
        """The patterns that have accepted no name."""
        return [pattern for pattern, _ in self._unhit]


class Scope:
    """``scope``: a call belongs to the range when it *begins* inside it. Lives for one step.

    The range opens whenever an entry that ``first`` stands for begins. It closes whenever one that ``last`` stands for
    begins, or, where the last is included, has ended and is inside no other such.
    """

    def __init__(self, span: Range | None) -> None:
        first, last, self._includes_last = span or Range(None, None)
        self._opens, self._closes = _end(first), _end(last)
        #: Whether every call belongs to it.
        self.is_all = first is None and last is None
        #: Included last entries that have begun and not ended.
        self._running: set[str] = set()
        self.is_open = first is None
        #: Whether each end has come, the last one after the first; an open end need not.
        self.began, self.ended = first is None, last is None
        #: Whether the last came before the first.
        self.reversed = False

    def begins(self, name: str) -> bool:
        """Tell that a call begins; whether it belongs to the range."""
        if self.is_all:
            return True
        if self._opens(name):
            self.is_open = self.began = True
        if self._closes(name):
            if self._includes_last:
                self._running.add(name)
            else:
                self._close()
        return self.is_open

    def ends(self, name: str) -> None:
        """Tell that a call ended."""
        if self._includes_last and self._closes(name):
            self._running.discard(name)
            if not self._running:
                self._close()

    def _close(self) -> None:
        self.is_open = False
        self.ended, self.reversed = self.ended or self.began, self.reversed or not self.began

    def bounds(self, name: str) -> bool:
        """Whether the range may open or close with this entry."""
        return not self.is_all and (self._opens(name) or self._closes(name))


def _end(text: str | None) -> Matcher:
    if text is None:
        return _is_never
    return text.__eq__ if is_literal(text) else matcher(text)


def _is_never(name: str) -> bool:
    return False


class Turn:
    """What the calls made inside one call are numbered by: the first number, and how many there were so far."""

    __slots__ = ("apis", "first", "modules", "places")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        #: Modules that were selected, APIs that were selected, all modules.
        self.modules = self.apis = self.places = 0


class Skip:
    """``skip: n``: every n-th of the selected calls is recorded; 0 and 1 record all. Lives for one step.

    Calls are numbered in execution order inside the module that makes them, modules and APIs apart. A flat net is
    numbered from 0 on, what is inside a module from a number that follows from the module's own. So a call that only
    one of two runs makes shifts what comes after it inside the same module, not the rest of the step, and both runs
    record the same calls.
    """

    def __init__(self, skip: int) -> None:
        self._every = max(skip, 1)
        self._stride = _stride(self._every)
        self._outside = Turn()
        self._taken: set[str] = set()
        #: Of each module's latest call: the first number inside it, and whether it is recorded.
        self._before: dict[str, tuple[int, bool]] = {}
        #: The selected calls so far.
        self.selected = 0

    def enter(
        self, base: str, maker: Turn | None, *, is_module: bool, selected: bool, again: bool
    ) -> tuple[Turn, bool]:
        """One more call of ``base``, made by the module of turn ``maker``: its own turn, and whether it is recorded.

        What backward computes ``again`` is recorded where the module's call before was: its gradients may be there.
        """
        if self._every == 1:
            return self._outside, True
        if again and base in self._before:
            first, taken = self._before[base]
            return Turn(first), taken and selected
        maker = maker or self._outside
        turn = Turn((maker.first + maker.places) * self._stride % self._every)
        number = maker.first + (maker.modules if is_module else maker.apis)
        maker.places += is_module
        taken = selected and number % self._every == self._every - 1
        if selected:
            maker.modules += is_module
            maker.apis += not is_module
            self.selected += 1
        if taken:
            self._taken.add(base)
        if is_module:
            self._before[base] = (turn.first, taken)
        return turn, taken

    def took(self, base: str) -> bool:
        """Whether any call of this module is recorded."""
        return self._every == 1 or base in self._taken

    @property
    def took_none(self) -> bool:
        return self._every > 1 and self.selected > 0 and not self._taken


def _stride(every: int) -> int:
    """The multiplier that spreads 0, 1, 2, … most evenly over the remainders of ``every``.

    It has no divisor in common with it, hence reaches all of them, and lies next to the golden section of it (Knuth,
    The Art of Computer Programming 3, 6.4, multiplicative hashing), hence leaves no large gap at any time.

    >>> [_stride(every) for every in (1, 2, 10, 100)]
    [1, 1, 7, 61]
    """
    golden = every * (math.sqrt(5) - 1) / 2
    near = range(max(1, int(golden) - 9), int(golden) + 10)
    return min((n for n in near if math.gcd(n, every) == 1), key=lambda n: abs(n - golden), default=1)


class CallFilter:
    """``list``, ``scope``, ``skip``, ``data_mode`` and ``tensor_list``, then a quota. Lives for one step."""

    def __init__(self, config: Config, quota: CallQuota | None = None) -> None:
        self._config = config
        self._quota = quota
        self._list = NameList(config.list)
        self._cascades = config.level in CASCADING_LEVELS and bool(config.list)
        #: Modules called inside one that ``list`` selected.
        self._opened: set[str] = set()
        self._scope = Scope(config.scope)
        self._skip = Skip(config.skip)
        self._places = Places(config.places, inside=config.model_itself) if config.places else None
        self._fields = FieldFilter(config.data_mode, values=config.task != "structure", parameters=config.parameters)
        self._keeps_forward, self._keeps_backward = map(self._fields.keeps_any, (FORWARD, BACKWARD))
        self._keeps_gradients = self._fields.kept[BACKWARD, PARAMETERS_GRAD]
        #: Whether a field of entries is recorded, by direction and name; the same for one call after the other.
        self.keeps, self.kept = self._fields.keeps, self._fields.kept
        self._save_all = config.task in TENSOR_TASKS
        self._save_some = NameList(config.tensor_list) if config.tensor_list else None
        chooses = bool(config.list or config.places or quota is not None or config.skip > 1)
        #: Whether all calls are recorded, so that nothing need be asked for each.
        self._takes_all = not chooses and self._scope.is_all
        #: Whether tensors of any entry are stored as files.
        self.saves_files = self._save_all or self._save_some is not None
        #: Takes the name of an entry: a call or its backward is over.
        self.ends = self._scope.ends

    def saves(self, entry: str) -> bool:
        """Whether tensors of this entry are stored as files."""
        return self._save_all or (self._save_some is not None and self._save_some.accepts(entry))

    def call_begins(self, call: Call) -> None:
        """Set ``keep_forward`` and ``keep_backward`` of a call that begins, from list, scope, skip and data_mode."""
        if self._takes_all:
            communication = call.subject.communication
            call.listed_forward = call.listed_backward = call.taken = True
            call.keep_forward = self._keeps_forward
            call.keep_backward = self._keeps_backward and (communication is None or communication.has_backward)
            return
        in_scope = self._scope.begins(call.forward)
        forward, backward = self._list.accepts(call.forward), self._list.accepts(call.backward)
        if self._cascades and call.parent is not None:
            forward, backward = forward or call.parent.listed_forward, backward or call.parent.listed_backward
            if backward:
                self._opened.add(call.subject.base)
        call.listed_forward, call.listed_backward = forward, backward
        subject, inside = call.subject, None if call.parent is None else call.parent.turn
        call.turn, call.taken = self._skip.enter(
            subject.base,
            inside,
            is_module=subject.is_module,
            selected=forward or backward,
            again=call.recomputed,
        )
        if self._places is not None:
            call.taken = self._places.takes(call) and call.taken
        if self._quota is not None and call.taken and in_scope and (forward or backward):
            call.taken = self._quota.takes(subject.base)
        call.keep_forward = forward and call.taken and in_scope and self._fields.keeps_any(FORWARD)
        if subject.communication is None or subject.communication.has_backward:
            # Whether backward falls into the scope shows only when it runs.
            call.keep_backward = self._records_backward(call) or self._scope.bounds(call.backward)

    def backward_begins(self, call: Call) -> None:
        """The first gradient came to a call, or out of it: mark whether its backward is recorded."""
        if self._scope.is_all:  # as was known when the call began
            return
        call.keep_backward = self._scope.begins(call.backward) and self._records_backward(call)

    def _records_backward(self, call: Call) -> bool:
        """Whether its gradients are recorded if they come in the scope."""
        return call.listed_backward and call.taken and self._fields.keeps_any(BACKWARD)

    def parameter(self, entry: str, base: str) -> bool:
        """Whether a parameter's gradient is recorded, as ``entry`` of the module ``base``."""
        if self._takes_all:
            return self._keeps_gradients
        listed = (self._list.accepts(entry) or base in self._opened) and self._skip.took(base)
        if self._places is not None:
            listed = listed and self._places.took(base)
        return listed and self._fields.keeps(BACKWARD, PARAMETERS_GRAD) and self._scope.is_open

    def keeps_loss(self, entry: str) -> bool:
        """Whether what gradients are computed of is recorded: it is a result of forward, and no call to be skipped."""
        return self._list.accepts(entry) and self._scope.is_open and self._fields.keeps_results

    def keeps_update(self, entry: str) -> bool:
        """Whether what an optimizer made of a parameter is recorded."""
        return self._list.accepts(entry) and self._scope.is_open and self._fields.keeps_any(FORWARD)

    @property
    def parameters_alone(self) -> bool:
        """Whether calls of modules without parameters are left out."""
        return self._fields.parameters_alone

    @property
    def keeps_values(self) -> bool:
        """Whether entries have values, and not names alone."""
        return self._config.task != "structure"

    def kernel_begins(self, entry: str, base: str, owner: Call | None, direction: str) -> bool:
        """A kernel begins, launched by ``owner`` or its backward; whether it is recorded.

        Kernels of a call are taken or passed over with it.
        """
        selected = self._selects_kernel(entry, base, owner, direction)
        return selected and self._scope.begins(entry) and self._fields.keeps_any(direction)

    def _selects_kernel(self, entry: str, base: str, owner: Call | None, direction: str) -> bool:
        opened = owner is not None and (owner.listed_forward if direction == FORWARD else owner.listed_backward)
        if not (self._list.accepts(entry) or (self._cascades and opened)):
            return False
        if owner is not None and opened and not owner.subject.is_module:
            return owner.taken
        module = owner if owner is None or owner.subject.is_module else owner.parent
        maker = None if module is None else module.turn
        return self._skip.enter(base, maker, is_module=False, selected=True, again=False)[1]

    def warn_of_unused(self, unused: UnusedSettings, calls: Mapping[str, int]) -> None:
        """Warn of keys that selected nothing in the step that is over; ``calls`` counts those of each name."""
        unused.warn(self._config, calls, self._list, self._scope, self._skip, self._save_some)
        if self._places is not None and self._places.took_none:
            unused.warn_of_places(self._config.places, self._places.numbered, self._places.first)
