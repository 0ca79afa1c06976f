"""JSON files of users that hold an object: what is wrong with one is told in one way."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.translation import tr


def read_object(path: Path, largest: int, accepted: str) -> dict[str, Any]:
    """Return the object that a file of at most ``largest`` bytes holds; ``accepted`` ends each error.

    :raises UsageError: it cannot be read, is larger, is no JSON, or holds something else
    """
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > largest:
                raise UsageError(
                    tr(
                        "{path}: has more than {largest} bytes; {accepted}",
                        path=path,
                        largest=largest,
                        accepted=accepted,
                    )
                )
            content = json.loads(file.read())
    except OSError as error:
        raise UsageError(
            tr(
                "{path}: cannot be read: {strerror}; {accepted}",
                path=path,
                strerror=error.strerror or error,
                accepted=accepted,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            tr("{path}: not valid JSON: {error}; {accepted}", path=path, error=error, accepted=accepted)
        ) from error
    if not isinstance(content, dict):
        raise UsageError(
            tr(
                "{path}: holds a {name}, no object; {accepted}",
                path=path,
                name=type(content).__name__,
                accepted=accepted,
            )
        )
    return content
