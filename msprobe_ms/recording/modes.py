"""Choose what records: which level and task work in which execution mode, and what opens a step there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.config.vocabulary import KERNEL_KEYS, MODULE_LEVELS
from msprobe_ms.frameworks.base import ExecutionMode, Framework
from msprobe_ms.frameworks.graph_observer import GraphTaps
from msprobe_ms.recording.dynamic_step import DynamicStep
from msprobe_ms.recording.graphs.graph_recorder import tapped_by
from msprobe_ms.recording.graphs.graph_step import GraphStep
from msprobe_ms.recording.graphs.kernel_dumper import KernelDumper
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.output.overflow import OverflowQuota
from msprobe_ms.recording.step import Dumper
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Tasks that record modules inside compiled graphs.
TAPPED_TASKS = ("statistics", "tensor", "structure")


class DynamicDumper(Dumper):
    """Records what Python calls, by hooks."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quota: OverflowQuota) -> None:
        if config.level == "L2" and framework.no_kernels is not None:
            raise UsageError(f'level "L2": {framework.no_kernels}')
        if isinstance(config.summary_mode, tuple):
            categories = ", ".join(config.summary_mode)
            raise UsageError(
                f"PrecisionDebugger: summary_mode [{categories}] is for kernels of compiled graphs; "
                f"{framework.mode_text()} know one of statistics, md5"
            )
        super().__init__(config, framework, apis, quota)
        idle = [key for key in KERNEL_KEYS if config.asks_for(key)]
        if config.level == "L2" and idle:
            logger.info("these configuration keys have no effect in dynamic graphs: %s", ", ".join(idle))
        #: Modules may run in compiled graphs in between.
        self._taps: GraphTaps | None = None
        if config.level in MODULE_LEVELS and config.task in TAPPED_TASKS:
            self._taps = framework.graph_taps(
                tapped_by(config.data_mode, config.task), config.dump_path, config.permissions
            )

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> DynamicStep:
        return DynamicStep(config, self._framework, self._apis, step, rank, self._quota, self._warned, self._taps)


class GraphDumper(Dumper):
    """Records modules inside graphs that are compiled as a whole."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quota: OverflowQuota) -> None:
        super().__init__(config, framework, apis, quota)
        taps = framework.graph_taps(tapped_by(config.data_mode, config.task), config.dump_path, config.permissions)
        if taps is None:
            raise UsageError(f"level {config.level}: {framework.no_graph_taps}")
        self._taps = taps

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> GraphStep:
        return GraphStep.open(config, self._framework, self._taps, step, rank, self._warned)


@dataclass(frozen=True, slots=True)
class Way:
    """One field of the table: what records, and the tasks that it knows."""

    make: Callable[[Config, Framework, ApiHooks | None, OverflowQuota], Dumper]
    tasks: tuple[str, ...]


_CALLS = Way(DynamicDumper, ("statistics", "tensor", "structure", "overflow_check"))
_MODULES = Way(GraphDumper, TAPPED_TASKS)
_VALUES = Way(DynamicDumper, ("statistics", "tensor"))

#: Execution mode and level → what records there. What is not here is refused.
WAYS: dict[ExecutionMode, dict[str, Way]] = {
    ExecutionMode.PYNATIVE: {"L0": _CALLS, "L1": _CALLS, "mix": _CALLS, "L2": _CALLS, "debug": _VALUES},
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


class Dumpers:
    """The dumpers of one debugger: one for each way in which the execution modes that it meets are recorded."""

    def __init__(self, config: Config, framework: Framework, apis: ApiHooks | None, quota: OverflowQuota) -> None:
        self._level, self._task = config.level, config.task
        self._parts = (config, framework, apis, quota)
        self._framework = framework
        self._made: dict[Way, Dumper] = {}

    def now(self, caller: str) -> Dumper:
        """The dumper of the mode that the framework is in now.

        Raises UsageError, in the name of ``caller``, where level and task cannot record in this mode.
        """
        mode = self._framework.execution_mode()
        way = WAYS[mode].get(self._level)
        if way is None or self._task not in way.tasks:
            raise UsageError(f"{caller}: {self._refusal(mode)}")
        if way not in self._made:
            self._made[way] = way.make(*self._parts)
        return self._made[way]

    def _refusal(self, mode: ExecutionMode) -> str:
        works = [f"level {level} ({', '.join(way.tasks)})" for level, way in WAYS[mode].items()]
        if mode != ExecutionMode.PYNATIVE:
            works.append(self._framework.how_to_be_dynamic)
        refused = f"level {self._level} with task {self._task} does not record {self._framework.mode_text()}"
        return f"{refused}; use {', or '.join(works)}"

    def step_ended(self, step: int) -> None:
        for dumper in self._made.values():
            dumper.step_ended(step)

    def close(self) -> None:
        """Put back whatever the dumpers changed in the process."""
        for dumper in self._made.values():
            dumper.close()
