"""Write tensors as far as a quota goes: of what does not fit, a sample has the entry without the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msprobe_ms.dump.writing.memory_budget import Copy, Write

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import EntrySink
    from msprobe_ms.recording.quotas import CallQuota


class SizeLimit:
    """An `EntrySink` that hands on all entries, and those tensors for which the quota has room."""

    #: Entries are small.
    full = False

    def __init__(self, sink: EntrySink, quota: CallQuota) -> None:
        self._sink = sink
        self._quota = quota
        # Handed on as they come.
        self.call_site, self.entry, self.forget = sink.call_site, sink.entry, sink.forget

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Hand on a tensor whose size is known and fits."""
        if copy is None or not self._quota.fits(copy.size):
            return False
        return self._sink.tensor(data_name, write, entry, copy)
