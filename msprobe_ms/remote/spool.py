"""The folder between a training and the process that judges or sends its calls: dumps of samples, and how far it is.

The training writes, the other deletes; neither waits for the other. A step is recorded in a folder ``step7`` and, when
it is over, becomes a sample by a new name: ``000012_step7`` is the twelfth. Where steps are counted anew, when training
begins after a first call, it is ``000012_run2.step7``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from msprobe_ms.support.files import DEFAULT, open_regular, replacing
from msprobe_ms.support.interruptions import suppress_own

#: The file of a sample with its calls.
DUMP = "dump.json"
#: In place of it, why a step was not recorded; beside it, where tensors are missing for want of room.
DROPPED, NO_ROOM = "dropped", "no_room"
_PROGRESS = "progress.json"
#: Touched when a call has been judged.
_JUDGED = "judged"
#: Bytes that it may have: two numbers for each API.
_LARGEST_PROGRESS = 1 << 26
_SAMPLE = re.compile(r"(\d+)_(.+)")
_STEP = re.compile(r"step\d+")


@dataclass
class Progress:
    """How far a training is.

    ``steps``, ``sampled``  steps so far, and those of them that were sampled
    ``calls``               API → its calls in sampled steps, and those of them that are recorded
    ``unchecked``           API → why none of its calls can be judged
    ``device``              what the APIs run on, in lower case: ``cpu``, ``ascend``; "" where it is not known
    ``ended``               whether the training is over
    """

    steps: int = 0
    sampled: int = 0
    calls: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    device: str = ""
    ended: bool = False


class Sample(NamedTuple):
    """The recorded calls of one step.

    ``step``   what names of calls begin with: ``step7``
    ``whole``  False where the training was ended in the midst of it
    """

    step: str
    folder: Path
    whole: bool


class Spool:
    """One training process's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Make the folder. Raises OSError."""
        DEFAULT.make_folder(self.folder)

    def tell(self, progress: Progress) -> None:
        """Say how far the training is. Raises OSError."""
        with replacing(self.folder / _PROGRESS) as file:
            file.write(json.dumps(asdict(progress)).encode("ascii"))

    def progress(self) -> Progress:
        """Read how far the training is; what nobody has said yet is nothing."""
        try:
            with open_regular(self.folder / _PROGRESS) as file:
                return Progress(**json.loads(file.read(_LARGEST_PROGRESS)))
        except (OSError, ValueError, TypeError):
            return Progress()

    def hand_over(self, dump: Path, number: int, step: str) -> None:
        """Make the dump of a step that is over a sample, the ``number``-th. Raises OSError."""
        dump.rename(self.folder / f"{number:06}_{step}")
        with suppress_own(OSError):
            dump.parent.rmdir()

    def hand_over_dropped(self, number: int, step: str, reason: str) -> None:
        """Leave word of a step, or several, that was not recorded, as the ``number``-th sample. Raises OSError."""
        folder = self.folder / f".{number:06}"
        DEFAULT.make_folder(folder)
        (folder / DROPPED).write_text(reason, encoding="utf-8")
        folder.rename(self.folder / f"{number:06}_{step}")

    def samples(self) -> list[Sample]:
        """What was handed over and is not judged yet, the oldest first."""
        named = ((folder, _SAMPLE.fullmatch(folder.name)) for folder in self._folders(self.folder))
        found = sorted((int(match[1]), match[2], folder) for folder, match in named if match)
        return [Sample(step, folder, whole=True) for _, step, folder in found]

    def unfinished(self) -> list[Sample]:
        """What was being recorded when the training ended."""
        steps = [step for step in self._folders(self.folder) if _STEP.fullmatch(step.name)]
        return [Sample(step.name, folder, whole=False) for step in steps for folder in self._folders(step)]

    @staticmethod
    def _folders(folder: Path) -> list[Path]:
        with suppress_own(OSError):
            return sorted(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink())
        return []

    def note_progress(self) -> None:
        """Leave a sign that a call was judged."""
        with suppress_own(OSError):
            (self.folder / _JUDGED).touch()

    def last_progress(self) -> float:
        """When that was last, in seconds since 1970; 0 where it has not been."""
        with suppress_own(OSError):
            return (self.folder / _JUDGED).stat().st_mtime
        return 0.0

    def waiting(self) -> int:
        """Bytes of what lies there."""
        total = 0
        for place, _, names in os.walk(self.folder):
            for name in names:
                with suppress_own(OSError):
                    total += os.lstat(os.path.join(place, name)).st_size
        return total

    def remove(self, sample: Sample) -> None:
        """Delete a sample."""
        shutil.rmtree(sample.folder, ignore_errors=True)

    def discard(self) -> None:
        """Delete the folder with all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
