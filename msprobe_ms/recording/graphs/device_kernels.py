"""Kernels that a device dumps itself, without a compiled graph: what it writes between start and stop is its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.kernel_dump import DeviceDump
from msprobe_ms.recording.hooks.apis import ApiHooks
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.start_arguments import TokenRange
from msprobe_ms.recording.step import Dumper, Step
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_join, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Tasks that a dump of whole tensors serves.
TASKS = ("statistics", "tensor")


class DeviceKernelStep(Step):
    """Has the device dump between start and stop, and says where it wrote."""

    def __init__(self, config: Config, framework: Framework, dump: DeviceDump, folder: Path, status: Status) -> None:
        super().__init__(config, framework, status)
        self._dump = dump
        self._folder = folder
        self._before = _names_in(dump.folder)
        self._recording = False

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def is_empty(self) -> bool:
        return not self._written

    @property
    def _written(self) -> list[str]:
        return sorted(_names_in(self._dump.folder) - self._before)

    def start(self, model: object, token_range: TokenRange | None) -> None:
        if token_range is not None:
            raise UsageError(
                tr("start: token_range counts calls of the model, of which a device knows nothing; leave it")
            )
        if not self._recording:
            self._recording = True
            self._dump.install()

    def _pause(self) -> None:
        if self._recording and self._process.is_mine:
            self._recording = False
            self._dump.remove()

    def _complete(self, unused: UnusedSettings) -> None:
        if written := self._written:
            names = tr_list(written)
            logger.info(
                tr(
                    "{folder}: the device dumped its kernels to {names}; msprobe convert -d reads them",
                    folder=self._dump.folder, names=names,
                )
            )  # fmt: skip
        else:
            logger.warning(tr("{folder}: the device dumped nothing between start and stop", folder=self._dump.folder))


class DeviceKernelDumper(Dumper):
    """Opens steps whose kernels the device dumps."""

    def __init__(
        self, config: Config, framework: Framework, apis: ApiHooks | None, quotas: Quotas, dump: DeviceDump
    ) -> None:
        """Raises UsageError for what such a dump does not know."""
        super().__init__(config, framework, apis, quotas)
        if config.task not in TASKS:
            raise UsageError(
                tr('level "L2": a device dumps tensors; use task {tasks}', tasks=tr_join(tr(" or "), TASKS))
            )
        for key in ("scope", "list", "skip", "tensor_list", "data_mode", "summary_mode"):
            if config.asks_for(key):
                raise UsageError(
                    tr(
                        "{key} does not select among kernels that a device dumps; what acl_config says does; "
                        "remove {key}",
                        key=key,
                    )
                )
        self._dump = dump

    def _open(self, config: Config, folder: Path, step: int, rank: int | None) -> DeviceKernelStep:
        return DeviceKernelStep(config, self._framework, self._dump, folder, Status(config, rank))


def _names_in(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
