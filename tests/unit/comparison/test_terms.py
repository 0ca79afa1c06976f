"""Terms of a comparison read as their texts, and sides are places of a pair, in every version of Python."""

from __future__ import annotations

import json
import pickle

import pytest

from msprobe_ms.comparison.terms import Mode, PairedBy, RowColour, Side, Verdict


@pytest.mark.parametrize("term", [*Verdict, *Mode, *PairedBy, *RowColour])
def test_a_term_reads_as_its_text(term: Verdict | Mode | PairedBy | RowColour) -> None:
    text = term.value
    assert [str(term), f"{term}", f"{term:>12}", repr(term)] == [text, text, f"{text:>12}", repr(text)]
    assert json.dumps({term: term}) == json.dumps({text: text})
    assert term == text
    assert {text: 1}[term] == 1
    assert bool(term) == bool(text)
    assert pickle.loads(pickle.dumps(term)) is term


def test_a_side_is_a_place_of_a_pair_and_reads_as_its_name() -> None:
    assert [("a", "b")[side] for side in Side] == ["a", "b"]
    assert [f"{side} {side!s} {side.other}" for side in Side] == ["target target golden", "golden golden target"]
