"""Steps of a script that calls ``start`` once and never ``step``: runs of the compiled graph that trains."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from types import FrameType

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.compiled_call import GraphRun, Reaches
from msprobe_ms.recording.graphs.step_calls import calls_step
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr


class RunsOfStep:
    """The graphs that have run in a step.

    A step is complete when the graph has run that goes furthest of those seen so far; one that gives gradients to an
    optimizer, when that has run, too. The next step begins when one of the graphs runs again that had run by then: what
    runs before the training, such as a teacher, is in the step of the training, and so is what runs after it and before
    the next training, such as an evaluation, however often.
    """

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._furthest = Reaches.RESULTS
        #: Those that had run when the step was complete; none while it is not.
        self._needed: frozenset[Hashable] = frozenset()
        #: The name of a graph that has run again and waits for the optimizer that it gives its gradients to.
        self.repeated: str | None = None

    def begins_next(self, run: GraphRun) -> bool:
        """Take note of a run; whether the next step begins with it."""
        if run.is_update:
            self._needed, self.repeated = frozenset(self._seen), None
            return False
        begins = run.key in self._needed
        if begins:
            self._seen, self._needed = set(), frozenset()
        elif run.key in self._seen and run.awaits_update:
            self.repeated = run.name
        self._seen.add(run.key)
        if run.reaches >= self._furthest:
            self._furthest = run.reaches
            self._needed = frozenset() if run.awaits_update else frozenset(self._seen)
        return begins


class RunSteps:
    """Tells, from `install` to `remove`, with which runs of graphs steps begin."""

    def __init__(self, framework: Framework, begins: Callable[[], None]) -> None:
        self._framework = framework
        self._begins = begins
        self._process = ThisProcess()
        self._runs = RunsOfStep()
        self._watch: Hooks | None = None
        self._is_stepped: Callable[[], bool] = bool
        #: Steps that have begun so.
        self._begun = 0

    def install(self, caller: FrameType, debugger: str) -> None:
        """Take the next run for the first of a step; ``caller`` called ``start``, of ``debugger``, a class.

        Where its source calls ``step`` too, steps end there and runs are not counted, not even before the first step.
        """
        self.remove()
        self._runs = RunsOfStep()
        self._is_stepped = partial(calls_step, caller.f_code.co_filename, caller.f_lineno, debugger)
        self._watch = self._framework.watch_graph_runs(self._before)
        if self._watch is not None:
            self._watch.install()

    def remove(self) -> None:
        if self._watch is not None:
            self._watch.remove()
            self._watch = None

    def _before(self, run: GraphRun) -> None:
        if self._watch is None or not self._process.is_mine or not self._runs.begins_next(run):
            return
        if not self._begun:
            if self._is_stepped():
                return self.remove()
            logger.info(tr("steps: each run of {name} is one, as step() has not been called", name=run.name))
        self._begun += 1
        return self._begins()

    def take_back(self, step: int) -> int:
        """The script ended ``step`` itself after all; how many steps too many were counted in it."""
        begun, self._begun = self._begun, 0
        if begun:
            logger.warning(
                tr(
                    "step: called for the first time after a graph had run {begun} times since start, which were "
                    "taken for steps: step {step} holds the first run alone, those after it are in steps of "
                    "their own. That was step {step}; from here on steps end where step is called",
                    begun=begun + 1,
                    step=step - begun,
                ),
            )
        return begun

    def warn_of_repetition(self) -> None:
        """The training is over, and steps were never called."""
        if (name := self._runs.repeated) is not None:
            logger.warning(
                tr(
                    "steps: {name} ran several times and no optimizer after it; they count as one step, as where "
                    "gradients are accumulated. Call step() where a step ends",
                    name=name,
                ),
            )
