"""Which process of a job this is, and whether its rank is one of those that are recorded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.support.translation import tr, tr_list


class ProcessRank:
    """The rank of this process: the one that a script names, else the framework's."""

    def __init__(self, framework: Framework, say_once: Callable[[int, str], None]) -> None:
        """``say_once`` logs a text at a level, unless one of its kind was logged before."""
        self._framework = framework
        self._say_once = say_once
        #: As the script has named it.
        self.given: int | None = None

    @property
    def known(self) -> int | None:
        """None where the process is not part of a distributed job."""
        return self._framework.rank() if self.given is None else self.given

    def is_selected(self, ranks: Collection[int]) -> bool:
        """Whether it is one of ``ranks``; without any, all are recorded. Who is alone is taken for rank 0."""
        return not ranks or (self.known or 0) in ranks

    def say_unselected(self, ranks: Collection[int]) -> None:
        """Say so where it is none of ``ranks``; alone, it would be silence, while of several ranks others record."""
        if self.is_selected(ranks):
            return
        known, selected = self.known, tr_list(map(str, sorted(ranks)[:10]))
        if known is not None:
            self._say_once(
                logging.DEBUG,
                tr("rank: this process is rank {known}, recorded are {selected}", known=known, selected=selected),
            )
        else:
            self._say_once(
                logging.WARNING,
                tr(
                    "rank: nothing is recorded: this process is part of no distributed job that is initialised, "
                    "and taken for rank 0; the configuration selects {selected}. Remove the key or add 0, or "
                    "name this process's rank: start(model, rank_id={ranks})",
                    selected=selected,
                    ranks=min(ranks),
                ),
            )
