"""How large pages are and how long they take; the bounds leave room for a machine that does other things too."""

from __future__ import annotations

import time

import pytest

from tests.browser.conftest import Open
from tests.browser.synthetic import transformer

#: Type into the filter; return the seconds until the rows are there, without those in which the page waits for more.
FILTER = """async (text) => {
    const field = document.querySelector("#filter"), count = document.querySelector('.table .bar [role="status"]');
    const before = count.textContent;
    field.value = text;
    const start = performance.now();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    while (count.textContent === before) await new Promise((done) => setTimeout(done, 1));
    return (performance.now() - start - 120) / 1000;
}"""


@pytest.mark.parametrize(
    ("layers", "megabytes", "ready", "filtered"), [(260, 1.2, 1.0, 0.3), (2_600, 11, 3.0, 0.3), (13_000, 60, 6.0, 0.3)],
    ids=["20 thousand rows", "200 thousand", "a million"],
)  # fmt: skip
def test_pages_are_small_and_quick(opened: Open, layers: int, megabytes: float, ready: float, filtered: float) -> None:
    html = transformer(layers, layers // 3, backward=True).html()
    assert len(html) < megabytes * 1e6
    page = opened(html)
    took = {"ready": int(page.page.evaluate("document.documentElement.dataset.ready")) / 1000}
    page.until("document.querySelector('.figures tbody')", 30)
    page.settled()
    took["filtered"] = min(
        page.page.evaluate(FILTER, text) for text in ("norm1 output", "attention.q", "layers.7. down")
    )
    start = time.monotonic()
    page.press("ArrowRight")
    page.until(f"!document.querySelector('.names .full').innerText.includes('{layers // 3}.norm1')")
    took["selected"] = time.monotonic() - start
    print(f"{len(html) / 1e6:.2f} MB", {name: round(seconds, 2) for name, seconds in took.items()})
    assert took["ready"] < ready
    assert took["filtered"] < filtered
    assert took["selected"] < 0.5
    page.page.locator("#filter").fill("")
    page.settled()
    page.page.locator("#grid").focus()
    page.press("End")
    page.settled()
    shown = page.page.locator("#grid").evaluate(
        """(grid) => { const bottom = grid.getBoundingClientRect().bottom + 24;
        return [...grid.querySelectorAll(".body .row")]
        .filter((row) => row.getBoundingClientRect().bottom <= bottom).length }"""
    )
    assert shown > 10
    assert page.page.locator("#grid .active").is_visible()
