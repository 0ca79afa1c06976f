"""Lead the links of the Chinese pages to Chinese pages and their headings.

``python tools/chinese_links.py`` rewrites docs/zh. A link may be written as the English page has it: a Chinese page has
the headings of its English page in the same order, so the anchor is found. Where no page is translated, links lead to
the English one.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = "docs/zh"

LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def chinese_name(english: str) -> str:
    """Return the path of the Chinese page of an English one."""
    return posixpath.join(FOLDER, english.removeprefix("docs/"))


def english_name(chinese: str) -> str:
    """Return the path of the English page of a Chinese one."""
    name = chinese.removeprefix(f"{FOLDER}/")
    return name if name == "README.md" else f"docs/{name}"


def anchors(name: str) -> list[str]:
    """Return the headings of a page as GitHub links to them, in order."""
    headings = _HEADING.findall(FENCE.sub("", (ROOT / name).read_text("utf-8")))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def from_chinese(page: str, target: str, anchor: str) -> str:
    """Return the link of a Chinese page to what its English page links to; paths start at the repository."""
    if target == chinese_name(page):  # each language links to the other
        return posixpath.relpath(page, FOLDER)
    there = target if target.startswith(f"{FOLDER}/") else chinese_name(target)
    if not (ROOT / there).is_file():
        return posixpath.relpath(target, FOLDER) + (f"#{anchor}" if anchor else "")
    if anchor and anchor not in (known := anchors(there)):
        headings = anchors(target)
        anchor = known[headings.index(anchor)] if anchor in headings and len(known) == len(headings) else ""
    return posixpath.relpath(there, FOLDER) + (f"#{anchor}" if anchor else "")


def led(link: str, page: str) -> str:
    """Return a link of a Chinese page as it has to be."""
    if "://" in link:
        return link
    file, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(FOLDER, file)) if file else page
    if target == english_name(page):  # each language links to the other
        return link
    if target.startswith(f"{FOLDER}/"):
        target = english_name(target)
    if not (ROOT / target).exists():
        target = posixpath.normpath(posixpath.join(posixpath.dirname(english_name(page)), file))
    if not (ROOT / target).exists():
        return link
    within = from_chinese(english_name(page), target, anchor)
    return within if file else f"#{within.partition('#')[2]}"


def rewrite(page: Path) -> None:
    """Write a page again with its links led."""
    name, text = page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
    page.write_text(LINK.sub(lambda link: led(link[0], name), text), "utf-8")


if __name__ == "__main__":
    for each in sorted((ROOT / FOLDER).glob("*.md")):
        rewrite(each)
