"""Steps of the modules inside compiled graphs: what opens them, their dump and recorder, made with the first call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msprobe_ms.dump.writing.memory_budget import MIB, MemoryBudget
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.graph_observer import GraphTaps, Layout, Place, TensorStatistics
from msprobe_ms.recording.graphs.graph_recorder import GraphRecorder, tapped_by
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.hooks.modules import named_bases
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.selection.why_empty import why_no_module
from msprobe_ms.recording.start_arguments import TokenRange
from msprobe_ms.recording.step import Dumper, Step
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import insist
from msprobe_ms.support.translation import tr, tr_join

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Tasks that record modules inside compiled graphs.
TAPPED_TASKS = ("statistics", "tensor", "structure")


class _Part:
    """What there is of a step from its first call on."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump) -> None:
        self.dump = dump
        dump.sinks.start(framework.quiet)
        self.recorder = GraphRecorder(config, framework, dump)


class GraphStep(Step):
    """One step of the modules inside compiled graphs, which tell of it as they run.

    The folder is made with the first call in a graph, so that a dynamic run without graphs has none.
    """

    def __init__(
        self,
        config: Config,
        framework: Framework,
        taps: GraphTaps,
        folder: Path,
        status: Status,
        warned_before: set[str],
        budget: MemoryBudget,
    ) -> None:
        super().__init__(config, framework, status)
        self._taps = taps
        self._folder = folder
        self._warned_before = warned_before
        self._budget = budget
        self._bases: list[str] = []
        #: Class names of the networks that `start` was given.
        self._names = ""
        self._part: _Part | None = None
        #: Called once when the folder cannot be made; from then on nothing is recorded.
        self.on_refusal: Callable[[OSError], None] = self._warn_refused
        self._broken = False
        self._making = threading.RLock()
        self._recording = False

    @staticmethod
    def open(
        config: Config, framework: Framework, taps: GraphTaps, folder: Path, rank: int | None, warned_before: set[str]
    ) -> GraphStep:
        """Make the step's folder at once, or one beside it. Raises OSError when the disk does not allow it."""
        budget = MemoryBudget(config.max_memory * MIB)
        opened = GraphStep(config, framework, taps, folder, Status(config, rank), warned_before, budget)
        opened._open_part()
        return opened

    def _made(self) -> _Part | None:
        with self._making:  # whatever threads call graphs, there is one dump
            if self._part is None and not self._broken:
                try:
                    return self._open_part()
                except OSError as error:
                    if interrupts(error):
                        raise
                    self._broken = True
                    self.on_refusal(error)
            return self._part

    def _open_part(self) -> _Part:
        dump = StepDump(self._config, self._framework, self._folder, self._budget, self._warned_before)
        self._part = part = _Part(self._config, self._framework, dump)
        part.recorder.observe(self._bases)
        return part

    def _warn_refused(self, error: OSError) -> None:
        reason = error.strerror or error
        logger.warning(
            tr(
                "{folder}: {reason}; what runs in graphs is not recorded, training goes on",
                folder=self._folder,
                reason=reason,
            )
        )

    # -- the step's life -------------------------------------------------------------------------------------------

    def start(self, model: Any, token_range: TokenRange | None = None) -> None:
        if token_range is not None:
            raise UsageError(
                tr("start: token_range counts calls of a model in dynamic graphs; leave it out in compiled ones")
            )
        self.pause()  # whoever starts again without a stop has one observer
        modules = list(named_bases(self._framework, model, partial(self.failed, where="start")))
        self._bases = [base for base, _ in modules]
        models = model if isinstance(model, (list, tuple)) else [model]
        self._names = " and ".join(type(each).__name__ for each in models)
        if self._part is not None:
            self._part.recorder.observe(self._bases)
        self._recording = True
        self._guard(lambda: self._taps.install(modules, self), "start")

    def pause(self) -> None:
        """Run graphs that are called from here on without observers; what was launched has told all it had to."""
        if not self._recording:
            return
        self._guard(self._taps.wait, "stop")
        insist(self._taps.remove, partial(self.failed, where="stop", lost=False))
        self._recording = False
        if self._part is not None:
            self._part.recorder.pause()

    def _pause(self) -> None:
        self.pause()

    def _export(self) -> None:
        if (part := self._part) is not None:
            part.dump.guard(lambda: part.dump.export(self.status), "stop", lost=False)

    def _release(self) -> None:
        self._taps.forget()
        if self._part is not None:
            self._part.recorder.close()

    def _complete(self, unused: UnusedSettings) -> None:
        if (part := self._part) is None:
            return
        part.dump.guard(part.dump.sinks.close, "step")
        if part.dump.is_empty and not part.recorder.saw_calls:
            why = why_no_module(self._names, self.ended_by)
            logger.warning(tr_join(": ", (str(part.dump.folder), tr("nothing was recorded"), why)))
        part.dump.close(self.status, lambda: part.recorder.warn_of_unused(unused))

    def dissolve(self, into: StepDump) -> None:
        """Instead of `finish`, where no call in a graph has an entry: what was said goes to the log of ``into``."""
        self._release()
        if (part := self._part) is not None:
            part.dump.guard(part.dump.sinks.close, "step")
            part.dump.guard(lambda: into.absorb(part.dump), "step", lost=False)
            part.dump.errors.warn_of_count(into.folder)

    @property
    def folder(self) -> Path:
        return self._folder if self._part is None else self._part.dump.folder

    def move(self, folder: Path) -> None:
        """Have the dump elsewhere. Raises OSError."""
        if self._part is not None:
            self._part.dump.move(folder)

    @property
    def is_empty(self) -> bool:
        return self._part is None or self._part.dump.is_empty

    @property
    def has_entries(self) -> bool:
        return self._part is not None and self._part.dump.store.entries > 0

    @property
    def saw_backward(self) -> bool:
        return self._part is not None and self._part.recorder.saw_backward

    def _guard(self, action: Callable[[], None], where: str, *, lost: bool = True) -> None:
        try:
            action()
        except Exception as error:
            self.failed(error, where, lost=lost)

    # -- told by running graphs ------------------------------------------------------------------------------------

    def untold(self, module: int | None, what: str) -> None:
        part = self._made()
        if part is not None:
            part.dump.errors.note(
                tr("a compiled graph: what runs inside is not recorded: {what}", what=what)
                if module is None
                else tr("{bases}: not recorded in compiled graphs: {what}", bases=self._bases[module], what=what)
            )

    def notice(self, text: str) -> None:
        part = self._made()
        if part is not None:
            part.dump.errors.note(text)

    def begins(self, module: int, args: Layout, kwargs: Layout) -> int:
        part = self._made()
        return -1 if part is None else part.recorder.begins(module, args, kwargs)

    def value(self, call: int, place: Place, value: np.ndarray | TensorStatistics) -> None:
        if self._part is not None:
            self._part.recorder.value(call, place, value)

    def ends(self, call: int, output: Layout) -> None:
        if self._part is not None:
            self._part.recorder.ends(call, output)

    def parameter_gradient(self, module: int, name: str, dtype: str, gradient: np.ndarray | TensorStatistics) -> None:
        part = self._made()
        if part is not None:
            part.recorder.parameter_gradient(module, name, dtype, gradient)

    def failed(self, error: Exception, where: str, *, lost: bool = True) -> None:
        part = self._made()
        if part is not None:
            part.dump.errors.report(error, where, lost=lost)


class GraphDumper(Dumper):
    """Records modules inside graphs that are compiled as a whole."""

    in_graphs = True

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> None:
        super().__init__(config, framework, apis, quotas)
        tapped = tapped_by(config.data_mode, config.task, parameters=config.parameters)
        taps = framework.graph_taps(tapped, config.dump_path, config.permissions)
        if taps is None:
            raise UsageError(
                tr("level {level}: {no_graph_taps}", level=config.level, no_graph_taps=framework.no_graph_taps)
            )
        self._taps = taps

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> GraphStep:
        return GraphStep.open(config, self._framework, self._taps, folder, rank, self._warned)
