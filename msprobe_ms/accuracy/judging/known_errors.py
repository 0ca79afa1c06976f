"""Errors that healthy frameworks are known to make on some devices (``known_errors.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.accuracy.judging.kinds import plain_name
from msprobe_ms.accuracy.judging.model import ApiKey
from msprobe_ms.support.translation import tr
from msprobe_ms.support.yaml_files import read_texts

#: Bytes that the list may have.
_LARGEST_FILE = 2**18
#: Frameworks whose operators are those of another.
_OPERATORS_OF = {"mindtorch": "mindspore"}
#: The kind of device where none is named: errors that are known of it are told, and a warning costs less than a wrong
#: error.
_DEFAULT_DEVICE = "cpu"


class KnownError(NamedTuple):
    """An error of up to ``absolute`` + ``relative`` · |reference|."""

    reason: str
    absolute: float
    relative: float


def known_error(api: ApiKey, dtype: str) -> KnownError | None:
    """Return what is known of the results, or gradients, of an API in ``dtype``; None where nothing is."""
    framework = _OPERATORS_OF.get(api.framework, api.framework)
    listed = _known().get(f"{framework} {(api.device or _DEFAULT_DEVICE).lower()}", {})
    found = listed.get(plain_name(api.last))
    bounds = found.get(api.direction, {}).get(dtype) if found is not None else None
    if found is None or bounds is None:
        return None
    return KnownError(tr(found["reason"]), float(bounds.get("absolute", 0.0)), float(bounds.get("relative", 0.0)))


@lru_cache(maxsize=1)
def _known() -> Mapping[str, Mapping[str, Any]]:
    content = read_texts(Path(__file__).with_name("known_errors.yaml"), _LARGEST_FILE)
    return {where: {plain_name(api): of for api, of in apis.items()} for where, apis in content.items()}
