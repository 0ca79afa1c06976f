"""Operators from one line."""

from __future__ import annotations

import inspect

import pytest
from reference_calls import arguments

from msprobe_ms.accuracy.references import NotReproducible
from msprobe_ms.accuracy.references.reference import Computed
from msprobe_ms.accuracy.references.signatures import operator

ADD = operator(
    "add", lambda x, factor, fixed: Computed((x, factor, fixed)),
    "self: x, factor=-1.5, *, sync: unread = False, mask: default_only = None", {"fixed": 3},
)  # fmt: skip


def test_names_order_and_defaults_are_the_operator_s() -> None:
    assert str(ADD.signature) == "(self, factor=-1.5, *, sync=False, mask=None)"
    kinds = [each.kind for each in ADD.signature.parameters.values()]
    assert kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2 + [inspect.Parameter.KEYWORD_ONLY] * 2
    assert ADD.run(arguments(1)).outputs == (1, -1.5, 3)
    assert ADD.run(arguments(self=1, factor=2, sync=True, mask=None)).outputs == (1, 2, 3)


def test_what_is_known_by_its_default_alone_must_have_it() -> None:
    with pytest.raises(NotReproducible, match="the reference of add has no mask"):
        ADD.run(arguments(1, mask=False))
