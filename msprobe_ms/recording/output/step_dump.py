"""The dump of one step while it is written: its files, the stages before them, its errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.dump.writing.memory_budget import MemoryBudget
from msprobe_ms.dump.writing.writer import DumpStore
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.recording.output.overflow import OverflowQuota
from msprobe_ms.recording.output.sinks import build_sinks
from msprobe_ms.recording.output.values import ValueSerializer
from msprobe_ms.recording.progress import Status

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class StepDump:
    """A dump that recorders write one step into.

    ``store``   its files
    ``errors``  what went wrong while it was recorded
    ``sinks``   what entries pass on their way to ``store``
    ``values``  turns what is recorded into leaves
    ``budget``  counts what is held in memory meanwhile, here and in whatever else records the step
    """

    def __init__(
        self,
        config: Config,
        framework: Framework,
        folder: Path,
        budget: MemoryBudget,
        warned_before: set[str],
        quota: OverflowQuota | None = None,
    ) -> None:
        """Make the folder. Raises OSError when the disk does not allow it."""
        self.budget = budget
        self.store = store = DumpStore(
            folder,
            task=config.task,
            level=config.level,
            framework=framework.dialect.name,
            tensors=config.stores_files,
            extra_info=config.extra_info,
            permissions=config.permissions,
            memory=budget,
        )
        self.errors = ErrorLog(folder, warned_before, store.mark_incomplete, config.permissions)
        self.sinks = build_sinks(config, framework, store, budget, self.errors, quota)
        self.values = ValueSerializer(framework, self.sinks, self.errors, md5=config.summary_mode == "md5")

    @property
    def folder(self) -> Path:
        return self.store.folder

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an entry nor an error that explains why."""
        return not (self.store.entries or self.sinks.waits or self.errors.count)

    @property
    def is_bare(self) -> bool:
        """Whether nothing would be lost with the folder: no entry, no line in the error log."""
        return not (self.store.entries or self.errors.is_written)

    def guard(self, action: Callable[[], object], where: str, *, lost: bool = True) -> None:
        """Run ``action``; report what it raises as having happened in ``where``."""
        try:
            action()
        except Exception as error:
            self.errors.report(error, where, lost=lost)

    def export(self, status: Status) -> None:
        """Bring its files up to date. Raises OSError when the disk refuses; what was recorded is in the journal."""
        self.sinks.flush()
        with status.exporting() as progress:
            self.store.export(progress)

    def close(self, status: Status, warn_of_unused: Callable[[], None]) -> None:
        """Complete its files once the sinks are closed, and say what came of the step. Does not raise."""
        self.guard(lambda: self._close(status, warn_of_unused), "step", lost=False)
        self.errors.warn_of_count()

    def _close(self, status: Status, warn_of_unused: Callable[[], None]) -> None:
        with status.exporting() as progress:
            self.store.close(progress)
        status.end(self.folder, self.store.exported_entries)
        self.sinks.warn()
        if status.speaks:
            warn_of_unused()

    def move(self, folder: Path) -> None:
        """Have the dump in another folder of the same disk. Raises OSError."""
        self.store.move(folder)
        self.errors.folder = folder

    def absorb(self, other: StepDump) -> None:
        """Take over the error log of another dump, which has no entries, and remove that. Raises OSError."""
        try:
            self.errors.absorb(other.errors)
        finally:
            other.store.discard()
