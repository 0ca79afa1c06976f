"""When MindSpore's gradient graph can be read."""

from __future__ import annotations

import pytest
from mindspore import _c_expression

from msprobe_ms.frameworks.mindspore import MindSpore
from msprobe_ms.frameworks.mindspore_autograd import has_graph


def test_the_graph_is_read_only_where_its_nodes_can_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """MindSpore 2.7.1 shows nodes of this form: without a number that tells which of them are the same."""
    assert has_graph() and MindSpore().watches_in_place
    monkeypatch.setattr(_c_expression, "BackwardNodePy", type("BackwardNode", (), {"_sequence_nr": None}))
    assert not has_graph() and not MindSpore().watches_in_place
