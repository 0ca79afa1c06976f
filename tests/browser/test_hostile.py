"""Names and texts of strangers: shown as what they are, never run, whatever they hold."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from msprobe_ms.support.text import printable
from tests.browser.conftest import Open
from tests.browser.synthetic import Page, transformer

TEXTS = [
    "</script><script>window.PWNED = 1</script>",
    "<svg onload=window.PWNED=1>",
    "<img src=x onerror=window.PWNED=1>",
    "javascript:window.PWNED=1",
    "Cell.\u202egnp.exe\u202c.forward.0",
    "nul\0 esc\x1b[31m bell\x07 feed\r\n\ttab",
    "half \ud800 of a pair",
    "zero\u200bwidth\ufeff\u2028line",
    '=HYPERLINK("http://example.org")',
    "__proto__",
    "constructor",
    "{{7*7}} ${7*7} %s",
    "-->]]><!--",
    "層.正規化.𝐱 🙂",
    "a" * 1_000_000,
]


def hostile(column_names: tuple[str, ...]) -> Page:
    """Return a page whose texts are all replaced, in turn, by hostile ones."""
    page = transformer(3, 1)
    columns: dict[str, Any] = page.columns.index
    for name in column_names:
        count = columns[name]["length"]
        page.columns.add_json(name, [TEXTS[number % len(TEXTS)] for number in range(count)])
    for origin in page.index["origins"]:
        origin.update({"kind": TEXTS[0], "reason": TEXTS[1], "details": TEXTS, "site": TEXTS[4], "command": TEXTS[2]})
    page.index.update(
        tolerated=TEXTS[:2], provenance=[[text[:50], text[:50]] for text in TEXTS if "\ud800" not in text]
    )
    page.index["metrics"] = [{"name": TEXTS[0], "title": TEXTS[1], "column": "metric_0"}]
    page.header = ""
    return page


COLUMNS = ("call_names", "slots", "hows", "reasons", "target_types", "target_texts", "frames")


def test_hostile_texts_do_nothing(opened: Open) -> None:
    page = opened(hostile(COLUMNS).html(), quiet=False)
    page.settled()
    for tab in ("elements", "neighbours", "stack", "raw", "figures"):
        page.page.locator(f"#tab-{tab}").click()
        page.settled()
    for view in ("side by side", "icicle"):
        page.page.locator(".model button", has_text=view).click()
        page.settled()
    page.page.locator("#grid").focus()
    for key in ("Home", "Enter", "ArrowDown", "Enter", "End", "Enter", "o", "n"):
        page.press(key)
        page.settled()
    assert page.page.evaluate("[window.PWNED, Object.prototype.PWNED]") == [None, None]
    assert page.page.locator("#report :is(img, svg, iframe, script, a, object)").count() == 0
    assert page.complaints == []
    assert {url.partition("#")[0] for url in page.requests} == {page.path.as_uri()}


def test_what_is_not_printable_is_escaped(opened: Open) -> None:
    page = opened(hostile(("call_names",)).html())
    shown = page.page.evaluate(
        """document.body.innerText + document.title
        + [...document.querySelectorAll("[aria-label], [title]")].map((each) => each.ariaLabel + each.title)"""
    )
    assert "\u202e" not in shown and "\0" not in shown and "\x1b" not in shown and "\u200b" not in shown
    page.page.locator("#grid").focus()
    page.press("Home")
    page.settled()
    table = page.text("#grid")
    assert "\\u202egnp.exe" in table and "</script><script>" in table and "nul\\x00 esc\\x1b[31m" in table
    assert len(table) < 20_000
    page.page.locator("#filter").fill("層")
    page.settled()
    assert "層.正規化.𝐱 🙂" in page.text("#grid")


@pytest.mark.parametrize("name", [text for text in TEXTS if len(text) < 999 and "\ud800" not in text])
def test_a_link_to_a_hostile_name_leads_to_it(opened: Open, name: str) -> None:
    page = opened(hostile(("call_names",)).html(), fragment=f"#node={quote(name)}")
    assert page.node == printable(name)
    assert page.page.locator("#app > .note").count() == 0


def test_what_is_copied_for_a_spreadsheet_is_no_formula(opened: Open) -> None:
    page = opened(hostile(("reasons", "call_names")).html(), permissions=["clipboard-read", "clipboard-write"])
    page.page.locator("button", has_text="copy table").click()
    page.until("document.querySelector('.table').innerText.includes('copied')")
    lines = page.page.evaluate("navigator.clipboard.readText()").split("\n")
    assert len(lines) == 1 + page.page.evaluate("JSON.parse(document.querySelector('#index').textContent).rows")
    assert all(len(line.split("\t")) == 17 for line in lines)
    assert not any(cell[:1] in ("=", "+", "@") for line in lines for cell in line.split("\t"))
