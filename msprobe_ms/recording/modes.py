"""Choose what records: which level and task work in which execution mode, and what opens a step there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msprobe_ms.config.vocabulary import API_LEVELS, PERTURBATION_TASK
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.recording.dynamic_step import DynamicDumper
from msprobe_ms.recording.graphs.device_kernels import DeviceKernelDumper
from msprobe_ms.recording.graphs.graph_step import TAPPED_TASKS, GraphDumper
from msprobe_ms.recording.graphs.kernel_step import KernelDumper
from msprobe_ms.recording.hooks.api_list import ApiList
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.perturbation.selection import ChosenApis
from msprobe_ms.recording.perturbation.step import PerturbationDumper
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.sent_steps import SendingDumper, outgoing_of
from msprobe_ms.recording.step import Dumper
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_join, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config import Config


@dataclass(frozen=True, slots=True)
class Way:
    """One field of the table: what records, and the tasks that it knows."""

    make: Callable[[Config, Framework, ApiHooks | None, Quotas], Dumper]
    tasks: tuple[str, ...]


def _kernels(config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> Dumper:
    dump = framework.device_dump(config.acl_config)
    if dump is None:
        return DynamicDumper(config, framework, apis, quotas)
    return DeviceKernelDumper(config, framework, apis, quotas, dump)


_CALLS = Way(DynamicDumper, ("statistics", "tensor", "structure", "overflow_check"))
_LAUNCHES = Way(_kernels, _CALLS.tasks)
_MODULES = Way(GraphDumper, TAPPED_TASKS)
_VALUES = Way(DynamicDumper, ("statistics", "tensor"))
_CHECKS = Way(PerturbationDumper, (PERTURBATION_TASK,))

#: Where calls of APIs are not recorded but made again.
CHECKING: dict[ExecutionMode, dict[str, Way]] = {ExecutionMode.PYNATIVE: {"L1": _CHECKS}}

#: Execution mode and level → what records there. What is not here is refused.
WAYS: dict[ExecutionMode, dict[str, Way]] = {
    ExecutionMode.PYNATIVE: {"L0": _CALLS, "L1": _CALLS, "mix": _CALLS, "L2": _LAUNCHES, "debug": _VALUES},
    ExecutionMode.KBYK: {
        "L0": _MODULES,
        "L2": Way(KernelDumper, ("statistics", "tensor", "exception_dump")),
        "debug": _VALUES,
    },
    ExecutionMode.GRAPH: {
        "L0": _MODULES,
        "L2": Way(KernelDumper, ("statistics", "tensor", "overflow_check", "exception_dump")),
        "debug": _VALUES,
    },
}


def api_hooks(config: Config, framework: Framework) -> ApiHooks | None:
    """Return the wrappers of the APIs that a configuration asks for; None at levels without any.

    Raises ConfigError for what is wrong with ``api_list``.
    """
    if config.level not in API_LEVELS:
        return None
    if config.task == PERTURBATION_TASK:
        return ApiHooks(framework, ChosenApis(framework, config.api_list, config.list))
    apis = ApiList(framework, config.api_list)
    return ApiHooks(framework, apis, layers=config.layers, primitives=config.primitives)


class Dumpers:
    """The dumpers of one debugger: one for each way in which the execution modes that it meets are recorded."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas) -> None:
        self._level, self._task = config.level, config.task
        self._parts = (config, framework, apis, quotas)
        self._framework = framework
        self._made: dict[Way, Dumper] = {}
        #: Where steps are sent to; None where they are kept.
        self._outgoing = outgoing_of(config)
        if self._outgoing is not None:
            quotas.calls = self._outgoing

    def now(self, caller: str) -> Dumper:
        """The dumper of the mode that the framework is in now.

        Raises UsageError, in the name of ``caller``, where level and task cannot record in this mode.
        """
        mode = self._framework.execution_mode()
        way = self._ways(mode).get(self._level)
        if way is None or self._task not in way.tasks:
            raise UsageError(tr_join(": ", (caller, self._refusal(mode))))
        if way not in self._made:
            dumper = way.make(*self._parts)
            self._made[way] = dumper if self._outgoing is None else SendingDumper(dumper, self._outgoing)
        return self._made[way]

    def _ways(self, mode: ExecutionMode) -> dict[str, Way]:
        return CHECKING.get(mode, {}) if self._task == PERTURBATION_TASK else WAYS[mode]

    def _refusal(self, mode: ExecutionMode) -> str:
        works = [
            tr("level {level} ({tasks})", level=level, tasks=tr_list(way.tasks))
            for level, way in self._ways(mode).items()
        ]
        if mode != ExecutionMode.PYNATIVE:
            works.append(self._framework.how_to_be_dynamic)
        checks = self._task == PERTURBATION_TASK
        refused = tr(
            "level {level} with task {task} does not {verb} {mode}",
            level=self._level,
            task=self._task,
            verb=tr("check") if checks else tr("record"),
            mode=self._framework.mode_text(),
        )
        return tr("{refused}; use {works}", refused=refused, works=tr_join(tr(", or "), works))

    def step_ended(self, step: int) -> None:
        for dumper in self._made.values():
            dumper.step_ended(step)

    def close(self) -> None:
        """Put back whatever the dumpers changed in the process."""
        for dumper in self._made.values():
            dumper.close()
