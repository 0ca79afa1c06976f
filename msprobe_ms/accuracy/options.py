"""What a pre-check was asked for; the same for every call of a dump."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from msprobe_ms.accuracy.judging.model import Profile
from msprobe_ms.accuracy.judging.thresholds import Thresholds, load_thresholds
from msprobe_ms.accuracy.precision import Precision

#: Seconds that one call may take, reference or device.
TIMEOUT = 60.0
SEED = 1234


@dataclass(frozen=True, slots=True)
class Options:
    """``dump``         the dump.json
    ``framework``    of the APIs that are checked: ``mindspore``, ``pytorch``, ``mindtorch``
    ``tensor_folder`` where the dump says that its tensors are; they are looked for beside it first
    ``recorded``     judge the recorded results; False runs the API again
    ``real_data``    recorded tensors are the arguments; False draws them
    ``precision``    of the reference
    ``seed``         of what is drawn
    ``timeout``      seconds for one call
    ``references``   a yaml with references of the user's own
    ``reference_python``  the Python that references run in, where it is not this one
    ``same_library`` a library may judge itself, in higher precision
    ``all_gradients`` check gradients of calls, too, that have no backward entry
    ``save_errors``  keep the tensors of calls that do not pass
    ``device``       kind of the device that recorded results are of, ``cpu`` or ``ascend``; "" where it is not known
    ``devices``      numbers of the devices that workers share; none: the one that the framework takes
    ``thresholds``, ``profile``  of judging
    """

    dump: Path
    framework: str
    tensor_folder: str | None = None
    recorded: bool = False
    real_data: bool = False
    precision: Precision = Precision.DOUBLE
    seed: int = SEED
    timeout: float = TIMEOUT
    references: Path | None = None
    reference_python: str | None = None
    same_library: bool = False
    all_gradients: bool = False
    save_errors: bool = False
    device: str = ""
    devices: tuple[int, ...] = ()
    thresholds: Thresholds = field(default_factory=load_thresholds)
    profile: Profile = "own"
