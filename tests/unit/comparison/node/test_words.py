"""What is said of the elements of a node."""

from __future__ import annotations

import numpy as np

from msprobe_ms.arrays.worst_elements import study
from msprobe_ms.comparison.node.words import element_lines


def test_equal_elements_take_one_line() -> None:
    ones = np.ones((2, 3), np.float32)
    assert list(element_lines(study(ones, ones.copy()))) == ["elements: all 6 equal"]


def test_the_worst_element_is_told_with_its_place() -> None:
    golden = np.ones((2, 3), np.float32)
    target = golden.copy()
    target[1, 2] = 5
    told = "\n".join(element_lines(study(target, golden)))
    assert "[1, 2]" in told and "5" in told
