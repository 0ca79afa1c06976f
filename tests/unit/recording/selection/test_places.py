"""Places of calls: the number of each inside the call around it."""

from __future__ import annotations

import pytest

from msprobe_ms.recording.calls import Call, Subject
from msprobe_ms.recording.selection.places import Places


def call(base: str, parent: Call | None = None) -> Call:
    return Call(Subject(base, is_module=base.startswith("Module")), 0, parent, 0)


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("0", {"0"}),
        ("1_0", {"1_0"}),
        ("*", {"0", "1"}),
        ("1_*", {"1_0", "1_1"}),
        ("1_**", {"1_0", "1_1", "1_1_0"}),
        ("**", {"0", "1", "1_0", "1_1", "1_1_0"}),
        ("11", set()),
    ],
)
def test_patterns(pattern: str, taken: set[str]) -> None:
    places = Places([pattern])
    found = set()

    def made(base: str, parent: Call | None) -> Call:
        each = call(base, parent)
        if places.takes(each):
            found.add(each.place)
        return each

    root = made("Module.Net", None)
    made("Module.a.Linear", root)
    block = made("Module.b.Block", root)
    made("Functional.relu", block)
    inner = made("Module.b.c.Block", block)
    made("Functional.relu", inner)
    assert found == taken and root.place == ""
    assert places.took_none == (not taken)


def test_without_the_network_s_own_call_all_are_numbered_on() -> None:
    places = Places(["1"])
    assert [places.takes(call(f"Functional.{name}")) for name in "abc"] == [False, True, False]
    assert places.took("Functional.b") and not places.took("Functional.a")


def test_what_is_outside_of_a_known_network_has_no_place() -> None:
    places = Places(["0"], inside=True)
    outside, root = call("Tensor.add"), call("Module.Net")
    assert not places.takes(outside) and not places.takes(root)
    assert places.takes(call("Module.a.Linear", root))
