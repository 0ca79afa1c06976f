"""A real Chromium, and pages opened in it from disk.

``MSPROBE_BROWSER`` names the program, or says ``required``: then tests fail where there is none, else they are skipped.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: Root may not use Chromium's own sandbox; the others keep contexts alike on every machine.
_ARGUMENTS = ["--force-color-profile=srgb", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def absent(why: str) -> None:
    """Skip, or fail where a browser is required."""
    if os.environ.get("MSPROBE_BROWSER") == "required":
        pytest.fail(f"MSPROBE_BROWSER=required, and {why}", pytrace=False)
    pytest.skip(f"NOT TESTED: {why}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    chosen = os.environ.get("MSPROBE_BROWSER", "")
    program = chosen if chosen not in ("", "required") else shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        absent('playwright is not installed: pip install -e ".[browser]"')
    if program is None:
        absent("no chromium is on the path: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A page in the browser; ``requests`` and ``complaints`` are what it asked for and what the console said."""

    def __init__(self, context: Any, path: Path) -> None:
        self.path = path
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda line: self.complaints.append(line.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))

    def goto(self, fragment: str = "") -> None:
        self.page.goto(self.path.as_uri() + fragment)

    def until(self, condition: str, seconds: float = 10.0) -> Any:
        """Poll, as waiting functions of the driver need eval, which the page's policy forbids."""
        end = time.monotonic() + seconds
        while not (found := self.page.evaluate(condition)):
            assert time.monotonic() < end, f"not within {seconds} s: {condition}"
            time.sleep(0.01)
        return found

    def ready(self) -> Opened:
        self.until("document.documentElement.dataset.ready")
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def settled(self) -> None:
        """Wait until what was typed and selected is shown, and written into the address."""
        self.page.evaluate(
            "new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 350))"
        )

    @property
    def node(self) -> str:
        """The name of the selected call."""
        return str(self.page.inner_text(".names .full"))

    def box(self, selector: str) -> dict[str, float]:
        """Where the first element of a selector stands in the window, in pixels."""
        return dict(self.page.locator(selector).first.bounding_box())

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))


Open = Callable[..., Opened]


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Write a page and open it; afterwards nothing but the page itself was asked for, and no console said anything."""
    contexts: list[Any] = []
    seen: list[Opened] = []

    def open_page(html: str, *, fragment: str = "", wait: bool = True, quiet: bool = True, **options: Any) -> Opened:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        path = tmp_path / f"report{len(contexts)}.html"
        path.write_text(html, "utf-8")
        page = Opened(context, path)
        if quiet:
            seen.append(page)
        page.goto(fragment)
        return page.ready() if wait else page

    yield open_page
    for page in seen:
        assert page.complaints == []
        assert {url.partition("#")[0] for url in page.requests} == {page.path.as_uri()}
    for context in contexts:
        context.close()
