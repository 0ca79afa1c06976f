"""Task ``grad_probe``: writes what the gradient of each parameter is whenever an optimizer is called with it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.graph_observer import UpdateTaps
from msprobe_ms.frameworks.optimizers import ParameterUpdate
from msprobe_ms.recording.debuggers import no_model, weakly
from msprobe_ms.recording.hooks.optimizers import parameters_of
from msprobe_ms.recording.monitoring.gradient_files import GradientFiles, GradientTable
from msprobe_ms.recording.selection.process_rank import ProcessRank
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import LogOnce, logger
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.text import listed, suggestion
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class GradientProbe:
    """Writes the gradients of what it watches, at each selected call of its optimizer; a folder of its own a rank."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        rank: ProcessRank,
        guarded: Callable[[str, Callable[[], None]], None],
    ) -> None:
        """``guarded`` runs a function so that no error of ours reaches the training."""
        self._config = config
        self._framework = framework
        self._rank = rank
        self._guarded = guarded
        #: Gives the optimizer, or the network, while its user holds it.
        self._watched: Callable[[], Any] = no_model
        self._hooks: Hooks | None = None
        #: How deep the stack was where a call of an optimizer began that is not over.
        self._depth: int | None = None
        #: The step of the next call.
        self.step = 0
        self._files = GradientFiles(config, rank)
        self._calls = self._missed = 0
        #: Observes optimizers inside compiled graphs, where that can be.
        self._taps: UpdateTaps | None = None
        #: Optimizers in a graph whose calls are open, each inside the one before, and what the first one writes.
        self._open: list[int] = []
        self._table: GradientTable | None = None
        self._say_once = LogOnce()

    def watch(self, watched: Any) -> None:
        """Write the gradients that ``watched``, an optimizer or the network itself, has from here on.

        :raises UsageError: it is neither, or an optimizer that does not know what its parameters are called
        """
        names = self._parameters(watched)
        if missing := [name for name in self._config.param_list if name not in names]:
            hint = suggestion(missing[0], names)
            logger.warning(
                tr(
                    "monitor: no parameter is called {missing}{hint}, as param_list has it",
                    missing=listed(missing, 5),
                    hint=hint,
                )
            )
        self._watched = weakly(watched)
        if self._hooks is None:
            self._hooks = self._framework.watch_optimizers(self._begins, self._ends)
            if self._hooks is None:
                raise UsageError(
                    tr("monitor: this version does not tell when an optimizer is called; use PyTorch 2.0 or later")
                )
            self._hooks.install()
            self._watch_graphs()

    def _watch_graphs(self) -> None:
        self._taps = self._framework.optimizer_taps()
        if self._taps is not None:
            self._taps.install(self)
        elif self._framework.execution_mode() != ExecutionMode.PYNATIVE:
            said = tr(
                "gradients are written where the script itself calls the optimizer, not where a compiled step does"
            )
            logger.warning(tr("monitor: in {mode_text} {said}", mode_text=self._framework.mode_text(), said=said))

    def end(self) -> None:
        """Take the hooks off, and say what was written."""
        hooks, self._hooks = self._hooks, None
        if hooks is None:
            return
        hooks.remove()
        if (taps := self._taps) is not None:
            taps.wait()
            taps.remove()
            taps.forget()
        if self._missed:
            logger.warning(
                tr("monitor: {count} calls of the optimizer were not looked at for want of memory", count=self._missed)
            )
        if self._files.written:
            logger.info(
                tr("{folder}: the gradients of {written} steps", folder=self._files.folder, written=self._files.written)
            )
        elif self._calls:
            logger.warning(tr("monitor: nothing was written: no step that is selected was reached"))
        else:
            logger.warning(tr("monitor: nothing was written: the script itself never called the optimizer"))

    # -- calls of an optimizer ---------------------------------------------------------------------------------------

    def _begins(self, optimizer: Any, updates: Callable[[], Iterable[ParameterUpdate]] | None) -> None:
        try:
            self._begin(optimizer, updates)
        except (MemoryError, RecursionError):  # there may be nothing left to say it with
            self._missed += 1

    def _begin(self, optimizer: Any, updates: Callable[[], Iterable[ParameterUpdate]] | None) -> None:
        if updates is None:
            self._depth = None
            return
        depth = _stack_depth()
        if self._depth is not None and depth > self._depth:  # a class that calls the one it derives from
            return
        self._depth = depth
        self._guarded("monitor", partial(self._record, optimizer, updates))

    def _ends(self, optimizer: Any) -> None:
        self._depth = None

    def _record(self, optimizer: Any, updates: Callable[[], Iterable[ParameterUpdate]]) -> None:
        watched = self._watched()
        gradients = [] if watched is None else list(self._gradients(watched, optimizer, updates))
        if not gradients:
            return
        table = self._next_table()
        if table is None:
            return
        framework = self._framework
        for name, gradient in gradients:
            if self._is_wanted(name) and framework.is_readable(plain := framework.plain(gradient)):
                table.add(name, framework.to_numpy(plain))
        table.close()

    def _next_table(self) -> GradientTable | None:
        """Count a call of the optimizer; what its gradients are written into, None where they are not selected."""
        self._calls += 1
        step, self.step = self.step, self.step + 1
        if (self._config.step and step not in self._config.step) or not self._rank.is_selected(self._config.rank):
            return None
        return self._files.table(step)

    def _is_wanted(self, name: str) -> bool:
        return not self._config.param_list or name in self._config.param_list

    def _gradients(
        self, watched: Any, optimizer: Any, updates: Callable[[], Iterable[ParameterUpdate]]
    ) -> Iterator[tuple[str, Any]]:
        """Names and gradients of what is watched, in the order of the optimizer; none where it is another's call."""
        if self._framework.optimizer_parameters(watched) is not None and optimizer is not watched:
            return
        parameters = self._parameters(watched)
        names = {id(parameter): name for name, parameter in parameters.items()}
        found = [(update.parameter, update.given["gradient"]) for update in updates()]
        own = [(names[id(parameter)], gradient) for parameter, gradient in found if id(parameter) in names]
        if own:
            yield from own
            return
        for name, parameter in parameters.items():  # of an optimizer that updates copies of its own
            if (gradient := self._framework.main_gradient(parameter)) is not None:
                yield name, gradient

    def _parameters(self, watched: Any) -> dict[str, Any]:
        """Parameters by what they are called in the optimizer, or in the network."""
        of_optimizer = self._framework.optimizer_parameters(watched)
        if of_optimizer:
            return dict(of_optimizer)
        if of_optimizer is not None:
            raise UsageError(tr("monitor: this optimizer does not know the names of its parameters; give the network"))
        if not self._framework.is_module(watched):
            given = f"{repr(watched)[:100]}, a {type(watched).__name__},"
            raise UsageError(tr("monitor: {given} is not accepted; give the optimizer, or the network", given=given))
        return dict(parameters_of(self._framework, watched))

    # -- calls of an optimizer inside a compiled graph ---------------------------------------------------------------

    # These touch nothing of the framework's: on their threads it would wait for the graph that calls them.

    def watched(self, optimizer: Any) -> Mapping[int, str]:
        watched = self._watched()
        if watched is None or (self._framework.optimizer_parameters(watched) is not None and optimizer is not watched):
            return {}
        names = {id(parameter): name for name, parameter in self._parameters(watched).items() if self._is_wanted(name)}
        own = enumerate((self._framework.optimizer_parameters(optimizer) or {}).values())
        return {place: names[id(parameter)] for place, parameter in own if id(parameter) in names}

    def begins(self, optimizer: int) -> None:
        if optimizer in self._open:  # its last call failed, and those inside it
            del self._open[self._open.index(optimizer) :]
        self._open.append(optimizer)
        if len(self._open) == 1:
            self._table = self._next_table()

    def gradient(self, name: str, gradient: np.ndarray) -> None:
        if len(self._open) == 1 and self._table is not None:
            self._table.add(name, gradient)

    def ends(self, optimizer: int) -> None:
        self._open = self._open[: self._open.index(optimizer)] if optimizer in self._open else self._open
        if not self._open and self._table is not None:
            table, self._table = self._table, None
            table.close()

    def failed(self, error: Exception, where: str) -> None:
        self._say_once(
            logging.WARNING,
            tr(
                "monitor: {where}: {name}: {error}; training goes on",
                where=where,
                name=type(error).__name__,
                error=error,
            ),
        )


def _stack_depth() -> int:
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
