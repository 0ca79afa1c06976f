"""Steps of task free_benchmark: wrappers of APIs between ``start`` and ``stop``, tables up to date after each."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.hooks.compiled import CompilerCalls
from msprobe_ms.recording.perturbation.preheat import Preheat
from msprobe_ms.recording.perturbation.recorder import PerturbingRecorder
from msprobe_ms.recording.perturbation.report import Report
from msprobe_ms.recording.perturbation.selection import ChosenApis, api_names
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.step import Dumper, Step
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.patching import Hooks, do_all, insist
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class PerturbedStep(Step):
    """One step whose calls are checked."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        apis: ApiHooks,
        folder: Path,
        rank: int | None,
        recorder: PerturbingRecorder,
        report: Report,
    ) -> None:
        super().__init__(config, framework, Status(config, rank))
        self._apis, self._recorder, self._report = apis, recorder, report
        self._folder, self._rank = folder, rank
        self._compiler_calls: CompilerCalls | None = None
        self._lockstep: Hooks | None = None

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def is_empty(self) -> bool:
        return not self._report.summary.totals[0]

    def start(self, model: Any, token_range: Sequence[int] | AbstractSet[int] | None) -> None:
        if self._compiler_calls is not None:
            self.stop()
        try:
            self._framework.prepare()
            self._compiler_calls = CompilerCalls(self._framework, self._recorder, [self._apis])
            self._compiler_calls.install()
            self._apis.install(self._recorder, model)
            self._lockstep = self._framework.lockstep()
            if self._lockstep is not None:
                self._lockstep.install()
        except Exception as error:
            self.failed(error, "start")

    def _pause(self) -> None:
        insist(self._pause_all, partial(self.failed, where="stop"))

    def _pause_all(self) -> None:
        hooks = (self._compiler_calls, self._apis, self._lockstep)
        taken_off = [each.remove for each in hooks if each is not None]
        ended = partial(self._framework.backward_ended, everywhere=True)
        do_all([*taken_off, ended, self._recorder.pause])
        self._compiler_calls = None

    def _release(self) -> None:
        insist(self._release_all, partial(self.failed, where="step"))

    def _release_all(self) -> None:
        do_all([self._recorder.close, self._framework.leave_leaves])

    def _complete(self, unused: UnusedSettings) -> None:
        try:
            self._report.write_summary(self._rank)
        except OSError as error:
            self.failed(error, "step")


class PerturbationDumper(Dumper):
    """Opens such steps, and keeps what they have in common."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> None:
        """Raises UsageError for a perturbation that the framework cannot make."""
        super().__init__(config, framework, apis, quotas)
        self._report = Report(config, framework)
        reason = framework.repeater().no_cpu
        if config.pert_mode == "to_cpu" and reason is not None:
            raise UsageError(
                tr(
                    "free_benchmark: pert_mode to_cpu does not work here: {reason}; use improve_precision",
                    reason=reason,
                )
            )
        self._preheat: Preheat | None = None
        if config.if_preheat and reason is not None:
            logger.warning(tr("free_benchmark: if_preheat has no effect here: {reason}", reason=reason))
        elif config.if_preheat:
            self._preheat = Preheat(config.preheat_step, config.max_sample)
        self._operators: frozenset[str] | None = None
        if apis is not None and isinstance(apis.chosen, ChosenApis):
            self._operators = apis.chosen.operators
            self._report.summary.unknown = apis.chosen.unknown
            for name, why in apis.chosen.unknown.items():
                logger.warning(tr("free_benchmark: list: {name}: {why}", name=name, why=why))
        if config.handler_type == "fix":
            logger.warning(
                tr(
                    "free_benchmark: fix: results are those of {pert_mode} from here on, and the training is another",
                    pert_mode=config.pert_mode,
                ),
            )

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> Step | None:
        assert self._apis is not None
        config.permissions.make_folder(config.dump_path)
        framework, names = self._framework, api_names(self._framework)
        recorder = PerturbingRecorder(
            config, framework, self._report, names, self._operators, self._preheat, step, rank
        )
        return PerturbedStep(config, framework, self._apis, folder, rank, recorder, self._report)

    def step_ended(self, step: int) -> None:
        if self._preheat is not None:
            self._preheat.end_step()

    def close(self) -> None:
        super().close()
        self._report.end()
