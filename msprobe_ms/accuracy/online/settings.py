"""What a check within a training was asked for: by how much it may sample, and how calls are judged."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from msprobe_ms.accuracy.options import SEED

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is sampled.

    ``share``         of the training's time that steps may take longer, 0 to 1; 1: every step is sampled
    ``calls``         of one API in the whole training
    ``calls_a_step``  of all APIs in one step; of one API no more than `MOST_OF_ONE`
    ``disk``          bytes of tensors that wait to be judged
    ``seed``          which calls of an API are taken; the same seed and training, the same calls
    """

    share: float = 0.05
    calls: int = 100
    calls_a_step: int = 64
    disk: int = 1024 * MIB
    seed: int = SEED


#: Calls of one API in one step: a step has many APIs.
MOST_OF_ONE = 2


@dataclass(frozen=True, slots=True)
class Judging:
    """How the process beside the training judges; texts and numbers alone, as they go there as JSON.

    ``output``            the folder of the tables
    ``timeout``           seconds for one call
    ``patience``          seconds without a judged call after which the end of the training waits no longer
    ``profile``           whose rules and columns
    ``precision``         of the reference
    ``references``        a yaml with references of the user's own, absolute; "" for none
    ``thresholds``        a yaml that changes what passes, absolute; "" for none
    ``reference_python``  the Python that references run in; "" for this one
    ``save_errors``       keep tensors of what is wrong
    ``speaks``            say what came of it even where nothing is wrong
    """

    output: str
    timeout: float = 20.0
    patience: float = 300.0
    profile: str = "own"
    precision: str = "double"
    references: str = ""
    thresholds: str = ""
    reference_python: str = ""
    save_errors: bool = False
    speaks: bool = True

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Judging:
        """Return what ``to_json`` wrote."""
        return cls(**json.loads(text))

    @property
    def folder(self) -> Path:
        return Path(self.output)
