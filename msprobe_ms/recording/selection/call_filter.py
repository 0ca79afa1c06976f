"""Decide what of one step is recorded: the keys of the configuration that select, asked as calls are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msprobe_ms.config.vocabulary import CASCADING_LEVELS, TENSOR_TASKS
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.recording.selection.filters import FieldFilter, NameList, Scope, Skip
from msprobe_ms.recording.selection.unused_settings import UnusedSettings

if TYPE_CHECKING:
    from msprobe_ms.config import Config
    from msprobe_ms.recording.calls import Call


class CallFilter:
    """``list``, ``scope``, ``skip``, ``data_mode`` and ``tensor_list``. Lives for one step."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._list = NameList(config.list)
        self._cascades = config.level in CASCADING_LEVELS and bool(config.list)
        #: Modules called inside one that ``list`` selected.
        self._opened: set[str] = set()
        self._scope = Scope(config.scope)
        self._skip = Skip(config.skip)
        self._fields = FieldFilter(config.data_mode, values=config.task != "structure")
        self._save_all = config.task in TENSOR_TASKS
        self._save_some = NameList(config.tensor_list) if config.tensor_list else None

    def keeps(self, direction: str, field: str) -> bool:
        """Whether this field of entries is recorded."""
        return self._fields.keeps(direction, field)

    def saves(self, entry: str) -> bool:
        """Whether tensors of this entry are stored as files."""
        return self._save_all or (self._save_some is not None and self._save_some.accepts(entry))

    def call_begins(self, call: Call) -> None:
        """Set ``keep_forward`` and ``keep_backward`` of a call that begins, from list, scope, skip and data_mode."""
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
        call.keep_forward = forward and call.taken and in_scope and self._fields.keeps_any(FORWARD)
        if subject.communication is None or subject.communication.has_backward:
            # Whether backward falls into the scope shows only when it runs.
            call.keep_backward = self._records_backward(call) or self._scope.bounds(call.backward)

    def backward_begins(self, call: Call) -> None:
        """The first gradient came to a call, or out of it: mark whether its backward is recorded."""
        call.keep_backward = self._scope.begins(call.backward) and self._records_backward(call)

    def _records_backward(self, call: Call) -> bool:
        """Whether its gradients are recorded if they come in the scope."""
        return call.listed_backward and call.taken and self._fields.keeps_any(BACKWARD)

    def ends(self, entry: str) -> None:
        """A call or its backward is over."""
        self._scope.ends(entry)

    def parameter(self, entry: str, base: str) -> bool:
        """Whether a parameter's gradient is recorded, as ``entry`` of the module ``base``."""
        listed = (self._list.accepts(entry) or base in self._opened) and self._skip.took(base)
        return listed and self._fields.keeps(BACKWARD, PARAMETERS_GRAD) and self._scope.is_open

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
