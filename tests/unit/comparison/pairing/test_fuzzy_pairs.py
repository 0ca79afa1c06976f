"""Fuzzy match: a dump pairs with itself wholly, other numbers of calls align by sequence, and it costs n log n."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import pytest
import repository
from built_dumps import dump, entry, module_calls, paired
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.reading.reader import read_dump

DATA = repository.DATA / "mapping"
NONE = Mappings()
REAL = ["encoder_mindspore_mix", "encoder_pytorch_mix", "lenet_mindspore_mix", "encoder_mindspore_L0"]


def itself(one: Dump) -> None:
    pairs = pair(one, one, NONE, fuzzy=True)
    assert paired(pairs) == {name: name for name in one.entries}
    assert all(row.matched for each in pairs for row in each.rows)


@pytest.mark.parametrize("name", REAL)
def test_a_real_dump_pairs_with_itself_wholly(name):
    itself(read_dump(DATA / name))


def with_recomputed(calls: list[Entry]) -> list[Entry]:
    """The last forward call again, as recomputed in backward."""
    parsed = calls[0].parsed
    assert parsed is not None
    again = entry(str(replace(parsed, index=99)))
    again.recomputed = True
    return [*calls, again]


MODULES = st.tuples(st.sampled_from(["act.ReLU", "fc1.Dense", "Dense"]), st.integers(1, 3))
FUNCTIONS = st.sampled_from(["Functional.add", "Tensor.__add__", "Primitive.m.MatMul"])


@given(st.lists(MODULES, unique_by=lambda each: each[0]), st.lists(FUNCTIONS, max_size=8), st.booleans())
def test_any_dump_pairs_with_itself_wholly(modules, functions, recomputed):
    """Repeated and recomputed calls, backwards, parameter gradients, saved values, names of no grammar."""
    entries: list[Entry] = []
    for name, calls in modules:
        path, _, class_name = name.rpartition(".")
        made = module_calls("Cell", path, class_name, calls)
        made = [one if path else entry(one.name.replace("Cell..", "Cell.")) for one in made]
        entries += with_recomputed(made) if recomputed else made
    for place, api in enumerate(functions):
        entries += [entry(f"{api}.{place}.forward"), entry(f"{api}.{place}.backward")]
    itself(dump("mindspore", *entries, "loss.0.debug", "of no grammar"))


def test_backwards_go_with_their_forwards_whatever_their_numbers():
    target = dump("mindspore", *module_calls("Cell", "act", "ReLU", 3))
    golden = dump("mindspore", *(each for each in module_calls("Cell", "act", "ReLU", 4) if ".0" not in each.name[-2:]))
    found = paired(pair(target, golden, NONE, fuzzy=True))
    for way in ("forward", "backward", "parameters_grad"):
        for call in range(3):
            assert found[f"Cell.act.ReLU.{way}.{call}"] == f"Cell.act.ReLU.{way}.{call + 1}"


def test_other_numbers_of_calls_align_by_sequence():
    """One call too many in each tenth layer: all others stand beside their own, 20,000 entries."""
    ours, theirs = _Calls(), _Calls()
    expected: dict[str, str] = {}
    for layer in range(3_300):
        for api in (f"Functional.op{layer}", "Functional.relu", "Functional.add"):
            expected[ours.add(api)] = theirs.add(api)
        if layer % 10 == 0:
            ours.add("Functional.relu")
    target, golden = dump("mindspore", *ours.each_way()), dump("mindspore", *theirs.each_way())
    assert len(target.entries) > 20_000
    found = paired(pair(target, golden, NONE, fuzzy=True))
    expected |= {_backward(mine): _backward(counterpart) for mine, counterpart in expected.items()}
    assert {name: found.get(name) for name in expected} == expected


class _Calls:
    """Names of calls in execution order, numbered as a recording does."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.counts: Counter[str] = Counter()

    def add(self, api: str) -> str:
        self.names.append(f"{api}.{self.counts[api]}.forward")
        self.counts[api] += 1
        return self.names[-1]

    def each_way(self) -> list[Entry]:
        return [entry(name, {}) for name in (*self.names, *map(_backward, reversed(self.names)))]


def _backward(name: str) -> str:
    return name.replace("forward", "backward")


@pytest.mark.parametrize("golden_framework", ["mindspore", "pytorch"])
def test_twice_the_entries_cost_twice_the_calls(golden_framework):
    """Counted, not timed: 2,000 and 4,000 entries of two shapes of dumps, one call too many in each tenth layer."""

    def calls(layers: int) -> int:
        apis = ["Mint.add", "Functional.relu", "Tensor.__add__", "Functional.matmul"]
        ours = [f"{api}.{layer}.forward" for layer in range(layers) for api in apis]
        theirs = [f"{api}.{layer}.forward" for layer in range(layers) for api in apis if layer % 10 or api != apis[1]]
        target, golden = dump("mindspore", *ours), dump(golden_framework, *theirs)
        count = 0

        def counted(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            pair(target, golden, NONE, fuzzy=True)
        finally:
            sys.setprofile(None)
        return count

    calls(100)
    assert calls(1_000) < 2.3 * calls(500)
