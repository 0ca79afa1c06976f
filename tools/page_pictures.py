"""Draws the pictures of the report page in ``docs/img``, of what ``make demo`` left in ``demo_output``.

``make demo .venv/installed-browser && .venv/bin/python tools/page_pictures.py``; it takes a Chromium on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "img"


class Picture(NamedTuple):
    """A picture of the page: what part of it (all that a window shows where it is ""), after which keys."""

    name: str
    part: str = ""
    keys: str = ""
    scheme: str = "light"
    width: int = 1280
    height: int = 776


PICTURES = (
    Picture("report.png"),
    Picture("report_dark.png", scheme="dark"),
    Picture("report_node.png", ".columns", "m v v v", height=1200),  # as tall as both stand in one box
)


def main() -> None:
    """Draw every picture."""
    with tempfile.TemporaryDirectory() as folder:
        draw_all(compared(Path(folder)))


def compared(folder: Path) -> Path:
    """Compare what the demo dumped, under paths that are nobody's; return the page."""
    shutil.copytree(ROOT / "demo_output" / "faulty", folder / "dump")
    shutil.copytree(ROOT / "samples" / "golden", folder / "golden")
    for stacks in folder.rglob("stack.json"):
        stacks.write_text(stacks.read_text().replace(f"{ROOT}/", ""))
    mapping = ROOT / "samples" / "layer_mapping.yaml"
    command = [
        "-m",
        "msprobe_ms",
        "compare",
        "-tp",
        "dump/step0",
        "-gp",
        "golden/step0",
        "-lm",
        mapping,
        "-o",
        "report",
    ]
    subprocess.run([sys.executable, *map(str, command)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("report/*.html"))


def draw_all(page: Path) -> None:
    """Draw every picture of a page."""
    arguments = ["--force-color-profile=srgb", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for picture in PICTURES:
            draw(browser, page, picture)
        browser.close()


def draw(browser: Any, page: Path, picture: Picture) -> None:
    """Draw one picture."""
    size = {"width": picture.width, "height": picture.height}
    opened = browser.new_context(viewport=size, color_scheme=picture.scheme).new_page()
    opened.goto(page.as_uri())
    opened.locator("html[data-ready]").wait_for()
    for key in picture.keys.split():
        opened.keyboard.press(key)
    opened.wait_for_timeout(1000)  # until what is chosen is decoded and drawn
    part = opened.locator(picture.part) if picture.part else opened
    part.screenshot(path=IMAGES / picture.name)


if __name__ == "__main__":
    main()
