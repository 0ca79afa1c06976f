"""Calls that give out what they take in compute nothing."""

from __future__ import annotations

from compare_nodes import REST, node, origins

#: Ratios to a tolerance of 1e-5: a deviation of 1, and one that a narrower float makes.
APART, ROUNDED = 1e5, 1e2
IDENTITY = "Cell.body.drop.Identity.forward.0"


def around(name: str, figures: tuple[float, float] = (3.0, 3.0), **ratios: float):  # noqa: ANN201
    call = node(name, "Cell.body.Body.forward.0", figures, **ratios)
    return [call, node("Cell.body.Body.forward.0", None, (4.0, 2.0), input_0=REST, output_0=REST)]
