"""References of operators: closed formulae in NumPy float64, forward and backward, and those that users give.

Nothing here imports a framework. Each module has one family; ``table`` finds the one for a name.
"""

from msprobe_ms.accuracy.references.reference import FusedReference, NotJudged, NotReproducible
from msprobe_ms.accuracy.references.table import fused_reference

__all__ = ["FusedReference", "NotJudged", "NotReproducible", "fused_reference"]
