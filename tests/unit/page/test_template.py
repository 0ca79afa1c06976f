"""The skeleton of a page: its policy holds its own script and style, and no text becomes markup."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import re

from hypothesis import given
from hypothesis import strategies as st
from report_page import Page

from msprobe_ms.page.columns import Columns
from msprobe_ms.page.template import escaped, write_page


def written(**parts: object) -> str:
    file = io.BytesIO()
    given = {"title": "", "header": "", "provenance": "", "index": {}, "columns": Columns(), **parts}
    write_page(file, **given)  # type: ignore[arg-type]
    return file.getvalue().decode()


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else() -> None:
    page = written()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    (script,) = re.findall(r"<script>(.*?)</script>\n</body>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy[1].split("; ") == [
        "default-src 'none'", f"script-src 'sha256-{digest(script)}'", f"style-src 'sha256-{digest(style)}'",
        "img-src data: blob:", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]  # fmt: skip


@given(st.text())
def test_texts_stay_texts(text: str) -> None:
    page = written(title=text, index={"title": text})
    assert page.count("<script") == 2
    assert Page(page).index["title"] == text
    assert "<" not in escaped(text) and '"' not in escaped(text)
    assert html.unescape(escaped(text, 10**6)).isprintable()


def test_long_texts_are_cut() -> None:
    assert escaped("a" * 1000) == "a" * 300 + "…"
