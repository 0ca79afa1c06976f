"""Kernel files → launches of kernels, in the order in which the device ran them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msprobe_ms.dump.kernels.kernel_file import INPUT, OUTPUT, KernelFile
from msprobe_ms.support.log import logger
from msprobe_ms.support.regular import leads_out

EXECUTION_ORDER = "execution_order"

_NUMBER = re.compile(r"-op\d+$")


@dataclass(slots=True)
class Launch:
    """One run of one kernel; a parameter or graph input is one too, with a single output."""

    op_type: str
    op_name: str
    files: list[KernelFile] = field(default_factory=list)

    @property
    def is_parameter(self) -> bool:
        return self.files[0].is_parameter

    def side(self, io: str) -> list[KernelFile | None]:
        """The files of one side by slot; None where a slot has none."""
        by_slot = {file.slot: file for file in self.files if file.io == io}
        # A hostile slot number asks for no memory.
        last = max(by_slot, default=-1)
        if last > 10 * len(by_slot) + 100:
            return [by_slot[slot] for slot in sorted(by_slot)]
        return [by_slot.get(slot) for slot in range(last + 1)]

    def takes(self, file: KernelFile) -> bool:
        """Whether ``file``, which is later than all here, belongs to this run and not to the kernel's next."""
        if file.io == INPUT and any(each.io == OUTPUT for each in self.files) and file.timestamp != self.timestamp:
            return False
        return all((each.io, each.slot) != (file.io, file.slot) for each in self.files)

    @property
    def timestamp(self) -> int:
        return self.files[0].timestamp


def launches(files: Iterable[KernelFile]) -> list[Launch]:
    """Launches in order; ``files`` are sorted as ``read_kernel_files`` sorts them. Every file is in one launch.

    Files of one launch are named alike but for the timestamp, and none is there twice: what repeats ran again.
    """
    found: list[Launch] = []
    open_: dict[tuple[object, ...], Launch] = {}
    for file in files:
        key = (file.path.parent, file.op_type, file.op_name, file.task, file.stream)
        launch = open_.get(key)
        if launch is None or not launch.takes(file):
            launch = open_[key] = Launch(file.op_type, file.op_name)
            found.append(launch)
        launch.files.append(file)
    return found


class ScopePaths:
    """Names of kernels as files have them → scope paths with ``/``, from the ``execution_order`` beside the files."""

    def __init__(self) -> None:
        self._known: dict[Path, Mapping[str, str]] = {}

    def path(self, launch: Launch) -> str:
        """The scope path; where no table tells it, the name as it is."""
        name, number = _apart(launch.op_name)
        return self._of(launch.files[0].path.parent).get(name, name) + number

    def _of(self, folder: Path) -> Mapping[str, str]:
        if folder not in self._known:
            self._known[folder] = _read(folder)
        return self._known[folder]


def _apart(name: str) -> tuple[str, str]:
    """``Default/Add-op1`` → ``Default/Add``, ``-op1``: passes that ran after the table was written count anew."""
    found = _NUMBER.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


def _read(folder: Path) -> dict[str, str]:
    """Of ``rank_R/Net/{graph}/{iteration}`` the tables in ``rank_R/execution_order``."""
    tables = [table for above in folder.absolute().parents[:3] for table in (above / EXECUTION_ORDER).glob("*.csv")]
    # The graph's own last: it has the last word where two paths give one name.
    own = f"_graph_{folder.parent.name}.csv"
    paths: dict[str, str] = {}
    for table in sorted(tables, key=lambda table: table.name.endswith(own)):
        try:
            if table.is_file() and not leads_out(table, table.parent.parent):
                lines = table.read_bytes().decode("utf-8", "replace").splitlines()
                found = (_apart(line)[0] for line in lines if "/" in line)
                paths.update((path.replace("/", "_"), path) for path in found)
        except OSError as error:
            logger.warning("%s: cannot be read: %s; Cells are told by file names", table, error.strerror or error)
    return paths
