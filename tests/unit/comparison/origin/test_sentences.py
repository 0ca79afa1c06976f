"""Sentences about rows, and about calls that stand beside other calls as a name is called another number of times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from compare_nodes import BLOCK, FAULT, assert_short, node, only
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.model import Origin, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.origin.sentences import describe_required, note_shifted_calls
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump


@pytest.mark.parametrize(
    ("target", "golden", "told"),
    [
        ({"maximum": math.nan}, {}, "output.0 holds NaN, the golden's is finite"),
        ({}, {"minimum": -math.inf}, "output.0 is finite, the golden's holds -infinity"),
        ({"md5": "1"}, {"md5": "2"}, "the checksums of output.0 differ"),
        ({}, {}, "the difference of output.0 cannot be measured (NaN or infinite)"),
    ],
)
def test_what_has_no_measure_is_told_in_words(target: dict[str, Any], golden: dict[str, Any], told: str) -> None:
    pair = node(BLOCK, None, input_0=0, output_0=FAULT)
    row = pair.rows[1]
    assert row.target is not None and row.golden is not None
    pair.rows[1] = Row(row.target._replace(**target), row.golden._replace(**golden), deviation=math.inf, tolerance=1e-5)
    assert told in only(pair).reason


@pytest.mark.parametrize("size", [40, 4096])
def test_another_order_is_told_from_slightly_other_values(size: int) -> None:
    """An epsilon of 1e-7 in place of 1e-5 leaves Max, Min, Mean and Norm as they are, too."""
    values = np.random.default_rng(size).normal(size=size).astype(np.float32)

    def reason(other: np.ndarray, deviation: float) -> str:
        both = (tensor("output.0", each, sketch=encode(sketch(each), each.dtype)) for each in (other, values))
        pair = node(BLOCK, None, input_0=0, output_0=FAULT)
        pair.rows[1] = Row(*both, deviation=deviation, tolerance=1.9e-6)
        return only(pair).reason

    exchanged = values.copy()
    exchanged[[3, 7]] = values[[7, 3]]
    apart = float(np.linalg.norm(exchanged - values) / np.linalg.norm(values))
    assert "look at the order of its elements" in reason(exchanged, apart)
    nudged = values + np.float32(4e-6) * np.sign(np.random.default_rng(1).normal(size=size)).astype(np.float32)
    assert "order" not in reason(nudged, 4e-6)


RELU = "Cell.act.ReLU.forward."
DENSE = "Cell.fc{}.Dense.forward.0"


def step(*inputs: float, dense: float = 1.0) -> Dump:
    """A shared ReLU called with each of ``inputs``, a layer before every call but an extra one with 0."""
    items = []
    for call, number in enumerate(inputs):
        if number:
            before = DENSE.format(int(number))
            items += [tensor("input.0", [number, 1.0], before), tensor("output.0", [number, dense], before)]
        for state in ("input", "output"):
            items.append(tensor(f"{state}.0", [number, 1.0], f"{RELU}{call}"))
    return dump(items)


def origins(target: Dump, golden: Dump, fuzzy: bool = False) -> list[Origin]:
    found = compare_dumps(target, golden, Options(fuzzy=fuzzy)).origins
    for origin in found:
        assert_short(origin)
    return found


def test_what_calls_give_out_tells_which_is_the_one_too_many() -> None:
    assert origins(step(0, 1, 2, 3), step(1, 2, 3)) == []
    assert origins(step(1, 2, 3), step(1, 0, 2, 3)) == []


def test_a_fault_beside_a_surplus_call_is_still_found_where_it_is() -> None:
    target, golden = step(0, 1, 2, 3, 4), step(1, 2, 3, 4)
    call = target.entries[f"{RELU}3"]
    call.items = [call.items[0], tensor("output.0", [30.0, 1.0], call.name)]
    (origin, *_) = origins(target, golden)
    assert origin.target == f"{RELU}3.output.0"
    assert origin.golden == f"{RELU}2.output.0"


def test_where_nothing_tells_an_origin_called_once_more_says_so() -> None:
    """All statistics differ: call by call is all that is left."""
    (origin, *_) = origins(step(0, 1.5, 2.5, 3.5), step(1, 2, 3))
    assert origin.target == f"{RELU}0.input.0"
    assert origin.details[0] == (
        "Cell.act.ReLU is called 4 times in the target, 3 times in the golden: after the first extra call, "
        "calls are paired with wrong counterparts; try -fm"
    )


def test_and_once_more_in_the_golden() -> None:
    (origin, *_) = origins(step(1), step(0, 2.5))
    assert "Cell.act.ReLU is called once in the target, 2 times in the golden: " in origin.details[0]


def test_fuzzy_matching_tells_by_the_calls_around() -> None:
    assert origins(step(0, 1, 2, 3), step(1, 2, 3), fuzzy=True) == []


def test_an_origin_called_equally_often_says_nothing_of_calls() -> None:
    target, golden = step(1, 2, 3, 0, dense=9.0), step(1, 2, 3)
    assert [origin.target for origin in origins(target, golden)] == [
        f"{DENSE.format(number)}.output.0" for number in (1, 2, 3)
    ]
    assert not any("is called" in "".join(origin.details) for origin in origins(target, golden))


def test_calls_that_found_their_own_are_not_doubted() -> None:
    target, golden = step(0, 1, 2), step(1, 2.5)
    mapped = compare_dumps(target, golden, Options(fuzzy=True)).pairs

    found = find_origins(Evidence(mapped))
    assert found and note_shifted_calls(found, mapped) == found


@pytest.mark.parametrize(
    ("deviation", "accepts"),
    [(0.029411, "0.0295"), (0.0294, "0.0294"), (1.0000001, "1.01"), (123456.0, "124000")],
)
def test_the_tolerance_that_would_accept_is_the_next_of_three_digits(deviation: float, accepts: str) -> None:
    assert f"a tolerance of {accepts} would accept it" in describe_required(deviation, 1e-6)
