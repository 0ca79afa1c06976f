"""What agreed in the first step differs later as much more as what it is computed from, and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.allowances import describe_allowances
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.explanations.agreed_at_first import AgreedAtFirst
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump
from msprobe_ms.support.translation import speaking, translated

RANDOM = np.random.default_rng(7)
DATA, WEIGHT, ERROR, OTHER = (RANDOM.standard_normal((20, 30)).astype(np.float32) for _ in range(4))
NET, LAYER = "Cell.net.Net.forward.0", "Cell.net.fc.Dense.forward.0"


def step(result: float = 0.0, weight: float = 0.0, data: float = 0.0) -> Dump:
    """A step of a model with one layer; its values are off by these parts of their size."""
    values = [
        ("input.0", DATA + np.float32(data) * ERROR, LAYER),
        ("parameters.weight", WEIGHT + np.float32(weight) * ERROR, LAYER),
        ("output.0", OTHER + np.float32(result) * ERROR, LAYER),
        ("input.0", DATA + np.float32(data) * ERROR, NET),
        ("output.0", OTHER + np.float32(result) * ERROR, NET),
    ]
    made = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values])
    made.entries[LAYER].parent = NET
    return made


def found(now: Dump, first: Dump) -> list[str]:
    golden = step()
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    origins = find_origins(Evidence(pairs, earlier=EarlierSteps({3: lambda: (first, step())})))
    return [origin.target for origin in origins]


#: Rounding of the first step, and how far updates by gradients that were rounded set weights apart.
ROUNDED, UPDATED = 2e-7, 1e-4


@pytest.mark.parametrize(("result", "told"), [(3e-4, []), (1e-3, []), (0.1, [f"{LAYER}.output.0"])])
def test_a_result_that_agreed_differs_as_what_it_is_computed_from(result: float, told: list[str]) -> None:
    """The weights are some thousand times as far apart as rounding: so may be the result, some times."""
    assert found(step(result, UPDATED), step(ROUNDED)) == told


def test_code_that_changed_shows_beside_weights_that_agree() -> None:
    """A setting that changes between two steps, as an epsilon or an activation, is no drift."""
    assert found(step(0.02, ROUNDED), step(ROUNDED)) == [f"{LAYER}.output.0"]


def test_what_differed_in_the_first_step_differs_still() -> None:
    assert found(step(0.02, ROUNDED), step(result=0.02)) == [f"{LAYER}.output.0"]


def test_without_updates_nothing_drifts() -> None:
    assert found(step(0.02), step()) == [f"{LAYER}.output.0"]


def test_data_and_parameters_do_not_drift() -> None:
    assert found(step(weight=0.02), step()) == [f"{LAYER}.parameters.weight"]
    assert found(step(0.02, ROUNDED, data=0.02), step()) == [f"{NET}.input.0"]


BODY, HEAD = "Cell.body.Dense.forward.0", "Cell.head.Dense.forward.0"


def step_of_two(result: float = 0.0, weight: float = 0.0, mean: float = 0.0) -> Dump:
    """A step of two layers, none around them, of which the second is given what code in between made."""
    values = [
        ("input.0", DATA, BODY),
        ("parameters.weight", WEIGHT + np.float32(weight) * ERROR, BODY),
        ("output.0", OTHER + np.float32(result) * ERROR, BODY),
        ("input.0", DATA[:10] + np.float32(mean) * ERROR[:10], HEAD),
        ("output.0", WEIGHT[:10] + np.float32(mean) * ERROR[:10], HEAD),
    ]
    return dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values])


def found_in_two(now: Dump) -> list[str]:
    golden, first = step_of_two(), step_of_two(1e-6, mean=1e-6)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    origins = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (first, golden)})))
    return [origin.target for origin in origins]


def test_what_code_between_layers_makes_of_a_result_is_no_data() -> None:
    """It drifts as the result does, so that the data is the same still."""
    assert found_in_two(step_of_two(7e-4, 2e-5, mean=1e-3)) == []


def test_data_that_is_given_later_does_not_drift() -> None:
    assert found_in_two(step_of_two(1e-5, 2e-5, mean=0.02)) == [f"{HEAD}.input.0"]


def test_what_is_given_after_a_call_without_a_counterpart_is_no_data() -> None:
    """The golden's first layer is a function, whose weights drift unseen."""

    def found_without_body(mean: float, *, recorded: bool) -> list[str]:
        sides = []
        for each in (step_of_two(1e-6, mean=1e-6), step_of_two(), step_of_two(mean, 2e-5, mean=mean), step_of_two()):
            sides.append(replace(each, entries={name: each.entries[name] for name in (BODY, HEAD)}))
        for golden in sides[1::2]:
            del golden.entries[BODY]
        for target in sides[::2] if not recorded else ():
            del target.entries[BODY]
        for number, each in enumerate(sides):
            error = np.float32((0.0, 1e-5)[number == 2]) * ERROR
            drifted, sketched = WEIGHT + error, encode(sketch(WEIGHT + error), WEIGHT.dtype)
            tail = tensor("parameters.weight", drifted, "Cell.tail.Dense.forward.0", sketch=sketched)
            each.entries |= dump([tail]).entries
        before, golden_before, now, golden = sides
        pairs = pair(now, golden, Mappings())
        measure(pairs, now, golden, "statistics")
        origins = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (before, golden_before)})))
        return [origin.target for origin in origins]

    assert found_without_body(1e-3, recorded=True) == []
    assert found_without_body(0.2, recorded=True)[:1] == [f"{HEAD}.input.0"]
    assert found_without_body(1e-3, recorded=False) == [f"{HEAD}.input.0"], "data, which does not drift"


def test_its_name_says_what_it_forgives() -> None:
    item = tensor("output.0", [2.0])
    row = Row(item, item, deviation=2e-5, tolerance=1e-5)
    row.explained = Allowance(AgreedAtFirst.name, 1e-4)
    told = describe_allowances(row, [(AgreedAtFirst.name, row.explained)])
    assert told == "explained by growth since the first step (up to 0.0001)"
    with speaking("zh"):
        assert translated(told).startswith("由“首个 step 之后的误差增长”解释")
