"""Launches of kernels, from kernel files: in the order in which the device ran them, and what they never write.

Some results have room in memory that the kernel leaves as it was: it holds something else in every run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from msprobe_ms.dump.kernels.kernel_files import INPUT, OUTPUT, KernelFile
from msprobe_ms.support.files import leads_out, open_regular
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

EXECUTION_ORDER = "execution_order"

_NUMBER = re.compile(r"-op\d+$")

#: Measured on MindSpore 2.10: BatchNorm and LSTM leave what only other devices compute; optimizers that write their
#: parameters in place, which are inputs here, leave all results.
_ON_CPU: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "BatchNorm": frozenset({1, 2}),
        "LSTM": frozenset({3, 4}),
        "Adam": frozenset({0, 1, 2}),
        "AdamWeightDecay": frozenset({0, 1, 2}),
        "ApplyRMSProp": frozenset({0}),
        "ApplyCenteredRMSProp": frozenset({0}),
    }
)
#: Bytes of metadata that are read.
_LONGEST_METADATA = 1 << 20
#: What a rank's folder says of where it was dumped.
_METADATA = Path(".dump_metadata") / "data_dump.json"


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
    """Group files into launches in order; each file, sorted as ``read_kernel_files`` sorts them, is in one launch.

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
    """Scope paths with ``/`` by the names that files have, from the ``execution_order`` beside the files."""

    def __init__(self) -> None:
        self._known: dict[Path, Mapping[str, str]] = {}

    def path(self, launch: Launch) -> str:
        """The scope path; where no table tells it, the name as it is."""
        name, number = _apart(launch.op_name)
        return self._of(launch.files[0].path.parent).get(name, name) + number

    def _of(self, folder: Path) -> Mapping[str, str]:
        if folder not in self._known:
            self._known[folder] = _scope_paths(folder)
        return self._known[folder]


def _apart(name: str) -> tuple[str, str]:
    """``Default/Add-op1`` → ``Default/Add``, ``-op1``: passes that ran after the table was written count anew."""
    found = _NUMBER.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


def _scope_paths(folder: Path) -> dict[str, str]:
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
            logger.warning(
                tr(
                    "{table}: cannot be read: {strerror}; Cells are told by file names",
                    table=table,
                    strerror=error.strerror or error,
                )
            )
    return paths


class Unwritten:
    """Results that launches never write, on the devices where that was measured; asks each folder's metadata once."""

    def __init__(self) -> None:
        self._is_cpu: dict[Path, bool | None] = {}

    def slots(self, launch: Launch) -> frozenset[int]:
        """Return the slots of the results that ``launch`` never writes."""
        slots = _ON_CPU.get(launch.op_type, frozenset())
        return slots if slots and self._ran_on_cpu(launch) else frozenset()

    def _ran_on_cpu(self, launch: Launch) -> bool:
        file = launch.files[0]
        folder = file.path.parent
        if folder not in self._is_cpu:
            self._is_cpu[folder] = _says_cpu(folder)
        told = self._is_cpu[folder]
        # Without metadata: only there is neither a task nor a stream to name.
        return (file.task, file.stream) == (0, 0) if told is None else told


def _says_cpu(folder: Path) -> bool | None:
    for above in folder.absolute().parents[:3]:
        try:
            with open_regular(above / _METADATA) as file:
                return bool(json.loads(file.read(_LONGEST_METADATA))["device_target"] == "CPU")
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None
