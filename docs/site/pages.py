"""Pages of the site: which there are in each language, where their links lead, and in which order they stand.

A page has the name that Sphinx gives it: its path from the root of the repository, without suffix.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import yaml

#: What the site holds, from the root of the repository.
PATTERNS = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "torture/README.md", "zoo/*.md",
    "docs/**.md", "docs/*.ipynb",
]  # fmt: skip
SUFFIXES = (".md", ".ipynb")
#: Folders that are not looked into.
_CLOSED = [".*", "build", "dist", "msprobe_ms", "*.egg-info", "samples", "tests", "tools", "web", "configs"]
_START = "README"
_CHINESE = "docs/zh/"
_DECISIONS = "docs/decisions/README"
_DECISIONS_BELOW = "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"
#: A picture's mark, the text, the path within the repository and the anchor of a link.
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_BLOCK_OF_CODE = re.compile(r"(^(?:`{3,}).*?^`{3,}$)", re.MULTILINE | re.DOTALL)
_REPOSITORY = re.compile(r'^REPOSITORY = "(.*)"$', re.MULTILINE)


class Pages:
    """The pages of one language. A Chinese site has the English page where nobody has translated it yet."""

    def __init__(self, root: Path, *, chinese: bool) -> None:
        self.root = root
        self.chinese = chinese
        self.navigation: list[dict[str, Any]] = yaml.safe_load((root / "docs/site/navigation.yaml").read_text("utf-8"))
        self._repository = _REPOSITORY.findall((root / "setup.py").read_text("utf-8"))[0]

    def names(self) -> list[str]:
        """The English pages of the navigation, in its order."""
        return [name for part in self.navigation for name in part["pages"]]

    def excluded(self) -> list[str]:
        """Patterns of what the site does not show: closed folders, and pages of the other language."""
        if not self.chinese:
            return [*_CLOSED, _CHINESE.rstrip("/")]
        hidden = [f"{_CHINESE}{_START}", *(name for name in self.names() if self.shown(name) != name)]
        return [*_CLOSED, *(name + suffix for name in hidden for suffix in SUFFIXES)]

    def in_other_language(self, name: str) -> str:
        """The address of the same page in the other language, from the root of this site."""
        english = _in_english(name)
        there = english if self.chinese else self._translation(english) or english
        known = self._suffix(english) and english != _START
        return f"{'..' if self.chinese else 'zh'}/{there if known else 'index'}.html"

    def shown(self, name: str) -> str:
        """The page that this site has for an English one."""
        return (self.chinese and name != _START and self._translation(name)) or name

    def prepared(self, name: str, text: str) -> str:
        """The text of a page with links that lead somewhere in this site.

        To the start page the navigation is added, and to the page of decisions that of each.
        """
        written = name
        if name == _START and self.chinese and (translation := self._translation(name)):
            written, text = translation, (self.root / f"{translation}.md").read_text("utf-8")
        prose_and_code = _BLOCK_OF_CODE.split(text)
        prose_and_code[::2] = [
            _LINK.sub(lambda link: self._led(link, written, name), prose) for prose in prose_and_code[::2]
        ]
        below = self._contents() if name == _START else _DECISIONS_BELOW if name == _DECISIONS else ""
        return "".join(prose_and_code) + below

    def _led(self, link: re.Match[str], written: str, name: str) -> str:
        """A link of a page that is written under one name and shown as if it were under another."""
        picture, text, path, anchor = link.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(written), path))
        shown_in = posixpath.dirname(name)
        stem, suffix = posixpath.splitext(target)
        if suffix in SUFFIXES and stem != written and stem == self._in_the_other(written):
            return f'<a href="{posixpath.relpath(self.in_other_language(name), shown_in or ".")}">{text}</a>'
        if suffix in SUFFIXES and self._is_page(english := _in_english(stem)):
            shown = self.shown(english)
            kept = anchor or "" if shown in {stem, english} else ""  # headings of a translation are others
            return f"[{text}]({posixpath.relpath(shown, shown_in or '.')}{self._suffix(shown)}{kept})"
        if not (self.root / target).exists():
            return link[0]  # Sphinx says that it leads nowhere
        if picture:
            return f"![{text}]({posixpath.relpath(target, shown_in or '.')})"
        return f"[{text}]({self._repository}/blob/main/{target})" if self._repository else text

    def _in_the_other(self, name: str) -> str | None:
        """The page that says the same in the other language."""
        return _in_english(name) if self.chinese else self._translation(name)

    def _is_page(self, name: str) -> bool:
        return name in {_START, *self.names()} or name.startswith("docs/decisions/")

    def _contents(self) -> str:
        """Hidden tables of contents, one a part of the navigation."""
        language = "zh" if self.chinese else "en"
        trees = []
        for part in self.navigation:
            names = "\n".join(f"/{self.shown(name)}" for name in part["pages"])
            trees.append(f"\n```{{toctree}}\n:hidden:\n:caption: {part[language]}\n\n{names}\n```\n")
        return "\n" + "".join(trees)

    def _translation(self, name: str) -> str | None:
        there = f"{_CHINESE}{name.removeprefix('docs/')}"
        return there if self._suffix(there) else None

    def _suffix(self, name: str) -> str:
        return next((suffix for suffix in SUFFIXES if (self.root / f"{name}{suffix}").is_file()), "")


def _in_english(name: str) -> str:
    if name == f"{_CHINESE}{_START}":
        return _START
    return name.replace(_CHINESE, "docs/", 1) if name.startswith(_CHINESE) else name
