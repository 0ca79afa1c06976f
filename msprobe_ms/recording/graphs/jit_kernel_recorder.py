"""Level L2 with the kernels inside of compiled functions, among those that are launched one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msprobe_ms.dump.names import FORWARD, RECOMPUTE, api_entry, module_entry
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.calls import Call
from msprobe_ms.recording.graphs.jit_kernels import GraphKernel, JitKernels, Tensor
from msprobe_ms.recording.kernel_recorder import PREFIX, KernelRecorder, enclosing
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config

_NONE_CAME = tr(
    "none came: MindSpore reads the configuration of its kernel dump once a process, before its first graph; construct "
    "PrecisionDebugger before anything that is compiled runs, an optimizer included"
)


class JitKernelRecorder(KernelRecorder):
    """Records what a compiled function launched as soon as it has run."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump, kernels: JitKernels) -> None:
        super().__init__(config, framework, dump)
        self._kernels = kernels

    def graph_ran(self, call: Call | None, direction: str | None) -> None:
        if not self._is_open() or (call is not None and not call.subject.compiled):
            return
        self._kernels.wait()  # not guarded: what it raises is of the script's own kernels
        where = PREFIX if call is None else call.forward if direction == FORWARD else call.backward
        self._guarded(where, partial(self._after_graph, call, direction))

    def _after_graph(self, call: Call | None, direction: str | None) -> None:
        # What was launched before this call is none of its own.
        owner, came = call if direction is not None else None, False
        for launch in self._kernels.take():
            came = True
            if not self._sink.full:
                self._launched(launch, owner, direction or launch.direction)
        if not came and call is not None and direction == FORWARD and not self._kernels.came:
            why = self._kernels.problem or _NONE_CAME
            self.errors.note(tr("kernels inside of compiled functions are not recorded: {why}", why=why))

    def _launched(self, launch: GraphKernel, call: Call | None, direction: str) -> None:
        base = f"{PREFIX}.{launch.operator}"
        entry = api_entry(PREFIX, launch.operator, self._count(f"{base}.{direction}"), direction)
        if self._filter.kernel_begins(entry, base, call, direction):
            inputs, fields = "input_args" if direction == FORWARD else "input", list[tuple[str, Value]]()
            if self._filter.keeps(direction, inputs):
                fields.append((inputs, self._leaves(entry, inputs, launch.inputs)))
                fields += [("input_kwargs", {})] if direction == FORWARD else []
            if self._filter.keeps(direction, "output"):
                fields.append(("output", self._leaves(entry, "output", launch.outputs)))
            if launch.recomputed and direction == FORWARD:
                fields.append((RECOMPUTE, True))
            parent = self._cell(launch, call, direction)
            self._sink.entry(EntryPart(entry, fields, parent, None if call is None else call.site))
        self._filter.ends(entry)

    def _cell(self, launch: GraphKernel, call: Call | None, direction: str) -> str | None:
        """The entry of the Cell that the graph names; its calls are counted as those of the Cell around the graph."""
        around = None if call is None else enclosing(call, direction)
        if launch.cell is None:
            return around
        name, class_name = launch.cell
        prefix, index = self._framework.dialect.module_prefix, 0
        if around is not None:
            outer, _, number = around.rpartition(".")
            path = outer.removeprefix(f"{prefix}.").rpartition(".")[0].rpartition(".")[0]
            index = int(number) if f"{name}.".startswith(f"{path}.") else 0
        return module_entry(prefix, name, class_name, direction, index)

    def _leaves(self, entry: str, field: str, tensors: Sequence[Tensor]) -> Value:
        category, save = field.removesuffix("_args"), self._filter.saves(entry)
        return [
            None if each is None else self._values.of_array(*each, entry, category, (str(place),), save)
            for place, each in enumerate(tensors)
        ]
