"""What a recording says of itself: a line when it begins, one a complete step, a bar where that takes long."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.config.vocabulary import CHECKS
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.dump.reading.locate import other_processes
from msprobe_ms.dump.writing.export import Progress
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger, warn_of_language
from msprobe_ms.support.translation import tr, tr_count, tr_list

if TYPE_CHECKING:
    from tqdm import tqdm

    from msprobe_ms.config import Config

#: Entries from which on writing a step's files takes seconds.
_LONG = 20_000

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def speaks(config: Config, rank: int | None) -> bool:
    """Whether the process of this rank is the one that speaks for all."""
    return (rank or 0) == min(config.rank, default=0)


def say_what_is_ignored(config: Config) -> None:
    """Say of which keys that were given nothing comes, and of a language that is not there."""
    warn_of_language()
    ignored = [key for key in config.ignored if key.rpartition(".")[2] != "precision"]
    if ignored:
        logger.info(tr("these configuration keys have no effect here: {ignored}", ignored=tr_list(ignored)))
    if len(ignored) < len(config.ignored):
        logger.info(tr('precision "low" changes nothing: statistics are taken in float32 or wider, as with "high"'))


def say_last_step_ended(config: Config, *, nothing: bool) -> None:
    """Say that all steps that are selected are over, in the words that users of msprobe wait for.

    ``nothing``: no step holds an entry, which is no success but of a check, where it is the best of answers.
    """
    last = max(config.step)
    if nothing and config.task not in CHECKS:
        logger.warning(
            tr(
                "nothing was recorded: step {last} was the last that is selected, training goes on unrecorded",
                last=last,
            )
        )
        return
    logger.info(
        tr(
            "msprobe ends successfully: step {max} was the last that is selected, training goes on "
            "unrecorded; the dump is in {dump_path}",
            max=last,
            dump_path=config.dump_path,
        )
    )


def say_nothing_recorded(config: Config, steps: int, *, step_was_reached: bool) -> None:
    """Say at the end of a training why it left no dump: after ``steps`` steps, of which one may have been selected."""
    if not step_was_reached:
        selected = tr_list(map(str, sorted(config.step)[:10]))
        logger.warning(tr("nothing was recorded: no step that is selected ({selected}) was reached", selected=selected))
    elif steps:
        needed = "save" if config.level == "debug" else "start"
        logger.warning(
            tr("nothing was recorded: {needed} was not called in any of {steps} steps", needed=needed, steps=steps)
        )


class Status:
    """One process's voice: rank 0 (or the first that is recorded) speaks, the others only at debug level.

    ``quiet``: none speaks, as another tells what comes of the dump.
    """

    def __init__(self, config: Config, rank: int | None, *, quiet: bool = False) -> None:
        self._config = config
        self.speaks = speaks(config, rank) and not quiet
        self._level = logging.INFO if self.speaks else logging.DEBUG
        self._began = time.monotonic()

    def begin(self, folder: Path) -> None:
        """Say what will be recorded, and where; and what lies there already. ``folder`` is the process's own."""
        config = self._config
        numbers = tr_list(map(str, sorted(config.step)))
        chosen = tr_count("step {numbers}", "steps {numbers}", len(config.step), numbers=numbers)
        told = tr(
            "recording {steps} at level {level}, task {task}, to {folder}",
            steps=chosen if config.step else tr("every step"),
            level=config.level, task=config.task, folder=config.dump_path,
        )  # fmt: skip
        logger.log(self._level, told)

        if others := other_processes(folder):
            told = tr(
                "{folder} holds dumps of other processes already: {others}; compare takes the latest, or the one that "
                "you name",
                folder=folder.parent, others=tr_list(others),
            )  # fmt: skip
            logger.log(self._level, told)

    def end(self, folder: Path, entries: int) -> None:
        """Say what came of a step: entries, bytes on disk, seconds since it began."""
        if not logger.isEnabledFor(self._level):
            return
        seconds = time.monotonic() - self._began
        told = tr(
            "{folder}: {entries}, {size}; the step took {seconds:.1f} s, training included",
            folder=folder, entries=counted_entries(entries), size=_readable(_bytes_below(folder)), seconds=seconds,
        )  # fmt: skip
        logger.log(self._level, told)

    @contextmanager
    def exporting(self) -> Iterator[Progress | None]:
        """A progress bar for a large step's files; None where nobody would see it."""
        if not self.speaks:
            yield None
            return
        bar: tqdm | None = None

        def show(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and total >= _LONG:
                from tqdm import tqdm  # here, as it takes a sixth of the time that a process takes to begin

                # disable=None: no bar in a log file, only in a terminal.
                bar = tqdm(total=total, unit="entry", desc="writing dump.json", leave=False, disable=None)
            if bar is not None:
                bar.update(done - bar.n)

        try:
            yield show
        finally:
            if bar is not None:
                bar.close()


def _bytes_below(folder: Path) -> int:
    """Bytes of all files below ``folder``, of several hard links once; what is gone meanwhile counts nothing."""
    sizes: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(place, name))
            except OSError as error:
                if interrupts(error):
                    raise
                continue
            sizes[found.st_dev, found.st_ino] = found.st_size
    return sum(sizes.values())


def _readable(count: int) -> str:
    """
    >>> _readable(12), _readable(1_234_567)
    ('12 bytes', '1.2 MB')
    """
    figure, unit = float(count), 0
    while figure >= 1000 and unit + 1 < len(_UNITS):
        figure, unit = figure / 1000, unit + 1
    return tr("{count} bytes", count=count) if unit == 0 else f"{figure:.1f} {_UNITS[unit]}"
