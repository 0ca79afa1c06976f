"""What the process that sends is told: where to, whose calls they are, how long it goes on after the training."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.beside import ProcessBeside
from msprobe_ms.remote.spool import Spool
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds without an answer of the server after which the end of the training waits no longer.
PATIENCE = 60.0
#: More of them, for the process to end by itself.
_LATER = 15.0
#: Exit status of the process when the server does not take this training at all.
REFUSED = 4


@dataclass(frozen=True, slots=True)
class Sending:
    """``client`` names this training to the server, ``rank`` its process; ``speaks``: it tells the user how it goes."""

    address: Address
    client: str
    rank: int
    patience: float = PATIENCE
    speaks: bool = True

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Sending:
        """Return what ``to_json`` wrote."""
        content = json.loads(text)
        return cls(**{**content, "address": Address(**content["address"])})


class SenderProcess(ProcessBeside):
    """The process that sends what lies in a spool."""

    most_starts, final = 10, REFUSED

    def __init__(self, spool: Spool, sending: Sending) -> None:
        self._address = sending.address
        patience = sending.patience + _LATER
        super().__init__(
            spool, "msprobe_ms.remote.sender", sending.to_json(), patience, tr("sends"), tr("online check")
        )

    def finish(self) -> None:
        """The training is over: wait while what is left is being sent; what cannot be sent is deleted."""
        if not (self.keep_alive() and self.waited()):
            logger.warning(
                tr("online check: what was not sent to {address} until now is deleted", address=self._address)
            )
            self._spool.discard()


def client_name(rank: int, spool: Spool) -> str:
    """Return a name that no other training has."""
    return f"rank{rank}-{spool.folder.name.rpartition('_')[2]}"
