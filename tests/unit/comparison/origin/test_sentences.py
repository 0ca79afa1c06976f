"""Sentences about rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
from compare_nodes import BLOCK, FAULT, node, only

from msprobe_ms.comparison.model import Row


@pytest.mark.parametrize(
    ("target", "golden", "told"),
    [
        ({"maximum": math.nan}, {}, "output.0 holds NaN, the golden's is finite"),
        ({}, {"minimum": -math.inf}, "output.0 is finite, the golden's holds -infinity"),
        ({"md5": "1"}, {"md5": "2"}, "the checksums of output.0 differ"),
        ({}, {}, "output.0 differs beyond measure"),
    ],
)
def test_what_has_no_measure_is_told_in_words(target: dict[str, Any], golden: dict[str, Any], told: str) -> None:
    pair = node(BLOCK, None, input_0=0, output_0=FAULT)
    row = pair.rows[1]
    assert row.target is not None and row.golden is not None
    pair.rows[1] = Row(row.target._replace(**target), row.golden._replace(**golden), deviation=math.inf, tolerance=1e-5)
    assert told in only(pair).reason
