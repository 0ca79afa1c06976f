"""The part of a training step in which an error begins: data, parameters, forward, loss, backward, update."""

from __future__ import annotations

import re

from msprobe_ms.comparison.model import OriginKind
from msprobe_ms.comparison.terms import Stage
from msprobe_ms.dump.dialects import KERNEL
from msprobe_ms.dump.names import BACKWARD, DEBUG, PARAMETERS_GRAD, parse_entry

#: Functions and classes that make a loss, by their names in lower case.
_LOSS = re.compile(r".*(loss|cross_?entropy).*")
_OF_KINDS = {
    OriginKind.UPDATE: Stage.UPDATE,
    OriginKind.PARAMETER: Stage.PARAMETERS,
    OriginKind.MISSING_GRADIENT: Stage.BACKWARD,
}


def stage_of(entry: str, kind: OriginKind) -> Stage | None:
    """Return the stage of an origin at an entry; None where its name does not tell, as of kernels.

    Data are told by what came before them, of which a name knows nothing: they are forward's here.
    """
    if kind in _OF_KINDS:
        return _OF_KINDS[kind]
    parsed = parse_entry(entry)
    if parsed is None or parsed.prefix == KERNEL:
        return None
    if parsed.direction in (BACKWARD, PARAMETERS_GRAD):
        return Stage.BACKWARD
    if _LOSS.fullmatch((parsed.class_name or parsed.name).lower()):
        return Stage.LOSS
    return Stage.FORWARD if parsed.direction != DEBUG else None
