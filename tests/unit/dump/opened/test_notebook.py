"""A recorded step in a notebook: each call with what it gave out; nothing in a name is markup."""

from __future__ import annotations

import numpy as np
from compare_parts import dump, null, tensor, value

from msprobe_ms.dump.opened.notebook import recording_html


def test_results_stand_with_their_figures() -> None:
    shown = recording_html(dump([tensor("input.0", [1.0]), tensor("output.0", [[1.0, -2.5]]), value("output.1", 3)]))
    shown = shown.replace(' style="text-align:left"', "")
    assert "<td>Functional.op.0.forward</td><td>output.0</td><td>Float64 [1, 2]</td><td>1</td><td>-2.5</td>" in shown
    assert "<td></td><td>output.1</td><td>int</td><td>3</td>" in shown
    assert "input.0" not in shown


def test_what_is_not_finite_is_marked() -> None:
    shown = recording_html(dump([tensor("output.0", [np.nan, 1.0]), tensor("output.1", [1.0])]))
    assert shown.count("<tr style=") == 1


def test_names_are_text() -> None:
    shown = recording_html(dump([null("output.0", "Cell.<img src=x>.A.forward.0")]))
    assert "<img" not in shown and "&lt;img src=x&gt;" in shown


def test_of_many_calls_the_first_are_shown() -> None:
    shown = recording_html(
        dump([tensor("output.0", [1.0], f"Functional.op.{number}.forward") for number in range(130)])
    )
    assert shown.count("<tr>") == 101
    assert shown.endswith("<div>and 30 more</div>")
