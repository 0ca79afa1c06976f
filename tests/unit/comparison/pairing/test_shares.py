"""Shares of modules and calls that were paired, and what was paired with what."""

from __future__ import annotations

import zlib

from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.pairing.shares import outermost, paired_with, shares_of
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump


def calls(*names: str) -> Dump:
    """Calls that each give out a tensor of their own."""
    return dump([tensor("output.0", [1.0, 2.0 + zlib.crc32(name.encode()) % 997], name) for name in names])


def paired(ours: list[str], theirs: list[str]) -> list[Pair]:
    return compare_dumps(calls(*ours), calls(*theirs), Options()).pairs


A, B, C = (f"Cell.{name}.Dense.forward.0" for name in "abc")


def test_modules_without_a_counterpart_are_named_by_side() -> None:
    shares = shares_of(paired([A, B, "Cell.b.Dense.forward.1"], [A, C]))
    assert (shares.modules, shares.target, shares.golden) == ((1, 2), ["b"], ["c"])
    assert shares.calls == (1, 3)


def test_a_module_that_is_called_more_often_on_one_side_has_a_counterpart() -> None:
    shares = shares_of(paired([A, "Cell.a.Dense.forward.1"], [A]))
    assert (shares.modules, shares.target, shares.calls) == ((1, 1), [], (1, 2))


def test_functions_count_where_both_sides_recorded_some() -> None:
    relu, exp = "Functional.relu.0.forward", "Functional.exp.0.forward"
    assert shares_of(paired([A, relu, exp], [A])).calls is None, "the share of modules says it all"
    shares = shares_of(paired([A, relu, exp], [A, relu]))
    assert (shares.calls, shares.functions) == ((2, 3), ([exp], []))


def test_of_modules_inside_each_other_the_outermost_are_named() -> None:
    assert outermost(["a.b.c", "a.b", "ab", "d.e", "a.b.f"]) == ["a.b", "ab", "d.e"]


def test_values_alone_have_no_calls() -> None:
    shares = shares_of(paired(["loss.0.debug"], ["loss.0.debug"]))
    assert (shares.modules, shares.calls) == (None, None)
    assert shares_of(paired([A], ["Functional.relu.0.forward"])).calls == (0, 1)


def test_what_was_paired_with_what_is_counted_by_module_and_function() -> None:
    names = [A, "Cell.a.Dense.forward.1", "Functional.relu.0.forward", "Functional.relu.1.forward"]
    assert paired_with(paired(names, names)) == [
        (("Cell.a.Dense", "Cell.a.Dense", "name"), 2),
        (("Functional.relu", "Functional.relu", "name"), 2),
    ]
