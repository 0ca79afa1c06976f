"""The page in a browser: it loads nothing else, reads without its script, works where much is forbidden, and prints."""

from __future__ import annotations

import re
import zlib
from html import escape
from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.browser.synthetic import Builder, transformer

ORIGIN = "Cell.layers.2.norm1.LayerNorm.forward.0"


def test_a_double_click_asks_for_nothing_else(opened: Open) -> None:
    page = opened(transformer().html())
    page.settled()
    assert page.requests == [page.path.as_uri()]
    assert page.page.title() == f"DIVERGENT at {ORIGIN}"


def test_a_key_pressed_the_moment_it_is_ready_counts(opened: Open) -> None:
    page = opened(transformer().html(), wait=False)
    page.page.add_init_script(
        """new MutationObserver((_, observer) => {
            if (!document.documentElement?.dataset.ready) return;
            observer.disconnect();
            dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        }).observe(document, { attributes: true, subtree: true, childList: true })"""
    )
    page.page.reload()
    page.ready().settled()
    assert page.node == "Cell.layers.2.attention.q_proj.Dense.forward.0"


def test_the_verdict_reads_without_a_script(opened: Open) -> None:
    page = opened(transformer().html(), wait=False, java_script_enabled=False)
    assert ORIGIN in page.text("#verdict")
    assert "golden/step0/rank0" in page.text("#provenance")


def test_an_old_browser_says_why_there_is_no_plot(opened: Open) -> None:
    page = opened(transformer().html(), wait=False)
    page.page.add_init_script("delete window.DecompressionStream")
    page.page.reload()
    page.until("document.querySelector('#app .note')")
    assert "too old" in page.text("#app")
    assert ORIGIN in page.text("#verdict")


def test_a_damaged_page_keeps_its_verdict(opened: Open) -> None:
    html = re.sub(r'(id="k0">)[^<]{40}', r"\1AAAA", transformer().html())
    page = opened(html, wait=False)
    page.until("document.querySelector('#app .note')")
    assert "cannot be shown" in page.text("#app")
    assert ORIGIN in page.text("#verdict")


def test_a_healthy_page_is_calm(opened: Open) -> None:
    page = opened(transformer(faulty=None).html())
    assert page.page.locator(".origin-box").count() == 0
    assert page.page.locator(".tools .primary").count() == 0
    assert page.node.startswith("Cell.")


def test_a_page_without_a_row_is_no_error(opened: Open) -> None:
    page = opened(Builder([], None, 1, False, None).page().html())
    assert "There are no values" in page.text(".grid")


def test_it_works_in_a_frame_that_may_do_nothing_but_run(opened: Open) -> None:
    inside = escape(transformer().html())
    frame = f'<!doctype html><iframe sandbox="allow-scripts" width="1200" height="800" srcdoc="{inside}">'
    page = opened(frame, wait=False)
    page.until("document.querySelector('iframe') !== null")
    inner = page.page.frames[1]
    page.page.wait_for_timeout(50)
    for _ in range(200):
        if inner.evaluate("document.documentElement.dataset.ready"):
            break
        page.page.wait_for_timeout(20)
    assert inner.evaluate("origin") == "null"
    inner.locator("#grid").focus()
    page.press("ArrowDown", "Enter")
    page.page.wait_for_timeout(500)
    assert inner.evaluate("location.hash").startswith("#node=Cell.layers.2.")
    assert inner.locator(".names .full").inner_text().startswith("Cell.layers.2.")


def test_its_own_code_may_not_evaluate_nor_load(opened: Open) -> None:
    """What the driver evaluates is above the policy, so what it hangs into the page has to try."""
    page = opened(transformer().html(), quiet=False)
    page.page.evaluate(
        """() => { const attempt = (name, run) => {
            try { run(); window[name] = "done" } catch (error) { window[name] = error.name } };
        addEventListener("click", () => {
            attempt("evaluated", () => (0, eval)("1"));
            attempt("marked", () => { document.createElement("p").innerHTML = "<b>x</b>" });
            fetch("https://example.org/").catch((error) => { window.fetched = error.name });
        }) }"""
    )
    page.page.mouse.click(5, 5)
    page.until("window.fetched")
    assert [page.page.evaluate(name) for name in ("evaluated", "marked", "fetched")] == [
        "EvalError",
        "TypeError",
        "TypeError",
    ]


def _printed(pdf: bytes) -> int:
    """Bytes of what is drawn in a PDF: text and paths of all pages."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    total = 0
    for stream in streams:
        try:
            total += len(zlib.decompress(stream))
        except zlib.error:
            continue
    return total


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_holds_the_verdict_and_forty_rows(opened: Open, scheme: str) -> None:
    page = opened(transformer(12, 3).html(), color_scheme=scheme)
    page.page.emulate_media(media="print")
    assert page.page.locator("#verdict").is_visible()
    assert not page.page.locator(".grid").is_visible()
    rows = page.page.locator(".paper > table tbody tr")
    assert rows.count() == 40
    assert all(rows.nth(number).is_visible() for number in (0, 39))
    assert "LayerNorm" in rows.nth(0).inner_text()
    assert _printed(page.page.pdf()) > 20_000


def test_paper_is_light(opened: Open) -> None:
    page = opened(transformer().html(), color_scheme="dark")
    colour = "getComputedStyle(document.body).color"
    before = page.page.evaluate(colour)
    page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.page.evaluate(colour)
    page.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert printed != before == page.page.evaluate(colour)


def _shares(page: Any, x: float) -> dict[str, int]:
    """How many pixels of the plot have which colour, near a place of its width (0 to 1)."""
    found: dict[str, int] = page.page.evaluate(
        """(x) => { const canvas = document.querySelector("#plot"), scale = canvas.width / canvas.clientWidth;
        const left = (76 + x * (canvas.clientWidth - 86)) * scale - 3;
        const copy = document.createElement("canvas"), counts = new Map();
        [copy.width, copy.height] = [7, canvas.height];
        const context = copy.getContext("2d", { willReadFrequently: true });
        context.drawImage(canvas, -Math.round(left), 0);
        const data = context.getImageData(0, 0, 7, canvas.height).data;
        for (let i = 0; i < data.length; i += 4) { if (data[i + 3] < 255) continue;
            const colour = `${data[i]},${data[i + 1]},${data[i + 2]}`;
            counts.set(colour, (counts.get(colour) ?? 0) + 1) }
        return Object.fromEntries(counts) }""",
        x,
    )
    return found


def test_the_plot_is_vermilion_where_the_error_begins(opened: Open) -> None:
    html = transformer(40, 13).html()
    page = opened(html)
    page.press("ArrowLeft")  # the selection would lie over the origin
    page.settled()
    row = page.page.evaluate("JSON.parse(document.querySelector('#index').textContent).origins[0].row")
    rows = page.page.evaluate("JSON.parse(document.querySelector('#index').textContent).rows")
    vermilion, blue, amber = "187,74,0", "0,114,178", "184,122,0"
    assert _shares(page, (row + 0.5) / rows).get(vermilion, 0) > 20
    before, after = _shares(page, 0.1), _shares(page, 0.6)
    assert before.get(blue, 0) > 3 and amber not in before
    assert after.get(amber, 0) > 3 and blue not in after


def test_pointers_select_zoom_and_unzoom(opened: Open) -> None:
    page = opened(transformer(40, 13).html())
    box = page.page.locator("#plot").bounding_box()
    page.page.mouse.click(box["x"] + 300, box["y"] + 100)
    page.settled()
    assert page.node != "Cell.layers.13.norm1.LayerNorm.forward.0"
    page.page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 400, box["y"] + 100, steps=4)
    page.page.mouse.up()
    page.settled()
    assert re.search(r"x=\d+-\d+", page.page.url)
    assert " of " in page.text(".plot .bar .muted")
    page.page.mouse.dblclick(box["x"] + 300, box["y"] + 100)
    page.settled()
    assert "x=" not in page.page.url
    page.page.locator("#icicle").click(position={"x": 60, "y": 30})
    page.settled()
    assert "layers." in page.node
