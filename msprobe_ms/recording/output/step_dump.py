"""The dump of one step while it is written: its files, the stages that entries pass before them, its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msprobe_ms.dump.writing.memory_budget import Copy, MemoryBudget, Write
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart, warn_of_owner
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.deferred_statistics import DeferredStatistics
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.recording.output.overflow import OverflowGate
from msprobe_ms.recording.output.size_limit import SizeLimit
from msprobe_ms.recording.output.tensor_writer import TensorWriter
from msprobe_ms.recording.output.values import ValueSerializer
from msprobe_ms.recording.progress import Status

if TYPE_CHECKING:
    from msprobe_ms.config import Config
    from msprobe_ms.recording.quotas import Quotas


class EntrySink(Protocol):
    """Takes the entries of one step, their call sites and their tensors; a `DumpStore`, or a stage before one.

    A stage holds the sink that comes after it, and hands on what it does not hold back itself. Whatever fails raises.
    """

    @property
    def full(self) -> bool:
        """Whether nothing new will be recorded."""
        ...

    def call_site(self, number: int, frames: Sequence[str]) -> None:
        """Record the frames of a call site, innermost first, under a number that entries name."""
        ...

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Store a tensor of ``entry`` in the file ``data_name``.

        ``write`` writes the tensor as it is now; a stage that does not do so at once has ``copy`` make a copy of it.
        Returns False where there will be no file, which is said if its entry is recorded.
        """
        ...

    def entry(self, part: EntryPart) -> None:
        """Record an entry, or a part of one, whose tensors have been handed over."""
        ...

    def forget(self, name: str) -> None:
        """Drop what is held of an entry whose call raised."""
        ...


class Sinks:
    """The stages before the dump of one step, each of which is there where the configuration needs it.

    ``files``        what comes last
    ``first``        what recorders hand entries to
    ``from_device``  gives Max, Min, Mean, Norm, sketch and checksum for what `Framework.device_statistics` left there
    """

    def __init__(
        self,
        files: EntrySink,
        read: Callable[[Sequence[Any]], Sequence[Sequence[Any]]],
        errors: ErrorLog,
        writer: TensorWriter | None,
        gate: OverflowGate | None,
    ) -> None:
        self._writer = writer
        self._gate = gate
        self._deferred: DeferredStatistics | None = None
        self.first: EntrySink
        self.from_device: Callable[[Any], Sequence[Any]]
        if gate is not None:  # an entry that waits for its statistics could not be judged when its call ends
            self.first, self.from_device = gate, lambda on_device: read([on_device])[0]
        else:
            self._deferred = DeferredStatistics(files, read, errors)
            self.first, self.from_device = self._deferred, self._deferred.of

    def start(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> None:
        """Begin to write in the background, where that is asked for; it calls the framework inside ``unrecorded()``."""
        if self._writer is not None:
            self._writer.run(unrecorded)

    @property
    def waits(self) -> bool:
        """Whether there are entries that are not in the dump yet."""
        return self._deferred is not None and self._deferred.waits

    def flush(self) -> None:
        """Have everything given so far on disk. Does not raise."""
        if self._deferred is not None:
            self._deferred.fetch()
        if self._writer is not None:
            self._writer.drain()

    def close(self) -> None:
        """Flush and end the thread."""
        if self._deferred is not None:
            self._deferred.fetch()
        if self._writer is not None:
            self._writer.close()

    def warn(self) -> None:
        """Warn of what the stages found in the step that is over."""
        if self._gate is not None:
            self._gate.warn_of_unnamed()


def build_sinks(
    config: Config,
    framework: Framework,
    store: DumpStore,
    budget: MemoryBudget,
    errors: ErrorLog,
    quotas: Quotas | None = None,
) -> Sinks:
    """Build the stages before ``store``, from last to first: files in the background, then what holds entries back.

    ``quotas`` bound what is recorded; None for no bound.
    """
    writer = gate = None
    if config.async_dump and config.stores_files:
        writer = TensorWriter(store, budget, errors)
    files: EntrySink = writer or store
    if quotas is not None and quotas.calls is not None:
        files = SizeLimit(files, quotas.calls)
    if config.task == "overflow_check" and quotas is not None:
        gate = OverflowGate(files, quotas.overflow, budget, errors, framework.quietly)
    return Sinks(files, framework.read_statistics, errors, writer, gate)


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
        quotas: Quotas | None = None,
    ) -> None:
        """Make the folder, or one beside it where another process writes there (`DumpStore`).

        Raises OSError when the disk does not allow it.
        """
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
        warn_of_owner(folder, store.folder, warned_before)
        self.errors = ErrorLog(store.files, warned_before, store.mark_incomplete)
        self.sinks = build_sinks(config, framework, store, budget, self.errors, quotas)
        #: Chooses among the calls that the configuration selects; None where all are recorded.
        self.calls = None if quotas is None else quotas.calls
        self.values = ValueSerializer(
            framework, self.sinks, self.errors,
            md5=config.summary_mode == "md5", sketch=config.sketch, strides=config.strides,
            as_text=config.task != "overflow_check",
        )  # fmt: skip

    @property
    def folder(self) -> Path:
        return self.store.folder

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an entry nor an error that explains why."""
        return not (self.store.entries or self.sinks.waits or self.errors.count or self.errors.untold)

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
        self.errors.tell_losses()
        with status.exporting() as progress:
            self.store.export(progress)

    def close(self, status: Status, warn_of_unused: Callable[[], None]) -> None:
        """Complete its files once the sinks are closed, and say what came of the step. Does not raise."""
        self.guard(lambda: self._close(status, warn_of_unused), "step", lost=False)
        self.errors.warn_of_count()
        self.store.files.close()

    def _close(self, status: Status, warn_of_unused: Callable[[], None]) -> None:
        self.errors.tell_losses()
        with status.exporting() as progress:
            self.store.close(progress)
        status.end(self.folder, self.store.exported_entries)
        self.sinks.warn()
        if status.speaks:
            warn_of_unused()

    def move(self, folder: Path) -> None:
        """Have the dump in another folder of the same disk. Raises OSError."""
        self.store.move(folder)

    def absorb(self, other: StepDump) -> None:
        """Take over the error log of another dump, which has no entries, and remove that. Raises OSError."""
        try:
            self.errors.absorb(other.errors)
        finally:
            other.store.discard()
