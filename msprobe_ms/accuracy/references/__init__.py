"""References of operators: closed formulae in NumPy float64, forward and backward, and those that users give.

Nothing here imports a framework. Each module has one family; ``table`` and ``user`` find the one for a name.
"""

from msprobe_ms.accuracy.references.made_up import with_valid_contents
from msprobe_ms.accuracy.references.reference import FusedReference, NotJudged, NotReproducible
from msprobe_ms.accuracy.references.table import fused_reference
from msprobe_ms.accuracy.references.user import UserReference, find_reference, user_references

__all__ = [
    "FusedReference",
    "NotJudged",
    "NotReproducible",
    "UserReference",
    "find_reference",
    "fused_reference",
    "user_references",
    "with_valid_contents",
]
