"""WCAG 2.2 AA by axe-core, in every way the page is shown, and what axe does not see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open, Opened, absent
from tests.browser.synthetic import transformer

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
NARROW = {"width": 320, "height": 700}


def violations(page: Opened) -> list[str]:
    if not AXE.exists():
        absent("axe-core is not installed: cd web && npm ci --ignore-scripts")
    page.page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = page.page.evaluate("(rules) => axe.run(document, { runOnly: rules })", RULES)
    return [
        f"{each['id']}: {node['html'][:120]} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"color_scheme": "dark"},
        {"viewport": NARROW},
        {"viewport": NARROW, "color_scheme": "dark"},
        {"forced_colors": "active"},
        {"reduced_motion": "reduce"},
    ],
    ids=["light", "dark", "narrow", "narrow dark", "forced colours", "reduced motion"],
)
def test_axe_finds_nothing(opened: Open, options: dict[str, Any]) -> None:
    page = opened(transformer(6, 2, backward=True, nan_at=5).html(), **options)
    page.settled()
    assert violations(page) == []
    for tab in ("elements", "neighbours", "stack", "raw"):
        page.page.locator(f"#tab-{tab}").click()
        page.settled()
        assert violations(page) == [], tab
    page.page.locator(".model button", has_text="side by side").click()
    page.page.locator("#filter").fill("norm")
    page.settled()
    assert violations(page) == []
    page.page.locator(".tools button", has_text="?").click()
    assert violations(page) == []


@pytest.mark.parametrize("width", [320, 500, 800, 1100, 1920])
def test_nothing_scrolls_sideways(opened: Open, width: int) -> None:
    page = opened(transformer(6, 2, backward=True).html(), viewport={"width": width, "height": 800})
    page.settled()
    for view in ("side by side", "icicle"):
        page.page.locator(".model button", has_text=view).click()
        page.settled()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_targets_are_large_enough(opened: Open) -> None:
    page = opened(transformer(6, 2, backward=True).html())
    page.settled()
    small = page.page.evaluate(
        """[...document.querySelectorAll("button, select, input, summary")].filter((each) => each.offsetParent)
        .map((each) => [each.getBoundingClientRect(), each.outerHTML])
        .filter(([box]) => box.height < 23 || box.width < 23)
        .map(([box, html]) => `${box.width}x${box.height} ${html}`)"""
    )
    assert [each for each in small if "checkbox" not in each] == []


def test_every_control_is_reached_by_tab_and_shows_it(opened: Open) -> None:
    page = opened(transformer(3, 1).html())
    page.settled()
    seen: list[str] = []
    for _ in range(80):
        page.press("Tab")
        name, ring = page.page.evaluate(
            """(() => { const at = document.activeElement;
            return [at.id || at.innerText, getComputedStyle(at).outlineStyle] })()"""
        )
        if name in seen[:1] or document_body(page):
            break
        assert ring != "none", name
        seen.append(name)
    text = " | ".join(seen)
    for wanted in ("copy link", "error ratio", "icicle", "tab-figures", "tabpanel", "filter", "grid"):
        assert wanted in text


def document_body(page: Opened) -> bool:
    return bool(page.page.evaluate("document.activeElement === document.body"))


def test_the_selection_is_told(opened: Open) -> None:
    page = opened(transformer(6, 2).html())
    page.press("ArrowRight")
    page.settled()
    told = page.page.locator('[aria-live="polite"]').inner_text()
    assert told.startswith("inherited: Cell.layers.2.attention.q_proj") and "error ratio" in told


def test_the_grid_says_where_in_it_one_is(opened: Open) -> None:
    page = opened(transformer(40, 2).html())
    page.page.locator("#grid").focus()
    page.press("End")
    page.settled()
    grid = page.page.locator("#grid")
    last = int(grid.get_attribute("aria-rowcount") or 0)
    active = page.page.locator("#" + (grid.get_attribute("aria-activedescendant") or ""))
    assert active.get_attribute("aria-rowindex") == str(last)
    assert page.page.locator('#grid [role="row"]').count() < 60


def test_colours_follow_the_system_and_the_button(opened: Open) -> None:
    page = opened(transformer(3, 1).html(), quiet=False)  # the console tells of pixels that are read twice
    ink = "getComputedStyle(document.body).color"
    drawn = """(() => { const canvas = document.querySelector("#plot");
        const data = canvas.getContext("2d").getImageData(0, 0, 50, canvas.height).data;
        return [...data.keys()].filter((i) => i % 4 === 0 && data[i + 3] > 200).map((i) => data[i]) })()"""
    assert page.page.evaluate(ink) == "rgb(27, 33, 39)" and min(page.page.evaluate(drawn)) < 110
    page.page.emulate_media(color_scheme="dark")
    page.settled()
    assert page.page.evaluate(ink) == "rgb(228, 232, 236)" and max(page.page.evaluate(drawn)) > 140
    page.page.locator('[aria-label="light colours"], [aria-label="dark colours"]').click()
    page.settled()
    assert page.page.evaluate(ink) in ("rgb(27, 33, 39)", "rgb(228, 232, 236)")
