"""One step of the modules inside compiled graphs, from the first ``start`` to ``step``: its store, its recorder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msprobe_ms.dump.writing.memory_budget import MIB, Memory
from msprobe_ms.dump.writing.writer import DumpStore, process_folder
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.graph_observer import Figures, GraphTaps, Layout, Place
from msprobe_ms.record.graphs.recorder import GraphRecorder
from msprobe_ms.record.hooks.modules import named_bases
from msprobe_ms.record.output.error_log import ErrorLog
from msprobe_ms.record.output.tensor_writer import TensorWriter
from msprobe_ms.record.progress import Status
from msprobe_ms.record.selection.unused_settings import UnusedSettings
from msprobe_ms.record.values import ValueSerializer
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class _Part:
    """What there is of a step from its first call on."""

    def __init__(self, config: Config, framework: Framework, store: DumpStore, noted: set[str]) -> None:
        self.store = store
        self.trouble = ErrorLog(store, noted)
        self.worker = None
        if config.async_dump and config.stores_files:
            self.worker = TensorWriter(store, Memory(config.max_memory * MIB), self.trouble)
            self.worker.run(framework.quiet)
        leaves = ValueSerializer(
            framework,
            self.worker or store,
            self.trouble,
            md5=config.summary_mode == "md5",
        )
        self.recorder = GraphRecorder(config, framework, store, leaves, self.trouble)

    def finish(self) -> None:
        self.recorder.close()
        if self.worker is not None:
            self.worker.close()


class GraphStep:
    """Everything a step's recording of compiled graphs owns. Nothing here raises into the host.

    The folder is made with the first call in a graph, so that a dynamic run without graphs has none.
    """

    def __init__(
        self, config: Config, framework: Framework, taps: GraphTaps, folder: Path, status: Status, noted: set[str]
    ) -> None:
        self._config = config
        self._framework = framework
        self._taps = taps
        self._folder = folder
        self.status = status
        self._noted = noted
        self._bases: list[str] = []
        self._part: _Part | None = None
        #: Told once when the folder cannot be made; from then on nothing is recorded.
        self.refused: Callable[[OSError], None] = self._tell_refused
        self._broken = False
        self._making = threading.RLock()
        self._recording = False
        self._process = os.getpid()

    @staticmethod
    def open(
        config: Config, framework: Framework, taps: GraphTaps, step: int, rank: int | None, noted: set[str]
    ) -> GraphStep:
        """Make the step's folder at once. Raises OSError when the disk does not allow it."""
        folder = process_folder(config.dump_path, step, rank)
        session = GraphStep(config, framework, taps, folder, Status(config, rank), noted)
        session._open_part()
        return session

    def _made(self) -> _Part | None:
        with self._making:  # whatever threads call graphs, there is one dump
            if self._part is None and not self._broken:
                try:
                    return self._open_part()
                except OSError as error:
                    self._broken = True
                    self.refused(error)
            return self._part

    def _open_part(self) -> _Part:
        config = self._config
        store = DumpStore(
            self._folder,
            task=config.task,
            level=config.level,
            framework=self._framework.name,
            tensors=config.stores_files,
            extra_info=config.extra_info,
            permissions=config.permissions,
            max_memory=config.max_memory * MIB,
        )
        self._part = part = _Part(config, self._framework, store, self._noted)
        part.recorder.observe(self._bases)
        return part

    def _tell_refused(self, error: OSError) -> None:
        reason = error.strerror or error
        logger.warning("%s: %s; what runs in graphs is not recorded, training goes on", self._folder, reason)

    # -- the step's life -------------------------------------------------------------------------------------------

    def start(self, model: Any, token_range: Sequence[int] | None = None) -> None:
        if token_range is not None:
            raise UsageError(
                "start: token_range counts calls of a model in dynamic graphs; leave it out in compiled ones"
            )
        modules = list(named_bases(self._framework, model))
        self._bases = [base for base, _ in modules]
        if self._part is not None:
            self._part.recorder.observe(self._bases)
        self._recording = True
        self._guarded(lambda: self._taps.install(modules, self), "start")

    def stop(self) -> None:
        self.pause()
        if self._part is not None and os.getpid() == self._process:
            part = self._part
            if part.worker is not None:
                part.worker.drain()
            with self.status.exporting() as progress:
                self._guarded(lambda: part.store.export(progress), "stop", lost=False)

    def pause(self) -> None:
        """Graphs that are called from here on run without observers; what was launched has told all it had to."""
        if not self._recording:
            return
        self._recording = False
        self._guarded(self._taps.wait, "stop")
        self._guarded(self._taps.remove, "stop", lost=False)
        if self._part is not None:
            self._part.recorder.pause()

    def finish(self, misses: UnusedSettings) -> None:
        self.stop()
        self._taps.forget()
        part = self._part
        if part is None:
            return
        part.finish()
        if os.getpid() != self._process:
            return
        self._tell_if_empty(part)
        self._guarded(lambda: self._close(part), "step", lost=False)
        if self.status.speaks:
            self._guarded(lambda: part.recorder.tell(misses), "step", lost=False)
        part.trouble.tell(part.store.folder)

    def _close(self, part: _Part) -> None:
        with self.status.exporting() as progress:
            part.store.close(progress)
        self.status.end(part.store.folder, part.store.exported_entries)

    def dissolve(self, store: DumpStore) -> None:
        """Instead of `finish`, where no call in a graph has an entry: what was said goes to the log of ``store``."""
        self._taps.forget()
        if (part := self._part) is not None:
            part.finish()
            self._guarded(lambda: store.absorb(part.store), "step", lost=False)
            part.trouble.tell(store.folder)

    def _tell_if_empty(self, part: _Part) -> None:
        if not (self.is_empty and self._bases is not None and not part.recorder.saw_calls):
            return
        logger.warning(
            "%s: nothing was recorded: no module of the network ran in a graph between start and stop; is it the "
            "network that was given to start?",
            part.store.folder,
        )

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Level debug is not recorded here."""

    @property
    def folder(self) -> Path:
        return self._folder if self._part is None else self._part.store.folder

    def move(self, folder: Path) -> None:
        """Have the dump elsewhere. Raises OSError."""
        if self._part is not None:
            self._part.store.move(folder)

    @property
    def is_empty(self) -> bool:
        return self._part is None or not (self._part.store.entries or self._part.trouble.count)

    @property
    def has_entries(self) -> bool:
        return self._part is not None and self._part.store.entries > 0

    @property
    def saw_backward(self) -> bool:
        return self._part is not None and self._part.recorder.saw_backward

    def _guarded(self, action: Callable[[], None], where: str, *, lost: bool = True) -> None:
        try:
            action()
        except Exception as error:
            self.failed(error, where, lost=lost)

    # -- told by running graphs ------------------------------------------------------------------------------------

    def untold(self, module: int | None, what: str) -> None:
        part = self._made()
        if part is not None:
            part.trouble.note(
                f"a compiled graph: what runs inside is not recorded: {what}"
                if module is None
                else f"{self._bases[module]}: not recorded in compiled graphs: {what}"
            )

    def notice(self, text: str) -> None:
        part = self._made()
        if part is not None:
            part.trouble.note(text)

    def begins(self, module: int, args: Layout, kwargs: Layout) -> int:
        part = self._made()
        return -1 if part is None else part.recorder.begins(module, args, kwargs)

    def value(self, call: int, place: Place, value: np.ndarray | Figures) -> None:
        if self._part is not None:
            self._part.recorder.value(call, place, value)

    def ends(self, call: int, output: Layout) -> None:
        if self._part is not None:
            self._part.recorder.ends(call, output)

    def parameter_gradient(self, module: int, name: str, dtype: str, gradient: np.ndarray | Figures) -> None:
        part = self._made()
        if part is not None:
            part.recorder.parameter_gradient(module, name, dtype, gradient)

    def failed(self, error: Exception, where: str, *, lost: bool = True) -> None:
        part = self._made()
        if part is not None:
            part.trouble.report(error, where, lost=lost)
