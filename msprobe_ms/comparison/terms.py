"""Fixed terms of a comparison: its verdicts, modes, what paired two entries, how calls stand, colours of rows, the
two sides, and what stands beside a graph."""

from __future__ import annotations

from enum import Enum, IntEnum

from msprobe_ms.support.translation import tr


class _Term(str, Enum):
    """A term that reads as its text wherever it is printed or written, in every version of Python."""

    __str__ = str.__str__
    __repr__ = str.__repr__
    __hash__ = str.__hash__  # that of Enum runs in Python, for each of a million rows

    def __format__(self, specification: str) -> str:
        return format(self.value, specification)


class Verdict(_Term):
    """Verdict of a comparison; ``FAILED`` where it could not be made, ``UNJUDGED`` before it is."""

    CONSISTENT = "consistent"
    DIVERGENT = "divergent"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    UNJUDGED = ""


class Mode(_Term):
    """What two dumps are compared by: statistics, checksums, or the tensors themselves."""

    STATISTICS = "statistics"
    MD5 = "md5"
    TENSOR = "tensor"


class PairedBy(_Term):
    """What paired two entries.

    ``SCOPE``      the built-in table of operations, inside one call of a module
    ``GROUP``      several entries of one side are one of the other together
    ``UNMATCHED``  an entry of which the layer mapping says that it has no counterpart
    ``ELSEWHERE``  an entry without a counterpart, whose results are compared in rows of other calls
    ``NOTHING``    an entry for which no counterpart was found
    """

    NAME = "name"
    CELL = "cell"
    LAYER = "layer"
    AUTOMATIC = "automatic"
    API = "api"
    DATA = "data"
    SCOPE = "scope"
    GROUP = "group"
    UNMATCHED = "unmatched"
    ELSEWHERE = "elsewhere"
    NOTHING = ""


class Standing(_Term):
    """How a call stands beside its counterpart, as viewers show it.

    ``ORIGIN``        the error begins in it
    ``INHERITED``     it differs, and the error began elsewhere
    ``AGREES``        nothing of it differs
    ``NOT_COMPARED``  it has a counterpart, and no value of the two could be compared
    ``UNMATCHED``     it has no counterpart
    """

    ORIGIN = "origin"
    INHERITED = "inherited"
    AGREES = "agrees"
    NOT_COMPARED = "not compared"
    UNMATCHED = "unmatched"


class RowColour(_Term):
    """Colour of a row in a report; a profile says which red and which yellow."""

    RED = "red"
    YELLOW = "yellow"
    NONE = ""


class Stage(str, Enum):
    """Part of a training step in which an error begins; files hold the text."""

    DATA = "data"
    PARAMETERS = "parameters"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"

    __str__ = str.__str__


class Side(IntEnum):
    """One of the two dumps; also its place in a pair ``(target, golden)``."""

    TARGET = 0
    GOLDEN = 1

    @property
    def other(self) -> Side:
        return _OTHER[self]

    def __str__(self) -> str:
        return self.name.lower()

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)


#: The members by themselves: to look one up in its class takes longer than what most loops do with it.
TARGET, GOLDEN = Side

_OTHER = (GOLDEN, TARGET)

#: Words that files hold in English, as messages: where they are told, ``tr`` of the word finds them.
WORDS = (
    tr("target"), tr("golden"),
    tr("consistent"), tr("divergent"), tr("incomplete"), tr("failed"),
    tr("statistics"), tr("md5"), tr("tensor"),
    tr("comparisons"), tr("dumps"), tr("maximum"), tr("minimum"), tr("mean"), tr("norm"),
    tr("cosine"), tr("euclidean distance"), tr("max absolute error"), tr("max relative error"),
    tr("one thousandth ratio"), tr("five thousandths ratio"), tr("accumulated relative error"),
    tr("relative euclidean distance"), tr("kl divergence"), tr("mean absolute error"),
    tr("root mean square error"), tr("mean relative error"), tr("standard deviation"),
)  # fmt: skip


class Effect(Enum):
    """What an allowance means for a value and for what is computed from it.

    ``PASSES``     the value differs by no more than is explained; what is computed from it inherits the difference
    ``NO_EFFECT``  it differs by right, and what is computed from it does not
    ``NO_ERROR``   the record alone differs, not what was computed
    ``HOLDS``      less is explained than the tolerance allows, and the value differs by more
    ``RANDOM``     it differs by right, and hides what follows
    """

    PASSES = "passes"
    NO_EFFECT = "no effect"
    NO_ERROR = "no error"
    HOLDS = "holds"
    RANDOM = "random"
