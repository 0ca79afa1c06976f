"""The dumps of steps before the one that is compared, as they are paired; each is read once, when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path

from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.modules import modules_of
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.locate import dumps_of_steps_before
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: The target's and the golden's dump of one step.
Both = tuple[Dump, Dump]


class EarlierSteps:
    """The earlier steps that both sides recorded.

    ``readers``: how many steps earlier → what reads both dumps, None where one cannot be read.
    """

    def __init__(self, readers: Mapping[int, Callable[[], Both | None]]) -> None:
        self._readers = readers
        self._read: dict[int, Both | None] = {}

    @classmethod
    def of(cls, target: Dump, golden: Dump) -> EarlierSteps:
        """Find the earlier steps of two dumps in the folders beside them."""
        ours, theirs = dumps_of_steps_before(target.path), dumps_of_steps_before(golden.path)
        return cls({back: partial(_read, ours[back], theirs[back]) for back in ours.keys() & theirs.keys()})

    def as_paired(self, mappings: Mappings) -> EarlierSteps:
        """Return the same steps with what one side has fused made one on the other side as well."""
        return EarlierSteps({back: partial(self._joined, back, mappings) for back in self._readers})

    def of_same_modules(self, target: Dump, golden: Dump) -> Both:
        """Return the first step where it ran the modules of these two, of a later one; else these.

        Its figures tell better which module is which: no update has set parameters apart.
        """
        if (first := self.first) is None:
            return target, golden
        same = all(
            set(modules_of(one)) == set(modules_of(other)) for one, other in zip(first, (target, golden), strict=True)
        )
        return first if same else (target, golden)

    @property
    def were_recorded(self) -> bool:
        """Whether there are any."""
        return bool(self._readers)

    @cached_property
    def before(self) -> Both | None:
        """The step right before; None where it was not recorded or cannot be read."""
        return self._dumps(1)

    @cached_property
    def first(self) -> Both | None:
        """The earliest step; None where none was recorded or it cannot be read."""
        return self._dumps(max(self._readers, default=0))

    def _dumps(self, back: int) -> Both | None:
        if back in self._readers and back not in self._read:
            self._read[back] = self._readers[back]()
        return self._read.get(back)

    def _joined(self, back: int, mappings: Mappings) -> Both | None:
        both = self._dumps(back)
        return None if both is None else join_fused(*both, mappings)


def _read(ours: Path, theirs: Path) -> Both | None:
    try:
        return read_dump(ours), read_dump(theirs)
    except (MsprobeError, OSError) as error:
        logger.info(tr("an earlier step is left out: {error}", error=error))
        return None


def same_item(dump: Dump, item: Item) -> Item | None:
    """The same item of another step; None where there is none."""
    entry = dump.entries.get(item.entry)
    items = entry.items if entry is not None else ()
    return next((each for each in items if each.state == item.state and each.path == item.path), None)
