"""One step of one process at level L2 in compiled graphs: the raw files that came, and the index of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_files import KernelFile, read_kernel_files
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.frameworks.base import Framework, KernelDump
from msprobe_ms.recording.graphs.kernel_config import NOWHERE
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.step import Step
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.log import logger

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Tasks under which the framework dumps only what it finds wrong, and parameters.
CHECKS = ("overflow_check", "exception_dump")


class KernelStep(Step):
    """Lets the framework dump between start and stop, and indexes at the end what it wrote."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        dump: KernelDump,
        folder: Path,
        data_folder: Path,
        step: int,
        categories: Sequence[str] | None,
        status: Status,
    ) -> None:
        """``categories`` are the statistics to which tensors are reduced; None keeps what the framework wrote."""
        super().__init__(config, framework, status)
        self._dump = dump
        self._folder = folder
        self._data_folder = data_folder
        self._step = step
        self._categories = categories
        self._cells: dict[str, str] = {}
        self._recording = False
        self._is_empty = True

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def is_empty(self) -> bool:
        return self._is_empty

    def start(self, model: Any, token_range: Sequence[int] | None) -> None:
        if token_range is not None:
            raise UsageError(
                "start: token_range counts calls of the model, which compiled graphs do not show; leave it"
            )
        models = model if isinstance(model, (list, tuple)) else [] if model is None else [model]
        for each in models:
            for name, module in self._framework.named_modules(each):
                self._cells.setdefault(name, type(module).__name__)
        self._recording = True
        self._dump.record(self._step)

    def _pause(self) -> None:
        if self._recording and self._process.is_mine:
            self._recording = False
            self._dump.pause(NOWHERE)

    def _complete(self, unused: UnusedSettings) -> None:
        try:
            self._index()
        except (OSError, MsprobeError) as error:
            where = "its raw files are whole" if os.path.exists(self._data_folder) else "no raw files are there"
            logger.warning("%s: step %d has no index: %s; %s", self.folder, self._step, error, where)

    def _index(self) -> None:
        config = self._config
        files = read_kernel_files(self._data_folder.glob(f"*/{self._step}/*"))
        self._is_empty = all(file.is_parameter for file in files)
        if self.is_empty and config.task in CHECKS:
            return self._forget(files)
        entries = write_index(
            self.folder,
            files,
            task=config.task,
            level=config.level,
            cells=self._cells or None,
            data_folder=self._data_folder,
            extra_info=config.extra_info,
            permissions=config.permissions,
        )
        if self._categories is not None:
            self._reduce(files, self._categories)
        if self.is_empty:
            self._warn_of_emptiness()
        self.status.end(self.folder, entries)

    def _reduce(self, files: Sequence[KernelFile], categories: Sequence[str]) -> None:
        try:
            reduce(files, categories, self._config.permissions)
        except OSError as error:
            logger.warning("%s: raw files of step %d stay: %s", self.folder, self._step, error)

    def _forget(self, files: Sequence[KernelFile]) -> None:
        """Nothing was wrong: the parameters, which are dumped all the same, say nothing."""
        for file in files:
            file.path.unlink(missing_ok=True)
        self.folder.rmdir()

    def _warn_of_emptiness(self) -> None:
        named = " that list names" if self._config.list else ""
        logger.warning(
            "%s: nothing was recorded: no kernel of a compiled graph%s ran between start and stop, or MindSpore had "
            "run a graph before PrecisionDebugger was constructed: it reads one dump configuration, at its first graph",
            self.folder, named,
        )  # fmt: skip
