"""Check the gradients of a call: forward and backward once more, with the gradients that came to its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msprobe_ms.frameworks.interface.gradients import InputWatch
from msprobe_ms.recording.perturbation.arguments import NotRepeatableError, leaves
from msprobe_ms.recording.perturbation.judging import judge
from msprobe_ms.recording.perturbation.repetition import (
    Function,
    Repetition,
    Result,
    Tools,
    largest,
    rounding_limit,
)
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.translation import tr


class GradientCheck:
    """Waits for the gradients of one call."""

    def __init__(self, tools: Tools, repetition: Repetition, on_gradients: Callable[[GradientCheck], None]) -> None:
        """Watch the arguments; made before the call. ``on_gradients`` is told of this once all are there.

        Raises `NotRepeatableError` where no gradient flows.
        """
        self._tools, self._repetition, self._on_gradients = tools, repetition, on_gradients
        framework = tools.framework
        if not framework.watches_in_place:
            raise NotRepeatableError(tr("this release does not show its gradient graph"))
        watched = {id(each): each for each in repetition.floats if framework.can_watch(each, parameters=True)}
        if not watched:
            raise NotRepeatableError(tr("no gradient flows through it"))
        values = list(watched.values())
        self._watch: InputWatch | None = framework.watch_inputs(values, self._inputs_came, is_module=False)
        # What waits holds no graph: hooks of the graph hold what waits.
        stand_ins = repetition.detach()
        self._watched = [stand_ins[each] for each in watched]
        self._function: Function | None = None
        self._places: list[int] = []
        self._output_gradients: list[Any] = []
        self._input_gradients: Sequence[Any] | Exception = ()

    def settle(self, outputs: Sequence[Any]) -> None:
        """The call is over; ``outputs`` are the tensors it returned, none where it is not checked. May be repeated."""
        watch, self._watch = self._watch, None  # which holds the graph
        if watch is not None:
            watch.settle(outputs)

    def await_from(self, function: Function, output: Any) -> None:
        """Watch the results. Raises `NotRepeatableError` where no gradient flows."""
        framework, repeater = self._tools.framework, self._tools.repeater
        found = leaves(output)
        self._places = [
            place
            for place, each in enumerate(found)
            if framework.is_tensor(each) and framework.can_watch(each, parameters=False) and repeater.is_made(each)
        ]
        self.settle([found[place] for place in self._places])
        if not self._places:
            raise NotRepeatableError(tr("no gradient flows through it"))
        self._function = function
        self._output_gradients = [None] * len(self._places)
        for number, place in enumerate(self._places):
            repeater.watch_gradient(found[place], partial(self._output_came, number))

    def _output_came(self, number: int, gradient: Any) -> None:
        if isinstance(gradient, Exception):
            if interrupts(gradient):
                raise gradient
            self._function = None
        elif self._function is not None and gradient is not None:
            self._output_gradients[number] = self._tools.repeater.detached(gradient)

    def _inputs_came(self, gradients: Sequence[Any] | Exception | None) -> None:
        if gradients is not None:
            self._input_gradients = gradients
            self._on_gradients(self)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        recorded = () if isinstance(self._input_gradients, Exception) else self._input_gradients
        kept = [*self._repetition.tensors, *self._output_gradients, *recorded]
        return sum(self._tools.repeater.size(each) for each in kept if each is not None)

    def keep(self) -> bool:
        """Copy what the script may write to before ``compare`` is called; always True."""
        copies = self._repetition.keep()
        self._watched = [copies[id(each)] for each in self._watched]
        return True

    def compare(self, seed: int) -> Iterator[Result]:
        """Differentiate again and compare. Raises what that raises."""
        function, recorded, given = self._function, self._input_gradients, self._output_gradients
        if isinstance(recorded, Exception):
            raise recorded
        if function is None or len(given) != len(self._places) or all(each is None for each in given):
            raise NotRepeatableError(tr("no gradient came"))
        repetition, repeater = self._repetition, self._tools.repeater
        if repetition.was_written:
            raise NotRepeatableError(tr("an argument was changed before its gradient came"))
        others, changed = repetition.perturbed(seed)
        outputs: list[Any] = []

        def again(tensors: Sequence[Any]) -> list[Any]:
            exchanged = dict(zip(map(id, self._watched), tensors, strict=True))
            result, _ = repetition.run(function, others | exchanged)
            found = leaves(result)
            outputs[:] = [found[place] for place in self._places]
            return list(outputs)

        found = repeater.gradients(again, [others[id(each)] for each in self._watched], given)
        # Arguments may be cast to the dtype of the results.
        made_of = [name for each in outputs if (name := repeater.float_name(each))]
        reached = max((largest(self._tools, each) for each in given if each is not None), default=0.0)
        made = max((largest(self._tools, each) for each in outputs), default=0.0)
        for place, (tensor, own, other) in enumerate(zip(self._watched, recorded, found, strict=False)):
            if own is None or other is None or not (repeater.is_plain(own) and repeater.is_plain(other)):
                continue
            name = repeater.float_name(own)
            if name is None or tuple(own.shape) != tuple(other.shape):
                continue
            # Where gradients cancel by the nature of the function, what is left is rounding: they are held against
            # what they would be if it were proportional to its argument.
            held = largest(self._tools, tensor)
            bounds = repetition.bounds([name, *changed, *made_of], changed)
            limit = max(bounds.limit, rounding_limit(name))
            scale = reached * made / held if held else reached
            bounds = bounds._replace(limit=limit, scale=scale, by_share=False)
            change = repeater.measure(own, other, limit)
            yield Result(place, own, change.relative, judge(change, bounds))

    def release(self) -> None:
        """Let go of all that was kept."""
        self._function, self._watched = None, []
        self._input_gradients, self._output_gradients = (), []
        self._repetition.release()
