"""Reload a configuration file that is edited while the job runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.support.errors import ConfigError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config.model import Config


class FileChanges:
    """Tells whether a file was written or replaced since the last time it was asked."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._told = False
        self._known = self._state()

    def happened(self) -> bool:
        state = self._state()
        known, self._known = self._known, state
        if state is None and self._path is not None and not self._told:
            self._told = True
            logger.warning(
                tr("{path} is gone: what was read from it last stays in force until it is back", path=self._path)
            )
        return state != known and state is not None

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path) if self._path is not None else None
        except OSError:  # an editor may be about to put it back
            return None
        return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def accept_changes(current: Config, read: Callable[[], Config]) -> Config:
    """Return what ``read`` gives, or ``current`` where it raises: a mistake in the file must not end a running job."""
    try:
        changed = read()
    except ConfigError as error:
        logger.warning(tr("the changed configuration is not taken, the former one stays:\n{error}", error=error))
        return current
    fixed = [
        key for key in ("level", "api_list", "task", "online_run_ut") if getattr(changed, key) != getattr(current, key)
    ]
    if changed.dump_enable is None:
        fixed.append("dump_enable")  # without the key nothing could be changed again
    if fixed:
        keys = tr_list(fixed)
        logger.warning(
            tr("the changed configuration is not taken: {keys} must stay as at the start of the job", keys=keys)
        )
        return current
    logger.info(
        tr(
            "the configuration has changed: recording is {which}",
            which=tr("off") if changed.dump_enable is False else tr("on"),
        )
    )
    return changed
