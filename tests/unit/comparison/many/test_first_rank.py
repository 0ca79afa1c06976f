"""Which rank was first: told from what each rank knows of itself, through the collectives they share."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.many.first_rank import Exchanges, first_rank

NAMES = [f"rank{number}" for number in range(6)]


def exchanges(
    calls: str, before: int | None = None, handed_by: str = "", origin: str = "Cell.a.A.forward.0"
) -> Exchanges:
    """``calls``: a letter a collective, the letter being its group."""
    groups = sorted(set(calls))
    return Exchanges(groups, array("I", map(groups.index, calls)), before, "" if before is None else origin, handed_by)


def test_the_rank_whose_own_computation_differs() -> None:
    found = first_rank(
        {
            "rank0": exchanges("ww", 1, "all_reduce.1"),
            "rank1": exchanges("ww", 1),
            "rank2": exchanges("ww", 1, "all_reduce.1"),
        }
    )
    assert found is not None and found.ranks == ["rank1"]
    assert found.reason == (
        "rank1 differs first, by its own computation, at Cell.a.A.forward.0; rank0 and rank2 received the error "
        "through all_reduce.1"
    )


def test_the_earliest_of_several() -> None:
    # rank3 works later than rank0: its group begins when that of rank0 and rank1 has ended.
    found = first_rank(
        {
            "rank0": exchanges("aaa", 2),
            "rank1": exchanges("aaab"),
            "rank2": exchanges("bc"),
            "rank3": exchanges("cd", 1),
        }
    )
    assert found is not None and found.ranks == ["rank0"]
    assert found.reason.endswith("; by their own computation, but later, also rank3")


def test_one_fault_in_all_ranks() -> None:
    found = first_rank({name: exchanges("w", 0) for name in NAMES})
    assert found is not None and found.ranks == NAMES
    assert found.reason == (
        "all 6 ranks differ by their own computation, at Cell.a.A.forward.0: the fault lies in what they share (code, "
        "weights, data)"
    )


def test_a_collective_that_all_its_members_feed_rightly() -> None:
    wrong = {name: exchanges("aw", 1, "all_reduce.1") for name in NAMES[:2]}
    found = first_rank({**wrong, "rank2": exchanges("a")})
    assert found is not None and found.ranks == [] and found.collective == "all_reduce.1"
    assert "rank0 and rank1 pass the same input to all_reduce.1 as the golden and get another result" in found.reason


def test_an_error_from_a_rank_that_was_not_compared() -> None:
    found = first_rank({"rank0": exchanges("w", 0, "recv.0"), "rank1": exchanges("ww")})
    assert found is not None and found.ranks == []
    assert "rank0 through recv.0; the rank that computed it was not compared" in found.reason


def test_nothing_diverges() -> None:
    assert first_rank({name: exchanges("ww") for name in NAMES}) is None


def test_without_collectives_it_says_what_it_cannot_know() -> None:
    found = first_rank({"rank0": exchanges("", 0), "rank1": exchanges("", 0), "rank2": exchanges("")})
    assert found is not None and found.ranks == ["rank0", "rank1"]
    assert found.reason.startswith("rank0 and rank1 differ first, each by its own computation, at Cell.a.A.forward.0")
    assert "no collective was recorded; levels L1 and mix record them between start and stop" in found.reason


@given(
    st.lists(st.sets(st.sampled_from(NAMES), min_size=1), min_size=1, max_size=12),
    st.sampled_from(NAMES),
    st.integers(0, 12),
)
def test_a_fault_that_spreads_is_traced_back(schedule: list[set[str]], faulty: str, moment: int) -> None:
    """Collectives in one order over random groups; the fault begins in one rank and spreads through them."""
    moment = min(moment, len(schedule))
    groups = {frozenset(members): chr(97 + number) for number, members in enumerate(map(frozenset, schedule))}
    calls = dict.fromkeys(NAMES, "")
    begun: dict[str, tuple[int, str]] = {}
    for number, members in enumerate([*schedule, set()]):
        if number == moment:
            begun[faulty] = len(calls[faulty]), ""
        spreads = bool(members & set(begun))
        for member in members:
            if spreads and member not in begun:
                begun[member] = len(calls[member]), f"all_reduce.{number}"
            calls[member] += groups[frozenset(members)]
    found = first_rank({name: exchanges(calls[name], *begun.get(name, (None, ""))) for name in NAMES})
    assert found is not None and found.ranks == [faulty]


@given(st.lists(st.tuples(st.text("abc", max_size=6), st.none() | st.integers(0, 7), st.booleans()), max_size=6))
@pytest.mark.filterwarnings("error")
def test_ranks_that_disagree_on_their_calls_never_stop_it(ranks: list[tuple[str, int | None, bool]]) -> None:
    made = {
        name: exchanges(calls, None if before is None else min(before, len(calls)), "x.0" * handed)
        for name, (calls, before, handed) in zip(NAMES, ranks, strict=False)
    }
    found = first_rank(made)
    divergent = [name for name, each in made.items() if each.before is not None]
    assert (found is None) == (not divergent)
    if found is not None:
        assert found.reason and set(found.ranks) <= set(divergent)
