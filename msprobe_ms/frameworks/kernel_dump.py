"""The interfaces of kernel dumps that are not ours: a framework's, of compiled graphs, and a device's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol


class KernelDumpControl(Protocol):
    """The framework's own dump of compiled graphs' kernels, configured by a file; steps are its iterations."""

    #: The framework's release.
    version: str
    #: Whether kernels run on the host, where the framework can neither be stopped nor compute statistics.
    on_cpu: bool

    def read_configuration(self, nowhere: int) -> str | None:
        """Have the file read that the environment names, and record nothing; what is wrong with it, or None.

        ``nowhere`` is the number of an iteration that the file does not select.
        """

    @property
    def in_force(self) -> dict[str, Any] | None:
        """What the file said that was read in this process, whoever had it read: it is read once; None before."""

    def name_modules(self, models: Sequence[Any]) -> None:
        """Kernels of graphs that are compiled from here on are named after the modules below ``models``."""

    def close(self) -> None:
        """No graph is recorded any more."""

    def record(self, iteration: int) -> None:
        """Kernels launched from here on belong to ``iteration``."""

    def wait(self) -> None:
        """Return when all kernels launched so far are on disk."""

    def pause(self, nowhere: int) -> None:
        """All kernels launched so far are on disk; those launched from here on are not recorded."""


class DeviceDump(Protocol):
    """A device's dump of the kernels that it runs, from `install` to `remove`."""

    #: Where it writes.
    folder: Path

    def install(self) -> None: ...

    def remove(self) -> None: ...
