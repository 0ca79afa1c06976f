"""How large pages are and how long they take; the bounds are about three times what was measured on two cores."""

from __future__ import annotations

import time

import pytest

from tests.browser.conftest import Open
from tests.browser.synthetic import transformer


@pytest.mark.parametrize(
    ("layers", "megabytes", "ready", "filtered"), [(260, 1.2, 1.5, 0.3), (2_600, 11, 3.0, 0.4), (13_000, 60, 6.0, 0.9)],
    ids=["20 thousand rows", "200 thousand", "a million"],
)  # fmt: skip
def test_pages_are_small_and_quick(opened: Open, layers: int, megabytes: float, ready: float, filtered: float) -> None:
    html = transformer(layers, layers // 3, backward=True).html()
    assert len(html) < megabytes * 1e6
    start = time.monotonic()
    page = opened(html)
    took = {"ready": time.monotonic() - start}
    page.until("document.querySelector('.figures tbody')", 30)
    page.settled()
    start = time.monotonic()
    page.page.locator("#filter").fill("norm1 output")
    page.until("document.querySelector('.table [role=\"status\"]').innerText.includes(' of ')")
    took["filtered"] = time.monotonic() - start
    start = time.monotonic()
    page.press("Escape", "ArrowRight")
    page.until(f"!document.querySelector('.names .full').innerText.includes('{layers // 3}.norm1')")
    took["selected"] = time.monotonic() - start
    print(f"{len(html) / 1e6:.2f} MB", {name: round(seconds, 2) for name, seconds in took.items()})
    assert took["ready"] < ready
    assert took["filtered"] < filtered
    assert took["selected"] < 0.5
    page.page.locator("#grid").focus()
    page.press("End")
    page.settled()
    shown = page.page.locator("#grid").evaluate(
        "(grid) => [...grid.querySelectorAll('.body .row')].filter((row) => row.getBoundingClientRect().bottom <= grid.getBoundingClientRect().bottom + 24).length"
    )
    assert shown > 10
    assert page.page.locator("#grid .active").is_visible()
