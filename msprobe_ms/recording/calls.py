"""Calls being recorded: what is called, and one call of it from its beginning until its gradients have come."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.frameworks.base import InputWatch
from msprobe_ms.recording.communication import CollectiveOperator, Communication
from msprobe_ms.recording.gradient_watch import Plan, Watch
from msprobe_ms.recording.selection.filters import Turn

if TYPE_CHECKING:
    from msprobe_ms.recording.kernel_recorder import WrittenTensors

#: Gives a module's own parameters by name.
Parameters = Callable[[], Iterable[tuple[str, Any]]]


class Subject:
    """What is called: a module (``Cell.fc1.Dense``) or an API (``Functional.relu``), with its name grammar."""

    __slots__ = ("base", "communication", "compiled", "is_module", "scratch", "writes_in_place")

    def __init__(
        self,
        base: str,
        *,
        is_module: bool,
        writes_in_place: bool = False,
        scratch: frozenset[int] = frozenset(),
        communication: Communication | CollectiveOperator | None = None,
        compiled: bool = False,
    ) -> None:
        self.base = base
        self.is_module = is_module
        #: Arguments of such an API must be the caller's own objects, so their gradients are not watched.
        self.writes_in_place = writes_in_place
        #: Positions of results without meaning, recorded as null.
        self.scratch = scratch
        #: Of what exchanges tensors with other processes; functions that do have no backward.
        self.communication = communication
        #: Whether it runs as one compiled graph, whose kernels cannot be intercepted.
        self.compiled = compiled

    def entry(self, direction: str, index: int) -> str:
        return f"{self.base}.{direction}.{index}" if self.is_module else f"{self.base}.{index}.{direction}"


class Call:
    """One call in flight, and what its gradients need when they come back."""

    __slots__ = (
        "backward", "backward_begun", "came_in_parts", "depth", "forward", "handled", "input_watch", "inputs",
        "keep_backward", "keep_forward", "launched", "listed_backward", "listed_forward", "output_fields",
        "output_leaves", "parent", "plan", "recomputed", "site", "subject", "taken", "turn", "watch",
    )  # fmt: skip

    def __init__(self, subject: Subject, index: int, parent: Call | None, depth: int) -> None:
        self.subject = subject
        self.forward = subject.entry(FORWARD, index)
        self.backward = subject.entry(BACKWARD, index)
        self.parent = parent
        self.depth = depth
        #: Whether ``list`` selects it, by its name or that of a module around it.
        self.listed_forward = self.listed_backward = False
        #: Whether ``skip`` leaves it in; its place among those that take turns.
        self.taken = False
        self.turn: Turn | None = None
        #: What is recorded. Gradients are watched, too, where the scope may begin or end with them.
        self.keep_forward = self.keep_backward = False
        self.recomputed = False
        self.site: int | None = None
        #: Fields known before the call ran.
        self.inputs: list[tuple[str, Value]] = []
        #: The arguments' tensors, the framework's watch on them, the places of their gradients.
        self.watch: Watch | None = None
        self.input_watch: InputWatch | None = None
        self.plan: list[Plan] = []
        self.output_fields: list[Plan] = []
        #: Leaves of gradients that came, by their path: further ones may come with those of other results.
        self.output_leaves: dict[tuple[str, ...], Value] = {}
        self.backward_begun = self.came_in_parts = False
        #: At level L2: what the kernels seen in it wrote, once there was one.
        self.launched: WrittenTensors | None = None
        #: The exception that the caller was handling when it made the call; another one at its end is the call's own.
        self.handled = sys.exc_info()[1]

    def parent_entry(self, direction: str) -> str | None:
        """The enclosing module's entry."""
        if self.parent is None:
            return None
        return self.parent.forward if direction == FORWARD else self.parent.backward


class OpenCalls(threading.local):
    """The open calls of one thread, outermost first, and whether the tool itself is at work on it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.busy = False
