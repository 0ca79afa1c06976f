"""What a checker host was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.selection import Selection
from msprobe_ms.remote.addresses import Address

MIB = 1 << 20
#: Seconds without a word of any training after which nothing more is expected.
IDLE = 600.0


@dataclass(frozen=True, slots=True)
class Receiving:
    """``address``   where calls come from
    ``ranks``     those that are checked; it is over when each of them has ended
    ``output``    the folder of the tables
    ``options``, ``selection``  how calls are judged and which, as for a dump
    ``workers``   processes that judge
    ``disk``      bytes of calls that may wait to be judged
    ``idle``      seconds without a word after which trainings that have not ended are given up
    ``page``      write pages to look at
    """

    address: Address
    ranks: tuple[int, ...]
    output: Path
    options: Options
    selection: Selection
    workers: int = 1
    disk: int = 8192 * MIB
    idle: float = IDLE
    page: bool = True
