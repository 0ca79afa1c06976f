"""How far error has come bounds what may follow from it, and leaves no noise to hide in where all was equal."""

from __future__ import annotations

import math

from compare_nodes import FAULT, node, origins

from msprobe_ms.comparison.model import Row
from msprobe_ms.dump.model import Item

NET = "Cell.Net.forward.0"


def test_a_division_of_other_operands_rounds_otherwise_after_layers_that_were_equal_to_the_bit() -> None:
    """One softmax subtracts the largest before it divides, the other does not; both come out right."""
    equal = [node(f"Cell.{i}.Dense.forward.0", None, (i, 2.0), input_0=0, output_0=0) for i in range(4)]
    router = "Cell.router.Router.forward.0"
    for operand, found in ((0.0, ["Tensor.__truediv__.0.forward.output.0"]), (FAULT * 1e4, [])):
        division = node("Tensor.__truediv__.0.forward", router, (5.0, 2.0), input_0=operand, output_0=0.5)
        assert origins(*equal, division, node(router, None, (6.0, 2.0), input_0=0, output_0=0.05)) == found


def test_a_value_that_cannot_be_measured_makes_no_float_beside_it_narrow() -> None:
    """Another kernel gives None for its weights, and rounds its result by an eighth of a tolerance at most."""
    equal = [node(f"Cell.{i}.Dense.forward.0", NET, (i, 2.0), input_0=0, output_0=0) for i in range(4)]
    for result, found in ((0.1, []), (0.2, ["Cell.attn.Attention.forward.0.output.0"])):
        attention = node("Cell.attn.Attention.forward.0", NET, (5.0, 2.0), input_0=0, output_0=result)
        given = attention.rows[-1].target
        assert given is not None
        weights = given._replace(path=("1",), maximum=7.0, norm=8.0)
        row = Row(Item(given.entry, "output", ("1",)), weights, deviation=math.inf, tolerance=1e-5)
        attention.rows.append(row)
        assert origins(*equal, attention, node(NET, None, (6.0, 2.0), input_0=0, output_0=0.05)) == found
