"""Other trainings of the same pairs: another seed, another optimizer. What was mended for some is tried on the rest.

A folder of dumps holds one variation, noted in it, so that every process of a run makes the same networks.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

#: Optimizers, each with the learning rate of the pairs that use it.
OPTIMIZERS = {"sgd": 0.05, "adam": 1e-3}
_FILE = "variation.json"


class OtherVariation(ValueError):
    """A folder holds dumps of another variation."""


@dataclass(frozen=True)
class Variation:
    """``seed``: of weights, batches and the draw of faults. ``optimizer``: for every pair; "" for each pair's own,
    "other" for the one that is not its own. ``late``: faults are planted before the second step, in a healthy training.
    ``small``: faults are so small that a training hardly feels them.
    """

    seed: int = 0
    optimizer: str = ""
    late: bool = False
    small: bool = False

    def choose(self, own: str) -> str:
        """The optimizer of a pair whose own is ``own``."""
        if self.optimizer == "other":
            return next(each for each in OPTIMIZERS if each != own)
        return self.optimizer or own


def read(root: Path) -> Variation:
    """The variation that a folder of dumps holds."""
    file = root / _FILE
    return Variation(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else Variation()


def note(variation: Variation, root: Path) -> None:
    """Note in a folder which variation it holds.

    Raises:
        OtherVariation: it holds another one already.
    """
    if any(root.glob("*/faults.json")) and read(root) != variation:
        raise OtherVariation(f"{root} holds {read(root)}: choose another folder for {variation}")
    root.mkdir(parents=True, exist_ok=True)
    (root / _FILE).write_text(json.dumps(asdict(variation)), encoding="utf-8")
