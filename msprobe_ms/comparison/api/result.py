"""What every comparison from Python can do, whether of one rank and step or of many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.terms import Verdict

if TYPE_CHECKING:
    import pandas

    from msprobe_ms.comparison.api.compared import Compared

#: ``(step, rank)``. A process without a rank is -1, a dump without a step 0; where that does not tell two apart, the
#: rank is the name of its folder and no step is None.
Key: TypeAlias = "tuple[int | None, int | str]"


class ComparisonResult(ABC):
    """Two dumps, or two runs of many, compared: a ``Compared`` or a ``ComparedRanks``.

    ``str`` gives what the command prints.
    """

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """``consistent``, ``divergent`` or ``incomplete``."""

    @property
    @abstractmethod
    def origins(self) -> list[Origin]:
        """Where error begins, in execution order."""

    @property
    @abstractmethod
    def pairs(self) -> Mapping[Key, Compared]:
        """Each rank and step that could be compared: ``(step, rank)`` → its comparison."""

    @property
    @abstractmethod
    def frame(self) -> pandas.DataFrame:
        """The rows of the report; needs pandas (the extra ``dataframe``)."""

    @abstractmethod
    def to_html(self, path: str | Path, /) -> Any:
        """Write the page to look at; of many ranks or steps a folder of them. Raises UsageError."""

    @abstractmethod
    def to_xlsx(self, path: str | Path, /) -> Any:
        """Write the coloured table; of many ranks or steps a folder of them. Raises UsageError."""

    @abstractmethod
    def to_csv(self, path: str | Path, /) -> Any:
        """Write the table; of many ranks or steps a folder of them. Raises UsageError."""

    @abstractmethod
    def to_json(self, path: str | Path, /) -> Path:
        """Write the summary. Raises UsageError."""
