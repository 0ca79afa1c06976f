"""Level L2: every kernel of a step in launch order, ``Kernel.{Operator}.{n}.forward`` or ``.backward``.

The framework shows kernels one by one, but not all: some operators it runs past that point. What it ran unseen is found
by what it left behind: a *call* that returns a tensor which no kernel seen wrote is recorded as at L1; a *node of the
gradient graph* that hands on a gradient which no kernel seen made of the one that came in is recorded as the backward
kernel it stands for, ``Kernel.{Operator}Grad.{n}``.
Modules, functions and operators called are followed all the same: they say where a kernel belongs.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.names import BACKWARD, FORWARD, api_entry
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.dump.writing.memory_budget import MemoryBudget
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.interface.kernels import NodeObserver
from msprobe_ms.recording.calls import Call, Parameters
from msprobe_ms.recording.containers import results as results_of
from msprobe_ms.recording.containers import tensors_in
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.recorder import Recorder

if TYPE_CHECKING:
    from msprobe_ms.config import Config

PREFIX = "Kernel"


class WrittenTensors:
    """Tensors that kernels wrote into, the latest of them: as many as the budget allows, which counts them.

    What is forgotten may be taken for something that no kernel wrote, and be recorded once more.
    """

    __slots__ = ("_budget", "_framework", "_sizes", "tensors")

    def __init__(self, framework: Framework, budget: MemoryBudget, given: Iterable[Any] = ()) -> None:
        """``given`` are tensors that somebody else holds and no kernel wrote."""
        self._framework = framework
        self._budget = budget
        self.tensors = list(given)
        #: Bytes of the last of them, which are counted.
        self._sizes: deque[int] = deque()

    def add(self, written: Iterable[Any]) -> None:
        """Hold tensors, instead of the oldest where there is no room."""
        for tensor in written:
            size = self._framework.memory(tensor)[1]
            while not (counted := self._budget.take_when_free(size)) and self._sizes:
                del self.tensors[len(self.tensors) - len(self._sizes)]
                self._budget.give(self._sizes.popleft())
            if counted:
                self.tensors.append(tensor)
                self._sizes.append(size)

    def release(self) -> Sequence[Any]:
        """Hold them no longer; the tensors."""
        while self._sizes:
            self._budget.give(self._sizes.popleft())
        tensors, self.tensors = self.tensors, []
        return tensors


class _Launch:
    """One kernel, and where it belongs."""

    __slots__ = (
        "call", "direction", "entry", "fields", "kept", "node", "parent", "reads_gradient", "recomputed", "scratch",
        "site",
    )  # fmt: skip

    def __init__(self, call: Call | None, node: _Node | None, *, backward: bool) -> None:
        self.call = call
        self.node = node
        self.direction = BACKWARD if backward else FORWARD
        self.entry = ""
        self.kept = False
        self.recomputed = False
        #: Whether it works on what came into the node.
        self.reads_gradient = False
        #: Positions of results without meaning.
        self.scratch: frozenset[int] = frozenset()
        self.parent: str | None = None
        self.site: int | None = None
        self.fields: list[tuple[str, Value]] = []


class _Node:
    """A node of the gradient graph, told of by the framework, and the call that made it."""

    def __init__(self, recorder: KernelRecorder, name: str, call: Call) -> None:
        self._recorder = recorder
        self.name = name
        self.call = call
        #: What came in, and what kernels seen made of it, while backward runs through the node.
        self.reached: WrittenTensors | None = None

    def release(self) -> Sequence[Any]:
        """Hold no tensors any longer; those that were held."""
        reached, self.reached = self.reached, None
        return () if reached is None else reached.release()

    def begins(self, grad_outputs: Sequence[Any]) -> None:
        self._recorder.node_begins(self, grad_outputs)

    def ends(self, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        self._recorder.node_ends(self, grad_inputs, grad_outputs)


class _GraphNode:
    """A node of the gradient graph behind a compiled function, which runs its kernels unseen."""

    def __init__(self, recorder: KernelRecorder, call: Call) -> None:
        self._recorder = recorder
        self._call = call

    def begins(self, grad_outputs: Sequence[Any]) -> None:
        return None

    def ends(self, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        self._recorder.graph_ran(self._call, BACKWARD)


class _Nodes(threading.local):
    def __init__(self) -> None:
        self.running: list[_Node] = []


class KernelRecorder(Recorder):
    """Records one step of one process kernel by kernel."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump) -> None:
        super().__init__(config, framework, dump)
        self._budget = dump.budget
        self._nodes = _Nodes()
        self._known_nodes: set[Hashable] = set()

    # -- kernels ---------------------------------------------------------------------------------------------------

    def kernel(self, operator: str, inputs: Sequence[Any], launch: Callable[[], Any]) -> Any:
        """Launch one kernel and record it."""
        if (
            self._thread.busy
            or self._sink.full
            or self._closed
            or not self._process.is_mine
            or self._framework.is_tracing()
        ):
            return launch()
        begun = self._guarded(operator, partial(self._before_launch, operator, inputs, sys._getframe(1)))
        try:
            results = launch()
        except BaseException:
            if begun is not None:
                self._filter.ends(begun.entry)
            raise
        if begun is not None:
            self._guarded(begun.entry, partial(self._after_launch, begun, results))
        return results

    def _before_launch(self, operator: str, inputs: Sequence[Any], frame: Any) -> _Launch:
        calls, nodes = self._thread.calls, self._nodes.running
        in_backward = self._framework.in_backward()
        if nodes and not in_backward:
            self._drop(nodes)  # a backward that raised never said so
        frames = None
        if calls and calls[-1].subject.is_module:
            stack = self._sites.locate(frame, is_module=False)
            frames = stack.frames
            while calls and calls[-1].depth >= stack.depth:
                self._close(calls[-1], calls)
        call = calls[-1] if calls else None
        recomputed = call is not None and call.recomputed
        begun = _Launch(call, nodes[-1] if nodes else None, backward=in_backward and not recomputed)
        begun.recomputed = recomputed
        reached = None if begun.node is None else begun.node.reached
        begun.reads_gradient = reached is not None and self._reads(reached.tensors, inputs)
        base = f"{PREFIX}.{operator}"
        begun.entry = api_entry(PREFIX, operator, self._count(f"{base}.{begun.direction}"), begun.direction)
        owner = begun.node.call if begun.direction == BACKWARD and begun.node is not None else call
        begun.parent = enclosing(owner, begun.direction)
        begun.kept = self._filter.kernel_begins(begun.entry, base, owner, begun.direction)
        if begun.kept:
            begun.scratch = self._framework.scratch_results(operator)
            begun.site = owner.site if owner is not None and not owner.subject.is_module else None
            if begun.site is None:
                frames = self._sites.locate(frame, is_module=False).frames if frames is None else frames
                begun.site = self._site(frames) if frames else None
            self._record_arguments(begun, inputs)
        return begun

    def _calls(self) -> dict[str, int]:
        # Kernels are counted in each direction by itself.
        counts = super()._calls()
        return {re.sub(rf"^({PREFIX}\..+)\.({FORWARD}|{BACKWARD})$", r"\1", base): counts[base] for base in counts}

    def _record_arguments(self, begun: _Launch, inputs: Sequence[Any]) -> None:
        field = "input_args" if begun.direction == FORWARD else "input"
        if self._filter.keeps(begun.direction, field):
            begun.fields.append((field, self._leaves_of(begun.entry, field, inputs)))
            if begun.direction == FORWARD:
                begun.fields.append(("input_kwargs", {}))

    def _leaves_of(self, entry: str, field: str, values: Sequence[Any]) -> Value:
        return self._values.build(list(values), entry, field.removesuffix("_args"), (), self._filter.saves(entry))

    def _after_launch(self, begun: _Launch, results: Any) -> None:
        written = self._tensors(results)
        if begun.call is not None and not begun.call.subject.is_module:
            if begun.call.launched is None:
                begun.call.launched = WrittenTensors(self._framework, self._budget)
            begun.call.launched.add(written)
        if begun.reads_gradient and begun.node is not None and begun.node.reached is not None:
            begun.node.reached.add(written)
        self._filter.ends(begun.entry)
        if not begun.kept:
            return
        if self._filter.keeps(begun.direction, "output"):
            values = results_of(results)
            scratch = begun.scratch
            shown = [None if place in scratch else value for place, value in enumerate(values)]
            begun.fields.append(("output", self._leaves_of(begun.entry, "output", shown)))
        if begun.recomputed:
            begun.fields.append(("recompute", True))
        self._sink.entry(EntryPart(begun.entry, begun.fields, begun.parent, begun.site))

    # -- calls -----------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        super().resume()
        self._known_nodes.clear()

    def close(self) -> None:
        super().close()
        # What a backward that raised left there would stay until Python looks for cycles.
        self._nodes = _Nodes()

    def _needs_site(self, call: Call) -> bool:
        return not call.subject.is_module

    def before(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call that changes its arguments is recorded as they are now, in case no kernel of it is seen."""
        if _is_one_kernel(call):
            self.graph_ran(call, None)
            return super().before(call, args, kwargs)
        if call.subject.writes_in_place and call.keep_forward:
            self._guarded(call.forward, partial(self._record_inputs, call, args, kwargs))
        return args, kwargs

    def after(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        parameters: Parameters = tuple,
    ) -> Any:
        """Close the call; record it where kernels of it ran unseen."""
        if _is_one_kernel(call):
            self._take_launched(call)
            self.graph_ran(call, FORWARD)
            result = super().after(call, args, kwargs, output, parameters)
        else:
            result = output
            self._guarded(call.forward, partial(self._after_call, call, args, kwargs, output))
        if not call.subject.is_module:
            self._guarded(call.forward, partial(self._observe_nodes, call, args, result))
        return result

    def _take_launched(self, call: Call) -> Sequence[Any]:
        """What kernels seen in the call wrote, which is held no longer."""
        launched, call.launched = call.launched, None
        return () if launched is None else launched.release()

    def _settle(self, call: Call, outputs: Sequence[Any]) -> None:
        self._take_launched(call)
        super()._settle(call, outputs)

    def _observe_nodes(self, call: Call, args: tuple[Any, ...], result: Any) -> None:
        def observer(name: str) -> NodeObserver | None:
            if not _is_one_kernel(call):
                return _Node(self, name, call)
            return _GraphNode(self, call) if call.subject.compiled else None

        tensors = [*self._tensors(result), *(self._tensors(args) if call.subject.writes_in_place else ())]
        self._framework.observe_nodes(tensors, self._known_nodes, observer)

    def _after_call(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        launched = self._take_launched(call)
        self._close(call, self._thread.calls)
        if call.subject.is_module or not call.keep_forward:
            return
        if call.subject.writes_in_place:
            unseen = not launched
            output = args[0] if output is None and args else output
        else:
            known = [*launched, *self._tensors((args, kwargs))]
            unseen = not all(self._any_in([tensor], known) for tensor in self._tensors(output))
        if unseen:
            if not call.inputs:
                self._record_inputs(call, args, kwargs)
            self._record_output(call, output, tuple)

    def graph_ran(self, call: Call | None, direction: str | None) -> None:
        """A compiled function has run, or may have: that of ``call``, in this direction, where these are known."""
        return None

    # -- nodes of the gradient graph -------------------------------------------------------------------------------

    def node_begins(self, node: _Node, grad_outputs: Sequence[Any]) -> None:
        """Backward runs into ``node``."""
        if not self._thread.busy and self._is_open():
            node.reached = WrittenTensors(self._framework, self._budget, self._tensors(grad_outputs))
            self._nodes.running.append(node)

    def node_ends(self, node: _Node, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        """Backward leaves ``node``; record it where no kernel seen made what it hands on."""
        running = self._nodes.running
        if self._thread.busy or node not in running or not self._is_open():
            return
        self._drop(running, node)
        self.backward.seen = True
        self._guarded(node.name, partial(self._after_node, node, grad_inputs, grad_outputs))

    def _after_node(self, node: _Node, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        reached = node.release()
        gradients = self._tensors(grad_inputs)
        if self._nodes.running:  # a backward within a backward
            outer = self._nodes.running[-1]
            if outer.reached is not None:
                outer.reached.add(gradients)
        if self._sink.full or all(self._any_in([gradient], reached) for gradient in gradients):
            return
        base = f"{PREFIX}.{node.name}Grad"
        entry = api_entry(PREFIX, f"{node.name}Grad", self._count(f"{base}.{BACKWARD}"), BACKWARD)
        if self._filter.kernel_begins(entry, base, node.call, BACKWARD):
            sides = (("input", grad_outputs), ("output", grad_inputs))
            kept = [(field, values) for field, values in sides if self._filter.keeps(BACKWARD, field)]
            fields = [(field, self._leaves_of(entry, field, values)) for field, values in kept]
            self._sink.entry(EntryPart(entry, fields, enclosing(node.call, BACKWARD), node.call.site))
        self._filter.ends(entry)

    @staticmethod
    def _drop(running: list[_Node], until: _Node | None = None) -> None:
        """Take nodes off from the innermost one on, the last is ``until``, which keeps its tensors."""
        while running and (node := running.pop()) is not until:
            node.release()

    # -- who wrote what --------------------------------------------------------------------------------------------

    def _any_in(self, tensors: Iterable[Any], known: Sequence[Any]) -> bool:
        """Whether one of ``tensors`` is one of the ``known``, or a view of one; an empty one always is."""
        places = [self._framework.memory(tensor) for tensor in known]
        for tensor in tensors:
            address, size = self._framework.memory(tensor)
            if not size or any(start <= address < start + max(span, 1) for start, span in places):
                return True
        return False

    def _reads(self, known: Sequence[Any], inputs: Sequence[Any]) -> bool:
        """Whether an input is one of the ``known``, a view of one, or a copy: the framework copies views unseen."""
        tensors = self._tensors(inputs)
        return self._any_in(tensors, known) or any(self._is_copy(tensor, each) for tensor in tensors for each in known)

    def _is_copy(self, tensor: Any, other: Any) -> bool:
        if tensor.shape != other.shape or tensor.dtype != other.dtype:
            return False
        framework, to_numpy = self._framework, self._framework.to_numpy
        for each in (tensor, other):
            if not framework.is_readable(each) or framework.distinct(each).elements is not each:
                return False
        return to_numpy(tensor).tobytes() == to_numpy(other).tobytes()

    def _tensors(self, value: Any) -> list[Any]:
        return tensors_in(value, self._framework.is_tensor)


def _is_one_kernel(call: Call) -> bool:
    """Whether no kernel of the call is ever seen: it is recorded as at L1, with its gradients."""
    return call.subject.compiled or call.subject.communication is not None


def enclosing(call: Call | None, direction: str) -> str | None:
    """The entry of the innermost module around ``call``, itself included."""
    while call is not None and not call.subject.is_module:
        call = call.parent
    if call is None:
        return None
    return call.forward if direction == FORWARD else call.backward
