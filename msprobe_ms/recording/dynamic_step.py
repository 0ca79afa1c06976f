"""Steps of what Python calls, one by one: what opens them, and of each its dump, its recorder, its hooks."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.config.vocabulary import KERNEL_KEYS, MODULE_LEVELS
from msprobe_ms.dump.writing.memory_budget import MIB, MemoryBudget
from msprobe_ms.dump.writing.writer import process_folder
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.graph_observer import GraphTaps
from msprobe_ms.recording.graphs.graph_recorder import tapped_by
from msprobe_ms.recording.graphs.graph_step import TAPPED_TASKS, GraphStep
from msprobe_ms.recording.graphs.jit_kernel_recorder import JitKernelRecorder
from msprobe_ms.recording.graphs.jit_kernels import JitKernels
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.hooks.compiled import CompilerCalls, GraphCalls, JitHooks
from msprobe_ms.recording.hooks.losses import LossHooks
from msprobe_ms.recording.hooks.modules import ModuleHooks, TokenWindow
from msprobe_ms.recording.hooks.named_modules import NamedModules
from msprobe_ms.recording.hooks.operators import KernelHooks
from msprobe_ms.recording.hooks.optimizers import OptimizerHooks
from msprobe_ms.recording.kernel_recorder import KernelRecorder
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.recording.saved_values import SavePoints
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.selection.why_empty import why_empty
from msprobe_ms.recording.start_arguments import TokenRange, tokens_of
from msprobe_ms.recording.step import Dumper, Step
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Hooks, do_all, insist
from msprobe_ms.support.translation import tr, tr_join, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: What ran in compiled graphs and what did not get folders of their own, below the dump path, where there is both.
GRAPH, PYNATIVE = "graph", "pynative"


class DynamicStep(Step):
    """One step recorded by hooks on what Python calls, with a dump of its own for modules in compiled graphs."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        apis: ApiHooks | None,
        folder: Path,
        step: int,
        rank: int | None,
        quotas: Quotas,
        warned_before: set[str],
        taps: GraphTaps | None = None,
        jit_kernels: JitKernels | None = None,
    ) -> None:
        """Make the step's folder, or one beside it. Raises OSError when the disk does not allow it.

        ``warned_before`` holds warnings that hold for every step and need not come again. ``taps`` reach modules that
        run in compiled graphs.
        """
        super().__init__(config, framework, Status(config, rank, quiet=quotas.calls is not None))
        budget = MemoryBudget(config.max_memory * MIB)
        self._dump = dump = StepDump(config, framework, folder, budget, warned_before, quotas)
        self._errors = dump.errors
        #: Where the dump goes when there is one of graphs, too.
        self._apart = process_folder(config.dump_path / PYNATIVE, step, rank).with_name(dump.folder.name)
        self._graphs: GraphStep | None = None
        if taps is not None:
            apart = process_folder(config.dump_path / GRAPH, step, rank).with_name(dump.folder.name)
            self._graphs = GraphStep(config, framework, taps, apart, Status(config, rank), warned_before, budget)
            self._graphs.on_refusal = partial(self._errors.report, where="what runs in graphs")
        self._kernels: KernelHooks | None = None
        if config.level == "L2":
            recorder = (
                KernelRecorder(config, framework, dump)
                if jit_kernels is None
                else JitKernelRecorder(config, framework, dump, jit_kernels)
            )
            self._recorder: Recorder = recorder
            self._kernels = KernelHooks(framework, recorder)
        else:
            self._recorder = Recorder(config, framework, dump)
        dump.sinks.start(self._recorder.blind)
        self._jit_kernels = jit_kernels
        self._saves = SavePoints(config, framework, dump)
        self._apis = apis
        #: Whether calls of APIs are recorded while hooks are in place.
        self._apis_wanted = True
        self._named_modules = NamedModules(framework, self._recorder)
        self._model: Any = None
        self._modules: ModuleHooks | None = None
        self._graph_calls: GraphCalls | None = None
        self._jit: JitHooks | None = None
        self._losses: LossHooks | None = None
        self._optimizers = OptimizerHooks(framework, self._recorder.updates) if config.optimizer else None
        self._compiler_calls: CompilerCalls | None = None
        self._window: TokenWindow | None = None
        self._model_calls = itertools.count()
        self._recording = self._opened = False
        #: Holds the framework in lockstep with Python while calls are recorded.
        self._lockstep: Hooks | None = None

    def failed(self, error: Exception, where: str) -> None:
        self._errors.report(error, where)

    def start(self, model: Any, token_range: TokenRange | None) -> None:
        if self._compiler_calls is not None:
            self.stop()
        try:
            self._framework.prepare()
            self._model, self._apis_wanted = model, True
            if self._config.level in MODULE_LEVELS or (self._kernels is not None and model is not None):
                self._drop_lasting_hooks()
                self._modules = ModuleHooks(
                    self._framework, self._recorder, model, self._errors, itself=self._config.model_itself
                )
            else:
                self._modules = None
            self._graph_calls = GraphCalls(
                self._framework,
                self._recorder,
                self._errors,
                self._modules,
                entries=self._apis is not None,
                tapped=self._graphs is not None or self._jit_kernels is not None,
                kernels=self._kernels is not None,
            )
            self._jit = JitHooks(self._framework, self._graph_calls)
            if self._kernels is None:  # the kernel that made the loss is recorded itself
                self._losses = LossHooks(self._framework, self._recorder)
            if self._optimizers is not None and model is None:
                self._errors.note(tr("optimizer: updates are those of a network's parameters, give it to start(model)"))
            elif self._optimizers is not None:
                self._dump.guard(partial(self._optimizers.install, model), "start")
            if (tokens := tokens_of(token_range)) is not None:
                root = model[0] if isinstance(model, (list, tuple)) else model
                recorded = None if self._modules is None else self._modules.hand_over(root)
                self._window = TokenWindow(
                    self._framework, root, tokens, self._model_calls, self._open, self._remove_hooks, recorded
                )
            hooks = (self._window, self._modules, self._named_modules, self._apis, self._jit, self._losses)
            there = [each for each in hooks if each is not None]
            self._compiler_calls = CompilerCalls(self._framework, self._recorder, there)
            self._compiler_calls.install()
            if self._window is not None:
                self._window.install()
            else:
                self._open()
        except Exception as error:
            self._errors.report(error, "start")

    def _open(self) -> None:
        """Put hooks and wrappers in place, unless they are."""
        if self._recording:
            return
        self._recording = self._opened = True
        try:
            self._recorder.resume()
            if self._modules is not None:
                self._modules.install(parameters=self._kernels is None)
            self._install_apis()
            if self._jit is not None:
                self._jit.install()
            if self._losses is not None:
                self._losses.install()
            if self._kernels is not None:
                self._kernels.install()
            if self._jit_kernels is not None:
                model = self._model
                self._jit_kernels.start(model if isinstance(model, (list, tuple)) else [] if model is None else [model])
            if self._graphs is not None:
                self._graphs.start(self._model)
            self._leave_lockstep()
            self._lockstep = self._framework.lockstep()
            if self._lockstep is not None:
                self._lockstep.install()
        except Exception as error:
            self._errors.report(error, "start")
        except BaseException:
            self._remove_hooks()
            raise

    def _install_apis(self) -> None:
        if self._apis is not None and self._apis_wanted:
            self._apis.install(self._recorder, self._model)

    def stop_apis(self) -> None:
        self._apis_wanted = False
        if self._apis is not None and self._recording:
            self._apis.remove()

    def record_module(self, module: Any, name: str) -> None:
        if self._recording:
            self.stop_apis()
            self._named_modules.add(module, name)

    def leave_modules(self) -> None:
        self._named_modules.remove_forward()
        self._apis_wanted = True
        if self._recording:
            self._install_apis()

    def _remove_hooks(self) -> None:
        """Take them away again."""
        if self._recording:
            insist(self._take_hooks_off, partial(self._errors.report, where="stop", lost=False))
            self._recording = False

    def _take_hooks_off(self) -> None:
        actions = [] if self._graphs is None else [self._graphs.pause]
        actions.append(self._recorder.pause)
        if isinstance(self._recorder, KernelRecorder):
            actions.append(partial(self._recorder.graph_ran, None, None))
        if self._jit_kernels is not None:
            actions.append(self._jit_kernels.pause)
        actions += [each.remove for each in (self._kernels, self._losses, self._jit, self._apis) if each is not None]
        actions.append(self._named_modules.remove_forward)
        if self._modules is not None:
            actions.append(self._modules.remove_forward)
        # Before its backward ran, a step still waits for parameter gradients; `step` ends that.
        if self._recorder.backward.seen:
            actions.append(self._drop_lasting_hooks)
        do_all([*actions, self._leave_lockstep])

    def _leave_lockstep(self) -> None:
        if self._lockstep is not None:
            self._lockstep.remove()

    def _pause(self) -> None:
        insist(self._pause_all, partial(self._errors.report, where="stop", lost=False))

    def _pause_all(self) -> None:
        outer = [each.remove for each in (self._compiler_calls, self._window) if each is not None]
        do_all([self._remove_hooks, *outer, partial(self._framework.backward_ended, everywhere=True)])
        self._compiler_calls = self._window = None

    def _export(self) -> None:
        try:
            self._dump.export(self.status)
            if self._graphs is not None and self._graphs.has_entries:
                self._graphs.stop()
        except Exception as error:  # what was recorded is in the journal
            self._errors.report(error, "stop", lost=False)

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        self._saves.save(variable, name, save_backward)

    def optimizer_ran(self, optimizer: Any) -> None:
        self._recorder.updates.end(optimizer)

    @property
    def folder(self) -> Path:
        return self._dump.folder

    @property
    def is_empty(self) -> bool:
        return self._dump.is_empty and self._process.is_mine

    @property
    def left_nothing(self) -> bool:
        return self.is_empty and (self._graphs is None or not self._graphs.has_entries)

    @property
    def _holds_losses_alone(self) -> bool:
        recorder = self._recorder
        return recorder.saw_losses and not (recorder.saw_calls or self._errors.count) and self._process.is_mine

    @property
    def saw_backward(self) -> bool:
        return self._recorder.backward.seen

    def _release(self) -> None:
        without_calls = self.is_empty or self._holds_losses_alone
        if without_calls and (self._graphs is None or not self._graphs.has_entries):
            self._warn_of_emptiness()
        self._model = None
        insist(self._release_all, partial(self._errors.report, where="step", lost=False))

    def _release_all(self) -> None:
        optimizers = [] if self._optimizers is None else [self._optimizers.remove]
        do_all([self._drop_lasting_hooks, *optimizers, self._recorder.close, self._saves.close])

    def _complete(self, unused: UnusedSettings) -> None:
        try:
            self._leave_lockstep()
            self._dump.sinks.close()  # other threads may have added something since `stop`
            if self._graphs is not None:
                self._complete_graphs(self._graphs, unused)
        except Exception as error:
            self._errors.report(error, "step")
        if self._dump.store.discarded:
            self._errors.warn_of_count()
        else:
            self._dump.close(self.status, partial(self._recorder.warn_of_unused, unused))

    def _complete_graphs(self, graphs: GraphStep, unused: UnusedSettings) -> None:
        """What ran in graphs and what did not get folders of their own where there is both, and no others."""
        folder, apart = self.folder, graphs.folder
        try:
            if not graphs.has_entries:
                return graphs.dissolve(self._dump)
            if self._dump.is_bare:
                self._dump.store.discard()
                graphs.move(folder)
            else:
                self._dump.move(self._apart)
        except OSError as error:  # each stays where it is
            self._errors.report(error, "step", lost=False)
        finally:
            for left in (folder.parent, apart.parent, apart.parent.parent):
                with suppress_own(OSError):  # other ranks may still be in there
                    left.rmdir()
        return graphs.finish(unused)

    def _warn_of_emptiness(self) -> None:
        config, graphs = self._config, self._graph_calls
        # They are there once `start` was called; no overflow, no entries; and none of what a sample has enough of.
        sampled = self._dump.calls is not None
        if graphs is None or config.task == "overflow_check" or (sampled and not graphs.saw_unrecorded):
            return
        try:
            called = self._recorder.saw_calls
            why = why_empty(
                config, self._framework, self._model,
                opened=self._opened, called=called, unfinished=self._recorder.unfinished,
                compiled=graphs.saw_unrecorded, error=self.ended_by,
            )  # fmt: skip
            if why and self.gave_way:
                why = tr("another PrecisionDebugger was started before anything was called that this one records")
            if why:
                nothing = tr("nothing was recorded") if self.is_empty else tr("nothing but the loss was recorded")
                logger.warning(tr_join(": ", (str(self.folder), nothing, why)))
        except Exception as error:
            self._errors.report(error, "step")

    def _drop_lasting_hooks(self) -> None:
        """Those on parameters and other tensors of the script that outlive a gradient graph."""
        self._named_modules.remove_parameters()
        if self._modules is not None:
            self._modules.remove_parameters()
        self._framework.leave_leaves()


class DynamicDumper(Dumper):
    """Records what Python calls, by hooks."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> None:
        if config.level == "L2" and framework.no_kernels is not None:
            raise UsageError(tr('level "L2": {no_kernels}', no_kernels=framework.no_kernels))
        if isinstance(config.summary_mode, tuple):
            categories = tr_list(config.summary_mode)
            raise UsageError(
                tr(
                    "PrecisionDebugger: summary_mode [{categories}] is for kernels of compiled graphs; "
                    "{mode_text} know one of statistics, md5",
                    categories=categories,
                    mode_text=framework.mode_text(),
                )
            )
        super().__init__(config, framework, apis, quotas)
        idle = [key for key in (*KERNEL_KEYS, "acl_config") if config.asks_for(key)]
        if config.level == "L2" and idle:
            logger.info(tr("these configuration keys have no effect in dynamic graphs: {idle}", idle=tr_list(idle)))
        #: At level L2, what compiled functions launch.
        self._jit_kernels = JitKernels(config, framework) if config.level == "L2" else None
        #: Modules may run in compiled graphs in between.
        self._taps: GraphTaps | None = None
        if config.level in MODULE_LEVELS and config.task in TAPPED_TASKS:
            self._taps = framework.graph_taps(
                tapped_by(config.data_mode, config.task, parameters=config.parameters),
                config.dump_path,
                config.permissions,
            )

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> DynamicStep:
        framework, apis, quotas = self._framework, self._apis, self._quotas
        return DynamicStep(
            config, framework, apis, folder, step, rank, quotas, self._warned, self._taps, self._jit_kernels
        )

    def close(self) -> None:
        super().close()
        if self._jit_kernels is not None:
            self._jit_kernels.close()
