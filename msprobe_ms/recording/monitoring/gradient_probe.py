"""Task ``grad_probe``: writes what the gradient of each parameter is whenever an optimizer is called with it."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from msprobe_ms.dump.gradient_files import direction_file, directions, summary, summary_file, titles
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.optimizers import ParameterUpdate
from msprobe_ms.recording.debuggers import no_model, weakly
from msprobe_ms.recording.hooks.optimizers import parameters_of
from msprobe_ms.recording.process_rank import ProcessRank
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.files import replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.text import listed, suggestion
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Folders that are tried where those before hold the files of other runs.
_MOST_RUNS = 10_000


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
        self._folder: Path | None = None
        self._calls = self._written = self._missed = 0

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
        if self._framework.execution_mode() != ExecutionMode.PYNATIVE:
            said = "gradients are written where the script itself calls the optimizer, not where a compiled step does"
            logger.warning(tr("monitor: in {mode_text} {said}", mode_text=self._framework.mode_text(), said=said))

    def end(self) -> None:
        """Take the hooks off, and say what was written."""
        hooks, self._hooks = self._hooks, None
        if hooks is None:
            return
        hooks.remove()
        if self._missed:
            logger.warning(
                tr("monitor: {count} calls of the optimizer were not looked at for want of memory", count=self._missed)
            )
        if self._written:
            logger.info(tr("{folder}: the gradients of {written} steps", folder=self._folder, written=self._written))
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
        self._calls += 1
        step, self.step = self.step, self.step + 1
        if (self._config.step and step not in self._config.step) or not self._rank.is_selected(self._config.rank):
            return
        wanted = self._config.param_list
        self._write(step, [(name, value) for name, value in gradients if not wanted or name in wanted])

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

    # -- files -------------------------------------------------------------------------------------------------------

    def _write(self, step: int, gradients: Iterable[tuple[str, Any]]) -> None:
        """Write one step; its table comes last, so that a step that has one is whole."""
        level, bounds, permissions = self._config.grad_level, self._config.bounds, self._config.permissions
        folder = self._folder = self._folder or self._own_folder()
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(titles(level, bounds))
        for name, gradient in gradients:
            if not self._framework.is_readable(gradient):
                continue
            array = self._framework.to_numpy(gradient)
            rows.writerow(summary(name, array, level, bounds))
            if level != "L0":
                file = folder / direction_file(step, name)
                permissions.make_folder(file.parent)
                with replacing(file, permissions) as opened:
                    np.save(opened, directions(array), allow_pickle=False)
        with replacing(folder / summary_file(step), permissions) as opened:
            opened.write(text.getvalue().encode("utf-8", "backslashreplace"))
        self._written += 1

    def _own_folder(self) -> Path:
        """Make the rank's folder; where another run has written there, one below a folder with a number."""
        rank, permissions = f"rank{self._rank.known or 0}", self._config.permissions
        for run in range(_MOST_RUNS):
            parent = self._config.dump_path / str(run) if run else self._config.dump_path
            permissions.make_folder(parent)
            try:
                (parent / rank).mkdir(permissions.folder)
            except FileExistsError:
                continue
            if run:
                logger.warning(
                    tr(
                        "monitor: {dump_path} holds another run; this one goes to {parent}",
                        dump_path=self._config.dump_path,
                        parent=parent,
                    )
                )
            return parent / rank
        raise OSError(tr("{dump_path}: holds {most_runs} runs", dump_path=self._config.dump_path, most_runs=_MOST_RUNS))


def _stack_depth() -> int:
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
