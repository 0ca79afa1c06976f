"""Find the reference of an operator by the name that dumps have it under."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from msprobe_ms.accuracy.references import mindspore_operators, pytorch_operators
from msprobe_ms.accuracy.references.reference import FusedReference
from msprobe_ms.dump.dialects import MINDSPORE, PRIMITIVE, PYTORCH


def fused_reference(apis: str, prefix: str, api: str) -> FusedReference | None:
    """Return what stands for calls ``{prefix}.{api}.{n}``; None if nothing does.

    ``apis``  the dialect whose APIs the framework has: ``mindspore`` or ``pytorch``

    >>> str(fused_reference("mindspore", "Functional", "swiglu").signature)
    '(input, dim=-1)'
    >>> fused_reference("mindspore", "Primitive", "activation.Swiglu").name
    'Swiglu'
    >>> fused_reference("pytorch", "Functional", "relu")
    """
    name = api.rpartition(".")[2] if prefix == PRIMITIVE else api
    return fused_references(apis).get((prefix, name))


@functools.cache
def fused_references(apis: str) -> Mapping[tuple[str, str], FusedReference]:
    """Return every reference of a dialect's operators by prefix and name."""
    tables = {MINDSPORE.name: mindspore_operators.operators, PYTORCH.name: pytorch_operators.operators}
    return tables[apis]() if apis in tables else {}
