"""Which numbers came, in any order."""

from __future__ import annotations

from msprobe_ms.remote.numbers import Numbers


def test_numbers_may_come_in_any_order_and_twice() -> None:
    numbers = Numbers()
    for number in (1, 2, 5, 4, 2, 9):
        numbers.add(number)
    assert (numbers.all_up_to, numbers.highest, len(numbers)) == (2, 9, 5)
    assert [number for number in range(11) if number in numbers] == [0, 1, 2, 4, 5, 9]
    assert list(numbers.missing(10)) == [range(3, 4), range(6, 9), range(10, 11)]
    assert list(numbers.missing(2)) == []
    numbers.add(3)
    assert (numbers.all_up_to, len(numbers)) == (5, 6)


def test_a_hostile_number_costs_nothing() -> None:
    numbers = Numbers()
    numbers.add(1 << 47)
    assert list(numbers.missing(1 << 47)) == [range(1, 1 << 47)]
