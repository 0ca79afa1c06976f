"""MindSpore's own kernel dump: which iteration the next graph runs in, and whether that is recorded.

MindSpore reads ``MINDSPORE_DUMP_CONFIG`` once a process. Its private calls set the number of the iteration, which
otherwise counts graphs and not steps, and with which it is asked of every graph whether the configuration selects it.
"""

from __future__ import annotations

import mindspore
from mindspore import _c_expression
from mindspore.common.api import _pynative_executor

from msprobe_ms.frameworks.base import ExecutionMode
from msprobe_ms.frameworks.mindspore_modes import execution_mode


class MindSporeKernelDump:
    """Says to the framework when to dump kernels of compiled graphs."""

    version: str = mindspore.__version__

    def __init__(self) -> None:
        self.on_cpu: bool = mindspore.get_context("device_target") == "CPU"
        #: Graphs that a device runs as a whole count their iterations themselves.
        self._counts = self.on_cpu or execution_mode() is not ExecutionMode.GRAPH

    def read_configuration(self, nowhere: int) -> str | None:
        """Have the file read that the environment names, and record nothing; what MindSpore finds wrong with it.

        ``nowhere`` is an iteration that the file does not select.
        """
        if not self._counts:
            return None
        try:
            _c_expression._dump_set_dynamic()
            _c_expression._set_init_iter(nowhere)
        except RuntimeError as error:
            return str(error).split("\n", 1)[0]
        return None

    def record(self, iteration: int) -> None:
        """Kernels launched from here on belong to ``iteration``."""
        if self._counts:
            self._wait()
            _c_expression._set_init_iter(iteration)
            _c_expression._dump_start()

    def pause(self, nowhere: int) -> None:
        """All kernels launched so far are on disk; those launched from here on are not recorded."""
        try:
            self._wait()  # raises what failed in the script's own kernels
        finally:
            if self._counts:
                _c_expression._dump_stop()
                _c_expression._set_init_iter(nowhere)

    def _wait(self) -> None:
        _pynative_executor.sync()
        # Not mindspore.runtime.synchronize: on CPU it logs an error, once, and does nothing that time.
        _c_expression.synchronize()
