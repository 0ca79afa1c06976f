"""Fuzzy alignment: every position once, equal names only, k-th with k-th where counts are equal."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.align import align, align_by_marks

names = st.lists(st.sampled_from("abcdef"), max_size=40)


def test_a_surplus_call_stays_where_it_happened():
    golden = ["relu", "fc1", "relu", "fc2", "relu"]
    target = ["relu", "fc1", "relu", "relu", "fc2", "relu"]
    assert sorted(align(target, golden)) == [(0, 0), (1, 1), (2, 2), (4, 3), (5, 4)]


@given(names, names)
def test_positions_are_used_once_and_names_are_equal(target, golden):
    pairs = align(target, golden)
    assert len({place for place, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    assert all(target[place] == golden[other] for place, other in pairs)


@given(names, names)
def test_equal_counts_pair_in_order(target, golden):
    pairs = dict(align(target, golden))
    for name, count in Counter(target).items():
        if golden.count(name) == count:
            places = [place for place, one in enumerate(target) if one == name]
            others = [place for place, one in enumerate(golden) if one == name]
            assert [pairs[place] for place in places] == others


@given(names)
def test_a_sequence_pairs_with_itself_wholly(target):
    assert sorted(align(target, target)) == [(place, place) for place in range(len(target))]


marked = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, *range(9)])), max_size=30)


@given(marked, marked)
def test_marks_pair_calls_of_one_name_once(target, golden):
    pairs = align_by_marks(target, golden)
    assert len({place for place, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    assert all(target[place][0] == golden[other][0] for place, other in pairs)


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=30), st.data())
def test_what_is_left_out_anywhere_shifts_nothing(marks, data):
    """Calls left out of one side: all others stand beside their own."""
    kept = [mark for mark in marks if data.draw(st.booleans())]
    pairs = align_by_marks([("relu", mark) for mark in marks], [("relu", mark) for mark in kept])
    assert sorted(pairs) == [(marks.index(mark), place) for place, mark in enumerate(kept)]


def test_nothing_is_said_where_no_mark_tells():
    assert align_by_marks([("relu", 1), ("relu", None)], [("relu", 2), ("relu", None), ("relu", 3)]) == []
