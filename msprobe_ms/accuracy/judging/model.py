"""What judging works on and gives: an API, one judged output, one checked call. Rows survive JSON unchanged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple

from msprobe_ms.support.translation import tr

#: Whose rules decide, and whose columns are written: ours, those of msprobe 1.1.0, those of 26.x.
Profile = Literal["own", "v110", "latest"]
PROFILES: tuple[Profile, ...] = ("own", "v110", "latest")


class Status(str, Enum):
    """Verdict of an output or of one direction of a call. What was not compared is ``SKIP``, never ``PASS``."""

    PASS = "pass"
    WARNING = "warning"
    ERROR = "error"
    SKIP = "SKIP"

    __str__ = str.__str__
    __repr__ = str.__repr__


class ApiKey(NamedTuple):
    """Which API a result is of: the framework of its dump, and its entry's prefix, API and direction.

    ``device`` is the kind of device it ran on, ``cpu`` or ``ascend``; "" where that is not known.
    """

    framework: str
    prefix: str
    api: str
    direction: str = "forward"
    device: str = ""

    @property
    def last(self) -> str:
        """The last part of the API's name, by which standards are looked up: ``conv2d``."""
        return self.api.rpartition(".")[2]

    @property
    def is_backward(self) -> bool:
        return self.direction == "backward"

    @property
    def of_pytorch(self) -> bool:
        """Whether its results are judged and told as those of PyTorch; MSAdapter's are, as MindSpore's, not."""
        return self.framework == "pytorch"


@dataclass(frozen=True, slots=True)
class Judged:
    """One output of a call, or one gradient, beside its reference: a row of details.

    ``name``         ``Mint.sub.0.forward.output.0``, of gradients ``Mint.sub.0.backward.output.1``
    ``shape``        None where it is no tensor
    ``figures``      by the keys of ``figures.py``; None, or no key, where one was not computed
    ``status``       the verdict of the profile that was asked for
    ``peer_status``  the verdict by the rules of msprobe, whichever profile was asked for
    ``standard``     the standard of comparison of the API and dtype (``standards.py``)
    ``rule``         what decided
    ``message``      why, where it is no plain pass
    ``reference``    what computed the reference
    """

    name: str
    bench_dtype: str
    device_dtype: str
    shape: tuple[int, ...] | None
    figures: Mapping[str, float | None]
    status: Status
    standard: str = ""
    rule: str = ""
    message: str = ""
    reference: str = ""
    peer_status: Status | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values that every JSON library writes; what is not finite becomes text."""
        return {**asdict(self), "figures": {key: _plain(value) for key, value in self.figures.items()}}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Judged:
        """Return the row that ``to_json`` made this of. Raises KeyError, TypeError and ValueError for anything else."""
        shape, peer = content["shape"], content["peer_status"]
        texts = ("name", "bench_dtype", "device_dtype", "standard", "rule", "message", "reference")
        return cls(
            **{key: _text(content[key]) for key in texts},
            shape=None if shape is None else tuple(map(int, shape)),
            figures={key: None if value is None else float(value) for key, value in content["figures"].items()},
            status=Status(content["status"]),
            peer_status=None if peer is None else Status(peer),
        )


@dataclass(frozen=True, slots=True)
class ApiResult:
    """One checked call. A direction that has no entry in the dump has no status."""

    name: str
    forward: Status | None
    backward: Status | None
    message: str = ""
    details: tuple[Judged, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values that every JSON library writes."""
        return {**asdict(self), "details": [row.to_json() for row in self.details]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ApiResult:
        """Return the result that ``to_json`` made this of. Raises KeyError, TypeError and ValueError for others."""
        forward, backward = (content[key] for key in ("forward", "backward"))
        return cls(
            name=_text(content["name"]),
            forward=None if forward is None else Status(forward),
            backward=None if backward is None else Status(backward),
            message=_text(content["message"]),
            details=tuple(map(Judged.from_json, content["details"])),
        )


#: From harmless to grave.
_ORDER = (Status.SKIP, Status.PASS, Status.WARNING, Status.ERROR)


def gravest(statuses: Iterable[Status | None]) -> Status | None:
    """Return the gravest of some verdicts; ``SKIP`` only where there is no other, None where there is none at all."""
    return max(filter(None, statuses), key=_ORDER.index, default=None)


def api_status(judged: Sequence[Judged]) -> Status:
    """Return the verdict over all outputs of one direction: the gravest; SKIP where none was compared."""
    return gravest(row.status for row in judged) or Status.SKIP


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(float(value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(tr("{value} is no text", value=repr(value)))
    return value
