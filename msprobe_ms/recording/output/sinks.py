"""What takes the entries of a step: the dump, and the stages before it, built and emptied in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from msprobe_ms.dump.writing.memory_budget import Copy, MemoryBudget, Write
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.deferred_statistics import DeferredStatistics
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.recording.output.overflow import OverflowGate, OverflowQuota
from msprobe_ms.recording.output.tensor_writer import TensorWriter

if TYPE_CHECKING:
    from msprobe_ms.config import Config


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

    ``first``        what recorders hand entries to
    ``from_device``  gives Max, Min, Mean, Norm of a tensor for what `Framework.device_statistics` left on the device
    """

    def __init__(
        self,
        store: DumpStore,
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
            self._deferred = DeferredStatistics(writer or store, read, errors)
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
    quota: OverflowQuota | None = None,
) -> Sinks:
    """Build the stages before ``store``, from last to first: files in the background, then what holds entries back.

    ``quota`` is for task overflow_check alone.
    """
    writer = gate = None
    if config.async_dump and config.stores_files:
        writer = TensorWriter(store, budget, errors)
    if config.task == "overflow_check" and quota is not None:
        gate = OverflowGate(writer or store, quota, budget, errors)
    return Sinks(store, framework.read_statistics, errors, writer, gate)
