"""Every origin, however it came about, is told in sentences that a line of a terminal has room for."""

from __future__ import annotations

import math

from compare_nodes import assert_short, node
from hypothesis import given, settings
from hypothesis import strategies as st

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.dump.model import Item

#: Deviations in tolerances.
RATIOS = st.sampled_from((0.0, 0.02, 0.9, 1.4, 5.0, 12.0, 60.0, 400.0, 1e6, math.inf))
#: So that some calls take in what agrees.
SMALL = st.sampled_from((0.0, 0.02, 0.5))
SHAPES = st.sampled_from(((6,), (32, 12, 1024, 128), (128, 768, 14, 14, 3)))
MODULES = ("Dense", "LayerNorm", "Conv2d", "ReLU", "Dropout", "Block", "_Part", "LSTM")
CALLS = ("Functional.linear", "Functional.softmax", "Tensor.add", "Distributed.all_reduce", "Primitive.m.MatMul")
NAMES = st.one_of(
    st.builds("Cell.{}.{}.{}".format, st.sampled_from("abc"), st.sampled_from(MODULES), st.sampled_from(
        ("forward.0", "forward.1", "backward.0", "parameters_grad")
    )),
    st.builds("{}.{}.{}".format, st.sampled_from(CALLS), st.integers(0, 2), st.sampled_from(("forward", "backward"))),
    st.builds("saved_{}.0.debug".format, st.sampled_from("xy")),
)  # fmt: skip
TOGETHER = ("input_0", "input_mask", "parameters_weight", "parameters_bias", "output_0", "output_1")


@st.composite
def steps(draw: st.DrawFn) -> list[Pair]:
    """A short history of a step, with values of every kind."""
    pairs: list[Pair] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=7, unique=True)):
        parent = draw(st.sampled_from((None, "Cell.a.Block.forward.0", "Cell.c.Block.forward.0")))
        if name.endswith("parameters_grad"):
            ratios = {"parameters_grad_weight": draw(RATIOS)}
        elif name.endswith("debug"):
            ratios = {"debug_left": draw(RATIOS)}
        else:
            sound = draw(st.integers(0, 4))  # values before the first that may differ
            places = enumerate(TOGETHER[: draw(st.integers(1, 6))])
            ratios = {place: draw(SMALL if number < sound else RATIOS) for number, place in places}
        pair = node(name, parent if parent != name else None, (draw(st.floats(2, 9)), 1.0), **ratios)
        pair.rows[:] = [_varied(draw, row) for row in pair.rows]
        pairs.append(pair)
    return pairs


def _varied(draw: st.DrawFn, row: Row) -> Row:
    target, golden = row.target, row.golden
    assert target is not None and golden is not None
    shape = draw(SHAPES)
    kind = draw(st.sampled_from(("tensor", "tensor", "tensor", "value", "other shape", "half", "alone")))
    target, golden = (each._replace(shape=shape) for each in (target, golden))
    sides: tuple[Item | None, Item | None] = (target, golden)
    if kind == "value":
        sides = target._replace(kind="value", maximum="x" * 300), golden._replace(kind="value", maximum=1.0)
    elif kind == "other shape":
        sides = target, golden._replace(shape=(*shape, 1))
    elif kind == "half":
        sides = target._replace(dtype="Float16"), golden
    elif kind == "alone" and row.state == "parameters":
        return Row(target, None)
    return Row(*sides, deviation=row.deviation, tolerance=row.tolerance)


@settings(max_examples=300, deadline=None)
@given(steps())
def test_every_reason_and_detail_fits_a_line(pairs: list[Pair]) -> None:
    for origin in find_origins(Evidence(pairs)):
        assert_short(origin)
