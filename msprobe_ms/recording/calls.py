"""Calls being recorded: what is called, from where, and one call from its beginning until its gradients have come."""

from __future__ import annotations

import linecache
import os
import stat
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Protocol

from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.frameworks.interface.gradients import InputWatch
from msprobe_ms.support.files import PACKAGE_FOLDER
from msprobe_ms.support.interruptions import interrupts

if TYPE_CHECKING:
    from msprobe_ms.recording.gradients import Plan, Watch
    from msprobe_ms.recording.hooks.communication import CollectiveOperator, Communication
    from msprobe_ms.recording.kernel_recorder import WrittenTensors
    from msprobe_ms.recording.selection.filters import Turn

#: Gives a module's own parameters by name.
Parameters = Callable[[], Iterable[tuple[str, Any]]]


class Subject:
    """What is called: a module (``Cell.fc1.Dense``) or an API (``Functional.relu``), with its name grammar."""

    __slots__ = (
        "attributes",
        "attributes_value",
        "base",
        "communication",
        "compiled",
        "is_module",
        "scratch",
        "writes_in_place",
    )

    def __init__(
        self,
        base: str,
        *,
        is_module: bool,
        writes_in_place: bool = False,
        scratch: frozenset[int] = frozenset(),
        communication: Communication | CollectiveOperator | None = None,
        compiled: bool = False,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.base = base
        #: What an operator object was made with; None for all else.
        self.attributes = attributes
        #: The same as the dump has it; it is always the same.
        self.attributes_value: Value | None = None
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


class Untold(Protocol):
    """Where wrappers note that not even a call's recording could begin."""

    untold: bool


class CallTaker(Protocol):
    """What wrappers bring calls to."""

    @property
    def errors(self) -> Untold: ...

    def run(
        self,
        subject: Subject,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        parameters: Parameters = tuple,
    ) -> Any:
        """Call ``function``, and do with the call whatever is to be done; its result or exception.

        ``parameters`` gives those of a layer, by name.
        """

    def blind(self) -> AbstractContextManager[None]:
        """Return a context in which calls are passed on alone."""

    def failed(self, error: Exception, where: str) -> None:
        """Report an error of a hook's own."""


class Call:
    """One call in flight, and what its gradients need when they come back."""

    __slots__ = (
        "backward", "backward_begun", "came_in_parts", "depth", "forward", "handled", "input_watch", "inputs",
        "keep_backward", "keep_forward", "launched", "listed_backward", "listed_forward", "made", "output_fields",
        "output_leaves", "parent", "place", "plan", "recomputed", "site", "stack", "subject", "taken", "turn", "watch",
    )  # fmt: skip

    def __init__(self, subject: Subject, index: int, parent: Call | None, depth: int) -> None:
        self.subject = subject
        if subject.is_module:
            self.forward, self.backward = f"{subject.base}.{FORWARD}.{index}", f"{subject.base}.{BACKWARD}.{index}"
        else:
            self.forward, self.backward = f"{subject.base}.{index}.{FORWARD}", f"{subject.base}.{index}.{BACKWARD}"
        self.parent = parent
        self.depth = depth
        #: While it is open, where that is known.
        self.stack: Stack | None = None
        #: Whether ``list`` selects it, by its name or that of a module around it.
        self.listed_forward = self.listed_backward = False
        #: Whether ``skip`` leaves it in; its place among those that take turns.
        self.taken = False
        self.turn: Turn | None = None
        #: Where places are numbered: its own, and how many calls were made inside.
        self.place, self.made = "", 0
        #: What is recorded. Gradients are watched, too, where the scope may begin or end with them.
        self.keep_forward = self.keep_backward = False
        self.recomputed = False
        self.site: int | None = None
        #: Fields known before the call ran.
        self.inputs: Sequence[tuple[str, Value]] = ()
        #: The arguments' tensors, the framework's watch on them, the places of their gradients.
        self.watch: Watch | None = None
        self.input_watch: InputWatch | None = None
        self.plan: Sequence[Plan] = ()
        self.output_fields: Sequence[Plan] = ()
        #: Leaves of gradients that came, by their path: further ones may come with those of other results.
        self.output_leaves: dict[tuple[str, ...], Value] | None = None
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


#: Kinds of frames, from the hook outwards.
_OWN, _MACHINERY, _PLUMBING, _RECOGNISABLE, _TRACER = range(5)

#: Innermost frames kept of one call site; a deeper stack is a runaway recursion, not information.
_MOST_FRAMES = 64

#: A function, and the line in it that a frame stands at.
Place = tuple[CodeType, int]


class Stack:
    """The stack on which a call is made, as long as it is open: what lies outside of its caller stays as it is.

    ``caller``  the frame that makes it, ``beyond`` the one outside of that
    ``depth``   how many there are from the caller's on; -1 where it is no call of the user's
    ``frames``  those that are recognisable, innermost first; the first is the caller's where that is ``shown``
    """

    __slots__ = ("beyond", "caller", "depth", "frames", "shown")

    def __init__(self) -> None:
        self.caller: FrameType | None = None
        self.beyond: FrameType | None = None
        self.depth = -1
        self.frames: list[Place] = []
        self.shown = False


class CallSites:
    """Numbers call sites as they are met, so that each is written once.

    ``machinery`` are the framework files a module call runs through on its way to the hooks (``nn/cell.py``).
    ``plumbing`` are path fragments of framework files (dispatch, autograd) that mean nothing to a user; a layer's own
    source (``mindspore/nn/layer/conv.py``, ``torch/nn/modules/conv.py``) is kept. What runs inside ``tracers`` is
    no call of the user's.
    """

    def __init__(
        self,
        machinery: tuple[str, ...],
        plumbing: tuple[str, ...],
        tracers: tuple[str, ...] = (),
        *,
        keep_frames: bool,
    ) -> None:
        self._tracers = tuple(part.replace("/", os.sep) for part in tracers)
        self._machinery = tuple(part.replace("/", os.sep) for part in machinery)
        self._plumbing = tuple(part.replace("/", os.sep) for part in plumbing) + self._machinery
        self._keep_frames = keep_frames
        # Functions go by their identity, for which they are held: what Python calls the hash of one is made of all that
        # is in it, anew each time, and so is the line of a frame.
        self._held: list[CodeType] = []
        self._kinds: dict[int, int] = {}
        #: Places by function and instruction, and by function and line: there is one object for each.
        self._reached: dict[tuple[int, int], Place] = {}
        self._places: dict[tuple[int, int], Place] = {}
        #: Of call sites, by the identities of their places.
        self._numbers: dict[tuple[int, ...], int] = {}

    def locate(self, frame: FrameType | None, *, is_module: bool, around: Stack | None = None) -> Stack:
        """Walk outwards from ``frame`` until what is known of the call ``around``; the depth is -1 inside a tracer.

        Depth orders calls: a call made inside another always has a deeper caller. A module's caller is beyond the
        machinery that brought the call to the hook.
        """
        kinds, skipped = self._kinds, _MACHINERY if is_module else _OWN
        known = None if around is None else around.caller
        stack, depth, frames = Stack(), 0, list[tuple[CodeType, int]]()
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(id(code))
            if kind is None:
                kind = self._meet(code)
            if depth:
                if frame is known and around is not None and frame.f_back is around.beyond:
                    # Of all that is known, the caller alone may be at another line by now.
                    moved = around.shown and bool(around.frames)
                    frames += [self._place(frame, code), *around.frames[1:]] if moved else around.frames
                    depth += around.depth
                    break
                depth += 1
            elif kind > skipped:
                depth, stack.caller, stack.beyond, stack.shown = 1, frame, frame.f_back, kind == _RECOGNISABLE
            if kind >= _RECOGNISABLE:
                if kind == _TRACER:
                    return Stack()
                if self._keep_frames and len(frames) < _MOST_FRAMES:
                    frames.append(self._place(frame, code))
            frame = frame.f_back
        stack.depth, stack.frames = depth, frames[:_MOST_FRAMES]
        return stack

    def depth(self, frame: FrameType | None, around: Stack | None = None) -> int:
        """The depth ``locate`` gives a module's caller."""
        kinds, known = self._kinds, None if around is None else around.caller
        depth = 0
        while frame is not None:
            if frame is known and around is not None and frame.f_back is around.beyond:
                return depth + around.depth
            if depth:
                depth += 1
            else:
                code = frame.f_code
                kind = kinds.get(id(code))
                if kind is None:
                    kind = self._meet(code)
                depth = int(kind > _MACHINERY)
            frame = frame.f_back
        return depth

    def number(self, frames: list[Place]) -> tuple[int, list[str] | None]:
        """The number of a call site that was located, and its frames as text when it is met for the first time."""
        key = tuple(map(id, frames))
        if (known := self._numbers.get(key)) is not None:
            return known, None
        number = self._numbers[key] = len(self._numbers)
        return number, [_frame_text(code.co_filename, line, code.co_name) for code, line in frames]

    def _place(self, frame: FrameType, code: CodeType) -> Place:
        """Where a frame stands: the same object each time."""
        instruction = id(code), frame.f_lasti
        place = self._reached.get(instruction)
        if place is None:
            line = frame.f_lineno
            place = self._reached[instruction] = self._places.setdefault((id(code), line), (code, line))
        return place

    def _meet(self, code: CodeType) -> int:
        self._held.append(code)
        kind = self._kinds[id(code)] = self._kind(code)
        return kind

    def _kind(self, code: CodeType) -> int:
        name = code.co_filename
        if name.startswith(PACKAGE_FOLDER):
            return _OWN
        if any(part in name for part in self._tracers):
            return _TRACER
        if any(part in name for part in self._machinery):
            return _MACHINERY
        if name.startswith("<frozen") or any(part in name for part in self._plumbing):
            return _PLUMBING
        return _RECOGNISABLE


@lru_cache(maxsize=1 << 12)  # those of one step are those of the next
def _frame_text(name: str, line: int, function: str) -> str:
    source = linecache.getline(name, line).strip() if _is_readable(name) else ""
    return f"File {name}, line {line}, in {function}, \n {source}"


#: The longest file that is read for a line of source.
_LONGEST_SOURCE = 64 << 20


def _is_readable(name: str) -> bool:
    """Whether what `linecache` would open as a source is a file: a pipe that has its name would be waited for."""
    if name in linecache.cache:
        return True
    folders = ("", *(() if os.path.isabs(name) else sys.path))
    for folder in folders:
        try:
            found = os.stat(os.path.join(folder, name))
        except OSError as error:  # it may have come from somewhere else, which linecache knows
            if interrupts(error):
                raise
            continue
        except (TypeError, ValueError):  # no name of a file at all
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size <= _LONGEST_SOURCE
    return True


class Recomputation:
    """Tells by the functions through which a framework recomputes: ``(path fragment of the file, function name)``."""

    def __init__(self, functions: Collection[tuple[str, str]]) -> None:
        self._functions = [(part.replace("/", os.sep), name) for part, name in functions]
        #: What functions are, by their identity, for which they are held.
        self._known: dict[int, bool] = {}
        self._held: list[CodeType] = []

    def runs(self, frame: FrameType | None) -> bool:
        """Whether ``frame`` was reached through one of them."""
        known = self._known
        while frame is not None:
            code = frame.f_code
            recomputes = known.get(id(code))
            if recomputes is None:
                self._held.append(code)
                recomputes = known[id(code)] = any(
                    code.co_name == name and part in code.co_filename for part, name in self._functions
                )
            if recomputes:
                return True
            frame = frame.f_back
        return False
