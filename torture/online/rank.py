"""One rank: ``python -m torture.online.rank ADDRESS RANK TRAINING SECONDS PACE``. It writes down what it records.

Steps of its k-th training count from k million on, so that names say which training they are of.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.outgoing import Outgoing
from torture.online.calls import VARIANTS, write_dump

#: Bytes that may wait, seconds that a step waits for room, calls of a step.
_DISK, _WAIT, _CALLS = 400_000, 1.0, 4
MILLION = 1_000_000


def main() -> None:
    address, rank, training, seconds, pace = sys.argv[1:]
    outgoing = Outgoing(Address(**json.loads(address)), Path(f"spool{rank}"), _DISK, _WAIT)
    drawn = random.Random(f"{rank} {training}")
    until = time.monotonic() + float(seconds)
    step = MILLION * int(training)
    with open(f"rank{rank}-{training}.log", "w", buffering=1) as log:
        while time.monotonic() < until:
            variants = [drawn.randrange(VARIANTS) for _ in range(_CALLS)]
            recorded = outgoing.begin(step, int(rank), speaks=False)
            print(json.dumps([step, variants if recorded else None]), file=log)
            if recorded:
                dump = outgoing.folder / f"step{step}" / f"rank{rank}"
                write_dump(dump, variants)
                outgoing.end(dump, step)
            step += 1
            time.sleep(float(pace))
        outgoing.finish()
        print(json.dumps("end"), file=log)


if __name__ == "__main__":
    main()
