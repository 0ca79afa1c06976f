"""How much a debugger records over all its steps: one object for all that its steps share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from msprobe_ms.recording.output.overflow import OverflowQuota

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class CallQuota(Protocol):
    """Chooses, of the calls that the configuration selects, those that are recorded. No method raises."""

    def takes(self, base: str) -> bool:
        """Whether the call of ``base`` that begins now is recorded, forward and backward."""
        ...

    def fits(self, size: int) -> bool:
        """Take ``size`` bytes of disk for a tensor; False where there is no room for it."""
        ...


@dataclass
class Quotas:
    """``overflow``  how many entries task overflow_check still records
    ``calls``     which calls are recorded of those that the configuration selects; None: all of them. Who takes a
                  sample sets it before the first step
    """

    overflow: OverflowQuota
    calls: CallQuota | None = None

    @classmethod
    def of(cls, config: Config) -> Quotas:
        """Return the quotas that a configuration asks for."""
        return cls(OverflowQuota(config.overflow_nums))

    def spent(self, task: str) -> bool:
        """Whether ``task`` records nothing more."""
        return task == "overflow_check" and self.overflow.spent
