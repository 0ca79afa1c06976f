"""Wide dumps: what is done for a pair, an origin or a value takes no longer for there being many others."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from time import thread_time

import numpy as np
import pytest
from compare_parts import tensor

from msprobe_ms.comparison.many.first_rank import Exchanges, first_rank
from msprobe_ms.comparison.measuring.gradient_floors import GradientFloors
from msprobe_ms.comparison.model import Comparison, Origin, OriginKind, Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins, split_random
from msprobe_ms.comparison.origin.sentences import note_shifted_calls
from msprobe_ms.comparison.reporting.detections import detect
from msprobe_ms.comparison.statistics import root_mean_square
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.support.process import no_garbage_collection

#: Seconds of processor time that each may take; growing with the square they took from three times that.
LIMIT = 1.0


def within_limit(run: Callable[[], object]) -> None:
    with no_garbage_collection():  # of what tests before have left in this process
        begin = thread_time()  # threads of frameworks may be busy in it as well
        run()
        assert thread_time() - begin < LIMIT


def origin(name: str, kind: OriginKind = OriginKind.COMPUTATION) -> Origin:
    return Origin(name, name, "output", "it differs", {}, kind)


def pair(name: str, *items: Item, strains: tuple[float, ...] = ()) -> Pair:
    entry = Entry(name, parse_entry(name), list(items))
    amounts = strains or (0.1,) * len(items)
    rows = [Row(item, item, None, amount, 1.0) for item, amount in zip(items, amounts, strict=True)]
    return Pair(entry, entry, rows, "name")


def test_origins_and_random_operations_told_apart() -> None:
    kinds = OriginKind.DRIFT, OriginKind.RANDOM
    found = [origin(f"Cell.{number}.L.forward.0.output.0", kinds[number % 2]) for number in range(10_000)]
    within_limit(lambda: split_random(found))
    assert [len(each) for each in split_random(found)] == [5_000, 5_000]


@pytest.fixture(scope="module")
def calls() -> list[Pair]:
    names = [f"Cell.layer_{number}.L.forward.0" for number in range(6_000)]
    return [pair(name, tensor("output.0", [1.0, 2.0], name)) for name in names]


def test_as_many_origins_as_pairs(calls: list[Pair]) -> None:
    found = [origin(f"{each.target.name}.output.0") for each in calls if each.target]
    within_limit(lambda: note_shifted_calls(found, calls))


def test_advice_finds_the_lines_of_its_suspects(calls: list[Pair]) -> None:
    found = [origin(f"{each.target.name}.output.0") for each in calls[-2:] if each.target]
    findings = list(detect(Comparison("statistics", calls, found)))
    assert [finding.row for finding in findings[:2]] == [6_000, 6_001]


def test_one_tensor_that_every_call_hands_on() -> None:
    """Doubtful at the first half of the calls, agreeing at the other: all uses of all records are one tensor."""
    total = 14_000
    pairs = []
    for number in range(total):
        name = f"Cell.layer_{number}.L.forward.0"
        items = (tensor("input.0", [1.0, 2.0], name), tensor("output.0", [1.0, 2.0], name))
        pairs.append(pair(name, *items, strains=(0.1, 5.0 if number < total // 2 else 0.1)))
    within_limit(lambda: find_origins(Evidence(pairs)))
    assert all(each.rows[1].misrecorded for each in pairs[: total // 2])


def test_many_doubtful_values_of_one_call() -> None:
    names = ["Functional.split.0.forward", "Functional.concat.0.forward"]
    numbers = range(5_000)
    made = [tensor(f"output.{number}", [number, -1.0], names[0]) for number in numbers]
    taken = [tensor(f"input.{number}", [number, -1.0], names[1]) for number in numbers]
    pairs = [pair(names[0], *made, strains=(5.0,) * len(made)), pair(names[1], *taken)]
    within_limit(lambda: find_origins(Evidence(pairs)))
    assert all(row.misrecorded for row in pairs[0].rows)


def test_gradients_of_one_call_held_against_the_larger_ones() -> None:
    name = "Functional.split.0.backward"
    generator = np.random.default_rng(1)
    items = [tensor(f"output.{number}", generator.normal(size=1 + number % 40), name) for number in range(15_000)]
    entry = Entry(name, parse_entry(name), items)
    floors = GradientFloors({}, 1.0)
    within_limit(lambda: floors.of_entry(entry))
    found = floors.of_entry(entry)
    for item in items[::3000]:
        larger = [root_mean_square(other) or 0.0 for other in items if np.prod(other.shape) > np.prod(item.shape)]
        assert found[item.name] == max(larger, default=0.0)


def test_ranks_handed_their_error_by_many_collectives() -> None:
    """300 ranks, each handed its error by another call of a group that one sound rank shares."""
    count = 300
    groups = {
        f"rank{number}": Exchanges(["w"], array("I", [0] * 600), number, "x.0", "recv.0") for number in range(count)
    }
    groups["sound"] = Exchanges(["w"], array("I", [0] * 600), None, "", "")
    found: list[object] = []
    within_limit(lambda: found.append(first_rank(groups)))
    assert found and "every divergent rank received its error from another rank" in str(found[0])
