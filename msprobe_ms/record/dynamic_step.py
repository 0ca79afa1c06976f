"""One step of one process from the first ``start`` to ``step``: its store, its recorder, its hooks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.config.vocabulary import MODULE_LEVELS
from msprobe_ms.dump.writing.memory_budget import MIB, Memory
from msprobe_ms.dump.writing.writer import DumpStore, TensorFiles, process_folder
from msprobe_ms.frameworks.base import Framework, Removable
from msprobe_ms.frameworks.graph_observer import GraphTaps
from msprobe_ms.record.graphs.step import GraphStep
from msprobe_ms.record.hooks.apis import ApiHooks
from msprobe_ms.record.hooks.compiler_calls import CompilerCalls
from msprobe_ms.record.hooks.jit import JitHooks
from msprobe_ms.record.hooks.kernels import KernelHooks
from msprobe_ms.record.hooks.modules import ModuleHooks
from msprobe_ms.record.hooks.token_window import TokenWindow
from msprobe_ms.record.kernel_recorder import KernelRecorder
from msprobe_ms.record.output.deferred_statistics import DeferredStatistics
from msprobe_ms.record.output.error_log import ErrorLog
from msprobe_ms.record.output.overflow import OverflowGate, OverflowQuota
from msprobe_ms.record.output.tensor_writer import TensorWriter
from msprobe_ms.record.progress import Status
from msprobe_ms.record.recorder import Recorder
from msprobe_ms.record.saved_values import SavePoints
from msprobe_ms.record.selection.unused_settings import UnusedSettings, why_empty
from msprobe_ms.record.values import ValueSerializer
from msprobe_ms.support.log import logger

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: What ran in compiled graphs and what did not get folders of their own, below the dump path, where there is both.
GRAPH, PYNATIVE = "graph", "pynative"


class Session:
    """Everything a step's recording owns. Nothing here raises into the host once ``open`` has returned."""

    @staticmethod
    def open(
        config: Config,
        framework: Framework,
        apis: ApiHooks | None,
        step: int,
        rank: int | None,
        quota: OverflowQuota,
        noted: set[str],
        taps: GraphTaps | None = None,
    ) -> Session:
        """Make the step's folder. Raises OSError when the disk does not allow it.

        ``noted`` holds warnings that hold for every step and need not come again. ``taps`` reach modules that run in
        compiled graphs; they get a dump of their own.
        """
        folder = process_folder(config.dump_path, step, rank)
        store = DumpStore(
            folder,
            task=config.task,
            level=config.level,
            framework=framework.name,
            tensors=config.stores_files,
            extra_info=config.extra_info,
            permissions=config.permissions,
            max_memory=config.max_memory * MIB,
        )
        graphs = None
        if taps is not None:
            apart = process_folder(config.dump_path / GRAPH, step, rank)
            graphs = GraphStep(config, framework, taps, apart, Status(config, rank), noted)
        beside = process_folder(config.dump_path / PYNATIVE, step, rank)
        return Session(config, framework, apis, store, quota, Status(config, rank), noted, graphs, beside)

    def __init__(
        self,
        config: Config,
        framework: Framework,
        apis: ApiHooks | None,
        store: DumpStore,
        quota: OverflowQuota,
        status: Status,
        noted: set[str],
        graphs: GraphStep | None,
        beside: Path,
    ) -> None:
        """``beside`` is where the dump goes when ``graphs`` has one, too."""
        self._config = config
        self._graphs = graphs
        self._beside = beside
        self._level = config.level
        self._framework = framework
        self._store = store
        self.status = status
        self._trouble = ErrorLog(store, noted)
        if graphs is not None:
            graphs.refused = partial(self._trouble.report, where="what runs in graphs")
        md5 = config.summary_mode == "md5"
        self._awaited = DeferredStatistics(store, framework.read_statistics, self._trouble)
        entries: DeferredStatistics | OverflowGate = self._awaited
        self._gate: OverflowGate | None = None
        memory = Memory(config.max_memory * MIB)
        self._worker: TensorWriter | None = None
        if config.async_dump and config.stores_files:
            self._worker = TensorWriter(store, memory, self._trouble)
        files: TensorFiles = self._worker or store
        leaves = ValueSerializer(framework, files, self._trouble, md5=md5, awaited=self._awaited)
        if config.task == "overflow_check":
            entries = self._gate = gate = OverflowGate(store, files, quota, memory, self._trouble)
            leaves = ValueSerializer(framework, gate, self._trouble, md5=md5, on_figures=gate.figures)
        self._kernels: KernelHooks | None = None
        if config.level == "L2":
            recorder = KernelRecorder(config, framework, entries, leaves, self._trouble)
            self._recorder: Recorder = recorder
            self._kernels = KernelHooks(framework, recorder)
        else:
            self._recorder = Recorder(config, framework, entries, leaves, self._trouble)
        if self._worker is not None:
            self._worker.run(self._recorder.blind)
        self._saves = SavePoints(config, framework, self._awaited, leaves, self._trouble)
        self._apis = apis
        self._model: Any = None
        self._modules: ModuleHooks | None = None
        self._jit: JitHooks | None = None
        self._opaque: CompilerCalls | None = None
        self._window: TokenWindow | None = None
        self._model_calls = itertools.count()
        self._recording = self._opened = False
        #: Holds the framework in step with Python while calls are recorded.
        self._in_step: Removable | None = None
        # A forked child (a data loader's worker) inherits the hooks but must not write into its parent's dump.
        self._process = os.getpid()

    def start(self, model: Any, token_range: Sequence[int] | None) -> None:
        if self._opaque is not None:
            self.stop()
        try:
            self._framework.prepare()
            self._model = model
            if self._level in MODULE_LEVELS or (self._kernels is not None and model is not None):
                self._drop_parameter_hooks()
                self._modules = ModuleHooks(self._framework, self._recorder, model)
            else:
                self._modules = None
            self._jit = JitHooks(
                self._framework,
                self._recorder,
                self._trouble,
                self._modules,
                entries=self._apis is not None,
                tapped=self._graphs is not None,
                frameworks_own=self._kernels is not None,
            )
            if token_range is not None:
                root = model[0] if isinstance(model, (list, tuple)) else model
                self._window = TokenWindow(
                    self._framework, root, token_range, self._model_calls, self._open, self._pause
                )
            hooks = [hooks for hooks in (self._window, self._modules, self._apis, self._jit) if hooks is not None]
            self._opaque = CompilerCalls(self._framework, self._recorder, hooks)
            self._opaque.install()
            if self._window is not None:
                self._window.install()
            else:
                self._open()
        except Exception as error:
            self._trouble.report(error, "start")

    def _open(self) -> None:
        """Put hooks and wrappers in place, unless they are."""
        if self._recording:
            return
        self._recording = self._opened = True
        try:
            self._recorder.resume()
            if self._modules is not None:
                self._modules.install(parameters=self._kernels is None)
            if self._apis is not None:
                self._apis.install(self._recorder, self._model)
            if self._jit is not None:
                self._jit.install()
            if self._kernels is not None:
                self._kernels.install()
            if self._graphs is not None:
                self._graphs.start(self._model)
            self._run_ahead()
            self._in_step = self._framework.in_step()
        except Exception as error:
            self._trouble.report(error, "start")

    def _pause(self) -> None:
        """Take them away again."""
        if not self._recording:
            return
        self._recording = False
        if self._graphs is not None:
            self._graphs.pause()
        self._recorder.pause()
        try:
            with ExitStack() as removing:  # all of them, whatever fails; the last of these first
                removing.callback(self._run_ahead)
                # Before its backward ran, a step still waits for parameter gradients; `step` ends that.
                if self._recorder.backward.seen:
                    removing.callback(self._drop_parameter_hooks)
                if self._modules is not None:
                    removing.callback(self._modules.remove_forward)
                for hooks in (self._apis, self._jit, self._kernels):
                    if hooks is not None:
                        removing.callback(hooks.remove)
        except Exception as error:
            self._trouble.report(error, "stop", lost=False)

    def _run_ahead(self) -> None:
        if self._in_step is not None:
            self._in_step.remove()

    def stop(self) -> None:
        self._pause()
        try:
            if self._opaque is not None:
                self._opaque.remove()
            if self._window is not None:
                self._window.remove()
            self._opaque = self._window = None
            self._framework.backward_ended(everywhere=True)
        except Exception as error:
            self._trouble.report(error, "stop", lost=False)
        try:
            if os.getpid() == self._process:
                self._awaited.fetch()
                if self._worker is not None:
                    self._worker.drain()
                with self.status.exporting() as progress:
                    self._store.export(progress)
                if self._graphs is not None and self._graphs.has_entries:
                    self._graphs.stop()
        except Exception as error:  # what was recorded is in the journal
            self._trouble.report(error, "stop", lost=False)

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        self._saves.save(variable, name, save_backward)

    @property
    def folder(self) -> Path:
        return self._store.folder

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an entry nor a trouble that explains why."""
        something = self._store.entries or self._awaited.waits or self._trouble.count
        return not something and os.getpid() == self._process

    @property
    def saw_backward(self) -> bool:
        """Whether gradients have come back since the last ``start``."""
        return self._recorder.backward.seen

    def finish(self, misses: UnusedSettings) -> None:
        self.stop()
        if self._graphs is None or not self._graphs.has_entries:
            self._tell_if_empty()
        self._model = None
        self._drop_parameter_hooks()
        self._recorder.close()
        self._saves.close()
        if os.getpid() != self._process:
            return
        self._awaited.fetch()  # what other threads added meanwhile
        try:
            self._run_ahead()
            if self._worker is not None:
                self._worker.close()
            if self._graphs is not None:
                self._end_graphs(self._graphs, misses)
        except Exception as error:
            self._trouble.report(error, "step")
        if not self._store.discarded:
            self._close(misses)
        self._trouble.tell(self._store.folder)

    def _close(self, misses: UnusedSettings) -> None:
        try:
            with self.status.exporting() as progress:
                self._store.close(progress)
            self.status.end(self._store.folder, self._store.exported_entries)
            if self._gate is not None:
                self._gate.tell()
            if self.status.speaks:
                self._recorder.tell(misses)
        except Exception as error:  # what could not be exported is in the journal
            self._trouble.report(error, "step", lost=False)

    def _end_graphs(self, graphs: GraphStep, misses: UnusedSettings) -> None:
        """What ran in graphs and what did not get folders of their own where there is both, and no others."""
        folder, apart = self._store.folder, graphs.folder
        try:
            if not graphs.has_entries:
                return graphs.dissolve(self._store)
            if self._store.is_bare:
                self._store.discard()
                graphs.move(folder)
            else:
                self._store.move(self._beside)
        except OSError as error:  # each stays where it is
            self._trouble.report(error, "step", lost=False)
        finally:
            for left in (folder.parent, apart.parent, apart.parent.parent):
                with suppress(OSError):  # other ranks may still be in there
                    left.rmdir()
        return graphs.finish(misses)

    def _tell_if_empty(self) -> None:
        config, jit = self._config, self._jit
        # Jit hooks are there once `start` was called; no overflow, no entries.
        if not self.is_empty:
            return
        if jit is None or config.task == "overflow_check":
            return
        try:
            called = self._recorder.saw_calls
            why = why_empty(
                config, self._framework, self._model,
                opened=self._opened, called=called, compiled=jit.saw_unrecorded,
            )  # fmt: skip
            if why:
                logger.warning("%s: nothing was recorded: %s", self._store.folder, why)
        except Exception as error:
            self._trouble.report(error, "step")

    def _drop_parameter_hooks(self) -> None:
        if self._modules is not None:
            self._modules.remove_parameters()
