"""Results that a kernel has room for and never writes: their memory holds something else in every run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msprobe_ms.dump.kernels.launches import Launch
from msprobe_ms.support.regular import open_regular

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
_LONGEST = 1 << 20
#: What a rank's folder says of where it was dumped.
_METADATA = Path(".dump_metadata") / "data_dump.json"


class Unwritten:
    """Knows of each launch which results it leaves; asks each folder's metadata once."""

    def __init__(self) -> None:
        self._is_cpu: dict[Path, bool | None] = {}

    def slots(self, launch: Launch) -> frozenset[int]:
        """The slots of the results that mean nothing."""
        slots = _ON_CPU.get(launch.op_type, frozenset())
        return slots if slots and self._ran_on_cpu(launch) else frozenset()

    def _ran_on_cpu(self, launch: Launch) -> bool:
        file = launch.files[0]
        folder = file.path.parent
        if folder not in self._is_cpu:
            self._is_cpu[folder] = _told(folder)
        told = self._is_cpu[folder]
        # Without metadata: only there is neither a task nor a stream to name.
        return (file.task, file.stream) == (0, 0) if told is None else told


def _told(folder: Path) -> bool | None:
    for above in folder.absolute().parents[:3]:
        try:
            with open_regular(above / _METADATA) as file:
                return bool(json.loads(file.read(_LONGEST))["device_target"] == "CPU")
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None
